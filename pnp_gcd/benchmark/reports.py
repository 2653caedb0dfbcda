"""Records of runs as tables beside the paper's numbers, in Markdown and HTML.

Knows records and published numbers: runs nothing. Runs that were told different things are never averaged.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pnp_gcd.benchmark.gathering import (
    Record,
    Runs,
    flatten,
    freeze,
    gather,
    gather_runs,
    join,
    say_plain,
    title_of,
)
from pnp_gcd.benchmark.published import (
    PublishedRow,
    describe_disagreements,
    name_table,
    published_rows,
    read_published,
)
from pnp_gcd.benchmark.rendering import Cell, Column, Row, Table, to_html, to_markdown

__all__ = ["ReportPaths", "Table", "make_tables", "to_html", "to_markdown", "write_report"]

_GROUPS = {
    "Fine-grained data sets": ("cub200", "stanford_cars", "fgvc_aircraft", "oxford_pets"),
    "Generic data sets and Herbarium 19": ("cifar10", "cifar100", "imagenet100", "herbarium19"),
}
_ORDER = tuple(name for names in _GROUPS.values() for name in names)
_OTHERS = "Other data sets"
_SETTINGS = "Settings and environments"
_NOTHING = "–"
_PRINTED_TO = 55  # rows: sizes are printed in thousands to one decimal, halves of odd classes round
_PAPERS_SPLIT = {"known": None, "labelled": 0.5, "unseen": None}


class ReportPaths(NamedTuple):
    """Where a report was written."""

    markdown: Path
    html: Path


class _Metric(NamedTuple):
    """A column of means: its name, where records hold it, how it is shown."""

    name: str
    part: str
    key: str
    factor: float = 100.0
    digits: int = 1
    is_compared: bool = True

    def values(self, runs: Runs) -> list[float]:
        """Return its values in the unit that is shown."""
        return [self.factor * value for value in runs.values(self.part, self.key)]

    def mean(self, runs: Runs) -> float | None:
        """Return the mean as it is shown."""
        values = self.values(runs)
        return round(statistics.fmean(values), self.digits) if values else None

    def say(self, runs: Runs) -> str:
        """Return mean and deviation."""
        values = self.values(runs)
        if not values:
            return _NOTHING
        mean = f"{statistics.fmean(values):.{self.digits}f}"
        return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{self.digits}f}"


_ACCURACIES = (
    _Metric("All", "scores", "all"),
    _Metric("Known", "scores", "known"),
    _Metric("Novel", "scores", "novel"),
    _Metric("named", "scores", "named"),
    _Metric("unseen All", "scores", "unseen_all"),
)
_AUROC = _Metric("AUROC", "scores", "auroc", factor=1.0, digits=3)
_SECONDS = _Metric("seconds", "seconds", "fit", factor=1.0, is_compared=False)
_FOUND = _Metric("classes", "scores", "n_clusters", factor=1.0, is_compared=False)
_METRICS = (*_ACCURACIES, _FOUND, _AUROC, _SECONDS)

_RESULT_COLUMNS = (
    Column("method"),
    Column("given K"),
    *(Column(metric.name, is_number=True) for metric in _METRICS),
    Column("runs", is_number=True),
    Column("source"),
)
_RUN_COLUMNS = (
    *map(Column, ("data set", "method", "seeds", "split seeds")),
    *(Column(name, is_long=True) for name in ("split", "parameters", "features")),
    *map(Column, ("data sha256", "threads", "environment", "started")),
)


def make_tables(records: Sequence[Record]) -> list[Table]:
    """Arrange records: a table for each data set beside the paper's numbers, then settings and environments.

    Parameters
    ----------
    records : sequence of dict
        As ``read_records`` returns them.

    Returns
    -------
    list of Table
        In the paper's groups, then other data sets.

    Notes
    -----
    A row averages runs that differ in seeds only. Runs with other parameters, another split, other features
    or other data become rows of their own, whose names say what differs.
    """
    if not records:
        raise ValueError(
            "records=[] has no runs to report. Run `pnp-gcd bench` with --out first, and read that folder."
        )
    environments = gather(records, lambda record: freeze(record.get("environment", {})))
    letters = {key: _to_letter(at) for at, key in enumerate(environments)}
    by_dataset = gather(records, lambda record: (record["settings"]["dataset"], title_of(record)))
    tables, rows = [], []
    for dataset, title in sorted(by_dataset, key=_find_place):
        runs = gather_runs(by_dataset[dataset, title], letters)
        tables.append(_make_results(dataset, title, runs))
        rows += [_make_settings_row(title, each, letters) for each in runs]
    described = {letters[key]: members[0].get("environment", {}) for key, members in environments.items()}
    return [*tables, Table(_SETTINGS, "Runs", _RUN_COLUMNS, tuple(rows)), _make_environments(described)]


def write_report(records: Sequence[Record], folder: str | os.PathLike[str]) -> ReportPaths:
    """Write ``report.md`` and ``report.html``.

    Parameters
    ----------
    records : sequence of dict
        As ``read_records`` returns them.
    folder : str or path
        Made if it is missing.

    Returns
    -------
    ReportPaths
        Of the two files.
    """
    tables = make_tables(records)
    paths = ReportPaths(Path(folder) / "report.md", Path(folder) / "report.html")
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths.markdown.write_text(to_markdown(tables), encoding="utf-8")
    paths.html.write_text(to_html(tables), encoding="utf-8")
    return paths


def _find_place(key: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    return (_ORDER.index(key[0]) if key[0] in _ORDER else len(_ORDER)), key


# --- results -----------------------------------------------------------------------------------------------


def _make_results(dataset: str, title: str, runs: Sequence[Runs]) -> Table:
    published = published_rows(dataset)
    rows = [_make_run_row(each, _find_best(each, runs)) for each in runs]
    rows += [_make_published_row(dataset, row) for row in published]
    notes = [
        "All, Known, Novel, named and unseen All are percents; seconds are those of the fit. "
        "Mean ± standard deviation (n − 1) over runs."
    ]
    if any(cell.is_best for row in rows for cell in row.cells):
        notes.append(
            "Bold: best of the runs here on the same rows and split; methods given K, the true number of "
            "classes, are compared apart from methods that find it."
        )
    notes += [note for each in runs for note in each.notes] + _note_missing(runs) + _compare_rows(runs)
    if published:
        notes += _explain_published(dataset, runs)
    group = next((group for group, names in _GROUPS.items() if dataset in names), _OTHERS)
    return Table(group, title, _RESULT_COLUMNS, tuple(rows), tuple(notes))


def _make_run_row(runs: Runs, best: set[str]) -> Row:
    means = [
        Cell(_say_classes(runs) if metric is _FOUND else metric.say(runs), metric.name in best)
        for metric in _METRICS
    ]
    section = f"Run here, {'given' if runs.given_k else 'not given'} the number of classes"
    start = (Cell(runs.name), Cell("yes" if runs.given_k else "no"))
    return Row(section, (*start, *means, Cell(str(len(runs.records))), Cell("run here")))


def _make_published_row(dataset: str, row: PublishedRow) -> Row:
    accuracies = {"All": row.all, "Known": row.known, "Novel": row.novel}
    shown = {
        "method": f"{row.method}{row.mark or ''}",
        "given K": "yes" if row.given_k else "no",
        **{name: f"{score:.1f}" for name, score in accuracies.items() if score is not None},
        "source": f"published: {name_table(row.table)}",
    }
    for entry in read_published()["class_counts"]:
        is_this = entry["parameters"] == {"potential_prototypes": "trainable"} and row.method == "PNP"
        if is_this and entry["dataset"] == dataset:
            shown["classes"] = f"{entry['n_classes']} of {entry['n_true']}"
    section = f"Published, not run here, {'given' if row.given_k else 'not given'} the number of classes"
    return Row(section, tuple(Cell(shown.get(column.name, _NOTHING)) for column in _RESULT_COLUMNS))


def _find_best(runs: Runs, rivals: Sequence[Runs]) -> set[str]:
    """Return the metrics in which no rival on the same task, given the same, is better as shown."""
    same = [each for each in rivals if (each.given_k, each.task) == (runs.given_k, runs.task)]
    best = set()
    for metric in _METRICS:
        means = [mean for each in same if (mean := metric.mean(each)) is not None]
        if metric.is_compared and len(means) > 1 and metric.mean(runs) == max(means):
            best.add(metric.name)
    return best


def _say_classes(runs: Runs) -> str:
    found = _FOUND.values(runs)
    true = sorted(set(runs.values("scores", "n_true")))
    shown = f"{found[0]:.0f}" if len(set(found)) == 1 else _FOUND.say(runs)
    return f"{shown} of {'–'.join(f'{n:.0f}' for n in dict.fromkeys((true[0], true[-1])))}" if true else shown


def _note_missing(runs: Sequence[Runs]) -> list[str]:
    notes = []
    for each in runs:
        for metric in _METRICS:
            n_values, n_runs = len(metric.values(each)), len(each.records)
            if 0 < n_values < n_runs:
                notes.append(f"{each.name}: {metric.name} over {n_values} of {n_runs} runs.")
    return notes


def _compare_rows(runs: Sequence[Runs]) -> list[str]:
    """Note what rows of one task do not share."""
    notes = []
    methods = {each.settings["method"] for each in runs}
    if any(name.startswith("pnp") for name in methods) and not all(
        name.startswith("pnp") for name in methods
    ):
        notes.append(
            "pnp learns from labelled rows how to scale directions; the other methods see rows of unit "
            "length as they come."
        )
    for members in gather(runs, lambda each: freeze(each.task)).values():
        if len({freeze(each.seed_pairs) for each in members}) > 1:
            told = "; ".join(f"{each.name}: {join(each.seeds)}" for each in members)
            notes.append(f"Rows average different seeds ({told}).")
        records = [record for each in members for record in each.records]
        same_seed = gather(
            records,
            lambda record: freeze([record["settings"].get("features"), record["settings"]["split"]["seed"]]),
        )
        if any(len({_split_digest(record) for record in group}) > 1 for group in same_seed.values()):
            notes.append(
                "The same seed of the split gave different rows in some runs: these are not like for like."
            )
    return notes


def _split_digest(record: Record) -> Any:
    return record.get("split", {}).get("sha256")


def _explain_published(dataset: str, runs: Sequence[Runs]) -> list[str]:
    source = read_published()["source"]
    notes = [
        f"Published rows are copied from {source['authors']} ({source['year']}, arXiv {source['arxiv']}), "
        "whose encoder is a ViT-B/16 of DINO with its last block trained on the images. Runs here on other "
        "features or with other weights are not like for like."
    ]
    if any(row.mark for row in published_rows(dataset)):
        notes.append("*: reproduced by the paper's authors, or taken by them from public results.")
    others = [each.name for each in runs if each.task["split"] != _PAPERS_SPLIT]
    if others:
        notes.append(f"Not the paper's split, so not comparable with published rows: {'; '.join(others)}.")
    altered = [each.name for each in runs if _is_altered(dataset, each)]
    if altered:
        notes.append(
            "Not the paper's data (a part of them, other classes, or other numbers of rows), so not "
            f"comparable with published rows: {'; '.join(altered)}."
        )
    return notes + describe_disagreements(dataset)


def _is_altered(dataset: str, runs: Runs) -> bool:
    """Tell whether numbers of rows or classes are not those that the paper prints, in thousands."""
    sizes, record = read_published()["datasets"][dataset], runs.records[0]
    if runs.task["split"] != _PAPERS_SPLIT or sizes.get("n_labelled") is None:
        return bool(runs.task["data"])
    printed = (("split", "n_labelled"), ("split", "n_unlabelled"), ("data", "n_classes"))
    for part, name in printed:
        tolerance = 0 if name == "n_classes" else _PRINTED_TO
        if abs(record[part].get(name, 0) - sizes[name]) > tolerance:
            return True
    return False


# --- settings and environments -----------------------------------------------------------------------------


def _make_settings_row(title: str, runs: Runs, letters: Mapping[str, str]) -> Row:
    started = sorted(str(record["started"])[:10] for record in runs.records if record.get("started"))
    used = {letters[freeze(record.get("environment", {}))] for record in runs.records}
    split = runs.task["split"] | runs.task["data"]
    texts = [
        title,
        runs.name,
        join(runs.seeds),
        join(runs.split_seeds),
        _say_settings({name: value for name, value in split.items() if value is not None}),
        _say_settings(runs.settings.get("parameters")),
        _say_settings(runs.settings.get("features")),
        str(runs.task["data sha256"] or _NOTHING)[:12],
        join(runs.n_threads),
        join(sorted(used)),
        " to ".join(dict.fromkeys((*started[:1], *started[-1:]))) or _NOTHING,
    ]
    return Row("", tuple(map(Cell, texts)))


def _make_environments(environments: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a row for each thing that environments have, a column for each environment."""
    flat = [flatten(environment) for environment in environments.values()]
    names = dict.fromkeys(name for each in flat for name in each)
    rows = []
    for name in names:
        rows.append(Row("", (Cell(name), *(Cell(_say_entry(name, each.get(name))) for each in flat))))
    return Table(_SETTINGS, "Environments", (Column("environment"), *map(Column, environments)), tuple(rows))


def _say_settings(settings: Mapping[str, Any] | None) -> str:
    told = flatten(settings or {})
    return join(f"{name}={_say_entry(name, value, 'none')}" for name, value in told.items()) or _NOTHING


def _say_entry(name: str, value: Any, nothing: str = _NOTHING) -> str:
    if value is None:
        return nothing
    return say_plain(value)[:12] if name.endswith("sha256") else say_plain(value)


def _to_letter(at: int) -> str:
    """Return A, B, ... Z, A2, B2, ..."""
    return chr(ord("A") + at % 26) + (str(at // 26 + 1) if at >= 26 else "")
