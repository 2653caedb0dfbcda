"""How items become rows of a model: kept beside it, so that the next command need not be told.

Knows JSON: no items, no model.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

__all__ = ["KINDS", "Kind", "Recipe", "read_recipe"]

FORMAT = 1
Kind = Literal["images", "texts", "table", "embeddings"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Recipe:
    """What a model's rows were made from, and how.

    Parameters
    ----------
    kind : {"images", "texts", "table", "embeddings"}
    id_column : str or None
        Column, or array of an .npz, that names items.
    text_column : str or None
        Of texts.
    columns : tuple of str or None
        Of numbers, in the order of the model's features; None for arrays.
    embedder : str or None
        Of texts: "tfidf", or the absolute path of a sentence model.
    """

    kind: Kind
    id_column: str | None = None
    text_column: str | None = None
    columns: tuple[str, ...] | None = None
    embedder: str | None = None

    def to_json(self) -> str:
        """Return the text of ``inputs.json``."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Read the text of ``inputs.json``; a ValueError says what is wrong with it."""
        told = json.loads(text)
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}, which this version reads")
        told = {name: value for name, value in told.items() if name != "format"}
        known = {field.name for field in fields(cls)}
        if set(told) != known:
            raise ValueError(f"it has {sorted(told)} in place of {sorted(known)}")
        if isinstance(told["columns"], list):
            told["columns"] = tuple(told["columns"])
        recipe = cls(**told)
        recipe.check()
        return recipe

    def check(self) -> None:
        """Raise a ValueError for parts that do not go together."""
        named: dict[str, Any] = {"id_column": self.id_column, "text_column": self.text_column}
        for name, value in named.items():
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name}={value!r} must be the name of a column, or null")
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} must be one of {', '.join(KINDS)}")
        if (self.kind == "texts") != (self.text_column is not None):
            raise ValueError(f"kind={self.kind!r} and text_column={self.text_column!r} do not go together")
        if self.columns is not None and not all(isinstance(name, str) for name in self.columns):
            raise ValueError(f"columns={self.columns!r} must be names of columns, or null")
        embedder = self.embedder
        if self.kind == "texts":
            is_right = embedder == "tfidf" or (isinstance(embedder, str) and os.path.isabs(embedder))
        else:
            is_right = embedder is None
        if not is_right:
            raise ValueError(f"kind={self.kind!r} and embedder={embedder!r} do not go together")


def read_recipe(path: Path) -> Recipe:
    """Read ``inputs.json``.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Recipe
    """
    try:
        return Recipe.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"{str(path)!r} does not say how the model's items are read: {error}. Run discover again, or put "
            "the file back that it wrote."
        ) from error
