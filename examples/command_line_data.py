"""Write the data of the walk through the command line: pictures, notes and embeddings, with some labels.

    python examples/command_line_data.py data

writes ``data/pictures`` (drawn by coloured_shapes.py) and ``data/pictures.csv``; ``data/notes.csv``, short
texts (written by text_pipeline.py) with a column of topics that is filled in part; and
``data/digits.npy`` with ``data/digits.csv``, handwritten digits of scikit-learn. Each has a file of the truth
beside it, which ``pnp-gcd report --truth`` takes. docs/command_line.md goes on from here.
"""

import csv
import sys
from pathlib import Path

import coloured_shapes
import numpy as np
import text_pipeline
from PIL import Image
from sklearn.datasets import load_digits


def write_table(path: Path, names: list[str], rows: list[list[str]]) -> None:
    """Write a CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def write_labels(
    path: Path, ids: list[str], classes: np.ndarray, known: list, rng: np.random.Generator
) -> None:
    """Write the labels of half of the items of known classes, and beside them the truth of all."""
    has_label = np.isin(classes, known) & (rng.random(len(classes)) < 0.5)
    for place, rows in ((path, np.flatnonzero(has_label)), (path.with_suffix(".truth.csv"), range(len(ids)))):
        write_table(place, ["id", "label"], [[ids[row], str(classes[row])] for row in rows])


def main() -> None:
    """Draw, write, hide."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    rng = np.random.default_rng(0)
    (folder / "pictures").mkdir(parents=True, exist_ok=True)

    kinds = rng.permutation(np.repeat(list(coloured_shapes.KINDS), 40))
    names = [f"{number:03d}.png" for number in range(len(kinds))]
    for name, kind in zip(names, kinds, strict=True):
        Image.fromarray(coloured_shapes.draw(kind, rng)).save(folder / "pictures" / name)
    write_labels(folder / "pictures.csv", names, kinds, coloured_shapes.LABELLED, rng)

    notes, topics = text_pipeline.write_notes(60, rng)
    ids = [f"note-{number}" for number in range(len(notes))]
    has_label = np.isin(topics, text_pipeline.KNOWN) & (rng.random(len(topics)) < 0.5)
    shown = np.where(has_label, topics, "")
    write_table(
        folder / "notes.csv",
        ["id", "text", "topic"],
        [list(row) for row in zip(ids, notes, shown, strict=True)],
    )
    write_table(
        folder / "notes.truth.csv", ["id", "label"], [list(row) for row in zip(ids, topics, strict=True)]
    )

    digits = load_digits()
    np.save(folder / "digits.npy", digits.data.astype(np.float32))
    ids = [str(row) for row in range(len(digits.target))]
    write_labels(folder / "digits.csv", ids, digits.target, [0, 1, 2, 3, 4], rng)
    print(f"Written to {folder}: pictures, pictures.csv, notes.csv, digits.npy, digits.csv")


if __name__ == "__main__":
    main()
