"""``pnp-gcd discover``: items and some labels in; classes, a model and a page out.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pnp_gcd.commands.arguments import UsageError, add_command, add_output_options, read_assignment, read_seed
from pnp_gcd.commands.assignments import Assignments, assign
from pnp_gcd.commands.bundles import (
    ASSIGNMENTS,
    INPUTS,
    MODEL,
    PIECES,
    REPORT,
    SORTED,
    WORDS,
    check_folder,
    write_words,
)
from pnp_gcd.commands.choosing import DEFAULT_BACKBONE, DEFAULT_IMAGE_SIZE, choose_parameters, choose_recipe
from pnp_gcd.commands.items import Items, embed_items, read_items
from pnp_gcd.commands.label_files import read_folder_labels, read_label_column, read_labels, type_labels
from pnp_gcd.commands.outputs import StagedFolder
from pnp_gcd.commands.summaries import summarise, to_record

if TYPE_CHECKING:
    from pnp_gcd import PNPDiscoverer
    from pnp_gcd.fitted import Inspection
    from pnp_gcd.text_features import WordFeatures

__all__ = ["add_discover"]


def add_discover(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    parser = add_command(
        commands,
        "discover",
        help="find the known and the new classes of images, texts or embeddings",
        description="Give every item a class, known or new. Writes a folder with the classes "
        "(assignments.csv), the model, and a page that shows the groups (report.html). Progress goes to "
        "standard error, a summary to standard output.",
        examples=[
            "pnp-gcd discover --images photos --labels folders --out found",
            "pnp-gcd discover --table mails.csv --text-column body --embedder tfidf --labels y.csv --out out",
            "pnp-gcd discover --embeddings X.npy --labels labels.csv --out found --n-clusters 40",
        ],
    )
    _add_items(parser)
    _add_labels(parser)
    _add_method(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; must be new")
    output.add_argument(
        "--sort-images",
        choices=("copy", "link"),
        help=f"put images into {SORTED}/CLASS of the folder, as copies or as links",
    )
    output.add_argument("--no-report", action="store_true", help="write no report.html")
    add_output_options(output, force="replace what an earlier run wrote in --out; other files there stay")
    output.add_argument("--quiet", action="store_true", help="print no summary and no progress")
    output.add_argument(
        "--progress", action="store_true", help="show progress even if standard error is no terminal"
    )
    parser.set_defaults(run=_run_discover)


def _add_items(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("items (one of these)")
    items = group.add_mutually_exclusive_group(required=True)
    items.add_argument("--images", type=Path, metavar="DIR", help="folder of images, with its sub-folders")
    items.add_argument(
        "--embeddings",
        type=Path,
        metavar="FILE",
        help=".npy, .npz (array X), .parquet, .csv or .tsv, a row each",
    )
    items.add_argument(
        "--table", type=Path, metavar="FILE", help=".csv, .tsv or .parquet, names in its first line"
    )
    group.add_argument("--text-column", metavar="NAME", help="column of --table with texts")
    group.add_argument("--features", metavar="NAMES", help="columns of numbers, commas between")
    group.add_argument(
        "--embedder",
        metavar="NAME",
        help='for texts: "tfidf", their words, or the folder of a sentence-transformers model',
    )
    group.add_argument(
        "--backbone", metavar="NAME", help=f"for images: network of timm (default: {DEFAULT_BACKBONE})"
    )
    group.add_argument(
        "--backbone-weights",
        metavar="FILE",
        help='its weights; "none": random (default: timm downloads them)',
    )
    group.add_argument(
        "--image-size",
        type=int,
        metavar="N",
        help=f"pixels (default: {DEFAULT_IMAGE_SIZE} for the default network, else the network's own)",
    )


def _add_labels(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("labels")
    group.add_argument(
        "--labels",
        metavar="FILE",
        help='table with the columns id and label, for some items; "folders": the sub-folders of --images '
        "are classes, the one called unlabelled is not",
    )
    group.add_argument(
        "--id-column",
        metavar="NAME",
        help="column of ids, in --labels and in the table of items (default: id; items without such a column "
        "are numbered from 0; images are called by their path in the folder, or by their file name)",
    )
    group.add_argument(
        "--label-column",
        metavar="NAME",
        help="column of labels (default: label); without --labels, of the table of items itself",
    )


def _add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("method")
    group.add_argument("--seed", type=read_seed, default=0, metavar="N", help="(default: 0)")
    group.add_argument(
        "--n-clusters", type=int, metavar="N", help="classes, known ones included (default: estimated)"
    )
    group.add_argument(
        "--set",
        action="append",
        type=read_assignment,
        metavar="NAME=VALUE",
        help="any parameter of PNPDiscoverer; may be repeated",
    )
    group.add_argument(
        "--keep-on-interrupt", action="store_true", help="on Ctrl-C in training, finish with what was learnt"
    )


def _run_discover(arguments: argparse.Namespace) -> int:
    """Read, fit, ask, write, tell."""
    from pnp_gcd import PNPDiscoverer

    out: Path = arguments.out
    recipe, parameters = choose_recipe(arguments), choose_parameters(arguments)
    _check_out(arguments)
    is_shown = (arguments.progress or sys.stderr.isatty()) and not arguments.quiet
    model = PNPDiscoverer(**parameters, verbose=int(is_shown))
    _check_parameters(model)
    source = _source(arguments)
    items = read_items(
        [source],
        recipe,
        # Arrays may have no names of rows: then it is the column of --labels alone.
        id_column=None if source.suffix.lower() in (".npy", ".npz") else arguments.id_column,
        label_column=arguments.label_column or "label",
    )
    labels = _read_labels(arguments, items)
    _check_number(arguments.n_clusters, labels)
    words = _learn_words(items)
    items = embed_items(items, words=words, device=model.device, verbose=model.verbose)
    began = time.perf_counter()
    _fit(model, items, labels)
    seconds = time.perf_counter() - began
    seen = model.inspect(items.rows)
    model.verbose = 0  # in the model that is saved
    assigned = assign(model, items.rows, items.ids, seen=seen, labels=labels)
    with StagedFolder(out) as staged:
        _write(staged.path, model, items, assigned, words)
        failure = _write_extras(staged.path, arguments, model, items, assigned, seen)
        written = [name for name in PIECES if (staged.path / name).exists()]
        staged.commit(remove=PIECES)
    if not arguments.quiet or arguments.json:
        record = to_record(model, assigned, out, written, seconds)
        print(json.dumps(record, indent=2, ensure_ascii=False) if arguments.json else summarise(record))
    if failure:
        raise RuntimeError(f"{failure} The rest is in {str(out)!r}; pnp-gcd report makes a page from it.")
    return 0


def _check_parameters(model: PNPDiscoverer) -> None:
    try:
        model._validate_params()
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check_number(n_clusters: int | None, labels: list[str | None]) -> None:
    """Refuse, before anything takes long, fewer classes than are known."""
    n_known = len(set(labels) - {None})
    if n_clusters is not None and n_clusters < n_known:
        raise UsageError(
            f"--n-clusters {n_clusters} is below the {n_known} known classes, which it counts too. Pass at "
            f"least {n_known}, or leave it away."
        )


def _source(arguments: argparse.Namespace) -> Path:
    source: Path = arguments.images or arguments.embeddings or arguments.table
    return source


def _check_out(arguments: argparse.Namespace) -> None:
    """Refuse, before anything takes long, a folder that cannot be written, or that holds the images."""
    out: Path = arguments.out
    check_folder(out, force=arguments.force)
    if arguments.images is not None:
        images, place = arguments.images.resolve(), out.resolve()
        if place.is_relative_to(images) or images.is_relative_to(place / SORTED):
            raise ValueError(
                f"--out {str(out)!r} and --images {str(arguments.images)!r} lie in each other. Name a folder "
                "outside, so that no output is taken for an image."
            )


def _read_labels(arguments: argparse.Namespace, items: Items) -> list[str | None]:
    kind = items.recipe.kind
    if arguments.labels == "folders":
        labels = read_folder_labels(arguments.images, items.rows.tolist())
    elif arguments.labels is not None:
        labels = read_labels(
            Path(arguments.labels),
            items.ids,
            id_column=arguments.id_column,
            label_column=arguments.label_column,
            are_files=kind == "images",
        )
    else:
        labels = read_label_column(_source(arguments), arguments.label_column)
    n_labelled = sum(label is not None for label in labels)
    if n_labelled in (0, len(labels)):
        some = "no item" if not n_labelled else "every item"
        raise ValueError(
            f"--labels {str(arguments.labels or arguments.label_column)!r} gives {some} of {len(labels)} a "
            "label. Label some items of each known class, and leave those without whose class is to be found."
        )
    return labels


def _learn_words(items: Items) -> WordFeatures | None:
    if items.recipe.embedder != "tfidf":
        return None
    from pnp_gcd.text_features import WordFeatures

    return WordFeatures.fit(items.rows)


def _fit(model: PNPDiscoverer, items: Items, labels: list[str | None]) -> None:
    has_label = np.array([label is not None for label in labels])
    y = type_labels([label for label in labels if label is not None])
    model.fit(items.rows[has_label], y, items.rows[~has_label])


def _write(
    folder: Path, model: PNPDiscoverer, items: Items, assigned: Assignments, words: WordFeatures | None
) -> None:
    """Write what could not be made again."""
    model.save(folder / MODEL, include_backbone=model.backbone is not None)
    (folder / INPUTS).write_text(items.recipe.to_json(), encoding="utf-8")
    if words is not None:
        write_words(words, folder / WORDS)
    (folder / ASSIGNMENTS).write_text(assigned.to_csv(), encoding="utf-8", newline="")


def _write_extras(
    folder: Path,
    arguments: argparse.Namespace,
    model: PNPDiscoverer,
    items: Items,
    assigned: Assignments,
    seen: Inspection,
) -> str:
    """Write what can be made again, which does not keep the rest from being written; say what failed."""
    from pnp_gcd.commands.pages import write_page
    from pnp_gcd.commands.sorting import sort_images

    extras: dict[str, Callable[[Path], None]] = {}
    if not arguments.no_report:
        extras[REPORT] = lambda path: write_page(model, items, path, given=assigned.labels, seen=seen)
    if arguments.sort_images is not None:
        paths, classes, by = items.rows.tolist(), assigned.classes.tolist(), arguments.sort_images
        extras[SORTED] = lambda path: sort_images(paths, classes, path, by=by)
    failures = [_try(write, folder / name) for name, write in extras.items()]
    return " ".join(failure for failure in failures if failure)


def _try(write: Callable[[Path], None], path: Path) -> str:
    """Write a piece; if that fails, remove what is there of it and return what a message says."""
    try:
        write(path)
    except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        return f"{path.name} was not written: {error}"
    return ""
