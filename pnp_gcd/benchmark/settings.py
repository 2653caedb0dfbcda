"""What one run of a benchmark is told: enough to repeat it.

Knows names, numbers and how they are written as JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = ["RunSettings", "SplitSettings", "from_plain", "to_plain"]


@dataclass(frozen=True)
class SplitSettings:
    """How rows are divided; see :meth:`pnp_gcd.datasets.DiscoveryDataset.split`.

    Attributes
    ----------
    seed : int
    known : float, int, list or None
        None takes the classes of the field's protocol, or half of all.
    labelled : float or int
    unseen : float or None
        None takes the official test rows, or a tenth of all.
    """

    seed: int = 0
    known: float | int | list[Any] | None = None
    labelled: float | int = 0.5
    unseen: float | None = None


@dataclass(frozen=True)
class RunSettings:
    """Data, division, method and seed of one run.

    Attributes
    ----------
    dataset : str
        A name of ``pnp_gcd.datasets.DATASETS``.
    data : str or None
        Its folder or file.
    data_options : dict
        Further arguments of its loader.
    features : dict or None
        How images or texts become feature vectors before the method sees them; None if they do not.
    method : str
        A name of ``pnp_gcd.benchmark.METHODS``.
    parameters : dict
        What is changed of the method's own parameters.
    seed : int
        Of the method.
    split : SplitSettings
    n_threads : int
        Threads of torch and of the numerical libraries: sums of floats depend on it.

    Examples
    --------
    >>> from pnp_gcd.benchmark import RunSettings
    >>> settings = RunSettings("digits", method="k-means", parameters={"n_init": 3})
    >>> settings == RunSettings.from_json(settings.to_json())
    True
    """

    dataset: str
    data: str | None = None
    data_options: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] | None = None
    method: str = "pnp"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    split: SplitSettings = field(default_factory=SplitSettings)
    n_threads: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the settings as what JSON knows; infinite numbers become text."""
        plain: dict[str, Any] = to_plain(asdict(self))
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> RunSettings:
        """Read what :meth:`to_json` returned."""
        values: dict[str, Any] = from_plain(dict(plain))
        return cls(**(values | {"split": SplitSettings(**values["split"])}))

    def with_method(self, method: str, parameters: Mapping[str, Any]) -> RunSettings:
        """Return settings of another method, which sees the features of a network that this one trains."""
        features, backbone = self.features, self.parameters.get("backbone")
        if features is None and backbone is not None:
            features = {
                "backbone": backbone,
                "weights": self.parameters.get("backbone_weights", "auto"),
                "image_size": self.parameters.get("image_size"),
            }
        return replace(self, method=method, parameters=dict(parameters), features=features)

    def file_stem(self, inputs_digest: str) -> str:
        """Return a name for the run's files: data, method, seed, and a digest of all that the run is told.

        Where the data lie does not matter, what they are does: that, and what weights and embedder are, is
        in ``inputs_digest``.
        """
        told = self.to_json() | {"data": inputs_digest}
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]
        return "-".join([*map(_to_file_name, (self.title, self.method)), f"seed{self.seed}", digest])

    @property
    def title(self) -> str:
        """What the data are called: the set's name, or that of their own file."""
        if self.dataset not in _NAMED_BY_FILE or self.data is None:
            return self.dataset
        path = Path(self.data).resolve()
        return path.name if self.dataset == "folder" else path.stem


_NOT_FINITE = "not finite"
_NAMED_BY_FILE = ("arrays", "csv", "folder")


def _to_file_name(text: str) -> str:
    return re.sub(r"[^\w]+", "_", text).strip("_") or "data"


def to_plain(value: Any) -> Any:
    """Return a value as what JSON knows; infinite numbers and paths become text."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(entry) for entry in value]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of NumPy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: str(value)}  # JSON has no such number
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    return str(value)  # paths


def from_plain(value: Any) -> Any:
    """Read what `to_plain` returned; lists stay lists."""
    if isinstance(value, dict) and set(value) == {_NOT_FINITE}:
        return float(value[_NOT_FINITE])
    if isinstance(value, dict):
        return {key: from_plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [from_plain(entry) for entry in value]
    return value
