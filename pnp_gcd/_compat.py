"""scikit-learn's names that are private or changed between versions, in one place.

Knows scikit-learn only.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._metadata_requests import get_routing_for_object
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils._tags import Tags

__all__ = [
    "CallbackSupportMixin",
    "Interval",
    "NoCallbacks",
    "Options",
    "ParameterHelpMixin",
    "StrOptions",
    "Tags",
    "get_routing_for_object",
    "safe_indexing",
    "with_callbacks",
]

_Method = TypeVar("_Method")


class NoCallbacks:
    """A context that nobody listens to."""

    def subcontext(self, **kwargs: Any) -> NoCallbacks:
        """Return a context of the same kind."""
        return self

    def call_on_fit_task_begin(self, **kwargs: Any) -> NoCallbacks:
        """Do nothing."""
        return self

    def call_on_fit_task_end(self, **kwargs: Any) -> bool:
        """Do nothing, and ask for nothing."""
        return False

    def propagate_callback_context(self, sub_estimator: Any) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()


try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's: no ``set_callbacks``, and a context without listeners."""

        def _init_callback_context(self, **kwargs: Any) -> NoCallbacks:
            return NoCallbacks()

    def _with_callbacks(method: _Method) -> _Method:
        return method


class ParameterHelpMixin:
    """Lets notebooks show each parameter's help, as scikit-learn does for estimators with a page to link."""

    _doc_link_module = "pnp_gcd"
    _doc_link_template = "#"  # this page: the pages of the docs have no address of their own yet


def with_callbacks(method: _Method) -> _Method:
    """Let scikit-learn clean up after callbacks when ``method``, a fit, ends; before 1.9 there are none."""
    wrapped: _Method = _with_callbacks(method)
    return wrapped
