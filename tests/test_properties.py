"""What holds for any labels and any rows, tried on many that hypothesis makes up.

``PNP_GCD_EXAMPLES=full`` tries 2,000 of each, and 50 where each needs a fit; else there are a few.
"""

import json
import math
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import make_world
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pnp_gcd import PNPDiscoverer
from pnp_gcd.inputs import pool
from pnp_gcd.labels import choose_marker, encode_labels, join_classes, mark_rejected, name_novel_classes
from pnp_gcd.plain_values import from_plain, pack_rows, to_plain, unpack_rows

IS_FULL = os.environ.get("PNP_GCD_EXAMPLES") == "full"
COMMON = {
    "deadline": None,
    "derandomize": not IS_FULL,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
many = settings(max_examples=2000 if IS_FULL else 40, **COMMON)
few = settings(max_examples=50 if IS_FULL else 3, **COMMON)
pytestmark = pytest.mark.filterwarnings(
    "ignore::pnp_gcd.exceptions.LabelWarning", "ignore::pnp_gcd.exceptions.FeatureScaleWarning"
)

QUICK = {"max_iter": 1, "n_neighbors": 4, "whitening": None, "hidden_width": 4, "random_state": 0}

# --- labels ------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=6)
WHOLE = st.integers(-(2**53), 2**53)
KINDS = {
    "str": TEXTS,
    "int": st.integers(-(2**63), 2**63 - 1),
    "small int": st.integers(-2, 3),
    "large int": st.integers(-(10**25), 10**25),
    "float": WHOLE.map(float),
    "bool": st.booleans(),
}


@st.composite
def labels(draw):
    """Return labels in some container, and the same as a list of Python values, None for a missing one."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    may_miss = draw(st.booleans())
    values = draw(st.lists(KINDS[kind] | (st.none() if may_miss else st.nothing()), min_size=1, max_size=12))
    has_gap = any(value is None for value in values)
    ways = ["list", "object", "series of objects"]
    if kind != "large int":
        ways.append("categories")
    # NumPy cuts zeros off the end of a string, before anything of ours has seen it.
    is_cut = kind == "str" and any(str(value).endswith("\0") for value in values)
    if not has_gap and not is_cut and kind != "large int":
        ways.append("array")
    if kind in ("int", "small int"):
        ways += ["Int64"]
    if kind == "bool":
        ways += ["boolean"]
    if kind == "str":
        ways += ["string"]
    if kind == "float":
        ways += ["nan"]
    way = draw(st.sampled_from(ways))
    if way == "list":
        return list(values), values
    if way == "array":
        return np.array(values), values
    if way == "nan":
        return np.array([np.nan if value is None else value for value in values]), values
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    if way == "object":
        return objects, values
    if way == "series of objects":
        return pd.Series(objects, dtype=object), values
    if way == "categories":
        levels = list(dict.fromkeys(value for value in values if value is not None))
        unused = [
            level for level in draw(st.lists(KINDS[kind], max_size=3, unique=True)) if level not in levels
        ]
        return pd.Series(pd.Categorical(objects, categories=levels + unused)), values
    return pd.Series(objects, dtype=way), values


def is_same(found, expected):
    """Tell whether two labels are one: the same value, and text, truth or number alike."""
    kinds = [
        "text" if isinstance(v, str) else "bool" if isinstance(v, (bool, np.bool_)) else "number"
        for v in (found, expected)
    ]
    return kinds[0] == kinds[1] and bool(found == expected)


def has_marker(value, missing_label):
    if value is None:
        return True
    if missing_label is None:
        return False
    return is_same(value, -1) or is_same(value, "-1")


@many
@given(labels(), st.sampled_from(["auto", None]))
def test_every_label_survives_its_code_exactly(given_labels, missing_label):
    y, values = given_labels
    present = {value for value in values if value is not None}
    if (
        missing_label == "auto"
        and not any(isinstance(v, (str, bool)) for v in present)
        and present == {-1, 1}
    ):
        missing_label = None  # read as two classes, which test_inputs.py tests
    codes, classes = encode_labels(y, "auto" if missing_label == "auto" else None)
    assert len(codes) == len(values)
    for code, value in zip(codes.tolist(), values, strict=True):
        if has_marker(value, missing_label):
            assert code == -1
        else:
            assert is_same(classes.tolist()[code], value)
    assert classes.tolist() == sorted(set(classes.tolist()))


@many
@given(labels(), st.randoms())
def test_codes_follow_the_rows_whatever_holds_them(given_labels, random):
    y, values = given_labels
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = y.iloc[order] if isinstance(y, pd.Series) else np.asarray(y, dtype=object)[order]
    first, second = encode_labels(y), encode_labels(shuffled)
    assert second.codes.tolist() == first.codes[order].tolist()
    assert [*map(str, second.classes.tolist())] == [*map(str, first.classes.tolist())]


@many
@given(labels(), st.integers(0, 5))
def test_new_classes_have_names_of_their_own_and_known_ones_keep_theirs(given_labels, n_novel):
    known = encode_labels(given_labels[0]).classes
    novel = name_novel_classes(known, n_novel)
    classes, order = join_classes(known, novel)
    wanted = [*known.tolist(), *novel.tolist()]
    assert len(set(map(repr, wanted))) == len(wanted) == len(classes)
    for place, value in zip(order.tolist(), wanted, strict=True):
        assert is_same(classes.tolist()[place], value)
    marker = choose_marker(classes, "auto")
    told = mark_rejected(classes, np.arange(len(classes)) % 2 == 1, marker)
    assert [is_same(a, b) for a, b in zip(told.tolist()[::2], classes.tolist()[::2], strict=True)] == [
        True
    ] * len(told[::2])


@many
@given(labels())
def test_labels_of_rows_come_back_from_the_form_in_which_they_are_saved(given_labels):
    codes, classes = encode_labels(given_labels[0])
    assume(len(classes) and (codes >= 0).any())
    rows = classes[codes[codes >= 0]]
    packed = pack_rows(rows)
    again = unpack_rows(packed._replace(distinct=json.loads(json.dumps(packed.distinct))))
    assert again.dtype == rows.dtype
    assert again.tolist() == rows.tolist()
    assert [*map(type, again.tolist())] == [*map(type, rows.tolist())]


@many
@given(labels(), st.integers(1, 4))
def test_pool_keeps_every_row_and_every_label(given_labels, n_more):
    y, values = given_labels
    X, more = np.arange(2.0 * len(values)).reshape(-1, 2), -np.ones((n_more, 2))
    stacked, joined = pool(X, y, more)
    np.testing.assert_array_equal(stacked, np.concatenate([X, more]))
    before, after = encode_labels(y), encode_labels(joined)
    assert [*map(repr, after.classes.tolist())] == [*map(repr, before.classes.tolist())]
    assert after.codes.tolist() == before.codes.tolist() + [-1] * n_more


BAD_LABELS = (
    st.lists(st.binary(max_size=3), min_size=1, max_size=4)
    | st.lists(st.dates() | st.datetimes(), min_size=1, max_size=4)
    | st.lists(st.complex_numbers(allow_nan=False), min_size=1, max_size=4)
    | st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4)
    | st.just([math.inf, 1.0])
    | st.lists(st.lists(st.integers(), min_size=2, max_size=3), min_size=2, max_size=4)  # of one: a column
    | st.just([1, "a"])
    | st.just([True, "a"])
    | st.just([b"a", "a"])
    | st.just([{}, {}])
    | st.just(np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"))
    | st.just(np.array([1, 2], dtype="timedelta64[s]"))
    | st.just(pd.Series(pd.to_datetime(["2020-01-01", None])))
    | st.just(pd.Series([1.5, None], dtype="Float64"))
    | st.just(np.zeros((2, 2), dtype=int))
    | st.just(np.zeros((2, 0)))
    | st.just(3)
    | st.just("abc")
    | st.just(None)
    | st.just(np.array([(1, 2)], dtype=[("a", int), ("b", int)]))
)


@many
@given(BAD_LABELS)
def test_what_cannot_be_a_label_is_refused_by_name(y):
    with pytest.raises((ValueError, TypeError), match=r"y|label|Unknown label type|1d|Expected|shape"):
        encode_labels(y, name="y")


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([np.int8(3), np.float32(0.1), np.uint64(2**64 - 1), np.bool_(True), np.str_("é")]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3).filter(lambda key: key[:1] != "$"), inner, max_size=3)
    ),
    max_leaves=8,
)


@many
@given(PLAIN)
def test_a_plain_value_survives_json_with_its_type(value):
    again = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert type(again) is type(value)
    assert repr(again) == repr(value)


# --- rows --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    world = make_world(60, 3, 2, width=4)
    return PNPDiscoverer(3, **QUICK).fit(*world.labelled, world.rest)


ANSWERS = ("predict_proba", "transform", "novelty_score", "typicality", "decision_function")
ANY_FINITE = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-20, 20)
    | st.sampled_from([1e300, -1e300, 1.7e308, -1.7e308, 1e-300, 5e-324, 0.0, -0.0])
)


def check_answers(model, X):
    before = X.copy() if isinstance(X, np.ndarray) else None
    found = model.inspect(X)
    assert np.isfinite(found.features).all()
    np.testing.assert_allclose(np.linalg.norm(found.features, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert ((found.typicality >= 0) & (found.typicality <= 1)).all()
    novelty = model.novelty_score(X)
    assert ((novelty >= 0) & (novelty <= 1 + 1e-6)).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
    if before is not None:
        assert X.tobytes() == before.tobytes() or X.dtype == object
    return found


@many
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=ANY_FINITE))
def test_every_finite_row_gets_finite_answers(model, X):
    check_answers(model, X)


DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "O", ">f8", ">i4")


@many
@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.integers(0, 100)),
    st.sampled_from(DTYPES),
)
def test_numbers_of_every_type_get_the_answers_of_double_precision(model, X, dtype):
    given_rows = X.astype(dtype)
    expected = check_answers(model, given_rows.astype(np.float64))
    found = check_answers(model, given_rows)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-6)


def lay_out(X, way, folder):
    """Return the same rows in another layout of memory."""
    if way == "fortran":
        return np.asfortranarray(X)
    if way == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if way == "view":
        wide = np.zeros((2 * len(X), 2 * X.shape[1]))
        wide[::2, ::2] = X
        return wide[::2, ::2]
    if way == "backwards":
        return X[::-1, ::-1].copy()[::-1, ::-1]
    if way == "unaligned":
        raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
        view = raw[1:].view(X.dtype).reshape(X.shape)
        view[:] = X
        return view
    if way == "mapped":
        mapped = np.memmap(folder / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
        mapped[:] = X
        mapped.flush()
        return np.memmap(folder / "rows", dtype=X.dtype, mode="r", shape=X.shape)
    if way == "broadcast":
        return np.broadcast_to(X[0], X.shape) if (X[0] == X).all() else X
    if way == "list":
        return X.tolist()
    if way == "frame":
        return pd.DataFrame(X)
    return pd.DataFrame(X).astype("Float64")


WAYS = (
    "fortran", "read-only", "view", "backwards", "unaligned", "mapped", "broadcast", "list", "frame",
    "Float64",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mapped")


@many
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.floats(-50, 50)),
    st.sampled_from(WAYS),
)
def test_answers_do_not_depend_on_the_layout_of_memory(model, folder, X, way):
    rows = lay_out(X, way, folder)
    expected = model.inspect(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names of columns
        found = model.inspect(rows)
    for a, b in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


BAD_ROWS = (
    hnp.arrays(np.float64, (3, 4), elements=st.sampled_from([np.nan, np.inf, -np.inf])),
    hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.sampled_from([0, 1, 3, 5, 9]))),
    hnp.arrays(np.complex128, (3, 4)),
    hnp.arrays("M8[s]", (3, 4)),
    hnp.arrays("m8[s]", (3, 4)),
    hnp.arrays("S3", (3, 4), elements=st.just(b"a")),
    hnp.arrays(np.float64, st.sampled_from([(), (4,), (0, 4), (0,), (1, 1, 4), (2, 2, 2, 4), (2, 2, 3)])),
    hnp.arrays("U3", (3, 4), elements=st.sampled_from(["a", "", "1e", "é"])),
    st.sampled_from(
        [None, 3, "text", [], [[]], [[1, 2, 3, 4], [1]], [[None] * 4], [["a"] * 4], {}, object()]
    ),
    st.sampled_from(
        [
            pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 2)} | dict.fromkeys("bcd", 1.0)),
            pd.DataFrame(dict.fromkeys("abcd", pd.to_timedelta([1, 2], unit="s"))),
            [[np.datetime64("2020-01-01")] * 4],
        ]
    ),
)


@many
@given(st.one_of(*BAD_ROWS))
def test_what_cannot_be_rows_is_refused_by_name(model, X):
    with pytest.raises((ValueError, TypeError)) as caught:
        model.predict(X)
    told = str(caught.value)
    assert any(word in told for word in ("X", "array", "Input", "sample", "feature", "Complex", "float")), (
        told
    )


# --- fits --------------------------------------------------------------------------------------------------


@st.composite
def small_worlds(draw):
    """Return rows with duplicates and constant columns, of some type and scale."""
    n_rows, width = draw(st.integers(12, 30)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centres = rng.normal(scale=8, size=(3, width))
    X = centres[np.arange(n_rows) % 3] + rng.normal(size=(n_rows, width))
    if draw(st.booleans()):
        X[:, rng.integers(width)] = draw(st.sampled_from([0.0, -0.0, 1e6]))
    if draw(st.booleans()):
        X[n_rows // 2 :] = X[: n_rows - n_rows // 2]
    dtype = draw(st.sampled_from(["f8", "f4", "f2", "i8", "u1", "g", "O", "?"]))
    scale = draw(st.sampled_from([1.0, 1.0, 1e-20, 1e20, 1e-28, 1e28])) if dtype == "f8" else 1.0
    with np.errstate(all="ignore"):
        return (np.abs(X) if dtype == "u1" else X * scale).astype(dtype)


@few
@given(small_worlds(), st.sampled_from(sorted(set(KINDS) - {"small int"})), st.data())
def test_a_fit_keeps_labels_and_rows_and_gives_finite_answers(X, kind, data):
    names = data.draw(st.lists(KINDS[kind], min_size=2, max_size=2, unique=True))
    assume(not any(has_marker(name, "auto") for name in names))
    y = [names[row % 3] if row % 3 < 2 and row < len(X) // 2 else None for row in range(len(X))]
    before = X.copy()
    model = PNPDiscoverer(3, **QUICK).fit(X, y)
    assert X.tobytes() == before.tobytes() or X.dtype == object
    for label, value in zip(model.labels_.tolist(), y, strict=True):
        assert value is None or is_same(label, value)
    assert {*map(repr, names)} == {*map(repr, model.known_classes_.tolist())}
    check_answers(model, X)


@few
@given(small_worlds(), st.sampled_from(WAYS))
def test_a_fit_does_not_depend_on_the_layout_of_memory(folder, X, way):
    X = X.astype(np.float64)
    y = np.where(np.arange(len(X)) < 8, np.arange(len(X)) % 2, -1)
    expected = PNPDiscoverer(3, **QUICK).fit(X, y)
    found = PNPDiscoverer(3, **QUICK).fit(lay_out(X, way, folder), y)
    assert found.labels_.tolist() == expected.labels_.tolist()
    assert found.prototypes_.tobytes() == expected.prototypes_.tobytes()


EXTREME = st.sampled_from([1e300, -1e300, 1e38, 1e31, 1e33, 1e-300, 5e-324, 1e-40, 1.0, 0.0])


@few
@given(hnp.arrays(np.float64, (14, 3), elements=EXTREME))
def test_rows_of_any_scale_are_fitted_with_finite_answers_or_refused_by_name(X):
    y = np.where(np.arange(14) < 6, np.arange(14) % 2, -1)
    try:
        model = PNPDiscoverer(3, **QUICK).fit(X, y)
    except ValueError as error:
        assert "X holds" in str(error)  # noqa: PT017 - either is right
    else:
        check_answers(model, X)
