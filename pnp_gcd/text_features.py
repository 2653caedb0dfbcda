"""Turn texts into feature vectors: by their words, or by a sentence model from a folder.

Knows texts and arrays: no labels, no classes. scikit-learn's text tools and sentence-transformers are
imported when texts are embedded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

__all__ = ["WordFeatures", "embed_sentences"]

_N_COLUMNS = 256
_ARRAYS = ("words", "rarity", "directions")


class WordFeatures:
    """Weigh words and pairs of words by how rare they are, and keep the directions that vary most.

    Parameters
    ----------
    words : list of str
        Words and pairs of words, in the order of their columns.
    rarity : ndarray of shape (n_words,)
        Weight of each: its inverse document frequency.
    directions : ndarray of shape (n_columns, n_words)
        What the weights are projected on.

    Examples
    --------
    >>> from pnp_gcd.text_features import WordFeatures
    >>> texts = ["a red rose", "a red tulip", "the blue sea", "the blue sky"]
    >>> features = WordFeatures.fit(texts)
    >>> features.transform(["red and blue"]).shape
    (1, 3)
    """

    def __init__(self, words: list[str], rarity: NDArray[np.floating], directions: NDArray[Any]) -> None:
        self.words, self.rarity, self.directions = words, rarity, directions

    @classmethod
    def fit(cls, texts: Sequence[str]) -> WordFeatures:
        """Learn from texts which words there are, and the directions in which texts vary most.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        WordFeatures
        """
        from sklearn.decomposition import TruncatedSVD

        vectorizer = _make_vectorizer()
        try:
            table = vectorizer.fit_transform(list(texts))
        except ValueError as error:
            raise ValueError(
                f"{len(texts)} texts have no word that two of them share. Pass more texts, or embed them by "
                "a sentence model."
            ) from error
        n_columns = min(_N_COLUMNS, min(table.shape) - 1)
        if n_columns < 1:
            raise ValueError(
                f"{len(texts)} texts share {table.shape[1]} word, but 2 are needed. Pass more texts, or "
                "embed them by a sentence model."
            )
        directions = TruncatedSVD(n_columns, random_state=0).fit(table).components_
        return cls(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_, directions)

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        ndarray of shape (n_texts, n_columns), float32
        """
        vectorizer = _make_vectorizer(self.words)
        vectorizer.idf_ = self.rarity
        table = vectorizer.transform(list(texts))
        return np.asarray(table @ self.directions.T, dtype=np.float32)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what ``from_arrays`` takes, for a file without pickled objects."""
        # One run of bytes: an array of str would pad every word to the longest.
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        return {"words": words, "rarity": self.rarity, "directions": self.directions}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> WordFeatures:
        """Return the features that ``to_arrays`` described; damaged arrays raise a ValueError."""
        missing = [name for name in _ARRAYS if name not in arrays]
        if missing:
            raise ValueError(f"no array {' and '.join(missing)}")
        words = bytes(arrays["words"].astype(np.uint8)).decode().split("\n")
        rarity, directions = arrays["rarity"], arrays["directions"]
        if rarity.shape != (len(words),) or directions.shape[1:] != (len(words),):
            raise ValueError(f"{len(words)} words, but weights of {rarity.shape} and {directions.shape}")
        return cls(words, rarity, directions)


@contextmanager
def _bars(are_shown: bool) -> Iterator[None]:
    """Let transformers show bars, or not, and leave that as it was."""
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    (logging.enable_progress_bar if are_shown else logging.disable_progress_bar)()
    try:
        yield
    finally:
        (logging.enable_progress_bar if before else logging.disable_progress_bar)()


def _make_vectorizer(words: list[str] | None = None) -> TfidfVectorizer:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=1 if words else 2, vocabulary=words)


def _refuse_code(folder: Path) -> None:
    """Refuse a model that brings code, or names classes of others: to load it would be to run them."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        types = [str(module["type"]) for module in modules]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ValueError(
            f"embedder={str(folder)!r} cannot be loaded: its modules.json is none of sentence-transformers. "
            "Pass a folder that SentenceTransformer.save wrote."
        ) from error
    code = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.py"))]
    code += [name for name in types if not name.startswith("sentence_transformers.")]
    if code:
        raise ValueError(
            f"embedder={str(folder)!r} brings code of its own, {', '.join(code[:3])}, which is not run here. "
            "Embed the texts by a program of yours, and pass what comes out: --embeddings."
        )


def embed_sentences(
    texts: Sequence[str], folder: str | os.PathLike[str], *, device: str = "auto", verbose: int = 0
) -> NDArray[np.float32]:
    """Embed texts by a model of sentence-transformers that is on disk; nothing is downloaded.

    Nothing in the folder is executed: a model that brings code of its own is refused.

    Parameters
    ----------
    texts : sequence of str
    folder : str or path
        Of the model.
    device : str, default="auto"
        "cuda", "mps", "cpu", or the first of them there is.
    verbose : int, default=0
        1 shows progress on standard error.

    Returns
    -------
    ndarray of shape (n_texts, n_columns), float32
    """
    if not (Path(folder) / "modules.json").is_file():
        raise ValueError(
            f"embedder={str(folder)!r} is no folder of a sentence-transformers model: it has no "
            "modules.json. Pass a folder that SentenceTransformer.save wrote, or 'tfidf', which needs none."
        )
    _refuse_code(Path(folder))
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            f"embedder={str(folder)!r} needs sentence-transformers, which cannot be imported ({error}). "
            "Install it: pip install \"pnp-gcd[texts]\"; or pass 'tfidf', which needs nothing more."
        ) from error
    try:
        with _bars(verbose > 0):
            model = SentenceTransformer(
                str(folder), device=None if device == "auto" else device, local_files_only=True
            )
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"embedder={str(folder)!r} cannot be loaded: {error}. Pass a folder that "
            "SentenceTransformer.save wrote."
        ) from error
    rows = model.encode(list(texts), show_progress_bar=verbose > 0, convert_to_numpy=True)
    return np.asarray(rows, dtype=np.float32)
