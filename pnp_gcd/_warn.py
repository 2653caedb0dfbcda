"""Warn at the line of the user's program that called the package.

Knows the call stack only.
"""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_user"]

# Their lines tell a user nothing.
_LIBRARIES = ("pnp_gcd", "sklearn", "joblib", "contextlib")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn as if the first line below this package and scikit-learn had done so.

    Parameters
    ----------
    message : str
    category : type
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and (frame.f_globals.get("__name__") or "").split(".")[0] in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
