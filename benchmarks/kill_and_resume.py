"""Kill a fit at random moments, let it go on each time, and compare the end with a fit nobody killed.

    OMP_NUM_THREADS=1 python benchmarks/kill_and_resume.py [--kills 50] [--seed 0] [--rows 1000]

A fit with ``checkpoint_dir`` runs in a process of its own, which is killed (SIGKILL) after a random time,
uniform over the time that an undisturbed fit takes. Writing takes only milliseconds of that, so every fifth
kill waits, from such a moment on, until a checkpoint is being written. The same fit is then started again
and left alone. Prints where each kill struck, as the files left behind and its log tell, and in
how many cases labels, prototypes and weights were equal to the last bit.

With ``--chain`` one fit is killed again and again until it has come to its end, instead of once each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

N_CLASSES, N_COLUMNS = 12, 64


def fit(folder: str, out: str, n_rows: int) -> None:
    """Fit, in a process that may be killed; write digests of what was found."""
    import logging

    from pnp_gcd import PNPDiscoverer

    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("pnp_gcd").setLevel(logging.INFO)
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_rows)
    X = (0.45 * rng.normal(size=(N_CLASSES, N_COLUMNS)))[y] + rng.normal(size=(n_rows, N_COLUMNS))
    has_label = (y < N_CLASSES // 2) & (rng.random(n_rows) < 0.5)
    model = PNPDiscoverer(random_state=0, max_iter=8, checkpoint_dir=folder)
    print("fit begins", file=sys.stderr, flush=True)
    model.fit(X[has_label], y[has_label], X[~has_label])
    weights = b"".join(tensor.numpy().tobytes() for tensor in model.encoder_.state_dict().values())
    found = {
        "labels": model.unlabelled_labels_.tobytes(),
        "prototypes": model.prototypes_.tobytes(),
        "weights": weights,
        "history": repr([{**row, "seconds": 0} for row in model.history_]).encode(),
    }
    told = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    Path(out).write_text(json.dumps(told))
    print("fit ended", file=sys.stderr, flush=True)


def start(folder: Path, out: Path, log: Path, n_rows: int) -> subprocess.Popen[bytes]:
    """Start such a process, and return when its fit begins."""
    out.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--fit", str(folder), str(out), "--rows", str(n_rows)]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stderr=stream)
    while "fit begins" not in log.read_text():
        if process.poll() is not None:
            raise SystemExit(log.read_text())
        time.sleep(0.005)
    return process


def run_to_end(folder: Path, out: Path, log: Path, n_rows: int) -> tuple[dict[str, str], float]:
    """Return the digests of a fit that nobody disturbs, and its seconds."""
    process, began = start(folder, out, log, n_rows), time.perf_counter()
    if process.wait():
        raise SystemExit(log.read_text())
    return json.loads(out.read_text()), time.perf_counter() - began


def kill_after(seconds: float, folder: Path, out: Path, log: Path, n_rows: int, *, is_aimed: bool) -> str:
    """Run a fit, kill it, and return where that struck."""
    process = start(folder, out, log, n_rows)
    time.sleep(seconds)
    while is_aimed and process.poll() is None and not any(folder.glob("*/.pnp-gcd-*")):
        pass
    process.kill()  # SIGKILL; nothing happens if the fit has just come to its end
    process.wait()
    files = [path.name for path in folder.rglob("*") if path.is_file()]
    if out.exists():
        return "after its end"
    if any(name.startswith(".pnp-gcd-") for name in files):
        return "while a checkpoint was written"
    if "epoch.safetensors" in files:
        n_done = log.read_text().count("epoch.safetensors written")
        return "after the last epoch" if n_done == 8 else "between checkpoints of epochs"
    return "in the first epoch" if "calibration.safetensors" in files else "in calibration"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--chain", action="store_true", help="kill one fit again and again")
    parser.add_argument("--fit", nargs=2, metavar=("FOLDER", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fit(*arguments.fit, arguments.rows)
        return
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        base, places = Path(name), Counter[str]()
        out, log = base / "found.json", base / "log.txt"
        expected, seconds = run_to_end(base / "undisturbed", out, log, arguments.rows)
        print(f"An undisturbed fit of {arguments.rows} rows takes {seconds:.1f} s.", flush=True)
        equal, resumed = Counter[str](), 0
        for number in range(arguments.kills):
            folder = base / ("chain" if arguments.chain else f"fit{number}")
            limit = 0.4 * seconds if arguments.chain else seconds
            places[
                kill_after(rng.uniform(0, limit), folder, out, log, arguments.rows, is_aimed=number % 5 == 4)
            ] += 1
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
