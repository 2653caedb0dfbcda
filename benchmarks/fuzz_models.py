"""Damage and forge saved models, load them, and ask those that load: only ``ModelFileError`` may come.

``python benchmarks/fuzz_models.py --cases 100000 --seed 0`` prints how the cases ended; the exit code is 1 if
one ended in another error, a crash, a hang, with code that ran or with too much memory. Nothing but temporary
files is written. ``--start N --cases 1 --keep FOLDER`` writes the files of case N down.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _fuzzing import make_parser, run_cases, run_worker, tell, work_in_temporary
from _mutations import mutate, pick

from pnp_gcd import PNPDiscoverer
from pnp_gcd.exceptions import ModelFileError

_ANSWERS = ("predict", "predict_proba", "transform", "novelty_score", "typicality", "decision_function")
_MEMORY = 3 * 2**30
# Of this many cases one is of a model of images, which takes longer to load.
_IMAGES_EVERY = 200


def save_alike(model: PNPDiscoverer, folder: Path, **options: bool) -> None:
    """Save a model without the times of its fit: the same fit is then the same bytes, and so is a case."""
    for row in model.history_:
        row["seconds"] = 0.0
    model.save(folder, **options)


def make_bases(folder: Path) -> None:
    """Save small models of several kinds of labels, and one of images."""
    from sklearn.datasets import make_blobs

    X, y = make_blobs(90, centers=9 * np.eye(5, 4), random_state=0)
    quick: dict[str, Any] = {
        "max_iter": 1, "n_neighbors": 5, "whitening": None, "hidden_width": 4, "random_state": 0,
    }  # fmt: skip
    kinds: dict[str, Any] = {
        "text": np.array(["oak", "elm", "-1", "-1", "-1"]),
        "integer": np.array([3, 7, -1, -1, -1]),
        "float": np.array([3.0, 7.0, np.nan, np.nan, np.nan]),
        "object": np.array(["oak", "elm", None, None, None], dtype=object),
        "bool": np.array([False, True, None, None, None], dtype=object),
    }
    models = {name: PNPDiscoverer(5, **quick).fit(X, names[y]) for name, names in kinds.items()}
    curated = PNPDiscoverer(5, **quick).fit(X, kinds["text"][y]).rename_classes({"novel_0": "fir"})
    models["curated"] = curated.merge_classes([["novel_1", "novel_2"]])
    models["clusters"] = PNPDiscoverer(4, **quick).fit(X)
    models["calibrated"] = PNPDiscoverer(random_state=0, max_iter=2).fit(X, kinds["integer"][y])
    pixels = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    models["images"] = PNPDiscoverer(
        2, backbone="test_vit", backbone_weights=None, image_size=32, n_trainable_blocks=1, **quick
    ).fit(pixels, np.where(np.arange(12) < 4, 0, -1))
    for name, model in models.items():
        save_alike(model, folder / name, include_backbone=name == "images")


def choose(number: int, seed: int, bases: Path) -> tuple[Path, list[Path], np.random.Generator]:
    """Return the model that a case begins with, the others, and the case's generator."""
    rng = np.random.default_rng((seed, number))
    folders = sorted(path for path in bases.iterdir() if path.name != "images")
    base = (
        bases / "images"
        if number % _IMAGES_EVERY == 0 and (bases / "images").exists()
        else pick(rng, folders)
    )
    return base, folders, rng


def prepare(number: int, seed: int, bases: Path, folder: Path) -> str:
    """Write the files of a case into a folder; return the way they were changed."""
    base, others, rng = choose(number, seed, bases)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    return mutate(folder, others, rng)


def ask(folder: Path) -> str:
    """Load a model and ask it; return how that ended."""
    try:
        model = PNPDiscoverer.load(folder)
    except ModelFileError:
        return "refused"
    except FileNotFoundError:
        return "missing"
    repr(model)
    if model._image_mode is None:
        X: Any = np.random.default_rng(0).normal(0, 8, (5, model.n_features_in_))
    else:
        X = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    try:
        answers = {name: getattr(model, name)(X) for name in _ANSWERS}
    except ValueError as error:  # a model may be of a device that is not here, and be told another
        if f"device={model.device!r} cannot be used" in str(error):
            return "loaded, with a device that is not there"
        raise
    answers["rejecting"] = model.predict(X, reject_below=0.5)
    answers["confirm"] = model.confirm(X)
    for name, answer in answers.items():
        if len(answer) != len(X):
            raise AssertionError(f"{name} gave {len(answer)} answers to {len(X)} rows")
    sums = answers["predict_proba"].sum(axis=1)
    if not (np.isfinite(answers["transform"]).all() and np.allclose(sums, 1.0)):
        raise AssertionError("numbers that are none")
    if not set(answers["predict"].tolist()) <= set(model.classes_.tolist()):
        raise AssertionError("a class that is none")
    return "answered"


def main() -> int:
    """Run the cases that the arguments ask for."""
    parser = make_parser(__doc__.splitlines()[0], 100_000)
    parser.add_argument("--keep", type=Path, help="write the files of the first case into this folder")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.worker:
        import torch

        torch.set_num_threads(1)
        bases, seed = Path(arguments.bases), arguments.seed
        for base in sorted(bases.iterdir()):  # what a first load imports is no case's doing
            ask(base)
        with work_in_temporary("pnp_gcd_fuzz-") as room:
            run_worker(
                lambda number, folder: ask(folder),
                lambda number, folder: prepare(number, seed, bases, folder) and None,
                first=arguments.worker[0],
                last=arguments.worker[1],
                folder=Path(room) / "model",
                memory=_MEMORY,
            )
        return 0
    with work_in_temporary("pnp_gcd_bases-") as room:
        make_bases(Path(room))
        if arguments.keep:
            print(prepare(arguments.start, arguments.seed, Path(room), arguments.keep))
            return 0
        command = [sys.executable, __file__, "--seed", str(arguments.seed), "--bases", room]
        result = run_cases(
            command, arguments.cases, start=arguments.start, n_jobs=arguments.jobs, limit=arguments.limit
        )
    return tell(result)


if __name__ == "__main__":
    sys.exit(main())
