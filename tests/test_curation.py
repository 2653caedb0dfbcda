"""A person's word on classes: names, merges and labels for a next fit, and nothing lost on the way."""

import pickle

import numpy as np
import pytest
from conftest import make_world
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pnp_gcd import PNPDiscoverer

QUICK = {"max_iter": 1, "n_neighbors": 5, "whitening": None, "hidden_width": 8, "random_state": 0}
NAMES = np.array(["cat", "dog", "newt", "carp", "crow"])


@pytest.fixture(scope="module")
def zoo():
    return make_world(250, 5, 2, seed=3)


def fit(zoo, names=NAMES, **changes):
    X, y = zoo.labelled
    return PNPDiscoverer(**{"n_clusters": 5} | QUICK | changes).fit(X, names[y], zoo.rest)


@pytest.fixture(scope="module")
def fitted(zoo):
    return fit(zoo)


@pytest.fixture
def model(fitted):
    return pickle.loads(pickle.dumps(fitted))


@pytest.fixture
def numbers(zoo):
    return fit(zoo, np.arange(5))


def snapshot(model):
    """Every attribute, as bytes where there are bytes."""
    return pickle.dumps({name: value for name, value in vars(model).items() if name != "encoder_"})


def check_consistent(model, X):
    """What holds of every fitted model."""
    classes = model.classes_.tolist()
    assert classes == sorted({*model.known_classes_.tolist(), *model.novel_classes_.tolist()})
    assert model.known_classes_.tolist() == sorted(model.known_classes_.tolist())
    assert model.n_clusters_ == len(classes)
    low, high = model.n_clusters_interval_
    assert low <= model.n_clusters_ <= high
    for name in ("labels_", "unlabelled_labels_", "prototype_labels_"):
        assert set(getattr(model, name).tolist()) <= set(classes)
        assert getattr(model, name).dtype == model.classes_.dtype
    assert set(model.prototype_labels_.tolist()) == set(classes)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), len(classes))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()
    assert set(model.confirmed_classes_.tolist()) >= set(model.known_classes_.tolist())


# --- names -------------------------------------------------------------------------------------------------


def test_a_renamed_class_has_its_name_everywhere_and_nothing_else_changes(model, fitted, zoo):
    new = "a name much longer than the seven letters of novel_0"
    assert model.rename_classes({"novel_0": new}) is model
    check_consistent(model, zoo.X)
    for name in ("labels_", "unlabelled_labels_", "prototype_labels_", "novel_classes_"):
        before = getattr(fitted, name).astype(object)
        before[before == "novel_0"] = new
        assert getattr(model, name).tolist() == before.tolist()
    predicted = fitted.predict(zoo.X)
    assert (model.predict(zoo.X) == np.where(predicted == "novel_0", new, predicted)).all()
    order = [new if name == "novel_0" else name for name in fitted.classes_]
    columns = [model.classes_.tolist().index(name) for name in order]
    probabilities = model.predict_proba(zoo.X)[:, columns]  # sums are rounded in another order
    np.testing.assert_allclose(probabilities, fitted.predict_proba(zoo.X), rtol=1e-12)
    assert np.array_equal(model.novelty_score(zoo.X), fitted.novelty_score(zoo.X))
    assert np.array_equal(model.typicality(zoo.X), fitted.typicality(zoo.X))


def test_two_classes_swap_their_names_in_one_call(model, fitted, zoo):
    model.rename_classes({"novel_0": "novel_1", "novel_1": "novel_0"})
    swap = {"novel_0": "novel_1", "novel_1": "novel_0"}
    assert model.predict(zoo.X).tolist() == [swap.get(name, name) for name in fitted.predict(zoo.X)]
    check_consistent(model, zoo.X)


def test_a_chain_of_names_moves_each_by_one(model, fitted, zoo):
    model.rename_classes({"novel_0": "novel_1", "novel_1": "novel_2", "novel_2": "newt"})
    chain = {"novel_0": "novel_1", "novel_1": "novel_2", "novel_2": "newt"}
    assert model.predict(zoo.X).tolist() == [chain.get(name, name) for name in fitted.predict(zoo.X)]


def test_a_known_class_with_a_typo_stays_known_under_its_new_name(model, fitted, zoo):
    model.rename_classes({"cat": "zebra"})
    assert model.known_classes_.tolist() == ["dog", "zebra"]
    assert np.array_equal(model.novelty_score(zoo.X), fitted.novelty_score(zoo.X))
    assert model.predict(zoo.X).tolist() == [
        "zebra" if name == "cat" else name for name in fitted.predict(zoo.X)
    ]
    check_consistent(model, zoo.X)


def test_integers_are_renamed_to_integers_of_the_same_type(numbers, zoo):
    numbers.rename_classes({2: 40, np.int64(3): 30.0})
    assert numbers.classes_.tolist() == [0, 1, 4, 30, 40]
    assert numbers.classes_.dtype == numbers.known_classes_.dtype == numbers.novel_classes_.dtype == np.int64
    check_consistent(numbers, zoo.X)


def test_a_word_beside_numbers_is_refused_with_a_line_that_works(numbers, zoo):
    before = numbers.predict(zoo.X)
    with pytest.raises(ValueError, match=r"\{c: str\(c\) for c in model.classes_\} \| \{…: 'orchid'\}"):
        numbers.rename_classes({2: "orchid"})
    numbers.rename_classes({c: str(c) for c in numbers.classes_} | {2: "orchid"})
    assert numbers.classes_.tolist() == ["0", "1", "3", "4", "orchid"]
    assert numbers.known_classes_.tolist() == ["0", "1"]
    assert numbers.predict(zoo.X).tolist() == ["orchid" if name == 2 else str(name) for name in before]
    check_consistent(numbers, zoo.X)


def test_a_class_that_is_only_spelt_as_text_is_not_confirmed_by_that(numbers):
    known, (first, *_) = numbers.known_classes_.tolist(), numbers.novel_classes_.tolist()
    numbers.rename_classes({name: str(name) for name in numbers.classes_} | {first: "orchid"})
    assert numbers.confirmed_classes_.tolist() == sorted([*map(str, known), "orchid"])
    (_, other, *_) = numbers.novel_classes_.tolist()
    assert other in numbers.rename_classes({other: other}).confirmed_classes_


def test_object_labels_stay_objects(zoo):
    model = fit(zoo, NAMES.astype(object)).rename_classes({"novel_2": "a longer name than before"})
    assert model.classes_.dtype == model.novel_classes_.dtype == object
    assert set(map(type, model.classes_)) == {str}
    check_consistent(model, zoo.X)


def test_floats_and_booleans_keep_their_kind(zoo):
    floats = fit(zoo, np.arange(5.0)).rename_classes({3.0: 9})
    assert floats.classes_.tolist() == [0.0, 1.0, 2.0, 4.0, 9.0]
    assert floats.classes_.dtype == np.float64
    truths = fit(zoo, np.arange(5) > 0).rename_classes({2: 7})
    assert truths.known_classes_.dtype == bool
    assert [(type(name), name) for name in truths.classes_] == [
        (bool, False), (bool, True), (int, 3), (int, 4), (int, 7)
    ]  # fmt: skip
    with pytest.raises(TypeError, match="True cannot be a class's name here"):
        fit(zoo, np.arange(5)).rename_classes({2: True})


def test_a_model_without_known_classes_can_be_named(zoo):
    model = PNPDiscoverer(3, **QUICK).fit(zoo.X[zoo.y < 3])
    model.rename_classes({0: "a", 1: "b", 2: "c"})
    assert (
        model.predict(zoo.X[:9]).tolist() == model.classes_[model.predict_proba(zoo.X[:9]).argmax(1)].tolist()
    )
    assert model.confirmed_classes_.tolist() == ["a", "b", "c"]


# --- merges ------------------------------------------------------------------------------------------------


def columns_of(model, X, names):
    return model.predict_proba(X)[:, np.isin(model.classes_, names)].sum(axis=1)


def test_the_probability_of_a_merged_class_is_the_sum_of_its_parts(model, fitted, zoo):
    X = np.concatenate([zoo.X, np.random.default_rng(0).normal(0, 8, size=(500, zoo.X.shape[1]))])
    assert model.merge_classes([["novel_0", "novel_2"]]) is model
    np.testing.assert_allclose(
        columns_of(model, X, ["novel_0"]), columns_of(fitted, X, ["novel_0", "novel_2"]), rtol=1e-9
    )
    for other in ("cat", "dog", "novel_1"):
        np.testing.assert_allclose(columns_of(model, X, [other]), columns_of(fitted, X, [other]), rtol=1e-9)
    before, after = fitted.predict(X), model.predict(X)
    is_part = np.isin(before, ["novel_0", "novel_2"])
    assert (after[is_part] == "novel_0").all()
    assert (after[~is_part] == before[~is_part]).mean() > 0.9  # between both parts a sum may win
    np.testing.assert_allclose(model.novelty_score(X), fitted.novelty_score(X), rtol=1e-9)
    assert np.array_equal(model.typicality(X), fitted.typicality(X))
    assert np.array_equal(model.transform(X), fitted.transform(X))
    check_consistent(model, X)


def test_rows_and_prototypes_of_the_parts_are_those_of_the_merged_class(model, fitted):
    model.merge_classes([["novel_1", "novel_2"]], names=["bird"])
    merge = {"novel_1": "bird", "novel_2": "bird"}
    for name in ("labels_", "unlabelled_labels_", "prototype_labels_"):
        expected = [merge.get(label, label) for label in getattr(fitted, name).tolist()]
        assert getattr(model, name).tolist() == expected
    assert np.array_equal(model.prototypes_, fitted.prototypes_)


def test_new_classes_are_still_listed_largest_first(model):
    model.merge_classes([["novel_1", "novel_2"]])
    assert model.novel_classes_.tolist() == ["novel_1", "novel_0"]
    sizes = [(model.unlabelled_labels_ == name).sum() for name in model.novel_classes_]
    assert sizes[0] > sizes[1]


def test_a_new_class_merged_into_a_known_one_is_known(model, fitted, zoo):
    model.merge_classes([["novel_0", "cat"]])
    assert model.known_classes_.tolist() == ["cat", "dog"]
    assert model.novel_classes_.tolist() == ["novel_1", "novel_2"]
    lost = columns_of(fitted, zoo.X, ["novel_0"])
    np.testing.assert_allclose(model.novelty_score(zoo.X), fitted.novelty_score(zoo.X) - lost, atol=1e-9)
    check_consistent(model, zoo.X)


def test_two_known_classes_need_a_name_together(model, zoo):
    before = snapshot(model)
    with pytest.raises(
        ValueError, match=r"'cat' and 'dog' are known classes\. Say what they shall be called"
    ):
        model.merge_classes([["cat", "dog"]])
    assert snapshot(model) == before
    model.merge_classes([["dog", "cat"]], names=["pet"])
    assert model.known_classes_.tolist() == ["pet"]
    assert set(model.labels_) == {"pet"}
    check_consistent(model, zoo.X)


def test_all_new_classes_can_be_merged_into_known_ones(model, zoo):
    model.merge_classes([["cat", "novel_0", "novel_1"], ["dog", "novel_2"]])
    assert model.classes_.tolist() == ["cat", "dog"]
    assert len(model.novel_classes_) == 0
    assert ((model.novelty_score(zoo.X) >= 0) & (model.novelty_score(zoo.X) <= 1)).all()
    check_consistent(model, zoo.X)


def test_merging_in_steps_is_merging_at_once(fitted, zoo):
    at_once, in_steps = (pickle.loads(pickle.dumps(fitted)) for _ in range(2))
    at_once.merge_classes([["cat", "novel_0", "novel_1"]])
    in_steps.merge_classes([["novel_1", "novel_0"]], names=["both"]).merge_classes([["both", "cat"]])
    assert np.array_equal(at_once.predict(zoo.X), in_steps.predict(zoo.X))
    np.testing.assert_allclose(at_once.predict_proba(zoo.X), in_steps.predict_proba(zoo.X), rtol=1e-12)


def test_the_name_that_a_person_gave_is_the_one_that_stays(model):
    model.rename_classes({"novel_2": "orchid"}).merge_classes([["novel_0", "orchid"]])
    assert set(model.novel_classes_) == {"orchid", "novel_1"}


def test_a_given_number_of_classes_stays_a_number_twice(model):
    assert model.n_clusters_interval_ == (5, 5)
    assert model.merge_classes([["novel_0", "novel_1"]]).n_clusters_interval_ == (4, 4)


def test_an_interval_never_ends_below_the_known_classes(model):
    model.n_clusters_interval_ = (3, 9)
    assert model.merge_classes([["novel_0", "novel_1", "novel_2"]]).n_clusters_interval_ == (2, 7)


# --- what is refused, and changes nothing ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "error", "told"),
    [
        ({"novel_00": "x"}, ValueError, r"'novel_00' is not a class of this model\. Did you mean 'novel_0'"),
        ({"whale": "x"}, ValueError, "Classes are 'cat', 'dog', 'novel_0'"),
        ({"novel_0": "cat"}, ValueError, r"Two classes would be called 'cat'.*merge_classes\(\[\['cat'"),
        ({"novel_0": "x", "novel_1": "x"}, ValueError, "Two classes would be called 'x'"),
        ({"novel_0": "-1"}, ValueError, "'-1' marks unlabelled rows"),
        ({"novel_0": None}, ValueError, "None marks unlabelled rows"),
        ({"novel_0": np.nan}, ValueError, "nan marks unlabelled rows"),
        ({"novel_0": 7}, ValueError, r"'cat' and 7 side by side.*Pass a string: '7'"),
        ({"novel_0": ["x"]}, TypeError, "cannot be a class's name"),
        ({"novel_0": "x", "whale": "y"}, ValueError, "'whale' is not a class"),
        ([("novel_0", "x")], TypeError, "must be a dict"),
    ],
)
def test_a_wrong_name_is_refused_and_nothing_changes(model, mapping, error, told):
    before = snapshot(model)
    with pytest.raises(error, match=told):
        model.rename_classes(mapping)
    assert snapshot(model) == before


@pytest.mark.parametrize(
    ("groups", "names", "error", "told"),
    [
        ([["novel_0"]], None, ValueError, "must name two classes or more"),
        ([["novel_0", "novel_0"]], None, ValueError, "'novel_0' is named twice"),
        ([["novel_0", "cat"], ["cat", "dog"]], ["a", "b"], ValueError, "'cat' is named twice"),
        ([["novel_0", "whale"]], None, ValueError, "'whale' is not a class"),
        (["novel_0", "novel_1"], None, TypeError, "must be a list of lists"),
        ("novel_0", None, TypeError, "must be a list of lists"),
        ([["novel_0", "novel_1"]], ["a", "b"], ValueError, "must be a list of 1"),
        ([["novel_0", "novel_1"]], "a", ValueError, "must be a list of 1"),
        ([["novel_0", "novel_1"]], ["dog"], ValueError, "Two classes would be called 'dog'"),
        ([["novel_0", "novel_1"]], ["-1"], ValueError, "'-1' marks unlabelled rows"),
        ([["novel_0", "novel_1"]], [3], ValueError, "side by side"),
    ],
)
def test_a_wrong_merge_is_refused_and_nothing_changes(model, groups, names, error, told):
    before = snapshot(model)
    with pytest.raises(error, match=told):
        model.merge_classes(groups, names)
    assert snapshot(model) == before


def test_a_marker_of_the_callers_own_is_no_name(zoo):
    X, y = zoo.labelled
    model = PNPDiscoverer(5, missing_label="?", **QUICK).fit(X, NAMES[y], zoo.rest)
    with pytest.raises(ValueError, match=r"'\?' marks unlabelled rows"):
        model.rename_classes({"novel_0": "?"})
    assert "-1" in model.rename_classes({"novel_0": "-1"}).classes_


def test_an_unfitted_model_has_nothing_to_name(zoo):
    with pytest.raises(NotFittedError):
        PNPDiscoverer().rename_classes({"a": "b"})
    with pytest.raises(NotFittedError):
        PNPDiscoverer().merge_classes([["a", "b"]])
    with pytest.raises(NotFittedError):
        PNPDiscoverer().confirm(zoo.X)
    assert not hasattr(clone(PNPDiscoverer()), "confirmed_classes_")


# --- confirmed classes, and the next fit -------------------------------------------------------------------


def test_known_named_and_merged_classes_are_confirmed(model):
    assert model.confirmed_classes_.tolist() == ["cat", "dog"]
    model.rename_classes({"novel_2": "orchid"})
    assert model.confirmed_classes_.tolist() == ["cat", "dog", "orchid"]
    model.merge_classes([["novel_0", "novel_1"]])
    assert model.confirmed_classes_.tolist() == ["cat", "dog", "novel_0", "orchid"]


def test_a_name_that_is_confirmed_as_it_is_counts(model):
    assert "novel_1" in model.rename_classes({"novel_1": "novel_1"}).confirmed_classes_


def test_confirm_labels_sure_rows_of_confirmed_classes_only(model, zoo):
    model.rename_classes({"novel_0": "orchid"})
    predicted, top = model.predict(zoo.X), model.predict_proba(zoo.X).max(axis=1)
    limit = float(np.median(top))
    y = model.confirm(zoo.X, min_probability=limit)
    is_kept = np.isin(predicted, ["cat", "dog", "orchid"]) & (top >= limit)
    assert 0 < is_kept.sum() < len(is_kept)
    assert (y[is_kept] == predicted[is_kept]).all()
    assert (y[~is_kept] == "-1").all()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, "half", None, True])
def test_a_probability_that_is_none_is_refused(model, zoo, wrong):
    with pytest.raises(ValueError, match=r"min_probability=.* must be a number from 0 to 1"):
        model.confirm(zoo.X, min_probability=wrong)


def test_integer_classes_are_confirmed_with_minus_one_elsewhere(numbers, zoo):
    y = numbers.rename_classes({2: 2}).confirm(zoo.X)
    assert y.dtype == np.int64
    assert set(y.tolist()) == {-1, 0, 1, 2}


def test_a_named_class_is_known_to_the_next_fit_under_its_name(model, zoo):
    found = model.novel_classes_[0]
    truth = NAMES[np.bincount(zoo.y[model.predict(zoo.X) == found]).argmax()]
    y = model.rename_classes({found: str(truth)}).confirm(zoo.X)
    more = make_world(250, 5, 2, seed=3)  # the same classes, other rows
    rng = np.random.default_rng(5)
    X_more = more.X + rng.normal(0, 0.5, more.X.shape)
    again = PNPDiscoverer(**QUICK).fit(zoo.X, y, X_more)
    assert again.known_classes_.tolist() == sorted(["cat", "dog", str(truth)])
    assert (again.predict(X_more)[NAMES[more.y] == truth] == truth).mean() > 0.95


def test_a_curated_model_survives_pickle_and_save_and_its_clone_is_unfitted(model, zoo, tmp_path):
    model.rename_classes({"novel_0": "orchid"}).merge_classes([["novel_1", "cat"]])
    model.save(tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), PNPDiscoverer.load(tmp_path / "model")):
        assert again.classes_.tolist() == model.classes_.tolist()
        assert again.confirmed_classes_.tolist() == ["cat", "dog", "orchid"]
        assert np.array_equal(again.predict_proba(zoo.X), model.predict_proba(zoo.X))
        again.merge_classes([["orchid", "novel_2"]])
        check_consistent(again, zoo.X)
    assert not hasattr(clone(model), "classes_")


def test_a_fit_forgets_what_was_merged(model, zoo):
    model.merge_classes([["novel_0", "novel_1"]])
    X, y = zoo.labelled
    assert model.fit(X, NAMES[y], zoo.rest).n_clusters_ == 5
    assert model.confirmed_classes_.tolist() == ["cat", "dog"]
    check_consistent(model, zoo.X)
