"""scikit-learn's names that are private or changed between versions, in one place.

Knows scikit-learn only.
"""

from __future__ import annotations

from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils._tags import Tags

__all__ = ["Interval", "Options", "StrOptions", "Tags"]
