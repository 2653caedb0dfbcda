"""Folds that hide classes, the wrapper that sees test rows, the scorer, warnings about silent mistakes."""

import gc
import pickle
import re
import warnings
import weakref
from contextlib import contextmanager

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import make_world
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.exceptions import WorkflowWarning
from pnp_gcd.model_selection import (
    ClassHoldoutSplit,
    DiscoveryScorer,
    KeepUnlabelled,
    Transductive,
    discovery_scorer,
)


def quick(**parameters):
    """A discoverer that costs little on worlds of well separated blobs."""
    settings = {
        "n_neighbors": 10,
        "similarity_threshold": 0.0,
        "resolution": 1.0,
        "whitening": "soft-total",
        "max_iter": 0,
        "random_state": 0,
    }
    return PNPDiscoverer(**{**settings, **parameters})


def stacked(n_known=4, n_classes=6, seed=1):
    world = make_world(30 * n_classes, n_classes, n_known, seed=seed)
    return world.stacked


# --- ClassHoldoutSplit -------------------------------------------------------------------------------------

LABELS = np.array([*"aaaabbbbccccdddd", *["-1"] * 6])


def folds_of(splitter, y=LABELS):
    return list(splitter.split(np.zeros((len(y), 2)), y))


def hidden_in(train, test, y=LABELS):
    return set(np.setdiff1d(y[test], y[train]))


def test_hidden_classes_have_no_row_left_for_training():
    for train, test in folds_of(ClassHoldoutSplit(6, random_state=0)):
        assert len(hidden_in(train, test)) == 2
        assert set(y := LABELS[train]) - {"-1"} == set("abcd") - hidden_in(train, test), y


def test_train_and_test_are_all_rows_and_share_none():
    for train, test in folds_of(ClassHoldoutSplit(3, random_state=0)):
        assert sorted([*train, *test]) == list(range(len(LABELS)))


def test_unlabelled_rows_are_always_for_training():
    for _, test in folds_of(ClassHoldoutSplit(4, random_state=1)):
        assert "-1" not in LABELS[test]


@pytest.mark.parametrize(("visible", "n_rows"), [(0.0, 0), (0.25, 1), (0.5, 2), (0.99, 3)])
def test_a_part_of_each_visible_class_is_held_out_and_one_row_stays(visible, n_rows):
    for train, test in folds_of(ClassHoldoutSplit(2, visible=visible, random_state=0)):
        for label in set("abcd") - hidden_in(train, test):
            assert (LABELS[test] == label).sum() == n_rows


@pytest.mark.parametrize(("hidden", "n_hidden"), [(1, 1), (3, 3), (0.25, 1), (0.01, 1), (0.99, 2)])
def test_hidden_is_a_number_or_a_part_and_leaves_a_class(hidden, n_hidden):
    for train, test in folds_of(ClassHoldoutSplit(3, hidden=hidden, random_state=0)):
        assert len(hidden_in(train, test)) == n_hidden


@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_every_class_is_hidden_equally_often_up_to_one(hidden):
    folds = folds_of(ClassHoldoutSplit(6, hidden=hidden, random_state=3))
    times = [sum(label in hidden_in(*fold) for fold in folds) for label in "abcd"]
    assert max(times) - min(times) <= 1
    assert sum(times) == 6 * hidden


def test_an_integer_seed_gives_the_same_folds_at_every_call():
    splitter = ClassHoldoutSplit(3, random_state=7)
    for first, second in zip(folds_of(splitter), folds_of(splitter), strict=True):
        np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_splits": 0}, "n_splits=0"),
        ({"n_splits": 2.5}, "n_splits=2.5"),
        ({"n_splits": True}, "n_splits=True"),
        ({"hidden": 0}, "hidden=0 must"),
        ({"hidden": 1.0}, "hidden=1.0 must"),
        ({"hidden": True}, "hidden=True must"),
        ({"hidden": 4}, "hidden=4 leaves none of the 4 known classes"),
        ({"visible": 1.0}, "visible=1.0"),
    ],
)
def test_bad_parameters_of_the_split_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        folds_of(ClassHoldoutSplit(**parameters))


def test_hiding_needs_labels_of_two_classes():
    with pytest.raises(ValueError, match="y=None has no classes to hide"):
        next(ClassHoldoutSplit(2).split(np.zeros((4, 2))))
    with pytest.raises(ValueError, match="1 known class, but hiding one needs 2"):
        folds_of(ClassHoldoutSplit(2), np.array([0, 0, -1]))


@pytest.mark.parametrize("marker", [pd.NA, None, np.nan])
def test_missing_entries_are_markers_where_class_1_stays_alone(marker):
    y = pd.Series([0, 0, 0, 0, 1, 1, 1, 1, marker, marker], dtype=object)
    folds = list(ClassHoldoutSplit(2, random_state=0).split(np.zeros((10, 2)), y))
    assert {8, 9} <= set(folds[0][0])


def test_groups_are_told_to_be_ignored():
    with pytest.warns(UserWarning, match="groups is ignored"):
        list(ClassHoldoutSplit(2).split(np.zeros(len(LABELS)), LABELS, LABELS))


def test_the_marker_may_be_any_value():
    y = np.where(LABELS == "-1", "?", LABELS)
    for _, test in folds_of(ClassHoldoutSplit(2, missing_label="?", random_state=0), y):
        assert "?" not in y[test]


def test_splitters_print_and_count_as_scikit_learns_do():
    assert repr(ClassHoldoutSplit(3)).startswith("ClassHoldoutSplit(hidden=0.5")
    assert ClassHoldoutSplit(3).get_n_splits() == KeepUnlabelled(3).get_n_splits() == 3


# --- KeepUnlabelled ----------------------------------------------------------------------------------------


def test_labelled_rows_are_split_as_by_the_inner_splitter():
    labelled = np.flatnonzero(LABELS != "-1")
    theirs = StratifiedKFold(4).split(labelled, LABELS[labelled])
    for (train, test), (inner, held) in zip(folds_of(KeepUnlabelled(4)), theirs, strict=True):
        np.testing.assert_array_equal(test, labelled[held])
        np.testing.assert_array_equal(train, np.sort([*labelled[inner], *np.flatnonzero(LABELS == "-1")]))


def test_rows_between_labelled_ones_keep_their_place():
    y = np.array([-1, 0, -1, 1, 0, -1, 1])
    for train, test in folds_of(KeepUnlabelled(2), y):
        assert {0, 2, 5} <= set(train)
        assert (y[test] >= 0).all()


def test_groups_follow_their_rows():
    groups = np.arange(len(LABELS)) % 5
    for train, test in KeepUnlabelled(GroupKFold(3)).split(np.zeros(len(LABELS)), LABELS, groups):
        labelled = train[LABELS[train] != "-1"]
        assert not set(groups[labelled]) & set(groups[test])


def test_groups_are_routed_to_the_inner_splitter():
    X, y = stacked()
    groups = np.arange(len(y)) % 4
    with sklearn.config_context(enable_metadata_routing=True), pytest.warns(WorkflowWarning, match="known"):
        scores = cross_val_score(quick(), X, y, cv=KeepUnlabelled(GroupKFold(2)), params={"groups": groups})
    assert np.isfinite(scores).all()


def test_a_generator_of_folds_serves_a_whole_search():
    X, y = stacked()
    n_labelled = int((y >= 0).sum())
    folds = ((np.arange(n_labelled)[i::2], np.arange(n_labelled)[1 - i :: 2]) for i in range(2))
    with pytest.warns(WorkflowWarning, match="known"):
        search = GridSearchCV(quick(), {"n_neighbors": [5, 10]}, cv=KeepUnlabelled(folds)).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_the_inner_splitter_sees_the_labelled_rows():
    class Watching(KFold):
        def split(self, X, y=None, groups=None):
            np.testing.assert_array_equal(X, rows[LABELS != "-1"])
            return super().split(X, y, groups)

    rows = np.random.default_rng(0).normal(size=(len(LABELS), 3))
    assert len(list(KeepUnlabelled(Watching(2)).split(rows, LABELS))) == 2


def test_the_number_of_folds_counts_labelled_rows_only():
    assert KeepUnlabelled(LeaveOneOut()).get_n_splits(np.zeros(len(LABELS)), LABELS) == 16


def test_keeping_unlabelled_rows_needs_labels():
    with pytest.raises(ValueError, match="y=None does not tell"):
        next(KeepUnlabelled(2).split(np.zeros((4, 2))))
    with pytest.raises(ValueError, match="y holds no label"):
        next(KeepUnlabelled(2).split(np.zeros((4, 2)), [-1, -1, -1, -1]))


# --- Transductive ------------------------------------------------------------------------------------------

NOT_INVARIANT = {
    "check_methods_subset_invariance": "a row's class depends on the rows asked about with it, by design",
    "check_methods_sample_order_invariance": "so it does on their order, as that of any clustering",
}


@parametrize_with_checks(
    [Transductive(quick(n_neighbors=5))], expected_failed_checks=lambda estimator: NOT_INVARIANT
)
def test_the_wrapper_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_a_class_without_labels_is_found_among_the_rows_asked_about():
    X, y = stacked()
    train, test = next(ClassHoldoutSplit(2, random_state=0).split(X, y))
    model = Transductive(quick()).fit(X[train], y[train])
    hidden = np.setdiff1d(y[test], y[train])
    assert not np.isin(hidden, model.known_classes_).any()
    assert model.score(X[test], y[test]) > 0.95
    found = model.predict(X[test])
    assert len(np.unique(found[np.isin(y[test], hidden)])) == len(hidden)


def test_the_truth_of_test_rows_is_not_seen(monkeypatch):
    X, y = stacked()
    train, test = next(ClassHoldoutSplit(2, random_state=0).split(X, y))
    seen = []
    fit = PNPDiscoverer.fit

    def watched(self, X, y):
        seen.append(y)
        return fit(self, X, y)

    monkeypatch.setattr(PNPDiscoverer, "fit", watched)
    Transductive(quick(), lazy=True).fit(X[train], y[train]).score(X[test], y[test])
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], np.concatenate([y[train], np.full(len(test), -1)]))


def test_lazy_and_eager_say_the_same_and_lazy_fits_once_a_fold(monkeypatch):
    X, y = stacked()
    fits = []
    fit = PNPDiscoverer.fit

    def watched(self, *args, **kwargs):
        fits.append(len(args[0]))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(PNPDiscoverer, "fit", watched)
    folds = ClassHoldoutSplit(2, random_state=0)
    scores = {}
    for lazy in (False, True):
        fits.clear()
        model = Transductive(quick(), lazy=lazy)
        scores[lazy] = cross_validate(model, X, y, cv=folds, scoring=discovery_scorer)["test_all"]
        assert len(fits) == (2 if lazy else 4)
    np.testing.assert_array_equal(scores[False], scores[True])


def test_a_lazy_wrapper_fits_its_estimator_when_it_is_asked_for():
    X, y = stacked()
    model = Transductive(quick(), lazy=True).fit(X, y)
    np.testing.assert_array_equal(model.estimator_.predict(X), quick().fit(X, y).predict(X))
    assert model.estimator_ is model.estimator_
    assert len(model.classes_) > len(model.known_classes_)
    np.testing.assert_array_equal(model.classes_, model.estimator_.classes_)


def test_several_scorers_cost_one_fit_and_changed_rows_another(monkeypatch):
    X, y = stacked()
    model = Transductive(quick(), lazy=True).fit(X[::2], y[::2])
    rows = X[1::2].copy()
    first = model._fit_with(rows)
    assert model._fit_with(rows.copy()) is first
    rows[0] += 1.0
    assert model._fit_with(rows) is not first


def test_the_wrapper_serves_scikit_learns_own_semi_supervised_classifiers():
    X, y = stacked(n_known=4, n_classes=4)
    model = Transductive(LabelSpreading(kernel="knn")).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95


def test_fit_parameters_reach_both_fits():
    world = make_world(240, 6, 4, seed=1)
    X, y = world.labelled
    model = Transductive(quick()).fit(X, y, X_unlabelled=(world.rest,))
    assert len(model.estimator_.unlabelled_labels_) == len(world.rest)
    assert len(model._fit_with(X[:5]).unlabelled_labels_) == len(world.rest) + 5


def test_a_wrapper_is_cloned_pickled_and_set_through_its_nesting():
    X, y = stacked()
    model = Transductive(make_pipeline(StandardScaler(), quick()))
    model.set_params(estimator__pnpdiscoverer__n_neighbors=7)
    assert clone(model).estimator[-1].n_neighbors == 7
    fitted = model.fit(X[::2], y[::2])
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict(X[1::2]), fitted.predict(X[1::2])
    )


def test_a_fold_of_the_labels_1_and_minus_1_is_read_as_one_class():
    world = make_world(90, 3, 2, seed=1)
    X, y = world.stacked
    keep = y != 0
    model = Transductive(quick(n_neighbors=5), missing_label=-1, lazy=True).fit(X[keep], y[keep])
    assert model.known_classes_.tolist() == [1]
    assert model.estimator_.known_classes_.tolist() == [1]
    assert model.score(X[y >= 0], y[y >= 0]) > 0.9


@pytest.mark.parametrize("inner", ["?", "auto"])
def test_a_marker_of_ones_own_reaches_the_estimator(inner):
    X, y = stacked()
    y = np.array(["fox", "elk", "cat", "ant", "?"])[y]
    model = Transductive(quick(missing_label=inner), missing_label="?").fit(X, y)
    assert model.known_classes_.tolist() == model.estimator_.known_classes_.tolist() == sorted(set(y) - {"?"})
    folds = ClassHoldoutSplit(2, missing_label="?", random_state=0)
    assert cross_val_score(model, X, y, cv=folds).min() > 0.95


def test_the_estimators_own_marker_is_the_wrappers():
    X, y = stacked()
    y = np.where(y < 0, 99, y)
    model = Transductive(quick(missing_label=99)).fit(X, y)
    assert model.estimator_.known_classes_.tolist() == model.known_classes_.tolist() == [0, 1, 2, 3]
    assert model.score(X[y < 99], y[y < 99]) > 0.95


def test_markers_that_read_y_differently_are_refused():
    X, y = stacked()
    y = np.where(y < 0, None, y - 1)  # a class is called −1
    with pytest.raises(ValueError, match="missing_label=None of Transductive and missing_label='auto'"):
        Transductive(quick(), missing_label=None).fit(X, y)
    model = Transductive(quick(missing_label=None), missing_label=None).fit(X, y)
    assert model.known_classes_.tolist() == model.estimator_.known_classes_.tolist() == [-1, 0, 1, 2]


def test_an_estimator_that_knows_integers_only_is_not_given_strings():
    X, y = stacked()
    with pytest.raises(ValueError, match="LabelSpreading takes integers only"):
        Transductive(LabelSpreading()).fit(X, np.array([*"abcd", "-1"])[y])


def test_a_search_inside_the_wrapper_takes_the_labels_of_its_estimator():
    X, y = stacked()
    search = GridSearchCV(
        quick(missing_label="?"), {"n_neighbors": [5]}, cv=KeepUnlabelled(2, missing_label="?")
    )
    model = Transductive(search, lazy=True).fit(X, np.array(["fox", "elk", "cat", "ant", "?"])[y])
    assert model.known_classes_.tolist() == ["ant", "cat", "elk", "fox"]


def test_showing_a_lazy_wrapper_fits_nothing(monkeypatch):
    X, y = stacked()
    search = GridSearchCV(
        Transductive(quick(), lazy=True), {"estimator__n_neighbors": [5]}, cv=ClassHoldoutSplit(2)
    ).fit(X, y)
    monkeypatch.setattr(PNPDiscoverer, "fit", lambda self, X, y: pytest.fail("a picture is no reason to fit"))
    assert "Transductive" in search._repr_html_()
    assert "Transductive" in search.best_estimator_._repr_html_()
    assert search.classes_.tolist() == [0, 1, 2, 3]


def test_scorers_by_name_see_predictions_for_rows_that_were_seen():
    X, y = stacked()
    model = Transductive(quick(), lazy=True)
    scores = cross_val_score(
        model, X, y, cv=ClassHoldoutSplit(2, random_state=0), scoring="adjusted_rand_score"
    )
    assert scores.min() > 0.9


def test_parameters_changed_after_fit_wait_for_the_next():
    X, y = stacked()
    inner = quick()
    model = Transductive(inner, lazy=True).fit(X[::2], y[::2])
    before = model.predict(X[1::2])
    inner.set_params(n_clusters=4)
    model._last.answer = None
    np.testing.assert_array_equal(model.predict(X[1::2]), before)


def test_a_fit_that_failed_is_no_fit():
    X, y = stacked()
    model = Transductive(quick(n_neighbors=5000))
    with pytest.raises(ValueError, match="n_neighbors=5000"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Transductive(quick(), lazy=True).fit(X[:10], y)


def test_a_lazy_fit_refuses_mistyped_values():
    X, y = stacked()
    with pytest.raises(InvalidParameterError, match="n_clusters"):
        Transductive(quick(n_clusters="many"), lazy=True).fit(X, y)


def test_rows_of_fit_are_known_again_in_another_memory_order():
    X, y = stacked()
    model = Transductive(quick()).fit(X, y)
    assert model._fit_with(np.asfortranarray(X)) is model.estimator_


def test_rows_that_cannot_be_stacked_are_told_in_the_callers_words():
    X, y = stacked()
    with pytest.raises(TypeError, match="X cannot be put beside the rows of fit"):
        Transductive(quick(), lazy=True).fit(pd.DataFrame(X), y).predict(X)
    with pytest.raises(TypeError, match="Sparse X"):
        Transductive(quick()).fit(sparse.csr_array(X), y)


def test_routing_at_fit_holds_for_later_fits():
    world = make_world(240, 6, 4, seed=1)
    X, y = world.labelled
    pipe = Pipeline([("scale", StandardScaler()), ("pnp", quick())], transform_input=["X_unlabelled"])
    with sklearn.config_context(enable_metadata_routing=True):
        model = Transductive(pipe, lazy=True).fit(X, y, X_unlabelled=world.rest)
    assert len(model._fit_with(X[:5])[-1].unlabelled_labels_) == len(world.rest) + 5


def test_weights_count_rows_in_the_score():
    X, y = stacked()
    is_known = y >= 0
    X, y = X[is_known], y[is_known]
    model = quick().fit(X, y)
    wrong = np.where(np.arange(len(y)) < 10, (y + 1) % 4, y)
    weights = np.where(np.arange(len(y)) < 10, 0.0, 1.0)
    assert model.score(X, wrong) == pytest.approx(1 - 10 / len(y))
    assert model.score(X, wrong, sample_weight=weights) == 1.0
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, wrong, sample_weight=weights[:3])


def test_a_wrapper_needs_labels():
    with pytest.raises(ValueError, match="requires y"):
        Transductive(quick()).fit(np.eye(4), None)
    with pytest.raises(ValueError, match="y holds no label"):
        Transductive(quick(), lazy=True).fit(np.eye(4), [-1, -1, -1, -1])


def test_fit_predict_is_the_estimators_answer_for_the_rows_of_fit():
    X, y = stacked()
    np.testing.assert_array_equal(
        Transductive(quick(), lazy=True).fit_predict(X, y), quick().fit(X, y).predict(X)
    )


# --- scorer ------------------------------------------------------------------------------------------------


class Answers:
    """Predicts what it was told, having known some classes."""

    def __init__(self, known, predicted):
        self.known_classes_, self.predicted = np.array(known), np.array(predicted)

    def predict(self, X):
        return self.predicted[: len(X)]


def test_the_scores_of_a_hand_case():
    y = np.array(["a", "a", "b", "b", "c", "c", "-1"])
    model = Answers(["a", "b"], ["a", "a", "b", "novel_0", "novel_1", "b", "a"])
    scores = discovery_scorer(model, np.zeros((7, 1)), y)
    assert scores["all"] == pytest.approx(4 / 6)
    assert scores["known"] == pytest.approx(3 / 4)
    assert scores["novel"] == pytest.approx(1 / 2)
    assert scores["named"] == pytest.approx(4 / 6)
    part = np.array([2, 2, 1, 1]) / 6
    assert scores["neg_count_error"] == pytest.approx(-abs(np.exp(-(part * np.log(part)).sum()) - 3) / 3)


def test_known_classes_under_another_name_lower_named_alone():
    y = np.array([0, 0, 1, 1])
    scores = discovery_scorer(Answers([0, 1], [7, 7, 1, 1]), np.zeros((4, 1)), y)
    assert scores["all"] == 1.0
    assert scores["named"] == 0.5
    assert scores["neg_count_error"] == 0.0


def test_one_metric_is_a_number():
    model = Answers([0], [0, 1])
    assert DiscoveryScorer("novel")(model, np.zeros((2, 1)), [0, 5]) == 1.0
    with pytest.raises(ValueError, match="metric='old' must be one of all, known"):
        DiscoveryScorer("old")


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m), Transductive])
def test_known_classes_are_found_behind_pipelines_and_wrappers(wrap):
    X, y = stacked()
    scores = discovery_scorer(wrap(quick()).fit(X, y), X[y >= 0], y[y >= 0])
    assert scores["known"] > 0.95
    assert np.isnan(scores["novel"])


def test_an_estimator_without_classes_is_refused():
    with pytest.raises(TypeError, match="does not say which classes it knew"):
        discovery_scorer(type("Bare", (), {"predict": lambda self, X: X[:, 0]})(), np.zeros((2, 1)), [0, 1])


def test_several_metrics_in_one_search():
    X, y = stacked()
    search = GridSearchCV(
        Transductive(quick(), lazy=True),
        {"estimator__n_clusters": [2, None]},  # 2: no more than a fold has labels of
        cv=ClassHoldoutSplit(2, random_state=0),
        scoring=discovery_scorer,
        refit="novel",
    ).fit(X, y)
    assert search.best_params_ == {"estimator__n_clusters": None}
    for metric in ("all", "known", "novel", "named", "neg_count_error"):
        assert np.isfinite(search.cv_results_[f"mean_test_{metric}"]).all()


# --- every search on every kind of rows --------------------------------------------------------------------

SEARCHES = {
    "grid": lambda model, grid, cv: GridSearchCV(model, grid, cv=cv),
    "randomized": lambda model, grid, cv: RandomizedSearchCV(model, grid, n_iter=2, cv=cv, random_state=0),
    "halving": lambda model, grid, cv: HalvingGridSearchCV(
        model, grid, cv=cv, min_resources=120, factor=2, random_state=0, return_train_score=False
    ),
}


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
@pytest.mark.parametrize("kind", [int, str], ids=["int labels", "str labels"])
@pytest.mark.parametrize("frame", [False, True], ids=["array", "DataFrame"])
@pytest.mark.parametrize("tool", [*SEARCHES, "cross_validate"])
def test_hidden_classes_tell_settings_that_find_new_ones(tool, frame, kind, routing):
    X, y = stacked()
    if frame:
        X = pd.DataFrame(X, columns=[f"column {place}" for place in range(X.shape[1])])
    if kind is str:
        y = np.array(["fox", "elk", "cat", "ant", "-1"])[y]
    model = Transductive(Pipeline([("scale", StandardScaler()), ("discover", quick())]), lazy=True)
    cv = ClassHoldoutSplit(2, random_state=0)
    with sklearn.config_context(enable_metadata_routing=routing):
        if tool == "cross_validate":
            blind = clone(model).set_params(estimator__discover__n_clusters=2)
            scores = [cross_validate(m, X, y, cv=cv)["test_score"].mean() for m in (model, blind)]
            assert scores[0] > scores[1]
            return
        search = SEARCHES[tool](model, {"estimator__discover__n_clusters": [2, None]}, cv)
        search.fit(X, y)
        assert search.best_params_ == {"estimator__discover__n_clusters": None}
        assert len(search.best_estimator_.estimator_[-1].novel_classes_) == 2
        assert search.predict(X[:20]).dtype.kind == ("U" if kind is str else "i")


def test_recognition_alone_would_have_chosen_to_find_no_new_class():
    X, y = stacked(seed=3)
    grid = {"n_clusters": [4, None]}
    with pytest.warns(WorkflowWarning, match="known classes"):
        seen = GridSearchCV(quick(), grid, cv=KeepUnlabelled(3)).fit(X, y).cv_results_["mean_test_score"]
    assert seen[0] >= seen[1]  # and at a tie the first setting wins


def test_learning_curve_permutation_test_and_validation_curve_run():
    X, y = stacked()
    model = Transductive(quick(), lazy=True)
    cv = ClassHoldoutSplit(2, random_state=0)
    _, _, scores = learning_curve(model, X, y, cv=cv, train_sizes=[0.7, 1.0], scoring=DiscoveryScorer("all"))
    assert scores[-1].mean() > 0.9
    score, permuted, p_value = permutation_test_score(
        model, X, y, cv=cv, n_permutations=3, random_state=0, scoring=DiscoveryScorer("all")
    )
    assert score > permuted.max()
    assert p_value == pytest.approx(0.25)
    _, curve = validation_curve(model, X, y, param_name="estimator__n_clusters", param_range=[4, 6], cv=cv)
    assert curve.shape == (2, 2)


def count_threads():
    import torch

    return torch.get_num_threads()


def test_workers_share_the_cores_and_give_the_answer_of_one(monkeypatch):
    X, y = stacked()
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    search = GridSearchCV(
        Transductive(quick(max_iter=1), lazy=True),
        {"estimator__n_neighbors": [5, 10]},
        cv=ClassHoldoutSplit(2, random_state=0),
    )
    torch.set_num_threads(1)
    try:
        alone = clone(search).fit(X, y).cv_results_["mean_test_score"]
    finally:
        torch.set_num_threads(threads)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # joblib then shares the cores out
    n_jobs = max(2, joblib.cpu_count())
    in_workers = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(count_threads)() for _ in range(n_jobs))
    assert set(in_workers) == {1}
    together = clone(search).set_params(n_jobs=n_jobs).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(alone, together)


# --- silent mistakes ---------------------------------------------------------------------------------------


@contextmanager
def told(message):
    """Expect one warning with this message, whatever else is warned of."""
    with pytest.warns(WorkflowWarning) as warned:
        yield
    assert [warning for warning in warned if re.search(message, str(warning.message))]


def split_world():
    world = make_world(240, 4, 2)
    return (*world.labelled, world.rest)


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
def test_a_pool_that_passes_by_a_scaler_is_told(routing):
    X, y, rest = split_world()
    pipe = Pipeline([("scale", StandardScaler()), ("pnp", quick())])
    name = "X_unlabelled" if routing else "pnp__X_unlabelled"
    with (
        sklearn.config_context(enable_metadata_routing=routing),
        pytest.warns(WorkflowWarning, match=r"passes by 'scale' .* pipe.fit\(\*pool"),
    ):
        pipe.fit(X, y, **{name: rest})


@pytest.mark.parametrize("step", [PCA(8), Normalizer()])
def test_a_pool_that_passes_by_is_told_even_where_scales_agree(step):
    X, y, rest = split_world()
    with pytest.warns(WorkflowWarning, match="passes by"):
        make_pipeline(step, quick()).fit(X, y, pnpdiscoverer__X_unlabelled=rest)


def test_a_pool_that_a_pipeline_transforms_is_not_told():
    X, y, rest = split_world()
    steps = [("scale", StandardScaler()), ("pnp", quick())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Pipeline(steps).fit(*pool(X, y, rest))
        Pipeline([("none", "passthrough"), *steps[1:]]).fit(X, y, pnp__X_unlabelled=rest)
        with sklearn.config_context(enable_metadata_routing=True):
            Pipeline(steps, transform_input=["X_unlabelled"]).fit(X, y, X_unlabelled=rest)


def test_a_search_that_cuts_the_pool_is_told():
    X, y, rest = split_world()
    with told(r"X_unlabelled=\(X_unlabelled,\)"):
        cross_val_score(quick(), X, y, cv=KFold(2), params={"X_unlabelled": rest[: len(X)]})


def test_a_pool_in_a_tuple_is_whole_in_every_fold(monkeypatch):
    X, y, rest = split_world()
    rest = rest[: len(X)]
    seen = []
    fit = PNPDiscoverer.fit

    def watched(self, X, y=None, X_unlabelled=None):
        seen.append(len(X_unlabelled[0]))
        return fit(self, X, y, X_unlabelled)

    monkeypatch.setattr(PNPDiscoverer, "fit", watched)
    search = GridSearchCV(quick(), {"n_neighbors": [5]}, cv=KFold(2))
    with pytest.warns(WorkflowWarning) as warned:  # that only known rows are scored
        search.fit(X, y, X_unlabelled=(rest,))
    assert seen == [len(rest)] * 3
    assert not [warning for warning in warned if "cuts" in str(warning.message)]


def test_equal_lengths_outside_a_search_are_nobodys_mistake():
    X, y, rest = split_world()
    quick().fit(X, y, rest[: len(X)])


def test_a_score_that_sees_known_classes_only_is_told():
    X, y = stacked()
    with pytest.warns(WorkflowWarning, match=r"ClassHoldoutSplit\(\)"):
        GridSearchCV(quick(), {"n_neighbors": [5]}, cv=KeepUnlabelled(2)).fit(X, y)


def test_unlabelled_rows_in_a_test_fold_are_told():
    X, y = stacked()
    with told(r"unlabelled rows are in a test fold.*KeepUnlabelled"):
        cross_val_score(quick(), X, y, cv=StratifiedKFold(2))


def test_a_cut_pool_is_told_by_a_lazy_wrapper_too():
    world = make_world(240, 6, 4, seed=1)
    X, y = world.labelled
    model = Transductive(quick(), lazy=True)
    with told(r"X_unlabelled=\(X_unlabelled,\)"):
        cross_val_score(
            model,
            X,
            y,
            cv=ClassHoldoutSplit(2, random_state=0),
            params={"X_unlabelled": world.rest[: len(X)]},
        )


@pytest.mark.parametrize("scoring", [None, discovery_scorer])
def test_hidden_classes_without_the_wrapper_are_told(scoring):
    X, y = stacked()
    with told("Wrap the estimator in pnp_gcd.model_selection.Transductive"):
        cross_validate(quick(), X, y, cv=ClassHoldoutSplit(2, random_state=0), scoring=scoring)


def test_the_scorer_tells_of_folds_that_hide_nothing():
    X, y = stacked()
    with told("All scored rows belong to known classes"):
        cross_validate(quick(), X, y, cv=KeepUnlabelled(2), scoring=discovery_scorer)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: Pipeline([("pnp", model)]),
        lambda model: Transductive(model),
        lambda model: GridSearchCV(model, {"n_neighbors": [5]}, cv=KFold(2), refit=True),
    ],
    ids=["Pipeline", "Transductive", "GridSearchCV"],
)
def test_a_pool_that_passes_by_is_told_through_another_tool(wrap):
    X, y, rest = split_world()
    inner = wrap(quick())
    name = "inner__pnp__X_unlabelled" if isinstance(inner, Pipeline) else "inner__X_unlabelled"
    with told("passes by 'norm'"):
        Pipeline([("norm", Normalizer()), ("inner", inner)]).fit(X, y, **{name: (rest,)})


@pytest.mark.parametrize("steps", [[100, 200], np.arange(5), [("load", 1), ("model", None)]])
def test_callers_with_steps_of_their_own_are_let_be(steps):
    X, y, rest = split_world()

    class Trainer:
        def go(self):
            self.model, self.steps = quick(), steps
            if isinstance(steps, list) and isinstance(steps[0], tuple):
                self.steps = [("load", 1), ("model", self.model)]
            return self.model.fit(X, y, rest)

    assert Trainer().go().n_clusters_ == 4


def test_looking_at_callers_keeps_none_of_their_variables_alive():
    X, y, rest = split_world()

    class Big:
        pass

    big = Big()
    seen = weakref.ref(big)
    quick().fit(X, y, rest)
    del big
    gc.collect()
    assert seen() is None


def test_a_fold_of_minus_1_and_1_is_scored_by_what_the_model_knows():
    X, y = stacked()
    model = quick().fit(X, y)
    rows = np.flatnonzero((y == 1) | (y == -1))
    assert model.score(X[rows], y[rows]) == model.score(X[rows], np.where(y[rows] < 0, None, 1))


def test_scores_on_training_rows_are_not_taken_for_test_folds():
    X, y = stacked()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_validate(
            Transductive(quick()), X, y, cv=ClassHoldoutSplit(2, random_state=0), return_train_score=True
        )
    assert found["train_score"].min() > 0.95


def test_a_wrapper_over_folds_that_hide_nothing_is_told():
    X, y = stacked()
    with pytest.warns(WorkflowWarning, match="ClassHoldoutSplit"):
        cross_val_score(Transductive(quick(), lazy=True), X, y, cv=KeepUnlabelled(2))


def test_plain_classification_without_a_pool_is_nobodys_mistake():
    X, y = stacked(n_known=6)
    X, y = X[y >= 0], y[y >= 0]
    assert cross_val_score(quick(), X, y, cv=2).min() > 0.9


def test_the_right_search_tells_nothing():
    X, y = stacked()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_validate(Transductive(quick(), lazy=True), X, y, cv=ClassHoldoutSplit(2, random_state=0))


def test_metadata_asked_for_by_no_one_is_refused_with_routing():
    X, y = stacked()
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match="unexpected argument"),
    ):
        Transductive(RandomForestClassifier()).fit(X, y, weights=y)
