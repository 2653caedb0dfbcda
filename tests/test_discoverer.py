"""The estimator's face: what goes in, what comes out, and what is refused."""

import copy
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from conftest import make_world
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pnp_gcd import PNPDiscoverer, clustering, pool
from pnp_gcd.exceptions import EmptyGraphError, FeatureScaleWarning, LabelWarning
from pnp_gcd.metrics import named_accuracy, split_cluster_accuracy


def quick(**parameters):
    """Return an estimator whose calibration has little to choose and whose training is short."""
    settings = {"n_neighbors": 10, "similarity_threshold": 0.0, "resolution": 1.0, "whitening": None}
    return PNPDiscoverer(**({"max_iter": 1, "random_state": 0} | settings | parameters))


@pytest.fixture(scope="module")
def fitted(world):
    return quick().fit(*world.labelled, world.rest)


@pytest.fixture(scope="module")
def by_default(many_known):
    return PNPDiscoverer(random_state=0).fit(*many_known.labelled, many_known.rest)


# --- how fit is called -------------------------------------------------------------------------------------


def test_defaults_find_every_class_of_separated_blobs(by_default, many_known):
    found = split_cluster_accuracy(many_known.truth, by_default.unlabelled_labels_, by_default.known_classes_)
    assert by_default.n_clusters_ == 6
    assert found.all > 0.97


def test_keywords_x_labelled_and_y_labelled_mean_x_and_y(world, fitted):
    X, y = world.labelled
    other = quick().fit(X_labelled=X, y_labelled=y, X_unlabelled=world.rest)
    np.testing.assert_array_equal(other.unlabelled_labels_, fitted.unlabelled_labels_)
    np.testing.assert_array_equal(
        quick(max_iter=0).fit_predict(X_labelled=X, y_labelled=y, X_unlabelled=world.rest), y
    )


@pytest.mark.parametrize("method", ["fit", "fit_predict"])
@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        (("X", "y"), {"X_labelled": "X"}, "X_labelled"),
        (("X",), {"y": "y", "y_labelled": "y"}, "y_labelled"),
        ((), {"X": "X", "X_labelled": "X", "y": "y"}, "X_labelled"),
        (("X", "y"), {"y_labelled": "y"}, "y_labelled"),
    ],
)
def test_an_alias_beside_its_name_is_a_type_error(world, method, args, kwargs, named):
    values = dict(zip("Xy", world.labelled, strict=True))
    with pytest.raises(TypeError, match=named):
        getattr(quick(), method)(*(values[a] for a in args), **{k: values[v] for k, v in kwargs.items()})


@pytest.mark.parametrize("kind", ["int -1", "str -1", "None", "nan", "object None", "pandas NA"])
def test_stacked_rows_with_a_marker_equal_a_separate_pool(world, fitted, kind):
    X, codes = world.stacked
    y = {
        "int -1": lambda: codes,
        "str -1": lambda: codes.astype(str),
        "None": lambda: [None if c < 0 else int(c) for c in codes],
        "nan": lambda: np.where(codes < 0, np.nan, codes),
        "object None": lambda: np.array([None if c < 0 else f"{c}" for c in codes], dtype=object),
        "pandas NA": lambda: pytest.importorskip("pandas").Series(codes, dtype="Int64").where(codes >= 0),
    }[kind]()
    model = quick().fit(X, y)
    expected = fitted.unlabelled_labels_
    if model.classes_.dtype.kind in "UO":
        names = dict(enumerate(["0", "1", *(f"novel_{i}" for i in range(len(fitted.novel_classes_)))]))
        expected = np.array([names[c] for c in expected])
    np.testing.assert_array_equal(model.unlabelled_labels_.astype(expected.dtype), expected)


def test_an_explicit_missing_label_is_the_marker_and_minus_one_a_class(world):
    X, codes = world.stacked
    y = np.where(codes < 0, 99, codes - 1)
    model = quick(missing_label=99, max_iter=0).fit(X, y)
    assert model.known_classes_.tolist() == [-1, 0]
    assert 99 not in model.classes_
    assert len(model.unlabelled_labels_) == len(world.rest)


def test_minus_one_and_one_alone_are_two_classes_with_a_warning(world):
    X, y = world.labelled
    with pytest.warns(LabelWarning):
        model = quick(max_iter=0).fit(X, np.where(y == 0, -1, 1))
    assert model.classes_.tolist() == [-1, 1]


def test_unlabelled_rows_of_x_and_the_pool_are_one_pool_in_that_order(world):
    X, codes = world.stacked
    cut = int(world.has_label.sum()) + 30  # 30 unlabelled rows stay in X, in front of its labelled ones
    mixed = np.r_[np.arange(cut - 30, cut), np.arange(cut - 30)]
    model = quick(max_iter=0).fit(X[mixed], codes[mixed], X[cut:])
    assert len(model.labels_) == cut
    assert len(model.unlabelled_labels_) == 30 + len(X) - cut
    np.testing.assert_array_equal(model.unlabelled_labels_[:30], model.labels_[:30])
    np.testing.assert_array_equal(model.unlabelled_labels_[:30], model.predict(X[cut - 30 : cut]))
    np.testing.assert_array_equal(model.unlabelled_labels_[30:], model.predict(X[cut:]))
    np.testing.assert_array_equal(model.labels_[30:], codes[: cut - 30])


def test_a_pool_in_a_one_tuple_is_the_pool(world, fitted):
    model = quick().fit(*world.labelled, (world.rest,))
    np.testing.assert_array_equal(model.unlabelled_labels_, fitted.unlabelled_labels_)


def test_a_pool_of_one_row_is_predicted(world):
    row = world.rest[:1]
    model = quick(max_iter=0).fit(*world.labelled, row)
    assert model.unlabelled_labels_.shape == (1,)
    assert model.unlabelled_labels_[0] in model.classes_


def test_without_a_pool_exactly_the_known_classes_come_back(world):
    X, y = world.labelled
    model = quick().fit(X, y)
    assert model.classes_.tolist() == [0, 1]
    assert len(model.unlabelled_labels_) == 0
    assert (model.predict(X) == y).mean() > 0.98


def test_without_labels_rows_are_clustered(world):
    model = quick(n_neighbors=20).fit(world.X)
    assert adjusted_rand_score(world.y, model.labels_) > 0.95
    assert model.known_classes_.size == 0
    np.testing.assert_array_equal(model.classes_, np.arange(model.n_clusters_))
    np.testing.assert_array_equal(model.labels_, model.unlabelled_labels_)


# --- names of classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "novel"),
    [
        (np.array([3, 10]), [11, 12]),
        (np.array([-7, -4]), [0, 1]),
        (np.array([2.0, 5.0]), [6.0, 7.0]),
        (np.array(["ape", "zoo"]), ["novel_0", "novel_1"]),
        (np.array(["novel_0", "zoo"], dtype=object), ["novel_1", "novel_2"]),
        (np.array([False, True]), [2, 3]),
    ],
    ids=["int", "negative int", "float", "str", "object with taken name", "bool"],
)
def test_known_labels_come_back_as_given_and_novel_ones_are_named_after_them(world, fitted, names, novel):
    X, y = world.labelled
    model = quick().fit(X, names[y], world.rest)
    assert model.known_classes_.tolist() == names.tolist()
    assert model.known_classes_.dtype.kind == names.dtype.kind
    assert model.novel_classes_.tolist() == novel
    assert model.classes_.tolist() == sorted([*names.tolist(), *novel])
    renamed = np.array([*names.tolist(), *novel], dtype=object)
    assert model.unlabelled_labels_.tolist() == renamed[fitted.unlabelled_labels_].tolist()
    assert model.predict(world.X).tolist() == renamed[fitted.predict(world.X)].tolist()
    assert model.labels_.tolist() == names[y].tolist()


def test_order_preserving_renames_rename_the_answer_and_change_no_probability(many_known):
    X, y = many_known.labelled
    plain = quick(whitening="auto").fit(X, y, many_known.rest)
    model = quick(whitening="auto").fit(X, 100 + 7 * y, many_known.rest)
    np.testing.assert_array_equal(model.predict_proba(many_known.X), plain.predict_proba(many_known.X))


def test_novel_classes_are_named_largest_first():
    rng = np.random.default_rng(0)
    sizes = [40, 40, 25, 90, 50]
    y = np.repeat(np.arange(5), sizes)
    X = 12 * np.eye(8)[y] + rng.normal(size=(len(y), 8))
    has_label = (y < 2) & (np.arange(len(y)) % 2 == 0)
    model = quick(max_iter=0, n_neighbors=20).fit(X[has_label], y[has_label], X[~has_label])
    counts = [(model.unlabelled_labels_ == name).sum() for name in model.novel_classes_]
    assert counts == [90, 50, 25]


def test_a_known_class_that_the_pool_lacks_stays_a_class(world):
    X, y = world.labelled
    model = quick().fit(X, y, world.rest[world.truth != 1])
    assert 1 in model.classes_
    assert 1 not in model.unlabelled_labels_
    assert model.n_clusters_ == len(model.classes_) == 4


def test_given_labels_stay_even_where_they_look_wrong(world):
    X, y = world.labelled
    wrong = y.copy()
    wrong[0] = 1 - wrong[0]
    np.testing.assert_array_equal(quick().fit(X, wrong, world.rest).labels_, wrong)


# --- the number of classes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("cluster_on", ["all", "unlabelled"])
def test_n_clusters_is_honoured_exactly(world, n_clusters, cluster_on):
    model = quick(n_clusters=n_clusters, cluster_on=cluster_on).fit(*world.labelled, world.rest)
    assert model.n_clusters_ == len(model.classes_) == n_clusters
    assert model.predict_proba(world.rest).shape == (len(world.rest), n_clusters)


@pytest.mark.parametrize("n_clusters", [1, 2, 4, 7, 30])
def test_n_clusters_is_honoured_exactly_without_labels(world, n_clusters):
    model = quick(n_clusters=n_clusters, max_iter=0).fit(world.X)
    assert model.n_clusters_ == n_clusters
    assert len(np.unique(model.labels_)) == n_clusters


def test_n_clusters_is_honoured_with_defaults(many_known):
    model = PNPDiscoverer(n_clusters=8, max_iter=0, random_state=0)
    assert model.fit(*many_known.labelled, many_known.rest).n_clusters_ == 8


@pytest.mark.parametrize("n_clusters", [4, 7])
def test_asked_for_classes_all_have_members(world, n_clusters):
    model = quick(n_clusters=n_clusters).fit(*world.labelled, world.rest)
    assert set(model.novel_classes_) <= set(model.unlabelled_labels_.tolist())


def test_the_interval_holds_the_number_found_and_the_truth(by_default, fitted):
    for model, truth in ((by_default, 6), (fitted, 4)):
        low, high = model.n_clusters_interval_
        assert low <= model.n_clusters_ <= high
        assert low <= truth <= high
        assert len(model.known_classes_) <= low


@pytest.mark.parametrize("n_clusters", [3, 6])
def test_the_interval_is_one_number_if_that_was_given(world, n_clusters):
    model = quick(n_clusters=n_clusters, max_iter=0).fit(*world.labelled, world.rest)
    assert model.n_clusters_interval_ == (n_clusters, n_clusters)


def test_the_interval_is_the_number_found_where_no_label_can_tell(world):
    for model in (quick(max_iter=0).fit(world.X), quick(max_iter=0).fit(*world.labelled)):
        assert model.n_clusters_interval_ == (model.n_clusters_, model.n_clusters_)


# --- prediction --------------------------------------------------------------------------------------------


def test_predict_on_the_pool_is_what_fit_found(fitted, by_default, world, many_known):
    np.testing.assert_array_equal(fitted.predict(world.rest), fitted.unlabelled_labels_)
    np.testing.assert_array_equal(by_default.predict(many_known.rest), by_default.unlabelled_labels_)


def test_probabilities_follow_classes_and_agree_with_decisions(by_default, many_known):
    X = many_known.X
    proba, scores, found = by_default.predict_proba(X), by_default.decision_function(X), by_default.predict(X)
    assert proba.shape == scores.shape == (len(X), by_default.n_clusters_)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(by_default.classes_[proba.argmax(axis=1)], found)
    np.testing.assert_array_equal(by_default.classes_[scores.argmax(axis=1)], found)


def test_probabilities_are_a_softmax_of_the_decisions_with_one_sharpness_for_all_rows(world):
    model = quick().fit(*world.labelled, world.rest[world.truth != 2])
    noise = np.random.default_rng(0).normal(size=world.X.shape)
    X = world.X + 3 * noise  # not all as sure as can be
    log_odds = np.diff(np.log(model.predict_proba(X)), axis=1)
    gaps = np.diff(model.decision_function(X), axis=1)
    clear = np.abs(gaps) > 1
    sharpness = (log_odds / np.where(clear, gaps, 1.0))[clear]
    np.testing.assert_allclose(sharpness, sharpness[0], rtol=1e-6)
    assert 0 < sharpness[0] <= 2


def test_probability_columns_are_in_the_order_of_classes_when_novel_names_sort_first(world):
    X, y = world.labelled
    names = np.array(["zebra", "zoo"])
    model = quick().fit(X, names[y], world.rest)
    assert model.classes_.tolist() == ["novel_0", "novel_1", "zebra", "zoo"]
    columns = model.predict_proba(X).argmax(axis=1)
    assert (model.classes_[columns] == names[y]).mean() > 0.98


def test_decision_function_of_two_classes_is_one_number_per_row(world):
    X, y = world.labelled
    model = quick(max_iter=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_array_equal(model.classes_[(scores > 0).astype(int)], model.predict(X))


def test_unseen_rows_are_classified_like_the_pool(world):
    halves = np.arange(len(world.rest)) % 2 == 0
    model = quick().fit(*world.labelled, world.rest[halves])
    unseen = split_cluster_accuracy(
        world.truth[~halves], model.predict(world.rest[~halves]), model.known_classes_
    )
    assert unseen.all > 0.97


def test_novelty_score_is_high_for_new_classes(fitted, by_default, world, many_known):
    for model, data, n_known in ((fitted, world, 2), (by_default, many_known, 4)):
        novelty = model.novelty_score(data.rest)
        assert novelty.shape == (len(data.rest),)
        assert ((novelty >= 0) & (novelty <= 1)).all()
        assert roc_auc_score(data.truth >= n_known, novelty) > 0.95


def test_novelty_score_is_the_probability_of_the_new_classes(fitted, world):
    is_new = np.isin(fitted.classes_, fitted.novel_classes_)
    np.testing.assert_allclose(
        fitted.novelty_score(world.X), fitted.predict_proba(world.X)[:, is_new].sum(axis=1), atol=1e-9
    )


def test_novelty_score_without_new_classes_still_ranks_strangers_higher(world):
    X, y = world.labelled
    model = quick(max_iter=0).fit(X, y)
    novelty = model.novelty_score(world.rest)
    assert roc_auc_score(world.truth >= 2, novelty) > 0.95
    assert (quick(max_iter=0).fit(world.X).novelty_score(world.X) == 1).all()


# --- rows unlike any class ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strangers(world):
    """Rows that lie across from the middle of all classes, where nobody of the fit is."""
    middle = world.X.mean(axis=0)
    return middle - 3 * (world.X[:20] - middle)


def test_typicality_is_the_part_of_the_rows_that_lie_farther_away(fitted, world):
    typicality = fitted.typicality(world.X)
    assert ((typicality >= 0) & (typicality <= 1)).all()
    # Over the rows of the fit itself it is even from 0 to 1.
    np.testing.assert_allclose(
        np.sort(typicality), (np.arange(len(world.X)) + 0.5) / len(world.X), atol=2 / len(world.X)
    )


def test_strangers_are_less_typical_than_nearly_every_row_and_unseen_rows_are_not(fitted, strangers):
    assert fitted.typicality(strangers).max() < 0.01
    unseen = make_world(seed=0, n_rows=1000).X
    assert 0.35 < fitted.typicality(unseen).mean() < 0.65


def test_strangers_are_rejected_and_rows_of_classes_are_not(fitted, world, strangers):
    assert (fitted.predict(strangers, reject_below=0.01) == -1).all()
    found = fitted.predict(world.X, reject_below=0.01)
    rejected = found == -1
    assert 0 < rejected.sum() <= 0.02 * len(world.X)
    np.testing.assert_array_equal(found[~rejected], fitted.predict(world.X)[~rejected])


def test_inspect_says_what_three_methods_say_and_encodes_rows_once(fitted, world, monkeypatch):
    asked = fitted.transform(world.X), fitted.predict_proba(world.X), fitted.typicality(world.X)
    encode, calls = type(fitted)._features, []
    monkeypatch.setattr(type(fitted), "_features", lambda self, X: calls.append(len(X)) or encode(self, X))
    inspected = fitted.inspect(world.X)
    assert calls == [len(world.X)]
    for told, value in zip(asked, inspected, strict=True):
        np.testing.assert_array_equal(told, value)


@pytest.mark.parametrize("reject_below", [0, 0.0, 0.3, 1, 1.0, np.float32(0.5)])
def test_exactly_the_rows_below_the_typicality_asked_for_are_rejected(fitted, world, reject_below):
    found = fitted.predict(world.X, reject_below=reject_below)
    np.testing.assert_array_equal(found == -1, fitted.typicality(world.X) < reject_below)
    assert found.dtype == fitted.classes_.dtype


def test_no_row_is_rejected_unless_that_is_asked_for(fitted, strangers):
    for found in (fitted.predict(strangers), fitted.predict(strangers, reject_below=None)):
        assert set(found.tolist()) <= set(fitted.classes_.tolist())


@pytest.mark.parametrize(
    ("names", "missing_label", "marker"),
    [
        (np.array([3, 10]), "auto", -1),
        (np.array([3, 10]), 99, 99),
        (np.array([3, 10]), None, None),
        (np.array([2.0, 5.0]), "auto", -1.0),
        (np.array(["ape", "zoo"]), "auto", "-1"),
        (np.array(["ape", "zoo"]), "no animal at all", "no animal at all"),
        (np.array(["ape", "zoo"], dtype=object), "auto", "-1"),
        (np.array(["ape", "zoo"], dtype=object), None, None),
        (np.array([False, True]), "auto", None),
    ],
    ids=["int", "int 99", "int None", "float", "str", "long str", "object", "object None", "bool"],
)
def test_rejected_rows_get_the_missing_label_beside_classes_as_they_are(
    world, strangers, names, missing_label, marker
):
    X, y = world.labelled
    model = quick(missing_label=missing_label, max_iter=0).fit(X, names[y], world.rest)
    rows = np.concatenate([world.X[:50], strangers])
    plain, found = model.predict(rows).tolist(), model.predict(rows, reject_below=0.01).tolist()
    is_rejected = model.typicality(rows) < 0.01
    assert is_rejected[50:].all()
    assert not is_rejected[:50].all()
    expected = [marker if no else name for name, no in zip(plain, is_rejected, strict=True)]
    assert found == expected
    assert [type(a) for a in found] == [type(b) for b in expected]


def test_rejected_rows_of_a_float_model_with_nan_as_marker_are_nan(world, strangers):
    X, y = world.labelled
    model = quick(missing_label=np.nan, max_iter=0).fit(X, y.astype(float), world.rest)
    assert np.isnan(model.predict(strangers, reject_below=0.01)).all()


def test_rejected_rows_of_boolean_classes_alone_are_none(world, strangers):
    X, y = world.labelled
    model = quick(max_iter=0).fit(X, y.astype(bool))
    assert model.classes_.tolist() == [False, True]
    assert model.predict(strangers, reject_below=0.01).tolist() == [None] * len(strangers)
    assert set(model.predict(X, reject_below=0.0).tolist()) == {False, True}


@pytest.mark.parametrize("bad", [-0.1, 1.5, np.nan, np.inf, "some", [0.1], (0.1, 0.2), np.array([0.1, 0.2])])
def test_a_part_of_rows_to_reject_that_is_no_part_is_refused_by_name(fitted, world, bad):
    with pytest.raises(ValueError, match="reject_below=.*must be a number from 0 to 1"):
        fitted.predict(world.X, reject_below=bad)


# --- features, prototypes, what was done -------------------------------------------------------------------


def test_transform_gives_unit_rows_named_after_the_class(fitted, world):
    features = fitted.transform(world.X)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, rtol=1e-5)
    names = fitted.get_feature_names_out()
    assert len(names) == features.shape[1] == fitted.prototypes_.shape[1]
    assert names[0] == "pnpdiscoverer0"


def test_prototypes_are_unit_rows_of_classes(by_default):
    np.testing.assert_allclose(np.linalg.norm(by_default.prototypes_, axis=1), 1.0, rtol=1e-5)
    assert len(by_default.prototype_labels_) == len(by_default.prototypes_)
    assert set(by_default.prototype_labels_) == set(by_default.classes_)


def test_fitted_attributes_say_what_was_done(by_default):
    assert by_default.n_iter_ == len(by_default.history_) == 4
    assert by_default.n_features_in_ == 8
    assert not hasattr(by_default, "feature_names_in_")
    assert by_default.calibration_
    assert by_default.n_neighbors_ in {row["n_neighbors"] for row in by_default.calibration_}
    assert by_default.whitening_ in {row["whitening"] for row in by_default.calibration_}
    assert by_default.similarity_threshold_ in {
        row["similarity_threshold"] for row in by_default.calibration_
    }
    assert by_default.resolution_ in {row["resolution"] for row in by_default.calibration_}


def used_by(model):
    return model.n_neighbors_, model.similarity_threshold_, model.resolution_, model.whitening_


def test_given_graph_settings_are_the_ones_tried_and_used(world):
    model = quick(n_neighbors=7, similarity_threshold=0.1, resolution=1.2, whitening="soft-total", max_iter=0)
    model.fit(*world.labelled, world.rest)
    assert used_by(model) == (7, 0.1, 1.2, "soft-total")
    tried = {
        (row["n_neighbors"], row["similarity_threshold"], row["resolution"], row["whitening"])
        for row in model.calibration_
    }
    assert tried == {used_by(model)}


def test_resolution_auto_tries_several_and_a_number_is_the_only_one(world):
    auto, given = (
        quick(resolution=resolution, max_iter=0).fit(*world.labelled, world.rest)
        for resolution in ("auto", 0.8)
    )
    tried = {row["resolution"] for row in auto.calibration_}
    assert len(tried) > 1
    assert auto.resolution_ in tried
    assert {row["resolution"] for row in given.calibration_} == {given.resolution_} == {0.8}


def test_a_finer_resolution_cuts_more_communities(world):
    counts = [
        quick(resolution=resolution).fit(*world.labelled, world.rest).history_[0]["n_communities"]
        for resolution in (0.5, 1.0, 3.0)
    ]
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.parametrize("edge_weights", ["shared", "cosine"])
def test_neighbours_are_compared_only_for_shared_weights(world, monkeypatch, edge_weights):
    compared = []
    share = clustering.share_neighbours
    monkeypatch.setattr(clustering, "share_neighbours", lambda *a: compared.append(a) or share(*a))
    quick(edge_weights=edge_weights, max_iter=0).fit(*world.labelled, world.rest)
    assert bool(compared) is (edge_weights == "shared")


def test_a_merge_threshold_that_is_given_decides_instead_of_the_count(world):
    apart, together = (
        quick(merge_threshold=threshold, max_iter=0).fit(*world.labelled, world.rest).n_clusters_
        for threshold in (np.inf, 0.0)
    )
    assert apart > together


def test_fit_predict_returns_labels_of_x(world):
    X, codes = world.stacked
    model = quick(max_iter=0)
    np.testing.assert_array_equal(model.fit_predict(X, codes), model.labels_)


# --- score -------------------------------------------------------------------------------------------------


def test_score_leaves_unlabelled_rows_out(fitted, world):
    y = world.y.copy()
    y[::3] = -1
    assert fitted.score(world.X, y) == fitted.score(world.X[y >= 0], y[y >= 0])
    assert fitted.score(world.X, y) > 0.97


def test_score_matches_new_classes_whatever_they_are_called(fitted, world):
    truth = np.where(world.y < 2, world.y, 50 - world.y)
    assert fitted.score(world.X, truth) > 0.97
    expected = named_accuracy(truth, fitted.predict(world.X), fitted.known_classes_).all
    assert fitted.score(world.X, truth) == expected


def test_score_holds_known_classes_to_their_own_label(fitted, world):
    swapped = np.where(world.y < 2, 1 - world.y, world.y)
    assert fitted.score(world.X, swapped) < 0.6


def test_score_without_any_label_is_refused(fitted, world):
    with pytest.raises(ValueError, match="y holds no label"):
        fitted.score(world.X, np.full(len(world.X), -1))


# --- containers --------------------------------------------------------------------------------------------


def frame_of(library, rows):
    module = pytest.importorskip(library)
    names = [f"column {i}" for i in range(rows.shape[1])]
    if library == "pandas":
        return module.DataFrame(rows, columns=names)
    return module.DataFrame(rows, schema=names)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_give_the_same_answer_and_keep_their_names(world, fitted, library):
    X, y = world.labelled
    series = pytest.importorskip(library).Series(y.tolist())
    model = quick().fit(frame_of(library, X), series, frame_of(library, world.rest))
    assert model.feature_names_in_.tolist() == [f"column {i}" for i in range(8)]
    np.testing.assert_array_equal(model.unlabelled_labels_, fitted.unlabelled_labels_)
    np.testing.assert_array_equal(model.predict(frame_of(library, world.X)), fitted.predict(world.X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_gives_frames(world, fitted, library):
    module = pytest.importorskip(library)
    model = copy.deepcopy(fitted).set_output(transform=library)
    features = model.transform(world.X)
    assert isinstance(features, module.DataFrame)
    assert list(features.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(features.to_numpy(), fitted.transform(world.X))


def test_a_pool_with_its_columns_in_another_order_is_refused(world):
    X, y = world.labelled
    rest = frame_of("pandas", world.rest)
    with pytest.raises(ValueError, match="X_unlabelled"):
        quick().fit(frame_of("pandas", X), y, rest[rest.columns[::-1]])


def test_lists_are_rows_too(world, fitted):
    X, y = world.labelled
    model = quick().fit(X.tolist(), y.tolist(), world.rest.tolist())
    np.testing.assert_array_equal(model.unlabelled_labels_, fitted.unlabelled_labels_)


@pytest.fixture(scope="module")
def with_views(world):
    rng = np.random.default_rng(0)
    return world.X[:, None] + 0.1 * rng.normal(size=(len(world.X), 3, 8))


@pytest.fixture(scope="module")
def fitted_on_views(world, with_views):
    model = quick(max_iter=2)
    return model.fit(with_views[world.has_label], world.y[world.has_label], with_views[~world.has_label])


def test_rows_with_precomputed_views_are_fitted_and_predicted(world, with_views, fitted_on_views):
    model = fitted_on_views
    assert split_cluster_accuracy(world.truth, model.unlabelled_labels_, [0, 1]).all > 0.97
    np.testing.assert_array_equal(model.predict(with_views[~world.has_label]), model.unlabelled_labels_)
    assert model.transform(with_views).shape == (len(with_views), model.prototypes_.shape[1])


def test_with_views_the_features_are_the_last_axis(fitted_on_views):
    assert fitted_on_views.n_features_in_ == 8


def test_rows_of_one_view_are_predicted_by_a_model_fitted_on_views(world, fitted_on_views):
    assert split_cluster_accuracy(world.y, fitted_on_views.predict(world.X), [0, 1]).all > 0.97


def test_views_of_another_width_are_refused_with_their_number_of_features(with_views, fitted_on_views):
    with pytest.raises(ValueError, match="features"):
        fitted_on_views.predict(with_views[:, :, :5])


# --- repeatability -----------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_model(many_known, by_default):
    again = PNPDiscoverer(random_state=0).fit(*many_known.labelled, many_known.rest)
    np.testing.assert_array_equal(again.unlabelled_labels_, by_default.unlabelled_labels_)
    np.testing.assert_array_equal(again.prototypes_, by_default.prototypes_)
    assert again.calibration_ == by_default.calibration_


def test_refitting_a_fitted_model_starts_afresh(world, fitted):
    model = quick().fit(world.X[:100] + 5)
    model.fit(*world.labelled, world.rest)
    np.testing.assert_array_equal(model.prototypes_, fitted.prototypes_)


def test_another_seed_trains_another_model(world, fitted):
    other = quick(random_state=1).fit(*world.labelled, world.rest)
    assert not np.array_equal(other.transform(world.X), fitted.transform(world.X))


@pytest.mark.parametrize("seed", [None, 0, np.random.RandomState(3)], ids=["None", "int", "RandomState"])
def test_global_random_states_are_left_alone(world, seed):
    import random

    import torch

    before = np.random.get_state(), torch.get_rng_state(), random.getstate()
    model = PNPDiscoverer(random_state=seed, max_iter=1).fit(*world.labelled, world.rest)
    model.predict(world.X)
    after = np.random.get_state(), torch.get_rng_state(), random.getstate()
    np.testing.assert_array_equal(before[0][1], after[0][1])
    assert before[0][2] == after[0][2]
    assert torch.equal(before[1], after[1])
    assert before[2] == after[2]


def test_the_global_random_state_is_never_read(world):
    import torch

    found = []
    for seed in (1, 2):
        np.random.seed(seed)
        torch.manual_seed(seed)
        found.append(quick().fit(*world.labelled, world.rest).transform(world.X))
    np.testing.assert_array_equal(*found)


def test_input_arrays_are_not_written_to(world):
    X, y = (array.astype(np.float32) for array in world.labelled)
    rest = world.rest.astype(np.float32)
    kept = X.copy(), y.copy(), rest.copy()
    for array in (X, y, rest):
        array.setflags(write=False)
    quick().fit(X, y, rest).predict(rest)
    for array, copied in zip((X, y, rest), kept, strict=True):
        np.testing.assert_array_equal(array, copied)


@pytest.fixture(scope="module")
def wide():
    """Rows of 24 columns: wide enough for a matrix product to round by the place of a row."""
    data = make_world(300, 6, 4, width=24)
    return data.X, quick(whitening="soft-total").fit(*data.labelled, data.rest)


@pytest.fixture(scope="module")
def narrow(many_known, by_default):
    return many_known.X, by_default


@pytest.mark.parametrize("rows", ["narrow", "wide"])
@pytest.mark.parametrize("method", ["predict", "transform", "predict_proba", "novelty_score", "typicality"])
def test_answers_follow_a_permutation_of_the_rows_exactly(request, rows, method):
    X, model = request.getfixturevalue(rows)
    order = np.random.default_rng(0).permutation(len(X))
    answer = getattr(model, method)
    np.testing.assert_array_equal(answer(X[order]), answer(X)[order])


@pytest.mark.parametrize("rows", ["narrow", "wide"])
@pytest.mark.parametrize("method", ["predict", "transform", "predict_proba", "typicality"])
def test_a_row_alone_gets_the_answer_it_gets_in_company(request, rows, method):
    X, model = request.getfixturevalue(rows)
    answer = getattr(model, method)
    alone = np.concatenate([answer(X[row : row + 1]) for row in range(7, 15)])
    np.testing.assert_array_equal(alone, answer(X)[7:15])


def test_a_refit_on_permuted_rows_agrees(many_known, by_default):
    X, codes = many_known.stacked
    order = np.random.default_rng(1).permutation(len(X))
    model = PNPDiscoverer(random_state=0).fit(X[order], codes[order])
    again = model.predict(many_known.rest)
    assert adjusted_rand_score(by_default.unlabelled_labels_, again) >= 0.95


def test_another_process_finds_the_same(world, fitted, tmp_path):
    np.savez(tmp_path / "rows.npz", X=world.labelled[0], y=world.labelled[1], rest=world.rest)
    program = (
        "import sys, numpy as np; from pnp_gcd import PNPDiscoverer; rows = np.load(sys.argv[1]);"
        "model = PNPDiscoverer(random_state=0, n_neighbors=10, similarity_threshold=0.0, resolution=1.0,"
        " whitening=None, max_iter=1).fit(rows['X'], rows['y'], rows['rest']);"
        "print(*model.unlabelled_labels_)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "rows.npz")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    assert ran.stdout.split() == [str(label) for label in fitted.unlabelled_labels_]


# --- inside scikit-learn -----------------------------------------------------------------------------------


def test_clone_keeps_parameters_and_forgets_the_fit(fitted):
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(np.zeros((2, 8)))


def test_pickle_and_joblib_keep_every_answer(fitted, world, tmp_path):
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copied in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copied.predict(world.X), fitted.predict(world.X))
        np.testing.assert_array_equal(copied.predict_proba(world.X), fitted.predict_proba(world.X))
        np.testing.assert_array_equal(copied.typicality(world.X), fitted.typicality(world.X))
        np.testing.assert_array_equal(copied.unlabelled_labels_, fitted.unlabelled_labels_)


def test_a_pipeline_scales_the_pool_that_pool_stacked(world):
    X, y = world.labelled
    pipe = make_pipeline(StandardScaler(), quick())
    pipe.fit(*pool(1000 * X, y, 1000 * world.rest))
    assert split_cluster_accuracy(world.truth, pipe[-1].unlabelled_labels_, [0, 1]).all > 0.97
    np.testing.assert_array_equal(pipe.predict(1000 * world.rest), pipe[-1].unlabelled_labels_)
    assert pipe.score(1000 * world.X, world.y) > 0.97


# --- quality -----------------------------------------------------------------------------------------------


def test_digits_with_five_known_classes_are_discovered():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    has_label = (y < 5) & (rng.random(len(y)) < 0.5)
    in_pool = ~has_label
    model = PNPDiscoverer(random_state=0).fit(X[has_label], y[has_label], X[in_pool])
    found = split_cluster_accuracy(y[in_pool], model.unlabelled_labels_, np.arange(5)).all
    assert found >= 0.75
    assert 8 <= model.n_clusters_ <= 13


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["X", "X_unlabelled", "predict"])
def test_rows_that_are_not_finite_are_refused(world, fitted, bad, where):
    X, y = world.labelled
    rows = X.copy()
    rows[3, 2] = bad
    calls = {
        "X": lambda: quick().fit(rows, y, world.rest),
        "X_unlabelled": lambda: quick().fit(X, y, rows),
        "predict": lambda: fitted.predict(rows),
    }
    named = "X_unlabelled.*(NaN|infinity)" if where == "X_unlabelled" else "X contains (NaN|infinity)"
    with pytest.raises(ValueError, match=named):
        calls[where]()


def test_a_pool_of_another_width_is_refused(world):
    with pytest.raises(ValueError, match=r"X_unlabelled.*5 features"):
        quick().fit(*world.labelled, world.rest[:, :5])


def test_rows_to_predict_of_another_width_are_refused(fitted, world):
    with pytest.raises(ValueError, match=r"X has 5 features.*8 features"):
        fitted.predict(world.X[:, :5])


@pytest.mark.parametrize("empty", [np.empty((0, 8)), [], (np.empty((0, 8)),)], ids=["array", "list", "tuple"])
def test_a_pool_of_zero_rows_is_refused(world, empty):
    with pytest.raises(ValueError, match="X_unlabelled has 0 rows"):
        quick().fit(*world.labelled, empty)


def test_a_pool_that_is_a_number_is_refused_with_a_value_error(world):
    with pytest.raises(ValueError, match="X_unlabelled"):
        quick().fit(*world.labelled, np.array(5.0))


def test_a_pool_in_a_pair_is_refused(world):
    with pytest.raises(ValueError, match="X_unlabelled is a tuple of 2"):
        quick().fit(*world.labelled, (world.rest, world.rest))


@pytest.mark.parametrize("marker", [-1, np.nan])
def test_a_y_without_any_label_is_refused(world, marker):
    with pytest.raises(ValueError, match="y holds no label"):
        quick().fit(world.X, np.full(len(world.X), marker))


def test_a_single_row_is_refused(world):
    with pytest.raises(ValueError, match="1 sample"):
        quick().fit(world.X[:1], [0])


def test_labels_of_the_wrong_length_are_refused(world):
    X, y = world.labelled
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        quick().fit(X, y[:-1], world.rest)


def test_fewer_clusters_than_known_classes_are_refused(many_known):
    with pytest.raises(ValueError, match="n_clusters=3 is below the 4 known classes"):
        quick(n_clusters=3).fit(*many_known.labelled, many_known.rest)


def test_more_new_classes_than_unlabelled_rows_are_refused(world):
    with pytest.raises(ValueError, match="n_clusters=8 asks for 6 new classes"):
        quick(n_clusters=8).fit(*world.labelled, world.rest[:5])


def test_as_many_neighbours_as_rows_are_refused(world):
    with pytest.raises(ValueError, match=f"n_neighbors={len(world.X)}"):
        quick(n_neighbors=len(world.X)).fit(*world.labelled, world.rest)
    n_pool = len(world.rest)
    with pytest.raises(ValueError, match=f"n_neighbors={n_pool} needs more than {n_pool} unlabelled rows"):
        quick(n_neighbors=n_pool, cluster_on="unlabelled").fit(*world.labelled, world.rest)


def test_the_most_neighbours_that_rows_allow_are_accepted(world):
    model = quick(n_neighbors=len(world.X) - 1, max_iter=0).fit(*world.labelled, world.rest)
    assert model.n_neighbors_ == len(world.X) - 1


@pytest.mark.parametrize("n_neighbors", [10, "auto"])
def test_a_threshold_that_leaves_no_pair_is_an_empty_graph_error(world, n_neighbors):
    with pytest.raises(EmptyGraphError, match="similarity_threshold=1 leaves no pair"):
        quick(similarity_threshold=1.0, n_neighbors=n_neighbors).fit(*world.labelled, world.rest)


@pytest.mark.parametrize("where", ["X", "X_unlabelled"])
def test_sparse_rows_are_refused(world, where):
    X, y = world.labelled
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        quick().fit(*((csr_array(X), y) if where == "X" else (X, y, csr_array(world.rest))))


def test_rows_with_four_axes_or_a_single_view_are_refused(world):
    X, y = world.labelled
    with pytest.raises(ValueError, match=r"X has shape .* Pass \(rows, features\)"):
        quick().fit(X[:, None, None], y)
    with pytest.raises(ValueError, match="at least 2 views"):
        quick().fit(X[:, None], y)


def test_a_pool_on_another_scale_is_warned_about(world):
    with pytest.warns(FeatureScaleWarning, match="another scale"):
        quick(max_iter=0).fit(*world.labelled, 100 * world.rest)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", 0),
        ("n_clusters", 2.5),
        ("n_neighbors", 0),
        ("n_neighbors", "many"),
        ("similarity_threshold", 1.5),
        ("resolution", 0),
        ("resolution", "fine"),
        ("edge_weights", "jaccard"),
        ("cluster_interval", 0),
        ("cluster_interval", 1.5),
        ("merge_threshold", -1),
        ("cluster_on", "labelled"),
        ("whitening", "pca"),
        ("n_components", 0),
        ("max_iter", -1),
        ("batch_size", 1),
        ("learning_rate", 0),
        ("distillation_weight", -0.1),
        ("entropy_weight", -1),
        ("known_weight", -1),
        ("supervised_weight", -1),
        ("unsupervised_weight", -1),
        ("temperature", 0),
        ("contrastive_temperature", 0),
        ("supervised_temperature", -1),
        ("teacher", "batch"),
        ("potential_prototypes", True),
        ("prototypes_per_class", 0),
        ("distill_on", "labelled"),
        ("view_noise", -0.1),
        ("view_dropout", 1.0),
        ("hidden_width", 0),
        ("on_interrupt", "stop"),
        ("random_state", "seed"),
        ("verbose", -1),
        ("teacher_temperature", 0.07),
        ("teacher_momentum", 0.9),
        ("projection_width", 128),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(world, name, value):
    # InvalidParameterError is a ValueError; its class is private to scikit-learn.
    with pytest.raises(ValueError, match=f"The '{name}' parameter of PNPDiscoverer must be"):
        quick(**{name: value}).fit(*world.labelled, world.rest)


@pytest.mark.parametrize("name", ["teacher_temperature", "teacher_momentum", "projection_width"])
@pytest.mark.parametrize("value", [(0.5,), (1, 2, 3), ("a", "b"), (0, -1)])
def test_what_has_to_be_a_pair_is_refused_otherwise(world, name, value):
    with pytest.raises(ValueError, match=f"{name}=.*must be a pair"):
        quick(**{name: value}).fit(*world.labelled, world.rest)


@pytest.mark.parametrize(
    ("name", "value"), [("teacher_momentum", (0.7, 1.5)), ("projection_width", (32.5, 8))]
)
def test_pairs_out_of_range_are_refused_by_name(world, name, value):
    with pytest.raises(ValueError, match=name):
        quick(**{name: value}).fit(*world.labelled, world.rest)


def test_a_missing_label_that_is_no_value_is_refused(world):
    with pytest.raises(TypeError, match="missing_label"):
        quick(missing_label=[1]).fit(*world.labelled, world.rest)


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "decision_function", "transform", "novelty_score", "typicality", "score"],
)
def test_before_fit_every_answer_is_a_not_fitted_error(world, method):
    arguments = (world.X, world.y) if method == "score" else (world.X,)
    with pytest.raises(NotFittedError, match="PNPDiscoverer"):
        getattr(quick(), method)(*arguments)


def test_verbose_writes_progress_to_standard_error_only(world, capsys):
    quick(verbose=1).fit(*world.labelled, world.rest)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 1/1" in captured.err


# --- worlds that are not even ------------------------------------------------------------------------------


def even_blobs(n_blobs, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_blobs), n_rows)
    return 12 * np.eye(8)[truth] + rng.normal(size=(len(truth), 8)), truth


def test_a_sparsely_labelled_known_class_stays_known():
    X, truth = even_blobs(4, 200)
    place = np.tile(np.arange(200), 4)
    y = np.where((truth == 0) & (place < 190), 0, np.where((truth == 1) & (place < 10), 1, -1))
    model = PNPDiscoverer(max_iter=1, random_state=0).fit(X, y)
    assert model.n_clusters_ == 4
    assert (model.labels_[truth == 1] == 1).all()


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
def test_equal_classes_that_are_too_many_are_not_torn_apart(n_clusters):
    X, truth = even_blobs(5, 30)
    found = PNPDiscoverer(n_clusters, max_iter=0, random_state=0).fit(X).labels_
    whole = [len(np.unique(found[truth == blob])) == 1 for blob in range(5)]
    assert sum(whole) >= n_clusters
    assert len(np.unique(found)) == n_clusters


def test_a_term_that_has_nothing_to_work_on_may_be_the_only_one():
    X, _ = even_blobs(3, 20)
    model = PNPDiscoverer(
        distillation_weight=0, supervised_weight=0, unsupervised_weight=0, max_iter=1, random_state=0
    ).fit(X)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("whitening", ["auto", None])
@pytest.mark.parametrize(("factor", "offset"), [(1e30, 0), (1e-15, 0), (1, 1e9)])
def test_the_scale_and_the_offset_of_all_columns_do_not_matter(whitening, factor, offset):
    X, truth = even_blobs(4, 40)
    y = np.where((truth < 2) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    model = PNPDiscoverer(whitening=whitening, max_iter=1, random_state=0).fit(X * factor + offset, y)
    assert adjusted_rand_score(truth, model.labels_) == 1


@pytest.mark.parametrize(("n_numbers", "n_threads"), [(1000, 1), (1 << 20, 2)])
def test_little_work_is_done_by_one_thread_and_the_callers_threads_come_back(n_numbers, n_threads):
    import torch
    from threadpoolctl import threadpool_limits

    from pnp_gcd._threads import sensible_threads

    with threadpool_limits(limits=2):
        with sensible_threads(n_numbers):
            assert torch.get_num_threads() == n_threads
        assert torch.get_num_threads() == 2
