"""Generalized category discovery as a scikit-learn estimator.

>>> from pnp_gcd import PNPDiscoverer

What is public is imported when it is first asked for, so that a command line can answer, or end at Ctrl-C,
before scikit-learn is there.
"""

import logging
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pnp_gcd.discoverer import PNPDiscoverer
    from pnp_gcd.embedder import ImageEmbedder
    from pnp_gcd.inputs import pool
    from pnp_gcd.spooling import spool

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until a program asks

try:
    __version__ = version("pnp-gcd")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["ImageEmbedder", "PNPDiscoverer", "__version__", "pool", "spool"]

_HOMES = {"ImageEmbedder": "embedder", "PNPDiscoverer": "discoverer", "pool": "inputs", "spool": "spooling"}
_MODULES = (
    "benchmark",
    "datasets",
    "exceptions",
    "metrics",
    "model_selection",
    "plotting",
    "presets",
    "report",
)


def __getattr__(name: str) -> Any:
    """Import what is public when it is asked for."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # the next time it is there
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
