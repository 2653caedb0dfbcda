"""Repeat a run from its record alone, and tell what came out otherwise.

Knows records.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

from pnp_gcd.benchmark.running import Bench
from pnp_gcd.benchmark.settings import RunSettings

__all__ = ["compare_records", "repeat_run"]

# Parts of a record that must be the same when it is repeated.
_REPEATED = ("settings", "parameters", "given", "data", "split", "scores", "chosen", "history", "sha256")


def repeat_run(record: dict[str, Any], *, data: str | None = None, verbose: int = 0) -> dict[str, Any]:
    """Run what a record says once more.

    Parameters
    ----------
    record : dict
    data : str or None, default=None
        Folder or file of the data, if it has moved.
    verbose : int, default=0

    Returns
    -------
    dict
        A new record, see `compare_records`.
    """
    settings = RunSettings.from_json(record["settings"])
    told = RunSettings.from_json({**record["settings"], "parameters": record["parameters"]})  # defaults too
    with tempfile.TemporaryDirectory() as folder:
        moved = told if data is None else replace(told, data=data)
        return Bench(folder, verbose=verbose).run(moved).record | {"settings": settings.to_json()}


def compare_records(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """List what differs between two records of what should be one run.

    Where the data lie, when, how long and on what machine may differ.

    Parameters
    ----------
    first, second : dict

    Returns
    -------
    list of str
        Empty if the second repeats the first exactly.
    """
    differences = []
    for part in _REPEATED:
        one, other = first.get(part), second.get(part)
        if part == "settings":
            one, other = {**(one or {}), "data": None}, {**(other or {}), "data": None}
        if part == "history":
            one, other = _without_seconds(one or []), _without_seconds(other or [])
        if one != other:
            differences.append(_say_difference(part, one, other))
    return differences


def _without_seconds(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the history without what differs from run to run."""
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in history]


def _say_difference(part: str, one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return "; ".join(f"{part}.{key}: {one.get(key)!r}, now {other.get(key)!r}" for key in keys)
    return f"{part} differs"
