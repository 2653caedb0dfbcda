"""One line of progress on standard error, for people who asked for it.

Knows text only.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

__all__ = ["ProgressLine"]

_WIDTH = 24


class ProgressLine:
    """Shows calibration and epochs as they happen; silent at ``verbose=0``.

    In a terminal the line is rewritten, elsewhere (a file, a notebook log) each report is a
    line of its own.

    Parameters
    ----------
    verbose : int
    n_epochs : int
    stream : text file, default standard error
    """

    def __init__(self, verbose: int, n_epochs: int, stream: TextIO | None = None) -> None:
        self.is_on = verbose > 0
        self.n_epochs = n_epochs
        self.stream = sys.stderr if stream is None else stream
        self.rewrites = self.is_on and self.stream.isatty()
        self.n_tried = 0

    def show(self, stage: str, row: dict[str, Any]) -> None:
        """Report a row of the calibration table or of the history."""
        if not self.is_on:
            return
        if stage == "calibration":
            self.n_tried += 1
            self._write(
                f"calibrating: {self.n_tried} settings tried, neighbours={row['n_neighbors']}, "
                f"score {row['score']:.3f}"
            )
        else:
            done = int(row["epoch"]) + 1
            filled = _WIDTH * done // self.n_epochs
            bar = "#" * filled + "-" * (_WIDTH - filled)
            self._write(
                f"training [{bar}] epoch {done}/{self.n_epochs}, {int(row['n_active'])} clusters, "
                f"loss {row['total']:.3f}"
            )

    def close(self) -> None:
        """End the line."""
        if self.rewrites:
            self.stream.write("\n")
            self.stream.flush()

    def _write(self, text: str) -> None:
        self.stream.write(f"\r\x1b[2K{text}" if self.rewrites else f"{text}\n")
        self.stream.flush()
