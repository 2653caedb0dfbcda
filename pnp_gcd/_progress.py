"""One line of progress on standard error, for people who asked for it.

Knows text only.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

__all__ = ["ProgressLine"]

_WIDTH = 24


class ProgressLine:
    """Shows images, calibration and epochs as they happen; silent at ``verbose=0``.

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
        self.last_bar = ""

    def show(self, stage: str, row: dict[str, Any]) -> None:
        """Report images done, a row of the calibration table or one of the history."""
        if not self.is_on:
            return
        if stage == "trunk":
            bar = _bar(row["done"] / max(row["total"], 1))
            if self.rewrites or bar != self.last_bar:  # in a file, not a line per batch
                self._write(f"reading images [{bar}] {row['done']}/{row['total']} views")
            self.last_bar = bar
        elif stage == "calibration":
            self.n_tried += 1
            self._write(
                f"calibrating: {self.n_tried} settings tried, neighbours={row['n_neighbors']}, "
                f"score {row['score']:.3f}"
            )
        elif stage == "epoch":
            done = int(row["epoch"]) + 1
            self._write(
                f"training [{_bar(done / self.n_epochs)}] epoch {done}/{self.n_epochs}, "
                f"{int(row['n_active'])} clusters, loss {row['total']:.3f}"
            )

    def close(self) -> None:
        """End the line."""
        if self.rewrites:
            self.stream.write("\n")
            self.stream.flush()

    def _write(self, text: str) -> None:
        self.stream.write(f"\r\x1b[2K{text}" if self.rewrites else f"{text}\n")
        self.stream.flush()


def _bar(share: float) -> str:
    filled = int(_WIDTH * share)
    return "#" * filled + "-" * (_WIDTH - filled)
