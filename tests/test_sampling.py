"""The rows that a fit learns from, of more than it needs."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from pnp_gcd import PNPDiscoverer
from pnp_gcd.rows import VectorRows
from pnp_gcd.sampling import draw_rows


def test_the_same_part_of_every_class_is_drawn():
    codes = np.repeat([-1, 0, 1], [6000, 3000, 1000])
    drawn = draw_rows(codes, 1000, seed=0)
    np.testing.assert_array_equal(np.bincount(codes[drawn] + 1), [600, 300, 100])
    assert (np.diff(drawn) > 0).all()


def test_a_known_class_keeps_twenty_labelled_rows_if_it_has_them():
    codes = np.repeat([-1, 0, 1], [9900, 60, 7])
    np.testing.assert_array_equal(np.bincount(codes[draw_rows(codes, 100, seed=0)] + 1), [100, 20, 7])


def test_few_rows_are_all_drawn_and_seeds_draw_differently():
    codes = np.full(50, -1)
    np.testing.assert_array_equal(draw_rows(codes, 50, seed=0), np.arange(50))
    assert not np.array_equal(draw_rows(codes, 20, seed=0), draw_rows(codes, 20, seed=1))
    np.testing.assert_array_equal(draw_rows(codes, 20, seed=3), draw_rows(codes, 20, seed=3))


@pytest.mark.parametrize("cuts", [[], [4], [1, 9], [0, 5]])
def test_rows_in_several_arrays_are_the_rows_of_one(cuts):
    rows = np.arange(20.0).reshape(10, 2)
    parts = VectorRows(*np.split(rows, cuts))
    assert len(parts) == 10
    np.testing.assert_array_equal(parts.take(np.array([0, 4, 5, 9])).vectors, rows[[0, 4, 5, 9]])
    assert len(parts.parts) == len(cuts) + 1  # taking some puts nothing together
    np.testing.assert_array_equal(parts.vectors, rows)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(1500, 8, centers=6, cluster_std=1.0, random_state=0)
    has_label = (y < 3) & (np.arange(1500) % 2 == 0)
    return X.astype(np.float32), y, has_label


def test_a_fit_on_a_sample_names_all_rows_as_new_rows_are_named(blobs):
    X, y, has_label = blobs
    model = PNPDiscoverer(max_samples=400, max_iter=1, random_state=0)
    model.fit(X[has_label], y[has_label], X[~has_label])
    assert len(model.unlabelled_labels_) == (~has_label).sum()
    np.testing.assert_array_equal(model.unlabelled_labels_, model.predict(X[~has_label]))
    np.testing.assert_array_equal(model.labels_, y[has_label])
    assert model.n_clusters_ == 6
    for label in range(6):
        names = model.unlabelled_labels_[y[~has_label] == label]
        assert (names == np.bincount(names).argmax()).mean() > 0.95


def test_as_many_rows_as_may_be_learnt_from_are_fitted_as_without_a_limit(blobs):
    X, y, has_label = blobs
    models = [
        PNPDiscoverer(max_samples=limit, max_iter=1, random_state=0).fit(X, np.where(has_label, y, -1))
        for limit in (1500, None)
    ]
    np.testing.assert_array_equal(models[0].prototypes_, models[1].prototypes_)
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)


def test_too_few_rows_to_learn_from_are_refused(blobs):
    X, y, _ = blobs
    with pytest.raises(ValueError, match="max_samples"):
        PNPDiscoverer(max_samples=5).fit(X, y)
