"""What is chosen from the labelled rows, and what must never be looked at."""

import numpy as np
import pytest

from pnp_gcd import calibration as module
from pnp_gcd.calibration import (
    _hide_classes,
    calibrate,
    default_neighbours,
    smallest_class,
)
from pnp_gcd.geometry import reduce_rows

KEYS = {
    "whitening",
    "n_neighbors",
    "similarity_threshold",
    "merge_cut",
    "n_communities",
    "n_classes",
    "n_hidden",
    "known",
    "novel",
    "score",
}


def codes_of(world):
    return np.where(world.has_label, world.y, -1)


def run(world, codes=None, **settings):
    defaults = {
        "n_neighbors": None,
        "similarity_threshold": None,
        "resolution": 1.0,
        "whitenings": None,
        "seed": 0,
    }
    codes = codes_of(world) if codes is None else codes
    return calibrate(reduce_rows(world.X), codes, **(defaults | settings))


@pytest.fixture(scope="module")
def chosen(many_known):
    return run(many_known)


# --- hiding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_known", [2, 3, 4, 7])
def test_every_class_is_hidden_equally_often_and_never_shown_then(n_known):
    codes = np.random.default_rng(0).integers(-1, n_known, size=200)
    hidings = _hide_classes(codes, 0)
    hidden = []
    for hiding in hidings:
        classes = hiding.order[hiding.n_visible :].tolist()
        hidden += classes
        assert (hiding.visible[np.isin(codes, classes)] == -1).all()
        assert (hiding.visible[codes < 0] == -1).all()
        shown = hiding.visible >= 0
        np.testing.assert_array_equal(hiding.order[hiding.visible[shown]], codes[shown])
        np.testing.assert_array_equal(hiding.order[hiding.everyone[codes >= 0]], codes[codes >= 0])
    counts = np.bincount(hidden, minlength=n_known)
    assert len(set(counts.tolist())) == 1
    assert counts[0] >= 1


def test_about_half_of_the_rows_of_each_shown_class_are_shown_and_the_rest_held():
    codes = np.repeat(np.arange(5), [20, 21, 6, 1, 40])
    for hiding in _hide_classes(codes, 3):
        shown, held = hiding.visible >= 0, hiding.held >= 0
        assert not (shown & held).any()
        assert (shown | held).all()
        for code in hiding.order[: hiding.n_visible]:
            n_rows = int((codes == code).sum())
            assert (shown & (codes == code)).sum() == (n_rows + 1) // 2


@pytest.mark.parametrize("codes", [np.full(9, -1), np.zeros(9, dtype=int)])
def test_fewer_than_two_classes_cannot_be_hidden(codes):
    assert _hide_classes(codes, 0) == []


def test_hidden_classes_labels_are_shown_to_nothing_that_makes_the_classes(many_known, monkeypatch):
    """Geometry and ownership, the two readers of labels, are spied on until the choice is made."""
    seen = []

    def spy(name, place):
        original = getattr(module, name)

        def watched(*args, **kwargs):
            seen.append((name, np.asarray(args[place]).copy()))
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    spy("fit_geometry", 1)
    spy("own_communities", 0)
    codes = codes_of(many_known)
    run(many_known)
    shown = [hiding.visible for hiding in _hide_classes(codes, 0)]
    last_name, last_codes = seen.pop()
    assert last_name == "fit_geometry"
    np.testing.assert_array_equal(last_codes, codes)  # the final geometry, after the choice
    assert {name for name, _ in seen} == {"fit_geometry", "own_communities"}
    for _, given in seen:
        assert any(np.array_equal(given, visible) for visible in shown)


def test_a_geometry_is_fitted_anew_for_each_hiding_if_it_reads_labels(many_known, monkeypatch):
    given = []
    original = module.fit_geometry
    monkeypatch.setattr(
        module,
        "fit_geometry",
        lambda reduction, codes, **k: given.append(codes.tobytes()) or original(reduction, codes, **k),
    )
    run(many_known, whitenings=["within"], n_neighbors=10, similarity_threshold=0.0)
    assert set(given[:-1]) == {h.visible.tobytes() for h in _hide_classes(codes_of(many_known), 0)}


# --- the choice --------------------------------------------------------------------------------------------


def test_the_table_has_a_row_per_setting_with_the_documented_keys(chosen):
    assert all(set(row) == KEYS for row in chosen.table)
    tried = [(row["whitening"], row["n_neighbors"], row["similarity_threshold"]) for row in chosen.table]
    assert len(tried) == len(set(tried)) > 3
    for row in chosen.table:
        assert 0 <= row["known"] <= 1
        assert 0 <= row["novel"] <= 1
        assert row["score"] == pytest.approx((row["known"] + row["novel"]) / 2)


def test_what_is_chosen_was_tried_and_nothing_tried_scores_much_better(chosen):
    used = [
        row["score"]
        for row in chosen.table
        if row["whitening"] == chosen.geometry.whitening
        and row["n_neighbors"] == chosen.graph.n_neighbors
        and row["similarity_threshold"] == chosen.graph.similarity_threshold
        and row["merge_cut"] == chosen.graph.merge_cut
    ]
    assert len(used) == 1
    assert used[0] >= max(row["score"] for row in chosen.table) - 2 * module._MARGIN
    assert used[0] > 0.9


def test_every_row_is_reported_as_it_is_made(world):
    reported = []
    found = run(world, report=reported.append)
    assert reported == found.table


def test_given_values_are_honoured(many_known):
    found = run(
        many_known,
        n_neighbors=9,
        similarity_threshold=0.2,
        merge_cut=0.4,
        whitenings=["soft-total"],
        resolution=1.3,
    )
    graph = found.graph
    assert (graph.n_neighbors, graph.similarity_threshold, graph.merge_cut, graph.resolution) == (
        9,
        0.2,
        0.4,
        1.3,
    )
    assert found.geometry.whitening == "soft-total"
    assert all(row["n_neighbors"] == 9 and row["similarity_threshold"] == 0.2 for row in found.table)


def test_a_given_number_of_neighbours_leaves_the_rest_to_choose(many_known):
    found = run(many_known, n_neighbors=7)
    assert found.graph.n_neighbors == 7
    assert len({row["whitening"] for row in found.table}) > 1


def test_two_known_classes_are_enough_to_calibrate(world):
    found = run(world)
    assert found.table
    assert {row["n_hidden"] for row in found.table} == {1}
    assert found.graph.n_neighbors >= 2


@pytest.mark.parametrize("kind", ["one known class", "nothing known", "everything labelled"])
def test_where_nothing_can_be_hidden_or_found_the_defaults_are_used(world, kind):
    codes = {
        "one known class": np.where(world.has_label & (world.y == 0), 0, -1),
        "nothing known": np.full(len(world.y), -1),
        "everything labelled": world.y,
    }[kind]
    found = run(world, codes)
    assert found.table == []
    assert found.graph.n_neighbors == default_neighbours(len(world.X)) == 15
    assert found.graph.similarity_threshold == 0.0
    assert np.isinf(found.graph.merge_cut)
    given = run(world, codes, n_neighbors=6, similarity_threshold=0.3, merge_cut=0.2)
    assert (given.graph.n_neighbors, given.graph.similarity_threshold, given.graph.merge_cut) == (6, 0.3, 0.2)


def test_classes_of_one_labelled_row_are_calibrated_without_label_based_geometry(many_known):
    codes = np.full(len(many_known.y), -1)
    for code in range(4):
        codes[np.flatnonzero(many_known.y == code)[0]] = code
    found = run(many_known, codes)
    assert {row["whitening"] for row in found.table} <= {"soft-total", None}
    assert all(np.isfinite(row["score"]) for row in found.table)


def test_calibration_repeats_with_its_seed(many_known, chosen):
    again = run(many_known)
    assert again.table == chosen.table
    assert again.graph == chosen.graph


@pytest.mark.parametrize("n_rows", [2, 3, 5, 20, 59, 60, 10_000])
def test_the_default_number_of_neighbours_fits_the_rows(n_rows):
    assert 1 <= default_neighbours(n_rows) <= min(15, n_rows - 1)


@pytest.mark.parametrize(("n_neighbors", "size"), [(1, 2), (8, 2), (12, 3), (64, 16)])
def test_the_smallest_class_is_a_quarter_of_the_neighbours(n_neighbors, size):
    assert smallest_class(n_neighbors) == size


@pytest.mark.parametrize("n_rows", [3, 4, 6, 10])
def test_very_few_rows_are_calibrated(world, n_rows):
    rows = np.concatenate([world.X[world.y == c][:n_rows] for c in (0, 1, 2)])
    codes = np.repeat([0, 1, -1], n_rows)
    codes[[n_rows - 1, 2 * n_rows - 1]] = -1
    found = calibrate(
        reduce_rows(rows),
        codes,
        n_neighbors=None,
        similarity_threshold=None,
        resolution=1.0,
        whitenings=None,
        seed=0,
    )
    assert 1 <= found.graph.n_neighbors < len(rows)
