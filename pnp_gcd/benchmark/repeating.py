"""Repeat a run from its record alone, and tell what came out otherwise.

Knows records.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

from pnp_gcd.benchmark.methods import find_method
from pnp_gcd.benchmark.running import Bench
from pnp_gcd.benchmark.settings import RunSettings

__all__ = ["compare_records", "repeat_run"]

# Parts of a record that must be the same when it is repeated.
_REPEATED = ("settings", "parameters", "given", "data", "split", "scores", "chosen", "history", "sha256")


def repeat_run(
    record: dict[str, Any], *, data: str | None = None, weights: str | None = None, verbose: int = 0
) -> dict[str, Any]:
    """Run what a record says once more.

    Parameters
    ----------
    record : dict
    data : str or None, default=None
        Folder or file of the data, if it has moved.
    weights : str or None, default=None
        File of the network's weights, if it has moved.
    verbose : int, default=0

    Returns
    -------
    dict
        A new record, see `compare_records`.
    """
    parameters = dict(record["parameters"])  # defaults too
    if find_method(record["settings"]["method"]).given == "the number of classes":
        parameters.pop("n_clusters", None)  # given by the data, as it was
    told = RunSettings.from_json({**record["settings"], "parameters": parameters})
    if data is not None:
        told = replace(told, data=data)
    if weights is not None and told.features is not None:
        told = replace(told, features={**told.features, "weights": weights})
    elif weights is not None:
        told = replace(told, parameters={**told.parameters, "backbone_weights": weights})
    with tempfile.TemporaryDirectory() as folder:
        again = Bench(folder, verbose=verbose).run(told).record
    return again | {"settings": record["settings"], "parameters": _place(record, again, weights)}


def _place(first: dict[str, Any], second: dict[str, Any], weights: str | None) -> dict[str, Any]:
    """Return the second's parameters; where weights lie is the first's word if they have moved."""
    parameters: dict[str, Any] = dict(second["parameters"])
    if weights is not None and "backbone_weights" in first["parameters"]:
        parameters["backbone_weights"] = first["parameters"]["backbone_weights"]
    return parameters


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
