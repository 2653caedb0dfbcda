"""``pnp-gcd bench``: methods on data sets, records, reports.

Knows arguments and text. What is slow to import waits until a command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pnp_gcd.commands.arguments import add_command, read_assignment, read_value

if TYPE_CHECKING:
    from pnp_gcd.benchmark.running import Bench, Run
    from pnp_gcd.benchmark.settings import RunSettings

__all__ = ["add_bench", "add_data_arguments", "format_run", "read_settings", "say_if_kept"]

_COLUMNS = ("All", "Known", "Novel", "named", "unseen", "AUROC", "classes", "seconds")
_SCORES = ("all", "known", "novel", "named", "unseen_all")


def add_bench(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    bench = add_command(
        commands,
        "bench",
        help="run methods on a data set, write records, print a table",
        description="Run methods on a data set with some classes hidden, as papers of the field do. Every "
        "run is written as a record: all that it was told, and what came out. A run whose record is in "
        "--out is not done again, so an interrupted command goes on where it stopped.",
        examples=[
            "pnp-gcd bench digits --method pnp,k-means --seeds 0,1,2",
            "pnp-gcd bench csv --data embeddings.csv --out runs",
            "pnp-gcd bench --report runs",
        ],
    )
    add_data_arguments(bench)
    bench.add_argument(
        "--method", default="pnp", metavar="NAMES", help="methods, commas between (default: pnp); see --list"
    )
    bench.add_argument("--again", action="store_true", help="run even what has a record")
    bench.add_argument("--list", action="store_true", help="print the data sets and methods, and stop")
    bench.add_argument(
        "--report",
        metavar="DIR",
        help="write report.md and report.html from the records of a folder, and stop",
    )
    bench.add_argument("--repeat", metavar="FILE", help="run a record once more and compare, and stop")
    bench.set_defaults(run=_run_bench)


def add_data_arguments(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add what says which data, how they are divided and how often.

    Parameters
    ----------
    parser : ArgumentParser
    several : bool, default=False
        Whether there may be more than one path.
    """
    parser.add_argument("dataset", nargs="?", metavar="DATASET", help="see bench --list")
    if several:
        parser.add_argument("--data", nargs="+", metavar="PATH", help="folders or files")
    else:
        parser.add_argument("--data", metavar="PATH", help="its folder or file")
    parser.add_argument("--data-option", **_assignments("of the data set's loader"))
    parser.add_argument(
        "--seeds", type=_read_seeds, default=[0], metavar="0,1,2", help="one run each (default: 0)"
    )
    parser.add_argument("--out", default="runs", metavar="DIR", help="folder of records (default: runs)")
    parser.add_argument("--set", **_assignments("of the method"))
    division = parser.add_argument_group("division")
    division.add_argument(
        "--split-seed", type=int, metavar="N", help="divides the rows, in place of the run's own seed"
    )
    division.add_argument(
        "--known",
        type=read_value,
        metavar="PART",
        help="known classes, as a part or a number (default: the field's protocol, or half)",
    )
    division.add_argument(
        "--labelled",
        type=read_value,
        default=0.5,
        metavar="PART",
        help="labelled rows of each (default: 0.5)",
    )
    division.add_argument(
        "--unseen",
        type=float,
        metavar="PART",
        help="rows kept from the fit (default: the official test rows, or a tenth)",
    )
    seen = parser.add_argument_group("what methods see")
    seen.add_argument("--backbone", metavar="NAME", help="network of timm, for images")
    seen.add_argument(
        "--weights", metavar="FILE", help='its weights, "none" for random (default: timm\'s own)'
    )
    seen.add_argument("--image-size", type=int, metavar="N", help="pixels (default: the network's own)")
    seen.add_argument(
        "--frozen", action="store_true", help="every method sees the network's features; none trains it"
    )
    seen.add_argument("--unit", action="store_true", help="put feature vectors on the unit sphere first")
    seen.add_argument("--embedder", metavar="NAME", help='for texts: "tfidf", or module:function')
    parser.add_argument("--threads", type=int, metavar="N", help="(default: one for each processor)")
    parser.add_argument("--verbose", action="store_true", help="show the progress of each fit")


def read_settings(arguments: argparse.Namespace, method: str, seed: int) -> RunSettings:
    """Turn arguments into the settings of one run.

    Parameters
    ----------
    arguments : Namespace
    method : str
    seed : int

    Returns
    -------
    RunSettings
    """
    from pnp_gcd.benchmark.methods import find_method
    from pnp_gcd.benchmark.settings import RunSettings, SplitSettings

    parameters, features = _read_inputs(arguments, find_method(method).sees_images, method)
    return RunSettings(
        dataset=arguments.dataset,
        data=None if arguments.data is None else str(arguments.data),
        data_options=dict(arguments.data_option or ()),
        features=features,
        method=method,
        parameters=parameters | dict(arguments.set or ()),
        seed=seed,
        split=SplitSettings(
            seed=seed if arguments.split_seed is None else arguments.split_seed,
            known=arguments.known,
            labelled=arguments.labelled,
            unseen=arguments.unseen,
        ),
        n_threads=arguments.threads or os.cpu_count() or 1,
    )


def _read_inputs(
    arguments: argparse.Namespace, sees_images: bool, method: str
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the method's parameters of images, and how features are made; refuse options without effect."""
    network = {
        "backbone": arguments.backbone,
        "weights": None if arguments.weights == "none" else arguments.weights,
        "image_size": arguments.image_size,
    }
    asked = [name for name in ("backbone", "weights", "image_size") if getattr(arguments, name) is not None]
    if arguments.embedder is not None and (asked or arguments.frozen):
        raise ValueError("--embedder is for texts, --backbone and its kin for images. Pass one of them.")
    parameters: dict[str, Any] = {}
    features: dict[str, Any] = {"scale": "unit"} if arguments.unit else {}
    if arguments.embedder is not None:
        features["embedder"] = arguments.embedder
    elif sees_images and not arguments.frozen and not arguments.unit:
        named = {"backbone": "backbone", "weights": "backbone_weights", "image_size": "image_size"}
        parameters = {named[name]: network[name] for name in asked}
    elif arguments.frozen or asked:
        features |= network | {"weights": "auto" if arguments.weights is None else network["weights"]}
        features["backbone"] = arguments.backbone or (
            _name_papers_backbone() if method == "pnp-paper" else None
        )
        if features["backbone"] is None:
            raise ValueError("--frozen, --weights and --image-size need a network: --backbone NAME.")
    if asked and arguments.backbone is None and parameters and method != "pnp-paper":
        raise ValueError("--weights and --image-size need a network: --backbone NAME.")
    return parameters, features or None


def _name_papers_backbone() -> str:
    from pnp_gcd import presets

    return str(presets.paper(presets.PAPER_DATASETS[0])["backbone"])


def _run_bench(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _print_names()
    if arguments.report is not None:
        return _write_report(arguments.report)
    if arguments.repeat is not None:
        return _repeat(arguments)
    if arguments.dataset is None:
        raise ValueError(
            "no data set is named. Run pnp-gcd bench DATASET --data PATH; --list prints the names."
        )
    return _run_methods(arguments)


def _run_methods(arguments: argparse.Namespace) -> int:
    """Run every method with every seed; a method that fails is a line, not the end of the others."""
    from pnp_gcd.benchmark.methods import find_method
    from pnp_gcd.benchmark.running import Bench

    methods = arguments.method.split(",")
    for method in methods:
        find_method(method)
    bench = Bench(arguments.out, again=arguments.again, verbose=int(arguments.verbose))
    bench.check(read_settings(arguments, methods[0], arguments.seeds[0]))
    print(_format_line("data", "method", "seed", _COLUMNS), flush=True)
    n_failed, records = 0, []
    for method in methods:
        done = []
        for seed in arguments.seeds:
            run = _run_one(bench, read_settings(arguments, method, seed))
            n_failed += run is None
            done += [] if run is None else [run.record]
        if len(done) > 1:
            print(_format_mean(done), flush=True)
        records += done
    if records:
        print(f"\n{len(records)} records in {arguments.out}. Tables: pnp-gcd bench --report {arguments.out}")
    return 1 if n_failed else 0


def _run_one(bench: Bench, settings: RunSettings) -> Run | None:
    try:
        run = bench.run(settings)
    except Exception as error:  # whatever it is, the other runs go on
        print(
            f"pnp-gcd: {settings.method}, seed {settings.seed}, did not run: {type(error).__name__}: {error}",
            file=sys.stderr,
            flush=True,
        )
        return None
    print(format_run(run.record) + say_if_kept(run), flush=True)
    return run


def say_if_kept(run: Run) -> str:
    """Say when a run was made, if not now, and whether the code has changed since.

    Parameters
    ----------
    run : Run

    Returns
    -------
    str
    """
    from pnp_gcd.benchmark.records import digest_sources

    if run.is_new:
        return ""
    same = run.record["environment"]["sources_sha256"] == digest_sources()
    return f"  kept from {run.record['started']}" + (
        "" if same else ", by other code: bench --again runs it anew"
    )


def _print_names() -> int:
    from pnp_gcd.benchmark.methods import METHODS
    from pnp_gcd.datasets import DATASETS

    print("data sets:")
    for name, loader in DATASETS.items():
        print(f"  {name:<22}{(loader.__doc__ or '').strip().splitlines()[0]}")
    print("methods, and what each is given:")
    for name, method in METHODS.items():
        print(f"  {name:<22}{method.summary}; {method.given}")
    return 0


def _write_report(folder: str) -> int:
    from pnp_gcd.benchmark.records import read_records
    from pnp_gcd.benchmark.reports import make_tables, to_markdown, write_report

    records = read_records(folder)
    paths = write_report(records, Path(folder))
    print(to_markdown(make_tables(records)))
    print("\n".join(f"written: {path}" for path in paths), file=sys.stderr)
    return 0


def _repeat(arguments: argparse.Namespace) -> int:
    from pnp_gcd.benchmark.records import read_record
    from pnp_gcd.benchmark.repeating import compare_records, repeat_run

    first = read_record(arguments.repeat)
    second = repeat_run(first, data=arguments.data, weights=arguments.weights, verbose=int(arguments.verbose))
    print(_format_line("data", "method", "seed", _COLUMNS))
    print(format_run(first) + "  recorded")
    print(format_run(second) + "  now")
    differences = compare_records(first, second)
    print("\n".join(differences) if differences else "the same, bit for bit")
    return 1 if differences else 0


def format_run(record: dict[str, Any]) -> str:
    """Return a line of the table of runs.

    Parameters
    ----------
    record : dict

    Returns
    -------
    str
    """
    from pnp_gcd.benchmark.settings import RunSettings

    settings, scores = RunSettings.from_json(record["settings"]), record["scores"]
    cells = [*(_percent(scores[name]) for name in _SCORES), _decimal(scores["auroc"])]
    cells += [f"{scores['n_clusters']}/{scores['n_true']}", f"{record['seconds']['fit']:.1f}"]
    return _format_line(settings.title, settings.method, str(settings.seed), cells)


def _format_mean(records: Sequence[dict[str, Any]]) -> str:
    from pnp_gcd.benchmark.settings import RunSettings

    settings = RunSettings.from_json(records[0]["settings"])
    cells = [_percent(_mean(record["scores"][name] for record in records)) for name in _SCORES]
    cells += [_decimal(_mean(record["scores"]["auroc"] for record in records))]
    found = _mean(record["scores"]["n_clusters"] for record in records) or 0.0
    cells += [f"{found:.1f}", f"{_mean(record['seconds']['fit'] for record in records):.1f}"]
    return _format_line(settings.title, settings.method, "mean", cells)


def _format_line(data: str, method: str, seed: str, cells: Sequence[str]) -> str:
    return f"{data[:22]:<23}{method:<21}{seed:>4}" + "".join(f"{cell:>9}" for cell in cells)


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _assignments(of_what: str) -> dict[str, Any]:
    return {
        "action": "append",
        "type": read_assignment,
        "metavar": "NAME=VALUE",
        "help": f"a parameter {of_what}; may be repeated",
    }


def _read_seeds(text: str) -> list[int]:
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = [-1]
    if not all(0 <= seed < 2**32 for seed in seeds):
        raise argparse.ArgumentTypeError(f"{text!r} must be integers from 0, such as 0,1,2.")
    return seeds
