"""Kill a fit at random moments, let it go on each time, and compare the end with a fit nobody killed.

    OMP_NUM_THREADS=1 python benchmarks/kill_and_resume.py [--kills 50] [--seed 0] [--rows 1000]

A fit with ``checkpoint_dir`` runs in a process of its own, which is killed (SIGKILL) at a random moment.
Moments are uniform over the steps of the fit, calibration and epochs, each as long as it took in a fit that
nobody disturbed: by the clock alone nearly all would strike in calibration. Writing takes only milliseconds,
so every fifth kill waits, from such a moment on, until a checkpoint is being written. The same fit is then
started again and left alone. Prints where each kill struck, as the files left behind and its log tell, and in
how many cases labels, prototypes, weights and history were equal to the last bit.

With ``--chain`` one fit is killed again and again until it has come to its end, instead of once each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

N_CLASSES, N_COLUMNS, N_EPOCHS = 12, 64, 8
# Each fit is a process of its own that begins with these imported, which takes longer than the fit itself.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["faiss", "infomap", "torch", "pnp_gcd.discoverer", "pnp_gcd.training"])


def fit(folder: Path, out: Path, log: Path, n_rows: int) -> None:
    """Fit, in a process that may be killed; write digests of what was found."""
    from pnp_gcd import PNPDiscoverer

    stream = os.open(log, os.O_WRONLY | os.O_TRUNC)
    os.dup2(stream, sys.stderr.fileno())
    os.close(stream)
    logging.basicConfig(stream=sys.stderr, format="%(created).4f %(message)s")
    logging.getLogger("pnp_gcd").setLevel(logging.INFO)
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_rows)
    X = (0.45 * rng.normal(size=(N_CLASSES, N_COLUMNS)))[y] + rng.normal(size=(n_rows, N_COLUMNS))
    has_label = (y < N_CLASSES // 2) & (rng.random(n_rows) < 0.5)
    model = PNPDiscoverer(random_state=0, max_iter=N_EPOCHS, checkpoint_dir=folder)
    logging.getLogger("pnp_gcd").info("fit begins")
    model.fit(X[has_label], y[has_label], X[~has_label])
    weights = b"".join(tensor.numpy().tobytes() for tensor in model.encoder_.state_dict().values())
    found = {
        "labels": model.unlabelled_labels_.tobytes(),
        "prototypes": model.prototypes_.tobytes(),
        "weights": weights,
        "history": repr([{**row, "seconds": 0} for row in model.history_]).encode(),
    }
    logging.getLogger("pnp_gcd").info("fit ended")
    told = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    out.write_text(json.dumps(told))


def start(folder: Path, out: Path, log: Path, n_rows: int) -> BaseProcess:
    """Start such a process, and return when its fit begins."""
    out.unlink(missing_ok=True)
    log.write_text("")
    process = PROCESSES.Process(target=fit, args=(folder, out, log, n_rows))
    process.start()
    while "fit begins" not in log.read_text():
        if not process.is_alive():
            raise SystemExit(log.read_text())
        time.sleep(0.005)
    return process


def run_to_end(folder: Path, out: Path, log: Path, n_rows: int) -> tuple[dict[str, str], list[float]]:
    """Return the digests of a fit that nobody disturbs, and the seconds of its steps."""
    process = start(folder, out, log, n_rows)
    process.join()
    if process.exitcode:
        raise SystemExit(log.read_text())
    marks = re.findall(r"^([0-9.]+) (?:fit begins|checkpoint .* written|fit ended)$", log.read_text(), re.M)
    return json.loads(out.read_text()), np.diff(np.array(marks, dtype=float)).tolist()


def kill_after(
    n_written: int, seconds: float, folder: Path, out: Path, log: Path, n_rows: int, *, is_aimed: bool
) -> str:
    """Run a fit, kill it so long after it has written so many checkpoints, and return where that struck."""
    process = start(folder, out, log, n_rows)
    while process.is_alive() and log.read_text().count(" written\n") < n_written:
        time.sleep(0.001)
    time.sleep(seconds)
    while is_aimed and process.is_alive() and not any(folder.glob("*/.pnp-gcd-*")):
        pass
    process.kill()  # SIGKILL; nothing happens if the fit has just come to its end
    process.join()
    files = [path.name for path in folder.rglob("*") if path.is_file()]
    if out.exists():
        return "after its end"
    if any(name.startswith(".pnp-gcd-") for name in files):
        return "while a checkpoint was written"
    if "epoch.safetensors" in files:
        n_done = log.read_text().count("epoch.safetensors written")
        return "after the last epoch" if n_done == N_EPOCHS else "between checkpoints of epochs"
    return "in the first epoch" if "calibration.safetensors" in files else "in calibration"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--chain", action="store_true", help="kill one fit again and again")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        base, places = Path(name), Counter[str]()
        out, log = base / "found.json", base / "log.txt"
        run_to_end(base / "first", out, log, arguments.rows)  # reads libraries from the disk
        expected, steps = run_to_end(base / "undisturbed", out, log, arguments.rows)
        print(
            f"An undisturbed fit of {arguments.rows} rows takes {sum(steps):.1f} s, "
            f"{steps[0]:.1f} s of it to calibrate.",
            flush=True,
        )
        equal, resumed = Counter[str](), 0
        for number in range(arguments.kills):
            folder = base / ("chain" if arguments.chain else f"fit{number}")
            step = int(rng.integers(3 if arguments.chain else len(steps)))
            moment = step, rng.uniform(0, steps[step])
            place = kill_after(*moment, folder, out, log, arguments.rows, is_aimed=number % 5 == 4)
            places[place] += 1
            if not arguments.chain:
                found, _ = run_to_end(folder, out, log, arguments.rows)
                equal.update(key for key in expected if found[key] == expected[key])
                resumed += "goes on after epoch" in log.read_text() or "calibration read" in log.read_text()
                left = [path for path in folder.rglob("*") if path.is_file()]
                equal["nothing left behind"] += not left
                print(f"{number + 1}: {'equal' if found == expected else 'DIFFERENT'}", flush=True)
        if arguments.chain:
            found, _ = run_to_end(base / "chain", out, log, arguments.rows)
            equal.update(key for key in expected if found[key] == expected[key])
    print("\nkills struck:")
    for place, count in places.most_common():
        print(f"  {count:3d}  {place}")
    n_fits = 1 if arguments.chain else arguments.kills
    print(
        f"went on from a checkpoint: {resumed} of {n_fits}"
        if not arguments.chain
        else "one fit, killed each time"
    )
    for key in [*expected, *(() if arguments.chain else ("nothing left behind",))]:
        print(
            f"{key:20s} equal in {equal[key]} of {n_fits}"
            if key in expected
            else f"{key}: {equal[key]} of {n_fits}"
        )
    if any(equal[key] < n_fits for key in expected):
        raise SystemExit("Results differ.")


if __name__ == "__main__":
    main()
