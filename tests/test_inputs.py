"""Labels, class names and rows are read as given, or refused with a message that says what to do."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import DataConversionWarning
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pnp_gcd.exceptions import FeatureScaleWarning, LabelWarning
from pnp_gcd.inputs import check_same_scale, pool, unwrap_pool
from pnp_gcd.labels import choose_marker, encode_labels, join_classes, mark_rejected, name_novel_classes


def pandas_series(values, dtype):
    return pytest.importorskip("pandas").Series(values, dtype=dtype)


def polars_series(values, dtype=None):
    polars = pytest.importorskip("polars")
    return polars.Series(values, dtype=dtype and getattr(polars, dtype))


# Each kind: what the caller passes, the codes, the classes and their dtype kind. Unlabelled rows are in it
# wherever the kind has a marker.
KINDS = {
    "int8": (lambda: np.array([7, -1, 3, 7], np.int8), [1, -1, 0, 1], [3, 7], "i"),
    "uint8": (lambda: np.array([255, 0, 3, 255], np.uint8), [2, 0, 1, 2], [0, 3, 255], "u"),
    "int64": (lambda: np.array([7, -1, -2, 7]), [1, -1, 0, 1], [-2, 7], "i"),
    "int list": (lambda: [7, None, 3, 7], [1, -1, 0, 1], [3, 7], "i"),
    "uint64 beyond int64": (lambda: np.array([2**64 - 1, 0], np.uint64), [1, 0], [0, 2**64 - 1], "u"),
    "large int list": (lambda: [2**64 - 1, 0], [1, 0], [0, 2**64 - 1], "u"),
    "int beyond uint64": (lambda: [2**70, None, 0], [1, -1, 0], [0, 2**70], "O"),
    "float": (lambda: np.array([7.0, np.nan, 3.0, -1.0]), [1, -1, 0, -1], [3.0, 7.0], "f"),
    "float32": (lambda: np.array([7, -1, 3], np.float32), [1, -1, 0], [3.0, 7.0], "f"),
    "bool": (lambda: np.array([True, False, True]), [1, 0, 1], [False, True], "b"),
    "bool list": (lambda: [True, None, False], [1, -1, 0], [False, True], "b"),
    "bool beside int": (lambda: [3, None, False, True], [2, -1, 0, 1], [False, True, 3], "O"),
    "str": (lambda: np.array(["b", "-1", "apple"]), [1, -1, 0], ["apple", "b"], "U"),
    "str list": (lambda: ["b", "-1", "a"], [1, -1, 0], ["a", "b"], "U"),
    "str list with zeros at its end": (lambda: ["a\0", "a", "-1"], [1, 0, -1], ["a", "a\0"], "O"),
    "str list with None": (lambda: ["b", None, "a"], [1, -1, 0], ["a", "b"], "O"),
    "str list with nan": (lambda: ["b", np.nan, "nan"], [0, -1, 1], ["b", "nan"], "O"),
    "str list with -1": (lambda: ["b", -1, "a"], [1, -1, 0], ["a", "b"], "O"),
    "object str": (lambda: np.array(["b", "-1", None, "a"], object), [1, -1, -1, 0], ["a", "b"], "O"),
    "masked": (lambda: np.ma.array([5, 6, 7], mask=[0, 1, 0]), [0, -1, 1], [5, 7], "i"),
    "pandas category": (lambda: pandas_series([3, None, 1], "category"), [1, -1, 0], [1, 3], "i"),
    "pandas str category": (lambda: pandas_series(["b", None, "a"], "category"), [1, -1, 0], ["a", "b"], "O"),
    "pandas string": (lambda: pandas_series(["b", None, "a"], "string"), [1, -1, 0], ["a", "b"], "O"),
    "pandas Int64": (lambda: pandas_series([3, None, 1], "Int64"), [1, -1, 0], [1, 3], "i"),
    "pandas Int8 and -1": (lambda: pandas_series([3, -1, 1], "Int8"), [1, -1, 0], [1, 3], "i"),
    "pandas boolean": (lambda: pandas_series([True, None, False], "boolean"), [1, -1, 0], [False, True], "b"),
    "pandas float": (lambda: pandas_series([3.0, None, 1.0], "float64"), [1, -1, 0], [1.0, 3.0], "f"),
    "pandas object": (lambda: pandas_series(["b", None, "-1"], object), [0, -1, -1], ["b"], "O"),
    "polars int": (lambda: polars_series([3, None, 1]), [1, -1, 0], [1, 3], "i"),
    "polars str": (lambda: polars_series(["b", None, "a"]), [1, -1, 0], ["a", "b"], "O"),
    "polars categorical": (
        lambda: polars_series(["b", None, "a"], "Categorical"),
        [1, -1, 0],
        ["a", "b"],
        "O",
    ),
    "only 1": (lambda: np.array([1, 1]), [0, 0], [1], "i"),
    "only 1.0": (lambda: np.array([1.0, 1.0]), [0, 0], [1.0], "f"),
    "no label": (lambda: np.array([-1, -1]), [-1, -1], [], "i"),
    "no label, text": (lambda: np.array(["-1", "-1"], object), [-1, -1], [], "U"),
    "no label, None": (lambda: [None, None], [-1, -1], [], "i"),
}


@pytest.fixture(params=KINDS)
def kind(request):
    make, codes, classes, dtype_kind = KINDS[request.param]
    return make(), codes, classes, dtype_kind


def test_every_kind_of_label_is_encoded_and_comes_back_as_given(kind):
    y, codes, classes, dtype_kind = kind
    encoded = encode_labels(y)
    assert encoded.codes.tolist() == codes
    assert encoded.codes.dtype == np.int64
    assert encoded.classes.tolist() == classes
    assert [type(label) for label in encoded.classes.tolist()] == [type(label) for label in classes]
    assert encoded.classes.dtype.kind == dtype_kind


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, bool, "<U7"])
def test_array_dtypes_are_kept(dtype):
    assert encode_labels(np.array([1, 0, 1]).astype(dtype)).classes.dtype == np.dtype(dtype)


def test_codes_follow_a_permutation_of_the_rows():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c", "-1"], 50)
    order = rng.permutation(50)
    np.testing.assert_array_equal(encode_labels(y[order]).codes, encode_labels(y).codes[order])


def test_order_preserving_renames_leave_the_codes_alone():
    y = np.random.default_rng(0).integers(-1, 5, 50)
    renamed = np.where(y < 0, "-1", np.char.add("class ", y.astype(str)))
    np.testing.assert_array_equal(encode_labels(renamed).codes, encode_labels(y).codes)


def test_pandas_na_in_a_list_is_unlabelled():
    na = pytest.importorskip("pandas").NA
    assert encode_labels([2, na, 5]).codes.tolist() == [0, -1, 1]


def test_a_million_labels_take_no_row_loop():
    y = np.random.default_rng(0).integers(-1, 100, 1_000_000)
    codes, classes = encode_labels(y)
    np.testing.assert_array_equal(codes, y)
    np.testing.assert_array_equal(classes, np.arange(100))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64, object])
def test_minus_one_and_one_alone_are_two_classes_with_a_warning(dtype):
    with pytest.warns(LabelWarning, match="missing_label=-1"):
        codes, classes = encode_labels(np.array([-1, 1, 1]).astype(dtype))
    assert codes.tolist() == [0, 1, 1]
    assert classes.tolist() == [-1, 1]


@pytest.mark.parametrize("y", [[-1, 0, 1], [-1, 2], ["-1", "1"], [1, 1], [-1, -1]])
def test_minus_one_beside_anything_else_is_unlabelled_and_silent(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes, classes = encode_labels(y)
    assert [code == -1 for code in codes] == [str(label) == "-1" for label in y]
    assert -1 not in classes.tolist()


@pytest.mark.parametrize(
    ("y", "missing_label", "codes"),
    [
        ([-1, 1, 1], -1, [-1, 0, 0]),
        ([-1, 1, 1], None, [0, 1, 1]),
        ([-1.0, np.nan, 0.0], np.nan, [0, -1, 1]),
        ([-1.0, np.nan, 0.0], -1, [-1, -1, 0]),
        ([0, 1, -1], 0, [-1, 1, 0]),
        ([0, 1, 2], 0.0, [-1, 0, 1]),
        (["?", "-1", "a"], "?", [-1, 0, 1]),
        (["?", None, "a"], "?", [-1, -1, 0]),
        (["auto", "-1", None], None, [1, 0, -1]),
        ([False, True], 0, [0, 1]),
        ([False, True], False, [-1, 0]),
        ([0, False, None], 0, [-1, 0, -1]),
        (["-1", "1"], -1, [0, 1]),
        ([3, 4], "?", [0, 1]),
    ],
)
def test_an_explicit_missing_label_means_that_value_alone(y, missing_label, codes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encode_labels(y, missing_label).codes.tolist() == codes


def test_a_column_vector_is_ravelled_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert encode_labels(np.array([[2], [-1], [1]])).codes.tolist() == [1, -1, 0]
    with pytest.warns(DataConversionWarning):
        assert encode_labels([["b"], [None]]).codes.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1, "a"], TypeError, r"y holds 1 and 'a'.*Turn them into strings"),
        (np.array(["a", 1.5, None], object), TypeError, r"y holds 'a' and 1.5.*\[str\(label\)"),
        (np.array([True, 1, 2], object), TypeError, "y holds True and 1"),
        ([True, 2.5, None], TypeError, "y holds True and 2.5"),
        ([0.5, 1.25, 2.0], ValueError, "Unknown label type: continuous"),
        ([0.5, None], ValueError, "Unknown label type: continuous"),
        ([1.0, np.inf], ValueError, "Input y contains infinity"),
        (np.zeros((3, 2)), ValueError, r"y should be a 1d array, got an array of shape \(3, 2\)"),
        ([[1, 2], [3]], ValueError, "y must hold one label per row"),
        (np.array([[1], {}, 3], object), TypeError, "y must hold one number or string per row"),
        (np.array(["2020-01-01"], "M8[D]"), TypeError, r"y has dtype datetime64\[D\].*y.astype\(str\)"),
        (np.array([b"a"]), TypeError, r"y has dtype \|S1.*astype\(str\)"),
        (None, ValueError, "y should be a 1d array"),
        (3, ValueError, "y should be a 1d array"),
    ],
)
def test_labels_that_cannot_be_classes_are_refused_by_name(y, error, message):
    with pytest.raises(error, match=message):
        encode_labels(y)


@pytest.mark.parametrize("missing_label", [[-1], {}, (0,), b"?", 1j])
def test_a_missing_label_must_be_a_scalar(missing_label):
    with pytest.raises(TypeError, match=r"missing_label=.* must be 'auto', None, NaN"):
        encode_labels([0, 1], missing_label)


def test_many_float_classes_raise_no_warning_about_regression():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(encode_labels(np.arange(30.0)).classes) == 30


# --- class names ---


@pytest.mark.parametrize(
    ("known", "novel", "dtype"),
    [
        (np.array([0, 3]), [4, 5], "int64"),
        (np.array([126, 127], np.int8), [128, 129], "int64"),
        (np.array([255], np.uint8), [256, 257], "int64"),
        (np.array([0, 2**63 - 2]), [1, 2], "int64"),
        (np.array([2**64 - 1], np.uint64), [0, 1], "int64"),
        (np.array([-7, -5]), [0, 1], "int64"),
        (np.array([], int), [0, 1], "int64"),
        (np.array([], float), [0, 1], "int64"),
        (np.array([], str), ["novel_0", "novel_1"], "<U7"),
        (np.array([0.0, 2.0], np.float32), [3.0, 4.0], "float64"),
        (np.array([0.0, 1e300]), [1.0, 2.0], "float64"),
        (np.array([False, True]), [2, 3], "object"),
        (np.array([False]), [2, 3], "object"),
        (np.array([False, True, 2], object), [3, 4], "object"),
        (np.array(["a", "novel_0"]), ["novel_1", "novel_2"], "<U7"),
        (np.array(["a", "novel_1"], object), ["novel_0", "novel_2"], "object"),
    ],
)
def test_novel_classes_are_named_in_the_manner_of_the_known(known, novel, dtype):
    names = name_novel_classes(known, 2)
    assert names.tolist() == novel
    assert [type(name) for name in names.tolist()] == [type(name) for name in novel]
    assert names.dtype == np.dtype(dtype)


@pytest.mark.parametrize(("known", "marker", "novel"), [([0, 1], 2, [3, 4]), (["a"], "novel_0", None)])
def test_the_marker_of_unlabelled_rows_never_becomes_a_name(known, marker, novel):
    names = name_novel_classes(known, 2, missing_label=marker).tolist()
    assert names == (novel or ["novel_1", "novel_2"])


def test_classes_that_cannot_be_continued_are_refused():
    with pytest.raises(TypeError, match="known_classes of dtype datetime64"):
        name_novel_classes(np.array(["2020-01-01"], "M8[D]"), 1)
    with pytest.raises(ValueError, match="n_novel=-1"):
        name_novel_classes([0, 1], -1)


@pytest.mark.parametrize("n_novel", [0, 1, 3, 12])
def test_joined_classes_are_sorted_complete_and_unchanged(kind, n_novel):
    known = encode_labels(kind[0]).classes
    novel = name_novel_classes(known, n_novel)
    classes, order = join_classes(known, novel)
    together = [*known.tolist(), *novel.tolist()]
    assert classes.tolist() == sorted(together)
    assert [classes.tolist()[position] for position in order] == together
    assert sorted(map(repr, classes.tolist())) == sorted(map(repr, together))
    if n_novel == 0:
        assert classes.dtype == known.dtype


@pytest.mark.parametrize(
    ("known", "novel", "classes", "dtype"),
    [
        (np.array(["z"]), np.array(["novel_0"]), ["novel_0", "z"], "<U7"),
        (np.array([255], np.uint8), np.array([256]), [255, 256], "int64"),
        (np.array([3], np.uint64), np.array([4]), [3, 4], "int64"),
        (np.array([2**64 - 1], np.uint64), np.array([0]), [0, 2**64 - 1], "uint64"),
        (np.array([2**64 - 1], np.uint64), np.array([-5]), [-5, 2**64 - 1], "object"),
        (np.array([True]), np.array([2]), [True, 2], "object"),
        (np.array([2.5], np.float32), np.array([3.0]), [2.5, 3.0], "float64"),
    ],
)
def test_the_joined_dtype_holds_both_sides(known, novel, classes, dtype):
    joined, _ = join_classes(known, novel)
    assert joined.tolist() == classes
    assert joined.dtype == np.dtype(dtype)


def test_joining_refuses_doubles_and_what_has_no_order():
    with pytest.raises(ValueError, match=r"The class .*2.* occurs twice"):
        join_classes([1, 2], [2, 3])
    with pytest.raises(TypeError, match="cannot be sorted together"):
        join_classes([1, 2], ["novel_0"])


@pytest.mark.parametrize(
    ("labels", "marker", "expected", "kind"),
    [
        (np.array([3, 4, 5]), np.array([-1], np.int8), [3, -1, 5], "i"),
        (np.array([3.0, 4.0, 5.0]), np.array([np.nan]), [3.0, "nan", 5.0], "f"),
        (np.array(["a", "b", "c"]), np.array(["unlabelled"]), ["a", "unlabelled", "c"], "U"),
        (np.array(["a", "b", "c"], dtype=object), np.array([None]), ["a", None, "c"], "O"),
        (np.array([True, False, True]), np.array([None]), [True, None, True], "O"),
        (np.array([3, 4, 5]), np.array(["?"]), [3, "?", 5], "O"),
    ],
    ids=["int", "float", "str", "object", "bool", "int beside str"],
)
def test_rejected_labels_become_the_marker_and_the_others_stay_as_they_are(labels, marker, expected, kind):
    kept = labels.copy()
    found = mark_rejected(labels, np.array([False, True, False]), marker)
    assert found.dtype.kind == kind
    assert ["nan" if item != item else item for item in found.tolist()] == expected
    assert [type(item) for item in found.tolist()[::2]] == [type(item) for item in labels.tolist()[::2]]
    np.testing.assert_array_equal(labels, kept)


def test_rejected_labels_of_every_kind_read_back_as_unlabelled(kind):
    classes = encode_labels(kind[0]).classes
    codes = np.tile(np.arange(len(classes)), 2)
    is_rejected = np.arange(len(codes)) >= len(classes)
    marked = mark_rejected(classes[codes], is_rejected, choose_marker(classes, "auto"))
    again = encode_labels(marked)
    assert again.classes.tolist() == classes.tolist()
    np.testing.assert_array_equal(again.codes, np.where(is_rejected, -1, codes))


# --- rows ---


def assert_reads_back(y):
    codes, classes = encode_labels(y)
    X, pooled = pool(np.ones((len(codes), 2)), y, np.zeros((3, 2)))
    again = encode_labels(pooled)
    assert X.shape == (len(codes) + 3, 2)
    assert again.codes.tolist() == [*codes, -1, -1, -1]
    assert again.classes.tolist() == classes.tolist()
    assert [type(label) for label in again.classes.tolist()] == [type(label) for label in classes.tolist()]


def test_encode_labels_reads_back_what_pool_makes_for_every_kind(kind):
    assert_reads_back(kind[0])


@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.LabelWarning")
@pytest.mark.parametrize("y", [[-1, 1, 1], np.array([-1, 1], np.int8), [-1.0, 1.0], [1, None], [1.0, np.nan]])
def test_pool_keeps_minus_one_and_one_apart_from_its_marker(y):
    assert_reads_back(y)


@pytest.mark.parametrize("missing_label", [-1, 0, 99, None, np.nan, "?", "-1", False])
def test_pool_writes_an_explicit_missing_label_that_reads_back(kind, missing_label):
    try:
        codes, classes = encode_labels(kind[0], missing_label)
    except TypeError:
        assert kind[0] == ["b", -1, "a"]  # -1 is a label beside strings here
        return
    _, pooled = pool(np.ones((len(codes), 2)), kind[0], np.zeros((2, 2)), missing_label=missing_label)
    again = encode_labels(pooled, missing_label)
    assert again.codes.tolist() == [*codes, -1, -1]
    assert again.classes.tolist() == classes.tolist()


@pytest.mark.parametrize(
    ("y", "pooled", "dtype"),
    [
        (np.array([4, 7], np.int8), [4, 7, -1], "int8"),
        (np.array([4, 255], np.uint8), [4, 255, -1], "int16"),
        (np.array([4, 7]), [4, 7, -1], "int64"),
        (np.array([4.0, 7.0]), [4.0, 7.0, -1.0], "float64"),
        (np.array([True, False]), [True, False, None], "object"),
        (np.array(["a", "b"]), ["a", "b", "-1"], "<U2"),
        (np.array(["a", None], object), ["a", "-1", "-1"], "object"),
        (np.array([1, 1]), [1, 1, None], "object"),
        ([7, None], [7, -1, -1], "int64"),
    ],
)
def test_pool_marks_rows_as_scikit_learn_would_where_that_is_unambiguous(y, pooled, dtype):
    result = pool(np.ones((2, 2)), y, np.zeros((1, 2)))[1]
    assert result.tolist() == pooled
    assert result.dtype == np.dtype(dtype)


def test_labels_of_one_are_not_taken_for_two_classes_after_pooling():
    _, y = pool(np.ones((2, 2)), [1, 1], np.zeros((3, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encode_labels(y).classes.tolist() == [1]
    _, y = pool(np.ones((2, 2)), [1.0, 1.0], np.zeros((3, 2)))
    assert np.isnan(y[2:]).all()


def test_pool_stacks_rows_in_order_and_leaves_its_arguments_alone():
    first, second = np.arange(12.0).reshape(2, 3, 2), -np.arange(6.0).reshape(1, 3, 2)
    X, y = pool(first, [5, 6], (second,))
    np.testing.assert_array_equal(X, np.concatenate([first, second]))
    X[:] = 99
    assert first[0, 0, 1] == 1
    assert y.tolist() == [5, 6, -1]


def test_pool_stacks_lists_and_file_names():
    assert pool([[1, 2]], [0], [[3.5, 4]])[0].tolist() == [[1, 2], [3.5, 4]]
    assert pool(["a.png"], ["cat"], ["folder/b.png"])[0].tolist() == ["a.png", "folder/b.png"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pool_matches_the_columns_of_data_frames_by_name(library):
    frame = pytest.importorskip(library).DataFrame
    X, y = pool(frame({"a": [1, 2], "b": [3, 4]}), ["x", "y"], frame({"b": [6.5], "a": [5.0]}))
    assert isinstance(X, frame)
    assert list(X.columns) == ["a", "b"]
    np.testing.assert_array_equal(X.to_numpy(), [[1, 3], [2, 4], [5, 6.5]])
    assert y.tolist() == ["x", "y", "-1"]


def test_pool_keeps_the_index_of_pandas_rows():
    pandas = pytest.importorskip("pandas")
    labelled = pandas.DataFrame({"a": [1.0, 2.0]}, index=["r0", "r1"])
    X, _ = pool(labelled, pandas.Series([3, 4], index=["r0", "r1"]), labelled.rename(index=str.upper))
    assert list(X.index) == ["r0", "r1", "R0", "R1"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pool_refuses_other_columns_and_other_containers(library):
    frame = pytest.importorskip(library).DataFrame
    labelled = frame({"a": [1.0], "b": [2.0]})
    with pytest.raises(ValueError, match=r"same columns: X_unlabelled lacks \['b'\] and has \['c'\]"):
        pool(labelled, [0], frame({"a": [1.0], "c": [2.0]}))
    with pytest.raises(
        TypeError, match=f"X_labelled is a {library} DataFrame and X_unlabelled a numpy ndarray"
    ):
        pool(labelled, [0], np.ones((1, 2)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones((3, 2)), [0, 1], np.ones((1, 2))), ValueError, "y_labelled has 2 labels for the 3 rows"),
        ((np.ones((2, 2)), [0, 1], np.ones((1, 5))), ValueError, r"X_unlabelled has rows of shape \(5,\)"),
        (
            (np.ones((2, 2)), [0, 1], np.ones(4)),
            ValueError,
            r"X_unlabelled of shape \(4,\) must have one row",
        ),
        ((np.ones(2), [0, 1], np.ones((1, 2))), ValueError, r"X_labelled of shape \(2,\)"),
        ((np.ones((2, 2)), [0, 1], np.ones((0, 2))), ValueError, "X_unlabelled has 0 rows"),
        ((np.ones((2, 2)), [0, 1], None), ValueError, r"X_unlabelled of shape \(\)"),
        ((csr_array(np.eye(2)), [0, 1], np.eye(2)), TypeError, r"X_labelled is sparse.*X_labelled.toarray"),
        ((np.eye(2), [0, 1], csr_array(np.eye(2))), TypeError, r"Use X_unlabelled.toarray\(\)"),
        ((np.eye(2), [0, "a"], np.eye(2)), TypeError, "y_labelled holds 0 and 'a'"),
        ((np.eye(2), [0, 1], (np.eye(2), np.eye(2))), ValueError, "X_unlabelled is a tuple of 2"),
    ],
)
def test_pool_names_what_does_not_fit(arguments, error, message):
    with pytest.raises(error, match=message):
        pool(*arguments)


def test_a_one_tuple_is_unwrapped_and_nothing_else():
    rows = np.eye(2)
    assert unwrap_pool((rows,)) is rows
    assert unwrap_pool(rows) is rows
    assert unwrap_pool(None) is None
    with pytest.raises(ValueError, match="tuple of 0 elements"):
        unwrap_pool(())


# --- scale ---


def embeddings(n_rows, known_only=False, seed=0):
    """Rows around 12 directions; the first half of the directions are the known classes."""
    rng = np.random.default_rng(seed)
    centres = 0.2 + np.random.default_rng(99).normal(size=(12, 64))
    return centres[rng.integers(0, 6 if known_only else 12, n_rows)] + 0.5 * rng.normal(size=(n_rows, 64))


def known_and_pool(data):
    X, y = data
    is_labelled = (y < 2) & (np.arange(len(y)) % 2 == 0)
    return X[is_labelled], X[~is_labelled]


SCALER_MISTAKES = {
    "iris": (known_and_pool(load_iris(return_X_y=True)), StandardScaler),
    "digits": (known_and_pool(load_digits(return_X_y=True)), StandardScaler),
    "digits in 0 to 1": (known_and_pool(load_digits(return_X_y=True)), MinMaxScaler),
    "embeddings": ((embeddings(200, known_only=True), 0.05 * embeddings(300, seed=1)), StandardScaler),
}


@pytest.mark.parametrize("world", SCALER_MISTAKES)
def test_a_pool_that_missed_the_scaler_is_noticed(world):
    (labelled, unlabelled), scaler = SCALER_MISTAKES[world]
    scaled = scaler().fit(labelled)
    with pytest.warns(
        FeatureScaleWarning, match=r"pipe.fit\(\*pool\(X_labelled, y_labelled, X_unlabelled\)\)"
    ):
        check_same_scale(scaled.transform(labelled), unlabelled)


@pytest.mark.parametrize("factor", [0.05, 20.0])
def test_another_unit_on_either_side_is_noticed_in_views_too(factor):
    X, X_unlabelled = embeddings(100, known_only=True), factor * embeddings(80, seed=1)
    for first, second in ((X, X_unlabelled), (X_unlabelled, X)):
        with pytest.warns(FeatureScaleWarning, match="transform_input"):
            check_same_scale(first.reshape(-1, 2, 32), second.reshape(-1, 2, 32))


def silent_pairs():
    for name, data in (("iris", load_iris), ("digits", load_digits)):
        labelled, unlabelled = known_and_pool(data(return_X_y=True))
        scaler = StandardScaler().fit(labelled)
        yield f"{name} unscaled", labelled, unlabelled
        yield f"{name} scaled together", scaler.transform(labelled), scaler.transform(unlabelled)
        yield f"{name} with a short pool", labelled, unlabelled[-8:]
    tight, y = make_blobs(300, 3, centers=6, cluster_std=0.05, random_state=0)
    yield "one tight known class", tight[y == 0][:25], np.concatenate([tight[y == 0][25:], tight[y > 0]])
    yield "novel classes only", tight[y < 3], tight[y >= 3]
    yield "embeddings", embeddings(200, known_only=True), embeddings(300, seed=1)
    yield "twice the noise", embeddings(200), 1.5 * embeddings(300, seed=1)
    yield "four rows", embeddings(4), 1000 * embeddings(300)
    yield "four pool rows", embeddings(300), 1000 * embeddings(4)
    yield "constant rows", np.ones((20, 3)), 1000 * np.ones((20, 3))
    yield "all-zero rows", np.zeros((20, 3)), embeddings(20)[:, :3]
    yield "repeated rows", np.repeat(np.eye(3), 10, axis=0), 1000 * np.repeat(np.eye(3), 10, axis=0)
    yield "file names", np.array(["a"] * 20), np.array(["b"] * 20)


@pytest.mark.parametrize(
    ("X", "X_unlabelled"), [pytest.param(x, u, id=name) for name, x, u in silent_pairs()]
)
def test_an_honest_pool_raises_no_alarm(X, X_unlabelled):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same_scale(X, X_unlabelled)


def test_the_scale_check_leaves_the_global_random_state_alone():
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    check_same_scale(embeddings(50), embeddings(50, seed=1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)


# --- the module itself ---


def test_importing_the_module_loads_no_heavy_package():
    code = (
        "import sys, pnp_gcd.inputs; "
        "print([m for m in ('torch', 'polars', 'sklearn.metrics', 'sklearn.cluster', 'faiss') "
        "if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
