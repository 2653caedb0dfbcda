"""Which records of runs may be averaged, what the rows are called, and what to say beside them.

Knows records only: no published number, no layout.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pnp_gcd.benchmark.settings import RunSettings, from_plain

__all__ = ["Record", "Runs", "flatten", "freeze", "gather", "gather_runs", "join", "say_plain", "title_of"]

Record = Mapping[str, Any]
Item = TypeVar("Item")

_LONGEST_VALUE = 40
_INPUTS = ("features", "kind")


class Runs:
    """Records that were told the same but for seeds: one row of a table.

    Attributes
    ----------
    name : str
        The method, and what tells these runs from others.
    records : list of dict
        One for each pair of seeds, in their order.
    notes : list of str
        What a reader of their mean has to know.
    task : dict
        What was to be solved: the rows and how they are divided.
    given_k : bool
        Whether the number of classes was told.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = list(records)
        self.notes: list[str] = []
        self.settings: Mapping[str, Any] = self.records[0]["settings"]
        self.task = _describe_task(self.records[0])
        told = self.settings.get("parameters", {}).get("n_clusters")
        self.given_k = self.records[0]["given"] != "nothing" or told is not None
        self.name = str(self.settings["method"])

    def values(self, part: str, key: str) -> list[float]:
        """Return a number of each record that has it; none for None and NaN."""
        found = (record.get(part, {}).get(key) for record in self.records)
        return [float(value) for value in found if value is not None and math.isfinite(value)]

    @property
    def seeds(self) -> list[int]:
        """Seeds of the method."""
        return sorted({_seeds(record)[0] for record in self.records})

    @property
    def split_seeds(self) -> list[int]:
        """Seeds of the division of rows."""
        return sorted({_seeds(record)[1] for record in self.records})

    @property
    def seed_pairs(self) -> list[tuple[int, int]]:
        """Both, run by run."""
        return sorted(map(_seeds, self.records))

    @property
    def n_threads(self) -> list[int]:
        """Numbers of threads."""
        return sorted({record["settings"].get("n_threads", 1) for record in self.records})


def gather_runs(records: Sequence[Record], environment_names: Mapping[str, str]) -> list[Runs]:
    """Return the rows of one data set: those given the number of classes first, else in the records' order.

    Parameters
    ----------
    records : sequence of dict
        Of one data set.
    environment_names : mapping
        From frozen environments to what notes call them.

    Returns
    -------
    list of Runs
    """
    told_the_same = gather(records, lambda record: freeze([_describe_task(record), _describe_method(record)]))
    runs = sorted(map(Runs, told_the_same.values()), key=lambda each: not each.given_k)
    for each, name in zip(runs, _make_names(runs), strict=True):
        each.name = name
        _drop_repeats(each)
        _note_differences(each, environment_names)
    return runs


def _describe_task(record: Record) -> dict[str, Any]:
    """Return rows and how they are divided, without the seed that draws the division."""
    settings, data = record["settings"], record.get("data", {})
    split = {name: value for name, value in settings["split"].items() if name != "seed"}
    return {"data sha256": data.get("sha256"), "data": settings.get("data_options", {}), "split": split}


def _describe_method(record: Record) -> dict[str, Any]:
    """Return what must be the same in runs that are averaged: all parameters, defaults too."""
    settings, data = record["settings"], record.get("data", {})
    parameters = record.get("parameters", settings.get("parameters", {}))
    return {
        "method": settings["method"],
        "given": record["given"],
        "features": settings.get("features"),
        "kind": data.get("kind"),
        "inputs sha256": data.get("inputs_sha256", {}),
        "parameters": {
            str(name): from_plain(value)
            for name, value in parameters.items()
            if name != "n_clusters" or name in settings.get("parameters", {})  # else the data's own
        },
    }


def _make_names(runs: Sequence[Runs]) -> list[str]:
    """Name rows by their methods, and by what differs: between all rows, or between those of one method."""
    tasks = _find_differences([flatten(each.task) for each in runs])
    own = [flatten(_describe_method(each.records[0])) for each in runs]
    names = []
    for at, (each, inputs) in enumerate(zip(runs, _name_inputs(runs), strict=True)):
        namesakes = [i for i, other in enumerate(runs) if other.name == each.name]
        found = _find_differences([own[i] for i in namesakes])
        differences = found[namesakes.index(at)]
        told = [f"on {inputs}"] if inputs else []
        told += [_say_value(name, value) for name, value in tasks[at].items() if value is not None]
        told += [
            _say_value(name, value) for name, value in differences.items() if not name.startswith(_INPUTS)
        ]
        if not told and any(name.startswith("parameters.") for others in found for name in others):
            told = ["its own parameters"]
        names.append(f"{each.name} ({', '.join(told)})" if told else each.name)
    described = [freeze([each.settings, _describe_method(each.records[0])]) for each in runs]
    digests = [hashlib.sha256(each.encode()).hexdigest()[:6] for each in described]
    return [
        f"{name}, {digest}" if names.count(name) > 1 else name
        for name, digest in zip(names, digests, strict=True)
    ]


def _name_inputs(runs: Sequence[Runs]) -> list[str]:
    """Say what each row's method saw, where that is not the same for all: images, features, which."""
    seen = [(each.settings.get("features"), each.records[0].get("data", {}).get("kind")) for each in runs]
    if len({freeze(each) for each in seen}) == 1:
        return [""] * len(runs)
    kinds = [str(kind or "features") for _, kind in seen]
    details = _find_differences([flatten({"features": features}) for features, _ in seen if features])
    told = iter(details)
    named = []
    for (features, _), kind in zip(seen, kinds, strict=True):
        more = [_say_value(name, value) for name, value in next(told).items()] if features else []
        named.append(", ".join([kind, *more]))
    return named


def _find_differences(described: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each description the entries that not all of them share."""
    frozen = [{(name, freeze(value)) for name, value in each.items()} for each in described]
    common = set.intersection(*frozen) if frozen else set()
    return [
        {name: value for name, value in each.items() if (name, freeze(value)) not in common}
        for each in described
    ]


def _say_value(name: str, value: Any) -> str:
    text = "none" if value is None else say_plain(value)
    if name.endswith("sha256") and isinstance(value, str):
        text = value[:8]
    elif len(text) > _LONGEST_VALUE:  # shortened texts must not look the same
        text = f"{text[:_LONGEST_VALUE]}… {hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return f"{name.removeprefix('parameters.')}={text}"


def _drop_repeats(runs: Runs) -> None:
    """Keep the last run of each pair of seeds, and say so."""
    kept = []
    for (seed, _), members in gather(runs.records, _seeds).items():
        kept.append(max(members, key=lambda record: str(record.get("started", ""))))
        if len(members) > 1:
            is_same = len({freeze(record.get("sha256")) for record in members}) == 1
            runs.notes.append(
                f"{runs.name}: seed {seed} was run {len(members)} times, with "
                f"{'the same' if is_same else 'different'} answers; only the last counts."
            )
    runs.records = sorted(kept, key=_seeds)


def _note_differences(runs: Runs, environment_names: Mapping[str, str]) -> None:
    """Note what the runs of one row do not share although they are averaged."""
    environments = [record.get("environment", {}) for record in runs.records]
    differences = _find_differences([flatten(environment) for environment in environments])
    told = sorted({name for each in differences for name in each})
    if told:
        used = sorted({environment_names[freeze(environment)] for environment in environments})
        runs.notes.append(
            f"{runs.name}: averages runs of environments {join(used)}, which differ in {join(told)}."
        )
    if len(runs.n_threads) > 1:
        runs.notes.append(f"{runs.name}: averages runs with {join(runs.n_threads)} threads.")
    if len(runs.records) > 1 and len(runs.split_seeds) == 1:
        runs.notes.append(
            f"{runs.name}: all runs share one split, so ± leaves out the choice of rows and classes."
        )


def _seeds(record: Record) -> tuple[int, int]:
    return record["settings"]["seed"], record["settings"]["split"]["seed"]


def title_of(record: Record) -> str:
    """Return what the data of a record are called."""
    return RunSettings.from_json(record["settings"]).title


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested entries under names with dots.

    Examples
    --------
    >>> from pnp_gcd.benchmark.gathering import flatten
    >>> flatten({"git": {"commit": "1a2b", "is_clean": True}, "n_cpus": 2})
    {'git.commit': '1a2b', 'git.is_clean': True, 'n_cpus': 2}
    """
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        flat |= (
            flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
        )
    return flat


def freeze(value: Any) -> str:
    """Return a text that is the same for equal values of JSON."""
    return json.dumps(value, sort_keys=True, default=str)


def say_plain(value: Any) -> str:
    """Return a text as it is, and anything else as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def join(values: Iterable[Any]) -> str:
    """Return values with commas between."""
    return ", ".join(map(str, values))


def gather(items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Return items by a key, in the order of its first appearance."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
