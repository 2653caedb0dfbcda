"""``pnp-gcd analyse``: the paper's analyses on any data, each a table and a picture.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pnp_gcd.benchmark.command import add_data_arguments, format_run, read_settings, say_if_kept
from pnp_gcd.commands.arguments import add_command

if TYPE_CHECKING:
    from pnp_gcd.benchmark.analyses import Analysis
    from pnp_gcd.benchmark.running import Run
    from pnp_gcd.benchmark.studies import Outcome

__all__ = ["add_analyse"]


def add_analyse(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    analyse = add_command(
        commands,
        "analyse",
        help="run one of the paper's analyses, or all: tables and pictures",
        description="Run one of the paper's analyses on one or more data sets of a kind: what is left out or "
        "varied, a table and a picture. Runs are records as those of bench, and are not done "
        "twice. Progress goes to standard error, tables to standard output.",
        examples=["pnp-gcd analyse components digits", "pnp-gcd analyse all digits --seeds 0,1,2"],
    )
    analyse.add_argument("analysis", metavar="ANALYSIS", help='one of the names that "list" prints, or "all"')
    add_data_arguments(analyse, several=True)
    analyse.add_argument(
        "--method",
        default="pnp",
        choices=("pnp", "pnp-paper"),
        help="what is varied: our defaults (pnp), or the paper's settings (pnp-paper)",
    )
    analyse.set_defaults(run=_run_analyse)


def _run_analyse(arguments: argparse.Namespace) -> int:
    from pnp_gcd.benchmark.analyses import ANALYSES
    from pnp_gcd.benchmark.running import Bench, use_threads
    from pnp_gcd.benchmark.studies import Study
    from pnp_gcd.plotting.canvas import check_drawing

    if arguments.analysis == "list":
        for name, analysis in ANALYSES.items():
            print(f"{name:<22}{analysis.title} ({analysis.place})")
        return 0
    names = list(ANALYSES) if arguments.analysis == "all" else [arguments.analysis]
    if names[0] not in ANALYSES:
        raise ValueError(f"analysis={names[0]!r} is unknown. Pass one of {', '.join(ANALYSES)}, or all.")
    if arguments.dataset is None:
        raise ValueError("no data set is named. Run pnp-gcd analyse ANALYSIS DATASET --data PATH.")
    check_drawing()
    # Apart from the records of bench, so that reports show these alone.
    folder = Path(arguments.out) / "analyses"
    bench = Bench(folder / "runs", look_in=arguments.out, verbose=int(arguments.verbose))
    bases = []
    for path in arguments.data or [None]:
        one = argparse.Namespace(**{**vars(arguments), "data": path})
        bases.append(read_settings(one, arguments.method, arguments.seeds[0]))
    titles = [base.title for base in bases]
    if len(set(titles)) < len(titles):
        raise ValueError(f"--data names two data sets alike: {', '.join(titles)}. Rename one of them.")
    study = Study(bench, bases, arguments.seeds, arguments.split_seed, _report)
    with use_threads(bases[0].n_threads):
        for name in names:
            outcome = ANALYSES[name].run(study)
            print(_write_outcome(folder, name, ANALYSES[name], outcome, study.seeds), flush=True)
    return 0


def _report(label: str, run: Run) -> None:
    print(f"{format_run(run.record)}  {label}{say_if_kept(run)}", file=sys.stderr, flush=True)


def _write_outcome(
    folder: Path, name: str, analysis: Analysis, outcome: Outcome, seeds: Sequence[int]
) -> str:
    """Write table and picture; return the table."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _format_outcome(analysis, outcome, seeds)
    (folder / f"{name}.md").write_text(f"{text}\n![{analysis.title}]({name}.png)\n", encoding="utf-8")
    outcome.draw().savefig(folder / f"{name}.png", dpi=130)
    return text


def _format_outcome(analysis: Analysis, outcome: Outcome, seeds: Sequence[int]) -> str:
    lines = [
        f"## {analysis.title}",
        "",
        f"As the paper's {analysis.place}; seeds {', '.join(map(str, seeds))}.",
        "",
        *_format_table(outcome.header, outcome.rows),
        "",
        *(f"- {note}" for note in outcome.notes),
        "",
    ]
    if analysis.published is not None:
        from pnp_gcd.benchmark.published import published_table

        lines += [f"Published, not run here ({analysis.place}), on its own data:", ""]
        lines += [*_format_table(*published_table(analysis.published)), ""]
    return "\n".join(lines)


def _format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    line = "|" + " --- |" * len(header)
    return [_format_row(header), line, *map(_format_row, rows)]


def _format_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
