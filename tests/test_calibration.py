"""What is chosen from the labelled rows, and what must never be looked at."""

import numpy as np
import pytest

from pnp_gcd import calibration as module
from pnp_gcd.calibration import Request, calibrate, default_neighbours
from pnp_gcd.counting import count_by_size
from pnp_gcd.geometry import reduce_rows
from pnp_gcd.hiding import hide_classes, hold_back_halves
from pnp_gcd.neighbours import find_neighbours
from pnp_gcd.sizing import read_labels

KEYS = {
    "whitening",
    "n_neighbors",
    "similarity_threshold",
    "resolution",
    "is_balanced",
    "n_communities",
    "recall",
    "n_classes",
    "n_hidden",
    "known",
    "novel",
    "score",
}


def codes_of(world):
    return np.where(world.has_label, world.y, -1)


def run(world, codes=None, *, seed=0, report=lambda row: None, **asked):
    codes = codes_of(world) if codes is None else codes
    return calibrate(reduce_rows(world.X), codes, Request(**asked), seed=seed, report=report)


@pytest.fixture(scope="module")
def chosen(many_known):
    return run(many_known)


def setting_of(row):
    return row["whitening"], row["n_neighbors"], row["similarity_threshold"], row["resolution"]


def chosen_setting(found):
    graph = found.graph
    return found.geometry.whitening, graph.n_neighbors, graph.similarity_threshold, graph.resolution


# --- what is hidden stays hidden ---------------------------------------------------------------------------


def test_hidden_labels_are_shown_to_nothing_that_makes_the_classes(many_known, monkeypatch):
    """Geometry, communities and refinement read labels; they are spied on until the choice is made."""
    seen = []

    def spy(name, place):
        original = getattr(module, name)

        def watched(*args, **kwargs):
            seen.append((name, np.asarray(args[place]).copy()))
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    spy("fit_geometry", 1)
    spy("find_communities", 1)
    spy("refine_rows", 2)
    codes = codes_of(many_known)
    run(many_known)
    shown = [hiding.visible for hiding in [*hide_classes(codes, 0), *hold_back_halves(codes, 0)]]
    last_name, last_codes = seen.pop()
    assert last_name == "fit_geometry"
    np.testing.assert_array_equal(last_codes, codes)  # the final geometry, after the choice
    assert {name for name, _ in seen} == {"fit_geometry", "find_communities", "refine_rows"}
    for _, given in seen:
        assert any(np.array_equal(given, visible) for visible in shown)


def test_a_geometry_is_fitted_anew_for_each_hiding_if_it_reads_labels(many_known, monkeypatch):
    given = []
    original = module.fit_geometry

    def watched(reduction, codes, *, whitening):
        given.append((whitening, codes.tobytes()))
        return original(reduction, codes, whitening=whitening)

    monkeypatch.setattr(module, "fit_geometry", watched)
    run(many_known, whitenings=["within"], n_neighbors=10, similarity_threshold=0.0, resolution=1.0)
    codes = codes_of(many_known)
    hidings = [*hide_classes(codes, 0), *hold_back_halves(codes, 0)]
    fitted = [codes for whitening, codes in given[:-1] if whitening == "within"]
    assert sorted(fitted) == sorted(hiding.visible.tobytes() for hiding in hidings)


# --- the choice --------------------------------------------------------------------------------------------


def test_the_table_has_the_documented_keys_and_the_mean_as_score(chosen):
    assert len({setting_of(row) for row in chosen.table}) > 3
    for row in chosen.table:
        assert set(row) == KEYS
        assert 0 <= row["known"] <= 1
        assert 0 <= row["novel"] <= 1
        assert row["score"] == pytest.approx((row["known"] + row["novel"]) / 2)
        assert row["n_classes"] >= 4


def test_what_is_chosen_was_tried_and_nothing_tried_scores_much_better(chosen):
    used = [row["score"] for row in chosen.table if setting_of(row) == chosen_setting(chosen)]
    assert used
    assert min(used) >= max(row["score"] for row in chosen.table) - 0.1
    assert min(used) > 0.9


def test_every_row_is_reported_as_it_is_made(world):
    reported = []
    found = run(world, report=reported.append)
    assert reported == found.table


def test_given_values_are_honoured_and_nothing_else_is_tried(many_known):
    found = run(
        many_known,
        n_neighbors=9,
        similarity_threshold=0.2,
        whitenings=["soft-total"],
        resolution=1.3,
        edge_weights="cosine",
    )
    assert chosen_setting(found) == ("soft-total", 9, 0.2, 1.3)
    assert found.graph.edge_weights == "cosine"
    assert {setting_of(row) for row in found.table} == {("soft-total", 9, 0.2, 1.3)}


@pytest.mark.parametrize(
    ("asked", "column"),
    [("n_neighbors", 7), ("similarity_threshold", 0.1), ("resolution", 0.9)],
)
def test_one_value_given_leaves_the_rest_to_choose(many_known, asked, column):
    found = run(many_known, **{asked: column})
    assert getattr(found.graph, asked) == column
    assert {row[asked] for row in found.table} == {column}
    assert len({row["whitening"] for row in found.table}) > 1


def test_a_resolution_that_is_not_given_is_chosen_among_several(chosen):
    assert len({row["resolution"] for row in chosen.table}) > 1
    assert chosen.graph.resolution in {row["resolution"] for row in chosen.table}


EMPTY = {"similarity_threshold": 0.9999, "n_neighbors": 5, "resolution": 1.0}  # rows are farther apart


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_settings_whose_graph_is_empty_score_nothing_and_count_nothing(many_known):
    found = run(many_known, **EMPTY)
    assert {row["score"] for row in found.table} == {0.0}
    assert found.count.n_new == 0


@pytest.mark.filterwarnings("error")
def test_without_any_trial_no_accuracy_is_expected(many_known):
    assert run(many_known, **EMPTY).accuracy is None


def test_classes_are_counted_and_their_accuracy_expected(chosen):
    assert chosen.count.n_new == pytest.approx(2.0, abs=1.0)
    low, high = chosen.count.interval(4)
    assert low <= 6 <= high
    assert 0.9 < chosen.accuracy <= 1.0


def test_rows_that_are_hard_to_tell_apart_are_expected_to_be_right_less_often(many_known, chosen):
    noise = np.random.default_rng(0).normal(size=many_known.X.shape)
    found = run(many_known._replace(X=many_known.X + 5 * noise))
    assert 0.0 < found.accuracy < chosen.accuracy - 0.1


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
    assert chosen_setting(found) == ("soft-total", default_neighbours(len(world.X)), 0.0, 1.0)
    assert found.graph.edge_weights == "shared"
    assert found.accuracy is None
    assert (found.count is None) is (kind != "one known class")
    given = run(world, codes, n_neighbors=6, similarity_threshold=0.3, resolution=0.8, whitenings=[None])
    assert chosen_setting(given) == (None, 6, 0.3, 0.8)


def test_one_known_class_tells_how_large_a_class_is(world):
    codes = np.where(world.has_label & (world.y == 0), 0, -1)
    found = run(world, codes)
    near = find_neighbours(found.geometry.apply(world.X), 20)
    assert found.count == pytest.approx(count_by_size(read_labels(near, codes, 1)), rel=0.05)
    assert found.count.n_new == pytest.approx(3.0, abs=1.0)  # four blobs of one size


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
    assert again.count == chosen.count


@pytest.mark.parametrize("n_rows", [2, 3, 5, 20, 59, 60, 10_000])
def test_the_default_number_of_neighbours_fits_the_rows(n_rows):
    assert default_neighbours(n_rows) == max(1, min(15, n_rows // 4))
    assert default_neighbours(n_rows) < n_rows


@pytest.mark.parametrize("n_rows", [2, 3, 4, 6, 10])
def test_very_few_rows_are_calibrated(world, n_rows):
    rows = np.concatenate([world.X[world.y == c][:n_rows] for c in (0, 1, 2)])
    codes = np.repeat([0, 1, -1], n_rows)
    codes[[n_rows - 1, 2 * n_rows - 1]] = -1
    found = calibrate(reduce_rows(rows), codes, Request(), seed=0)
    assert 1 <= found.graph.n_neighbors < len(rows)
    assert np.isfinite(found.count).all()


# --- balancing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gain", "is_chosen"), [(0.004, True), (0.002, False), (-0.1, False)])
def test_groups_are_balanced_if_hidden_classes_are_found_better_so(many_known, monkeypatch, gain, is_chosen):
    weigh = module._Search._weigh

    def scored(self, setting, n_hidings, *counted):
        score = 0.5 + gain * setting.is_balanced
        return weigh(self, setting, n_hidings, *counted)._replace(score=score)

    monkeypatch.setattr(module._Search, "_weigh", scored)
    found = run(many_known)
    assert found.is_balanced is is_chosen
    last = found.table[-2:]
    assert [row["is_balanced"] for row in last] == [not is_chosen, is_chosen]  # the chosen one is the last
    assert setting_of(last[0]) == setting_of(last[1]) == chosen_setting(found)
    assert not any(row["is_balanced"] for row in found.table[:-2])


def test_only_balanced_trials_are_told_the_sizes_to_balance_by(many_known, monkeypatch):
    seen = []
    group = module.group_communities

    def watched(communities, *, usual=None, **options):
        seen.append(usual is not None)
        return group(communities, usual=usual, **options)

    monkeypatch.setattr(module, "group_communities", watched)
    found = run(many_known)
    n_last = len(hide_classes(codes_of(many_known), 0))
    assert seen[-n_last:] == [True] * n_last
    assert not any(seen[:-n_last])
    assert found.table[-1]["n_classes"] == found.table[-2]["n_classes"]
