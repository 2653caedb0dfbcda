"""What sets a class apart from the others: its words, or the columns of its table.

Knows texts, columns and codes of classes: no model, no page.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Trait", "describe_columns", "describe_texts", "split_words"]

_N_TRAITS = 6
# What of a text is read: the rest of a long one seldom tells more.
_LONGEST_TEXT = 2000
_MOST_TERMS = 50_000
# A term must be in this part of a class's rows at least, and in this many rows.
_LEAST_SHARE = 0.04
_LEAST_ROWS = 2
# How many times more frequent than elsewhere each word of a pair must be.
_LEAST_LIFT = 1.5
# Scripts without spaces between words: Thai to Lao, Myanmar, Khmer, kana, Han and their like.
_UNSPACED = re.compile("[฀-໿က-႟ក-៿぀-ヿ㐀-鿿豈-﫿\U00020000-\U0003ffff]+")
_PLAIN_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
# A column's mean must differ by this many standard deviations, or a category's share by this much.
_LEAST_EFFECT = 0.5
_LEAST_GAIN = 0.2
_MOST_CATEGORIES = 200


class Trait(NamedTuple):
    """Something that a class has more of than others.

    Attributes
    ----------
    text : str
        A word, or a column and what it is like.
    detail : str
        The figures behind it.
    """

    text: str
    detail: str


def describe_texts(texts: Sequence[str], codes: NDArray[np.int64], n_classes: int) -> list[list[Trait]]:
    """Return the most distinctive words and pairs of words of each class, the best first.

    A term weighs its share among the rows of the class times the logarithm of how much larger that is
    than its share elsewhere: what tf-idf is, with a class for a document.

    Parameters
    ----------
    texts : sequence of str of length n_rows
    codes : ndarray of shape (n_rows,)
        Class of each row; -1 for none.
    n_classes : int

    Returns
    -------
    list of list of Trait

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.report.describing import describe_texts
    >>> texts = ["a red rose", "one red rose", "blue sky today", "the blue sky"]
    >>> [traits[0].text for traits in describe_texts(texts, np.array([0, 0, 1, 1]), 2)]
    ['red rose', 'blue sky']
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(
        analyzer=_find_terms, binary=True, min_df=min(_LEAST_ROWS, len(texts)), max_features=_MOST_TERMS
    )
    is_there = codes >= 0
    try:
        counts = vectorizer.fit_transform([text for text, keep in zip(texts, is_there, strict=True) if keep])
    except ValueError:  # no term at all
        return [[] for _ in range(n_classes)]
    terms = vectorizer.get_feature_names_out()
    sizes = np.bincount(codes[is_there], minlength=n_classes)
    totals = np.asarray(counts.sum(axis=0)).ravel()
    order = np.argsort(codes[is_there], kind="stable")
    ends = np.cumsum(sizes)
    traits = []
    for start, end in zip(ends - sizes, ends, strict=True):
        inside = np.asarray(counts[order[start:end]].sum(axis=0)).ravel() if end > start else totals * 0
        traits.append(_choose_terms(terms, inside, totals - inside, int(end - start), int(sizes.sum())))
    return traits


def _choose_terms(
    terms: NDArray[Any], inside: NDArray[Any], outside: NDArray[Any], size: int, n_rows: int
) -> list[Trait]:
    """Return terms of one class; a term of which all words are told already is left out."""
    share = inside / max(size, 1)
    elsewhere = outside / max(n_rows - size, 1)
    # Half a row more on both sides: a term that is nowhere else is not beyond all measure.
    lift = (inside + 0.5) / (size + 1) / ((outside + 0.5) / (n_rows - size + 1))
    weight = share * np.log(np.maximum(lift, 1e-12))
    weight[(inside < min(_LEAST_ROWS, size)) | (share < _LEAST_SHARE) | (lift <= 1)] = 0
    tells = {str(terms[place]) for place in np.flatnonzero((weight > 0) & (lift >= _LEAST_LIFT))}
    chosen: list[Trait] = []
    told: set[str] = set()
    # Of terms that weigh alike the longer says more.
    heaviest = np.argsort(-weight)[:40].tolist()
    for place in sorted(heaviest, key=lambda place: (-round(float(weight[place]), 3), -len(terms[place]))):
        words = set(str(terms[place]).split(" "))
        if weight[place] <= 0 or len(chosen) == _N_TRAITS:
            break
        if words <= told or (len(words) > 1 and (words & told or not words <= tells)):
            continue
        told |= words
        detail = f"in {share[place]:.0%} of its rows, {elsewhere[place]:.1%} elsewhere"
        chosen.append(Trait(str(terms[place]), detail))
    return chosen


def _find_terms(text: str) -> list[str]:
    words = split_words(text)
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def split_words(text: str) -> list[str]:
    """Return the words of a text, folded; pairs of characters where a script has no spaces.

    Examples
    --------
    >>> from pnp_gcd.report.describing import split_words
    >>> split_words("I'd like 2 Roses")
    ["i'd", 'like', 'roses']
    >>> split_words("信用卡 lost")
    ['信用', '用卡', 'lost']
    """
    folded = text[:_LONGEST_TEXT].casefold()
    if folded.isascii():
        return [word for word in _PLAIN_WORD.findall(folded) if len(word) > 1]
    words: list[str] = []
    for run in _word_pattern().findall(folded):
        for part in re.split(f"({_UNSPACED.pattern})", run):
            if _UNSPACED.fullmatch(part):
                words += [part[place : place + 2] for place in range(max(len(part) - 1, 1))]
            elif len(part) > 1:
                words.append(part)
    return words


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    """Return what a word is: letters, digits and the marks on letters, with apostrophes inside."""
    marks = "".join(chr(code) for code in range(0x10000) if unicodedata.category(chr(code))[0] == "M")
    letter = rf"[^\W_]|[{re.escape(marks)}]"
    return re.compile(rf"(?:{letter})+(?:['’](?:{letter})+)*")


def describe_columns(
    columns: Sequence[tuple[str, NDArray[Any]]], codes: NDArray[np.int64], n_classes: int
) -> list[list[Trait]]:
    """Return the columns in which each class differs most from all other rows, the best first.

    Of numbers the means are compared, in standard deviations of the column; of anything else the
    category that is more frequent in the class than elsewhere.

    Parameters
    ----------
    columns : sequence of (name, ndarray of shape (n_rows,))
        Floats with NaN for gaps, or objects with None for gaps.
    codes : ndarray of shape (n_rows,)
        Class of each row; -1 for none.
    n_classes : int

    Returns
    -------
    list of list of Trait

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.report.describing import describe_columns
    >>> height = np.array([1.0, 1.2, 8.0, 8.2])
    >>> describe_columns([("height", height)], np.array([0, 0, 1, 1]), 2)[1][0].text
    'height high'
    """
    found: list[list[tuple[float, Trait]]] = [[] for _ in range(n_classes)]
    for name, values in columns:
        compare = _compare_numbers if values.dtype.kind == "f" else _compare_categories
        for code, strength, trait in compare(name, values[codes >= 0], codes[codes >= 0], n_classes):
            found[code].append((strength, trait))
    return [[trait for _, trait in sorted(traits, key=lambda t: -t[0])[:_N_TRAITS]] for traits in found]


def _compare_numbers(
    name: str, values: NDArray[np.float64], codes: NDArray[np.int64], n_classes: int
) -> list[tuple[int, float, Trait]]:
    is_there = np.isfinite(values)
    values, codes = values[is_there], codes[is_there]
    spread = float(values.std()) if len(values) else 0.0
    if not spread > 0 or not np.isfinite(spread):
        return []
    sizes = np.bincount(codes, minlength=n_classes)
    sums = np.bincount(codes, values, minlength=n_classes)
    found = []
    for code in np.flatnonzero((sizes > 0) & (sizes < len(values))):
        inside = sums[code] / sizes[code]
        outside = (sums.sum() - sums[code]) / (len(values) - sizes[code])
        effect = (inside - outside) / spread
        if abs(effect) >= _LEAST_EFFECT:
            trait = Trait(
                f"{name} {'high' if effect > 0 else 'low'}",
                f"{inside:.4g} on average, {outside:.4g} elsewhere ({effect:+.1f} standard deviations)",
            )
            # Two standard deviations tell as much as a category that only this class has.
            found.append((int(code), abs(effect) / 2, trait))
    return found


def _compare_categories(
    name: str, values: NDArray[Any], codes: NDArray[np.int64], n_classes: int
) -> list[tuple[int, float, Trait]]:
    is_there = np.array([value is not None for value in values], dtype=bool)
    categories, places = np.unique(values[is_there].astype(str), return_inverse=True)
    if len(categories) < 2 or len(categories) > min(_MOST_CATEGORIES, max(2, is_there.sum() // 2)):
        return []
    counts = np.zeros((n_classes, len(categories)))
    np.add.at(counts, (codes[is_there], places), 1)
    sizes, totals = counts.sum(axis=1), counts.sum(axis=0)
    found = []
    for code in np.flatnonzero((sizes > 0) & (sizes < sizes.sum())):
        inside = counts[code] / sizes[code]
        outside = (totals - counts[code]) / (sizes.sum() - sizes[code])
        best = int((inside - outside).argmax())
        if inside[best] - outside[best] >= _LEAST_GAIN:
            detail = f"{inside[best]:.0%} of its rows, {outside[best]:.0%} elsewhere"
            trait = Trait(f"{name} is {categories[best]}", detail)
            found.append((int(code), float(inside[best] - outside[best]), trait))
    return found
