"""Peers: hand cases of each, and what all of them promise."""

import inspect
import pickle

import numpy as np
import pytest
from conftest import make_world
from sklearn.base import clone

from pnp_gcd.benchmark.peers import InfomapPeer, KMeansPeer, Peer, SemiSupervisedKMeans, SimGCD
from pnp_gcd.benchmark.peers.base import Clusters, label_accuracy, nearest_centroid
from pnp_gcd.benchmark.peers.counting import default_limit, estimate_n_clusters, run_kmeans
from pnp_gcd.metrics import named_accuracy

# In each the four classes of ``world``, two of them known.
TOLD = [KMeansPeer(4), SemiSupervisedKMeans(4), SimGCD(4, max_iter=10, batch_size=64)]
PEERS = [*TOLD, InfomapPeer(20)]


def name_of(peer):
    return type(peer).__name__


@pytest.fixture(params=PEERS, ids=name_of)
def peer(request):
    return clone(request.param).set_params(random_state=0)


@pytest.fixture(scope="module", params=PEERS, ids=name_of)
def fitted(request, world):
    return clone(request.param).set_params(random_state=0).fit(*world.labelled, world.rest)


def turned(degrees):
    """Return unit rows in the plane."""
    angles = np.deg2rad(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


# --- what all of them promise -------------------------------------------------------------------------------


def test_blobs_come_back_with_known_classes_under_their_labels(fitted, world):
    assert named_accuracy(world.truth, fitted.unlabelled_labels_, [0, 1]).all > 0.97
    assert fitted.n_clusters_ == 4
    assert fitted.classes_.tolist() == [0, 1, 2, 3]
    assert fitted.known_classes_.tolist() == [0, 1]
    assert fitted.novel_classes_.tolist() == [2, 3]


def test_predict_agrees_with_the_fit_on_blobs(fitted, world):
    assert (fitted.predict(world.rest) == fitted.unlabelled_labels_).mean() > 0.99
    assert fitted.score(world.X, world.y) > 0.97


def test_strings_come_back_as_given(peer, world):
    X, y = world.labelled
    peer.fit(X, np.array(["cat", "dog"])[y], world.rest)
    assert set(peer.unlabelled_labels_) == {"cat", "dog", "novel_0", "novel_1"}
    assert peer.labels_.tolist() == np.array(["cat", "dog"])[y].tolist()


def test_unlabelled_rows_of_x_come_before_the_pool(fitted, world):
    X, y = world.stacked
    apart, among = fitted, clone(fitted).fit(X[:-10], y[:-10], X[-10:])
    np.testing.assert_array_equal(among.unlabelled_labels_, apart.unlabelled_labels_)
    n_labelled = int(world.has_label.sum())
    np.testing.assert_array_equal(among.labels_[:n_labelled], y[:n_labelled])
    np.testing.assert_array_equal(among.labels_[n_labelled:], apart.unlabelled_labels_[:-10])


def test_the_length_of_a_row_does_not_matter(fitted, world):
    longer = np.linspace(1, 9, len(world.rest))[:, None]
    other = clone(fitted).fit(*world.labelled, world.rest * longer)
    assert (fitted.unlabelled_labels_ == other.unlabelled_labels_).mean() > 0.99


def test_the_same_seed_gives_the_same_answer_and_leaves_global_states_alone(fitted, world):
    import torch

    np.random.seed(3)
    torch.manual_seed(3)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    again = clone(fitted).fit(*world.labelled, world.rest)
    assert (np.random.get_state()[1] == before[0]).all()
    assert torch.equal(torch.get_rng_state(), before[1])
    np.testing.assert_array_equal(again.centroids_, fitted.centroids_)
    np.testing.assert_array_equal(again.unlabelled_labels_, fitted.unlabelled_labels_)


def test_a_fitted_peer_survives_a_pickle(fitted, world):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(world.X), fitted.predict(world.X))


def test_fit_has_no_way_to_see_the_truth_of_the_pool(peer):
    assert list(inspect.signature(peer.fit).parameters) == ["X", "y", "X_unlabelled"]


def test_rows_of_both_kinds_are_needed(peer, world):
    with pytest.raises(ValueError, match="needs labelled and unlabelled rows, got .* and 0"):
        peer.fit(*world.labelled)
    with pytest.raises(ValueError, match="needs labelled and unlabelled rows, got 0 and"):
        peer.fit(world.X, np.full(len(world.X), -1))


def test_a_pool_of_another_width_is_refused(peer, world):
    with pytest.raises(ValueError, match="features"):
        peer.fit(*world.labelled, world.rest[:, :3])


@pytest.mark.parametrize("told", TOLD, ids=name_of)
def test_bad_numbers_of_clusters_are_named(told, world):
    with pytest.raises(ValueError, match="'n_clusters'.*Got 0 instead"):
        clone(told).set_params(n_clusters=0).fit(*world.labelled, world.rest)
    with pytest.raises(ValueError, match="n_clusters=1 must lie between the 2 known classes"):
        clone(told).set_params(n_clusters=1).fit(*world.labelled, world.rest)
    with pytest.raises(ValueError, match="n_clusters=9 must lie .* 7, with every unlabelled row a class"):
        clone(told).set_params(n_clusters=9).fit(*world.labelled, world.rest[:5])
    with pytest.raises(ValueError, match="max_clusters=1 must lie"):
        clone(told).set_params(n_clusters=None, max_clusters=1).fit(*world.labelled, world.rest)


def test_only_a_number_passed_counts_as_given():
    assert {peer.given for peer in TOLD} == {"the number of classes"}
    rest = [*(clone(peer).set_params(n_clusters=None) for peer in TOLD), InfomapPeer()]
    assert {peer.given for peer in rest} == {"nothing"}


# --- names --------------------------------------------------------------------------------------------------


class Ready(Peer):
    """Answers with clusters that are there already."""

    def __init__(self, clusters=None, *, missing_label="auto", random_state=None):
        self.clusters, self.missing_label, self.random_state = clusters, missing_label, random_state

    def _cluster(self, rows, codes, seed):
        return self.clusters


def test_new_classes_are_named_largest_first():
    clusters = Clusters(
        np.array([1, 0, 2, 2, 1]), turned([80, 0, 40]).astype(np.float32), np.array([-1, 0, -1])
    )
    peer = Ready(clusters).fit(turned([0]), [5], turned([80, 40, 40, 0]))
    assert peer.unlabelled_labels_.tolist() == [7, 6, 6, 5]
    assert peer.centroid_labels_.tolist() == [5, 6, 7]
    assert peer.predict(turned([78, 38, 2])).tolist() == [7, 6, 5]


def test_a_known_class_without_a_cluster_keeps_its_label_on_its_own_rows():
    clusters = Clusters(np.array([0, 0, 0, 1]), turned([0, 90]).astype(np.float32), np.array([1, -1]))
    peer = Ready(clusters).fit(turned([0, 1]), ["a", "b"], turned([2, 90]))
    assert peer.labels_.tolist() == ["a", "b"]
    assert peer.unlabelled_labels_.tolist() == ["b", "novel_0"]
    assert peer.classes_.tolist() == ["b", "novel_0"]
    assert peer.known_classes_.tolist() == ["a", "b"]
    assert peer.n_clusters_ == 2


def test_the_nearest_centroid_is_nearest_by_distance_not_by_product():
    centroids = np.array([[0.2, 0.0], [3.0, 0.0]], dtype=np.float32)
    assert nearest_centroid(np.array([[1.0, 0.0]], dtype=np.float32), centroids).tolist() == [0]


# --- Max-ACC ------------------------------------------------------------------------------------------------


def pairs_and_points(seed=0):
    """Three close pairs of wide known classes and two tight new ones: only K = 8 keeps the known apart."""
    rng = np.random.default_rng(seed)
    axes = np.eye(6)[:5]
    pairs = [axes[i] + side * 0.25 * axes[(i + 1) % 3] for i in range(3) for side in (-1, 1)]
    centres = np.stack([*pairs, axes[3], axes[4]])
    y = np.repeat(np.arange(8), 30)
    spread = np.where(y < 6, 0.05, 0.01)[:, None]
    X = centres[y] + spread * rng.normal(size=(len(y), 6))
    return X.astype(np.float32), np.where((y < 6) & (np.arange(len(y)) % 2 == 0), y, -1)


def test_label_accuracy_is_that_of_the_best_pairing():
    codes = np.array([0, 0, 1, 1, -1])
    assert label_accuracy(np.array([2, 2, 0, 0, 1]), codes, 3) == 1.0
    assert label_accuracy(np.array([0, 0, 0, 0, 1]), codes, 3) == 0.5


def test_max_acc_finds_the_number_at_which_known_classes_are_neither_joined_nor_split():
    rows, codes = pairs_and_points()
    by_hand = {k: label_accuracy(run_kmeans(rows, k, n_init=3, seed=0)[0], codes, k) for k in range(6, 21)}
    assert max(by_hand, key=by_hand.__getitem__) == 8
    assert estimate_n_clusters(rows, codes, max_clusters=20, seed=0) == 8


def test_a_peer_that_is_not_told_the_number_estimates_it():
    rows, codes = pairs_and_points()
    peer = SemiSupervisedKMeans(max_clusters=20, random_state=0).fit(rows, codes)
    assert peer.n_clusters_ == 8
    assert KMeansPeer(max_clusters=6, random_state=0).fit(rows, codes).n_clusters_ == 6


@pytest.mark.parametrize(
    ("n_rows", "n_known", "limit"), [(10_000, 38, 380), (99_999, 500, 1000), (60, 5, 30), (6, 5, 5)]
)
def test_the_largest_estimate(n_rows, n_known, limit):
    assert default_limit(n_rows, n_known) == limit


# --- semi-supervised k-means --------------------------------------------------------------------------------


def test_labelled_rows_stay_with_their_class_against_distance():
    # The row at 88° is labelled as the class at 0°: it turns that class's centroid, and stays in it.
    labelled, y = turned([0, 0, 0, 88]), ["low", "low", "low", "low"]
    peer = SemiSupervisedKMeans(2, random_state=0).fit(labelled, y, turned([0, 90, 91, 92]))
    assert peer.labels_.tolist() == y
    assert peer.unlabelled_labels_.tolist() == ["low", "novel_0", "novel_0", "novel_0"]
    mean = turned([0, 0, 0, 88, 0]).mean(axis=0)
    np.testing.assert_allclose(peer.centroids_[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_without_new_classes_centroids_are_the_fixed_point_of_lloyd():
    labelled, y, pool = turned([0, 60]), [0, 1], turned([25, 40, 61])
    peer = SemiSupervisedKMeans(2, n_init=1).fit(labelled, y, pool)
    assert peer.unlabelled_labels_.tolist() == [0, 1, 1]
    np.testing.assert_allclose(peer.centroids_, turned([12.5, 53.69924]), atol=1e-5)


def test_copies_of_one_row_do_not_stop_the_draw_of_centroids():
    peer = SemiSupervisedKMeans(3, random_state=0).fit(turned([0]), [0], turned([0, 0, 0]))
    assert peer.unlabelled_labels_.tolist() == [0, 0, 0]
    assert peer.n_clusters_ == 3


# --- SimGCD -------------------------------------------------------------------------------------------------


def test_the_loss_goes_down(world):
    history = SimGCD(4, max_iter=10, random_state=0).fit(*world.labelled, world.rest).history_
    assert history[-1]["total"] < history[0]["total"]
    assert history[-1]["known"] < 0.1
    total = sum(
        weight * history[0][name]
        for name, weight in {
            "distillation": 0.65,
            "entropy": 1.3,
            "known": 0.35,
            "supervised": 0.35,
            "unsupervised": 0.65,
        }.items()
    )
    assert history[0]["total"] == pytest.approx(total, rel=1e-4)


def test_known_prototypes_take_the_first_places_and_are_unit_length(world):
    peer = SimGCD(4, max_iter=1, random_state=0).fit(*world.labelled, world.rest)
    assert peer.centroid_labels_[:2].tolist() == [0, 1]
    np.testing.assert_allclose(np.linalg.norm(peer.centroids_, axis=1), 1, atol=1e-5)


def test_without_the_mean_entropy_term_new_classes_are_used_less():
    crowd = make_world(300, 6, 3, seed=2)

    def spread(weight):
        peer = SimGCD(6, entropy_weight=weight, max_iter=10, random_state=0).fit(*crowd.labelled, crowd.rest)
        return peer.history_[-1]["entropy"]

    assert spread(2.0) < spread(0.0)


# --- Infomap ------------------------------------------------------------------------------------------------


def test_infomap_takes_the_setting_that_agrees_best_with_the_labels(world):
    peer = InfomapPeer(random_state=0).fit(*world.labelled, world.rest)
    best = max(peer.search_, key=lambda row: row["accuracy"])
    assert (peer.n_neighbors_, peer.similarity_threshold_) == (
        best["n_neighbors"],
        best["similarity_threshold"],
    )
    assert peer.n_clusters_ == best["n_clusters"]


def test_infomap_keeps_settings_that_are_given(world):
    peer = InfomapPeer(20, similarity_threshold=0.3, random_state=0).fit(*world.labelled, world.rest)
    assert [(row["n_neighbors"], row["similarity_threshold"]) for row in peer.search_] == [(20, 0.3)]


def test_infomap_names_a_number_of_neighbours_that_is_too_large(world):
    with pytest.raises(ValueError, match="n_neighbors=500 needs more than 500 rows, got 240"):
        InfomapPeer(500).fit(*world.labelled, world.rest)


def test_infomap_tries_no_threshold_that_cuts_nothing():
    rows = np.repeat(turned([0, 5, 10]), 4, axis=0)
    peer = InfomapPeer(random_state=0).fit(rows[:4], [0] * 4, rows[4:])
    assert {row["similarity_threshold"] for row in peer.search_} == {0.0}
