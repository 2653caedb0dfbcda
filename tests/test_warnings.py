"""A fit that goes wrong says so by name, an ordinary one says nothing; what it does is logged."""

import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest

from pnp_gcd import PNPDiscoverer, calibration, exceptions
from pnp_gcd.exceptions import (
    CalibrationEdgeWarning,
    CollapseWarning,
    DiscoveryWarning,
    DivergenceWarning,
    NoNovelClassWarning,
)


def quick(**changes):
    return PNPDiscoverer(**{"max_iter": 2, "batch_size": 64, "hidden_width": 16, "random_state": 0} | changes)


def clouds(n_classes, n_each, *, width=10, separation=4.0, n_known, seed=0):
    """Return rows and labels of known classes, half of them labelled, and the pool."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_each)
    X = (separation * rng.normal(size=(n_classes, width)))[y] + rng.normal(size=(len(y), width))
    has_label = (y < n_known) & (rng.random(len(y)) < 0.5)
    return X[has_label], y[has_label], X[~has_label]


def told_by(model, *arguments):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(*arguments)
    return [warning for warning in told if issubclass(warning.category, DiscoveryWarning)]


def test_an_ordinary_fit_says_nothing(world, many_known):
    for one in (world, many_known):
        assert told_by(quick(), *one.labelled, one.rest) == []
    assert told_by(quick(), world.X, world.y) == []
    assert told_by(quick(), world.X) == []


# --- divergence --------------------------------------------------------------------------------------------


def test_a_loss_that_is_not_finite_ends_the_training_before_it(many_known):
    arguments = *many_known.labelled, many_known.rest
    with pytest.warns(DivergenceWarning, match="Training ended after 0 of max_iter=2 epochs.*learning_rate"):
        model = quick(learning_rate=1e38).fit(*arguments)
    untrained = quick(max_iter=0).fit(*arguments)
    assert model.n_iter_ == 0
    assert np.isfinite(model.prototypes_).all()
    np.testing.assert_array_equal(model.unlabelled_labels_, untrained.unlabelled_labels_)


def test_a_later_epoch_that_diverges_leaves_the_ones_before(many_known, monkeypatch):
    from pnp_gcd.trainer import Trainer

    arguments = *many_known.labelled, many_known.rest
    states, original = [], Trainer.run_epoch

    def run_epoch(self, epoch):
        states.append(self.state())
        if epoch == 1:  # the weights are spoilt by the last step, and the loss was finite
            monkeypatch.setattr(self.optimiser, "step", lambda rate: self.student.memory.data.fill_(np.inf))
            monkeypatch.setattr(type(self.batches), "__iter__", lambda batches: iter([self.code_tensor[:0]]))
            monkeypatch.setattr(self, "train_batch", lambda *told: (self.optimiser.step(0), np.zeros(6))[1])
        return original(self, epoch)

    monkeypatch.setattr(Trainer, "run_epoch", run_epoch)
    with pytest.warns(DivergenceWarning, match="after 1 of max_iter=2 epochs: the weights memory"):
        model = quick().fit(*arguments)
    assert len(model.history_) == 1
    for name, weights in model.encoder_.state_dict().items():
        np.testing.assert_array_equal(weights.numpy(), states[1].arrays[f"student.encoder.{name}"])


# --- what was found ----------------------------------------------------------------------------------------


def test_no_novel_class_is_told(many_known):
    is_known = many_known.y < 4
    rest = many_known.X[is_known & ~many_known.has_label]
    (told,) = told_by(quick(), *many_known.labelled, rest)
    assert told.category is NoNovelClassWarning
    assert f"among {len(rest)} unlabelled rows" in str(told.message)
    assert told.filename == __file__
    # Too few to wonder, all labelled, or the number given: nothing to tell.
    assert told_by(quick(), *many_known.labelled, rest[:10]) == []
    assert told_by(quick(n_clusters=4), *many_known.labelled, rest) == []


def test_one_class_for_all_rows_is_told(many_known):
    rest = many_known.X[many_known.y == 5]
    (told,) = told_by(quick(), *many_known.labelled, rest)
    assert told.category is CollapseWarning
    assert f"All {len(rest)} unlabelled rows" in str(told.message)


def test_clustering_into_one_class_is_told():
    X = np.random.default_rng(0).normal(size=(60, 3))
    (told,) = told_by(quick(resolution=50.0, merge_threshold=0.0), X)
    assert told.category is CollapseWarning
    assert told_by(quick(resolution=50.0, merge_threshold=0.0, n_clusters=1), X) == []


# --- calibration -------------------------------------------------------------------------------------------


def test_the_smallest_number_of_neighbours_is_told():
    (told,) = told_by(quick(max_iter=0), *clouds(40, 5, n_known=20, seed=2))
    assert told.category is CalibrationEdgeWarning
    assert "n_neighbors=5 was chosen, the smallest" in str(told.message)
    assert "n_neighbors=2;" in str(told.message)
    assert told_by(quick(max_iter=0, n_neighbors=5), *clouds(40, 5, n_known=20, seed=2)) == []


def test_the_largest_number_of_neighbours_is_told(monkeypatch):
    arguments = clouds(6, 300, separation=0.7, n_known=4, seed=8)
    chosen = quick(max_iter=0).fit(*arguments).n_neighbors_
    assert chosen > 8  # and below the largest, so that no warning was an error here
    grid = calibration._NEIGHBOUR_GRID
    monkeypatch.setattr(calibration, "_NEIGHBOUR_GRID", grid[: grid.index(chosen) + 1])
    (told,) = told_by(quick(max_iter=0), *arguments)
    assert told.category is CalibrationEdgeWarning
    assert f"n_neighbors={chosen} was chosen, the largest" in str(told.message)


def test_every_warning_is_one_of_ours_and_exported():
    for name in exceptions.__all__:
        if name.endswith("Warning"):
            assert issubclass(getattr(exceptions, name), DiscoveryWarning)
    defined = {name for name, value in vars(exceptions).items() if isinstance(value, type)}
    assert defined == set(exceptions.__all__)


# --- logging -----------------------------------------------------------------------------------------------


def test_a_fit_logs_calibration_epochs_and_checkpoints(many_known, caplog, tmp_path):
    caplog.set_level(logging.INFO, logger="pnp_gcd")
    quick(checkpoint_dir=tmp_path).fit(*many_known.labelled, many_known.rest)
    lines = [record.getMessage() for record in caplog.records]
    assert {record.levelname for record in caplog.records} == {"INFO"}
    for start, n_times in (
        ("calibration: ", 1),
        ("epoch 1 of 2", 1),
        ("epoch 2 of 2", 1),
        ("checkpoint ", 3),
    ):
        assert sum(line.startswith(start) for line in lines) == n_times, start
    caplog.set_level(logging.DEBUG, logger="pnp_gcd")
    model = quick().fit(*many_known.labelled, many_known.rest)
    steps = [record for record in caplog.records if ", step " in record.getMessage()]
    assert len(steps) == 2 * -(-len(many_known.X) // 64)
    tried = [record for record in caplog.records if record.getMessage().startswith("tried: ")]
    assert len(tried) == len(model.calibration_)


def test_without_a_handler_nothing_is_printed():
    program = (
        "import logging, pnp_gcd\n"
        "logging.getLogger('pnp_gcd.training').warning('nobody asked')\n"
        "assert logging.getLogger('pnp_gcd').level == 0 and not logging.getLogger().handlers"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout + ran.stderr == ""
