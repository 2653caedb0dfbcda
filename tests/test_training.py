"""The loop: what it trains, what it leaves alone, what it reports."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch

from pnp_gcd import trainer as one_epoch
from pnp_gcd import training
from pnp_gcd.clustering import GraphSettings
from pnp_gcd.counting import ClassCount
from pnp_gcd.encoding import encode_rows
from pnp_gcd.exceptions import DiscoveryWarning
from pnp_gcd.geometry import unit_rows
from pnp_gcd.labelling import classify_rows, measure_closeness, score_classes
from pnp_gcd.objectives import LossTerms, LossWeights
from pnp_gcd.probing import ProbeSettings
from pnp_gcd.rows import VectorRows, VectorSource
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.trainer import Trainer

ALL_ON = LossWeights(0.65, 1.3, 0.35, 0.35, 0.65)
SETTINGS = TrainingSettings(
    n_neighbors=10,
    similarity_threshold=0.0,
    resolution=1.0,
    merge_cut=float("inf"),
    whitening=None,
    max_iter=2,
    batch_size=64,
    hidden_width=16,
    projection_width=(16, 8),
    weights=ALL_ON,
)


def change(**changes):
    return dataclasses.replace(SETTINGS, **changes)


def discover(vectors, codes, settings, **kwargs):
    return training.discover(VectorRows(np.asarray(vectors)), codes, settings, **kwargs)


def codes_of(world):
    return np.where(world.has_label, world.y, -1)


def make_trainer(world, codes=None, **changes):
    settings = change(**changes)
    inputs = unit_rows(world.X - world.X.mean(axis=0))
    probing = ProbeSettings(GraphSettings(settings.n_neighbors), cluster_on=settings.cluster_on)
    seeds = np.random.SeedSequence(settings.seed).generate_state(4)
    source = VectorSource(inputs, settings, torch.Generator().manual_seed(int(seeds[3]) + 1))
    return Trainer(source, codes_of(world) if codes is None else codes, probing, settings, seeds)


def only(name):
    return LossWeights(**{f.name: float(f.name == name) for f in dataclasses.fields(LossWeights)})


def without(name):
    return dataclasses.replace(ALL_ON, **{name: 0.0})


NAMES = [field.name for field in dataclasses.fields(LossWeights)]


def state(module):
    return [p.detach().clone() for p in module.parameters()]


def is_same(before, module):
    return all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


# --- a whole run -------------------------------------------------------------------------------------------


def test_history_has_a_row_per_epoch_with_every_term_finite(world):
    reported = []
    found = discover(
        world.X, codes_of(world), SETTINGS, report=lambda stage, row: reported.append((stage, row))
    )
    assert len(found.history) == 2
    for epoch, row in enumerate(found.history):
        assert set(row) >= {
            "epoch",
            "n_communities",
            "n_active",
            "n_prototypes",
            "n_taken",
            "recall",
            "seconds",
            *LossTerms._fields,
        }
        assert row["epoch"] == epoch
        assert all(np.isfinite(value) for value in row.values())
        assert row["n_active"] <= row["n_prototypes"]
    assert [row for stage, row in reported if stage == "epoch"] == found.history
    assert [row for stage, row in reported if stage == "calibration"] == found.calibration.table


def test_training_lowers_the_loss(world):
    found = discover(world.X, codes_of(world), change(max_iter=6))
    assert found.history[-1]["total"] < found.history[0]["total"]


def test_zero_epochs_leave_the_features_as_they_come(world):
    found = discover(world.X, codes_of(world), change(max_iter=0))
    rows = found.calibration.geometry.apply(world.X)
    np.testing.assert_allclose(encode_rows(found.encoder, rows), rows, atol=1e-6)
    assert found.history == []


@pytest.mark.parametrize("codes", ["all labelled", "none labelled", "one labelled row", "one class"])
def test_any_mix_of_labelled_and_unlabelled_rows_trains_finitely(world, codes):
    codes = {
        "all labelled": world.y,
        "none labelled": np.full(len(world.y), -1),
        "one labelled row": np.r_[0, np.full(len(world.y) - 1, -1)],
        "one class": np.where(world.has_label & (world.y == 0), 0, -1),
    }[codes]
    found = discover(world.X, codes, change(prototypes_per_class=20))
    assert all(np.isfinite(list(row.values())).all() for row in found.history)
    assert np.isfinite(found.labelling.prototypes).all()
    assert found.row_classes.min() >= 0


@pytest.mark.parametrize("name", NAMES)
def test_any_weight_can_be_zero(world, name):
    history = discover(world.X, codes_of(world), change(weights=without(name))).history
    assert all(np.isfinite(row["total"]) for row in history)


@pytest.mark.parametrize("name", NAMES)
def test_any_term_can_be_the_only_one(world, name):
    history = discover(world.X, codes_of(world), change(weights=only(name))).history
    assert all(np.isfinite(row["total"]) for row in history)
    assert history[0]["total"] == pytest.approx(history[0][name], rel=1e-5)


def test_the_kinds_of_teacher_all_train_and_differ(world):
    features = []
    for teacher in ("ema", "epoch", None):
        found = discover(world.X, codes_of(world), change(teacher=teacher))
        features.append(encode_rows(found.encoder, found.calibration.geometry.apply(world.X)))
    assert not np.allclose(features[0], features[1], atol=1e-6)
    assert not np.allclose(features[0], features[2], atol=1e-6)
    assert not np.allclose(features[1], features[2], atol=1e-6)


def test_distilling_on_unlabelled_rows_only_differs_from_all_rows(world):
    first = discover(world.X, codes_of(world), SETTINGS).history
    second = discover(world.X, codes_of(world), change(distill_on="unlabelled")).history
    assert first[0]["distillation"] != second[0]["distillation"]
    assert first[0]["unsupervised"] == pytest.approx(second[0]["unsupervised"], rel=0.2)


def test_distilling_on_unlabelled_rows_when_there_are_none_is_finite(world):
    history = discover(world.X, world.y, change(distill_on="unlabelled")).history
    assert all(np.isfinite(list(row.values())).all() for row in history)


# --- one step ----------------------------------------------------------------------------------------------


def first_batch(trainer):
    return next(iter(trainer.batches))


def test_the_teacher_gets_no_gradient(world):
    trainer = make_trainer(world)
    trainer.refresh()
    trainer.losses(first_batch(trainer), 0.05).total.backward()
    assert all(p.grad is None for p in trainer.teacher.parameters())
    assert all(p.grad is not None for p in trainer.student.parameters())


def test_without_a_teacher_the_targets_carry_no_gradient(world):
    # At equal temperatures and without view noise, targets equal predictions: their cross-entropy is
    # stationary for the student alone, and is not if the target moves along.
    trainer = make_trainer(
        world, teacher=None, weights=only("distillation"), view_noise=0.0, view_dropout=0.0
    )
    trainer.refresh()
    trainer.losses(first_batch(trainer), SETTINGS.temperature).total.backward()
    assert trainer.student.memory.grad.abs().max() < 1e-6


def test_an_ema_teacher_moves_by_its_schedule_and_an_epoch_teacher_stays(world):
    trainer = make_trainer(world, teacher_momentum=(0.7, 0.99))
    trainer.refresh()
    before = state(trainer.teacher)
    trainer.train_batch(first_batch(trainer), 0.05)
    omega = 0.99 - (1 - 0.7)  # the schedule's value at t = 0
    for slow, old, fast in zip(
        trainer.teacher.parameters(), before, trainer.student.parameters(), strict=True
    ):
        torch.testing.assert_close(slow.data, omega * old + (1 - omega) * fast.data)

    trainer = make_trainer(world, teacher="epoch")
    trainer.refresh()
    before = state(trainer.teacher)
    trainer.train_batch(first_batch(trainer), 0.05)
    assert is_same(before, trainer.teacher)
    trainer.refresh()
    assert all(
        torch.equal(a, b)
        for a, b in zip(trainer.teacher.parameters(), trainer.student.parameters(), strict=True)
    )


@pytest.mark.parametrize("kind", ["trainable", "frozen"])
def test_potential_prototypes_move_only_if_trainable(world, kind):
    trainer = make_trainer(world, potential_prototypes=kind)
    trainer.refresh()
    potential = ~trainer.student.is_active
    assert potential.any()
    before = trainer.student.memory.detach().clone()
    for _ in range(2):
        trainer.train_batch(first_batch(trainer), 0.05)
    moved = (trainer.student.memory.detach() != before).any(dim=1)
    assert moved[~potential].all()
    assert bool(moved[potential].any()) is (kind == "trainable")


def test_a_frozen_prototype_stays_when_it_was_active_the_epoch_before(world):
    trainer = make_trainer(world, potential_prototypes="frozen")
    trainer.refresh()
    trainer.train_batch(first_batch(trainer), 0.05)  # every active row now has momentum
    active = trainer.student.is_active.nonzero()[:, 0]
    trainer.student.is_active[active[0]] = False  # its cluster is gone
    before = trainer.student.memory.detach()[active[0]].clone()
    trainer.train_batch(first_batch(trainer), 0.05)
    assert torch.equal(trainer.student.memory.detach()[active[0]], before)


def test_without_potential_prototypes_the_memory_is_the_clusters(world):
    history = discover(world.X, codes_of(world), change(potential_prototypes=None)).history
    assert all(row["n_prototypes"] == row["n_active"] for row in history)


def test_with_potential_prototypes_the_memory_has_its_size_per_known_class(world):
    history = discover(world.X, codes_of(world), change(prototypes_per_class=9)).history
    assert all(row["n_prototypes"] == 18 > row["n_active"] for row in history)


def test_with_nothing_known_the_memory_has_twice_the_clusters_found(world):
    row = discover(world.X, np.full(len(world.X), -1), SETTINGS).history[0]
    assert row["n_prototypes"] == 2 * row["n_active"]


def test_a_memory_too_small_for_the_clusters_grows_with_one_warning(world):
    with pytest.warns(DiscoveryWarning, match="prototypes_per_class=1") as caught:
        history = discover(world.X, codes_of(world), change(prototypes_per_class=1, max_iter=3)).history
    assert len([w for w in caught if issubclass(w.category, DiscoveryWarning)]) == 1
    assert all(row["n_prototypes"] >= row["n_active"] > 2 for row in history)


def test_a_memory_large_enough_warns_of_nothing(world):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discover(world.X, codes_of(world), SETTINGS)


def test_weight_zero_leaves_what_its_term_alone_trains_unchanged(world):
    known_off = make_trainer(world, weights=without("known"))
    known_off.refresh()
    before = known_off.known_prototypes.detach().clone()
    known_off.train_batch(first_batch(known_off), 0.05)
    assert torch.equal(known_off.known_prototypes, before)

    contrast_off = make_trainer(world, weights=dataclasses.replace(ALL_ON, supervised=0.0, unsupervised=0.0))
    contrast_off.refresh()
    before = state(contrast_off.projection)
    contrast_off.train_batch(first_batch(contrast_off), 0.05)
    assert is_same(before, contrast_off.projection)

    distill_off = make_trainer(world, weights=dataclasses.replace(ALL_ON, distillation=0.0, entropy=0.0))
    distill_off.refresh()
    before = distill_off.student.memory.detach().clone()
    distill_off.train_batch(first_batch(distill_off), 0.05)
    assert torch.equal(distill_off.student.memory, before)


def test_with_all_weights_on_a_step_moves_every_part(world):
    trainer = make_trainer(world)
    trainer.refresh()
    parts = {
        "encoder": trainer.student.encoder,
        "projection": trainer.projection,
    }
    before = {name: state(part) for name, part in parts.items()}
    known, memory = trainer.known_prototypes.detach().clone(), trainer.student.memory.detach().clone()
    trainer.train_batch(first_batch(trainer), 0.05)
    assert all(not is_same(before[name], part) for name, part in parts.items())
    assert not torch.equal(known, trainer.known_prototypes)
    assert not torch.equal(memory, trainer.student.memory)


def test_known_prototypes_start_at_the_mean_direction_of_their_labelled_rows(world):
    trainer = make_trainer(world)
    for code in range(2):
        mean = trainer.source.start[trainer.codes == code].astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(
            trainer.known_prototypes.detach().numpy()[code], mean / np.linalg.norm(mean), atol=1e-5
        )


def test_rows_that_go_on_keep_their_momentum_when_the_memory_grows(world):
    trainer = make_trainer(world, prototypes_per_class=3)
    trainer.refresh()
    trainer.train_batch(first_batch(trainer), 0.05)
    old = trainer.optimiser.velocities[trainer.student.memory].clone()
    memory = trainer.student.memory
    trainer.student.memory = torch.nn.Parameter(torch.cat([memory.detach(), memory.detach()[:2]]))
    trainer._follow_memory(np.r_[np.arange(len(old)), -1, -1])
    new = trainer.optimiser.velocities[trainer.student.memory]
    assert torch.equal(new[: len(old)], old)
    assert (new[len(old) :] == 0).all()


def test_a_row_that_is_new_has_no_momentum_even_if_the_memory_keeps_its_size(world):
    trainer = make_trainer(world, potential_prototypes=None)
    trainer.refresh()
    trainer.train_batch(first_batch(trainer), 0.05)
    trainer.train_batch(first_batch(trainer), 0.05)
    # One cluster vanished and another appeared where a spare row lies: as many rows, one of them new.
    memory = trainer.student.memory.detach().numpy()
    fresh = unit_rows(-memory.sum(axis=0, keepdims=True))
    origin = one_epoch.refresh_memory(
        trainer.student,
        trainer.teacher,
        np.concatenate([unit_rows(memory[1:]), fresh]),
        potential_prototypes=None,
        spare=fresh,
    )
    assert sorted(origin.tolist()) == [-1, *range(1, len(memory))]
    trainer._follow_memory(origin)
    momentum = trainer.optimiser.velocities[trainer.student.memory]
    assert (momentum[torch.from_numpy(origin < 0)] == 0).all()


def test_refresh_writes_the_mean_direction_of_each_class_found(world):
    trainer = make_trainer(world)
    trainer.refresh()
    probe = trainer.probe(trainer.source.start)
    assert trainer.student.n_active == len(np.unique(probe.grouping.rows[probe.grouping.rows >= 0]))
    active = trainer.student.memory.detach().numpy()[trainer.student.is_active.numpy()]
    for name in np.unique(probe.grouping.rows[probe.grouping.rows >= 0]):
        mean = unit_rows(trainer.source.start[probe.grouping.rows == name].mean(axis=0, keepdims=True))[0]
        assert (active @ mean).max() > 1 - 1e-5


def test_with_nothing_found_yet_a_refresh_clusters_even_if_that_is_not_due(world):
    trainer = make_trainer(world)
    row = trainer.refresh(is_due=False)
    assert trainer.last_probe is not None
    assert row["n_communities"] == trainer.last_probe.n_communities > 1


# --- how often classes are found ---------------------------------------------------------------------------


@pytest.fixture
def probes(monkeypatch):
    """Return a list that grows by the features of every probe."""
    seen = []
    original = one_epoch.probe_classes

    def watched(features, *args, **kwargs):
        seen.append(features.copy())
        return original(features, *args, **kwargs)

    monkeypatch.setattr(one_epoch, "probe_classes", watched)
    return seen


@pytest.mark.parametrize(
    ("cluster_interval", "max_iter", "n_probes"), [(1, 3, 4), (2, 3, 3), (4, 3, 2), (2, 5, 4), (4, 0, 1)]
)
def test_classes_are_found_every_so_many_epochs_and_once_at_the_end(
    world, probes, cluster_interval, max_iter, n_probes
):
    history = discover(
        world.X, codes_of(world), change(cluster_interval=cluster_interval, max_iter=max_iter)
    ).history
    assert len(history) == max_iter
    assert len(probes) == n_probes


def test_between_two_probes_the_prototypes_follow_the_features(world, probes):
    trainer = make_trainer(world, cluster_interval=3)
    trainer.run_epoch(0)
    trainer.run_epoch(1)
    trainer.refresh(is_due=False)
    assert len(probes) == 1
    features = encode_rows(trainer.student.encoder, trainer.source.start)
    assert not np.allclose(features, probes[0], atol=1e-3)
    rows = trainer.last_probe.grouping.rows
    active = trainer.student.memory.detach().numpy()[trainer.student.is_active.numpy()]
    for name in np.unique(rows[rows >= 0]):
        mean = unit_rows(features[rows == name].astype(np.float64).mean(axis=0, keepdims=True))[0]
        assert np.abs(active - mean).max(axis=1).min() < 1e-5


def test_without_unlabelled_rows_classes_are_never_searched(world, probes):
    found = discover(world.X, world.y, SETTINGS)
    assert probes == []
    assert found.labelling.n_classes == 4


# --- how many classes, and how sure ------------------------------------------------------------------------


def calibrated_with(monkeypatch, **changes):
    """Let calibration end with other values than it found."""
    original = training.calibrate
    monkeypatch.setattr(
        training,
        "calibrate",
        lambda *args, **kwargs: dataclasses.replace(original(*args, **kwargs), **changes),
    )


def test_classes_that_lie_apart_are_taken_as_they_are_within_the_interval(world, monkeypatch):
    calibrated_with(monkeypatch, count=ClassCount(1.0, 0.7))  # 2 to 5 classes; blobs show that there are 4
    found = discover(world.X, codes_of(world), change(merge_cut=None, max_iter=0))
    assert found.labelling.n_classes == 4


@pytest.mark.parametrize(("n_new", "n_classes", "interval"), [(2.2, 4, (4, 5)), (1.0, 3, (3, 3))])
def test_the_number_counted_is_the_number_merged_to(world, monkeypatch, n_new, n_classes, interval):
    calibrated_with(monkeypatch, count=ClassCount(n_new, 0.0))
    found = discover(world.X, codes_of(world), change(merge_cut=None, max_iter=0))
    assert found.labelling.n_classes == n_classes
    assert found.interval == interval


def test_the_interval_holds_what_is_reported_even_if_the_count_did_not(world, monkeypatch):
    calibrated_with(monkeypatch, count=ClassCount(40.0, 0.1))
    found = discover(world.X, codes_of(world), change(merge_cut=None, max_iter=0))
    assert found.interval == (found.labelling.n_classes, 43)
    assert found.labelling.n_classes < 41


@pytest.mark.parametrize("n_clusters", [3, 7])
def test_a_number_given_is_certain(world, n_clusters):
    found = discover(world.X, codes_of(world), change(n_clusters=n_clusters, max_iter=0))
    assert found.interval == (n_clusters, n_clusters)


def test_where_no_label_can_tell_the_interval_is_what_was_found(world):
    found = discover(world.X, np.full(len(world.X), -1), change(max_iter=0))
    assert found.interval == (found.labelling.n_classes,) * 2


@pytest.mark.parametrize("accuracy", [0.6, 0.8])
def test_probabilities_are_as_sure_as_calibration_expects_classes_to_be_right(world, monkeypatch, accuracy):
    calibrated_with(monkeypatch, accuracy=accuracy)
    codes = codes_of(world)
    found = discover(world.X, codes, SETTINGS)
    features = encode_rows(found.encoder, found.calibration.geometry.apply(world.X))
    scores = found.sharpness * score_classes(features[codes < 0], found.labelling, SETTINGS.temperature)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert (weights.max(axis=1) / weights.sum(axis=1)).mean() == pytest.approx(accuracy, abs=0.01)


@pytest.mark.parametrize("kind", ["all labelled", "none labelled"])
def test_where_nothing_could_be_held_back_scores_are_as_they_come(world, kind):
    codes = world.y if kind == "all labelled" else np.full(len(world.y), -1)
    assert discover(world.X, codes, change(max_iter=0)).sharpness == 1.0


def test_the_usual_closeness_are_the_quantiles_of_all_rows(world):
    found = discover(world.X, codes_of(world), SETTINGS)
    features = encode_rows(found.encoder, found.calibration.geometry.apply(world.X))
    closeness = measure_closeness(features, found.labelling)
    usual = found.usual_closeness
    assert (np.diff(usual) >= 0).all()
    assert (usual[0], usual[-1]) == pytest.approx((closeness.min(), closeness.max()))
    assert usual[len(usual) // 2] == pytest.approx(np.median(closeness))


def test_the_classes_of_rows_are_those_of_their_scores(world):
    found = discover(world.X, codes_of(world), SETTINGS)
    features = encode_rows(found.encoder, found.calibration.geometry.apply(world.X))
    np.testing.assert_array_equal(
        found.row_classes, classify_rows(features, found.labelling, SETTINGS.temperature)
    )


# --- interruption ------------------------------------------------------------------------------------------


def interrupt_in_epoch(monkeypatch, epoch):
    original = Trainer.train_batch

    def train_batch(self, indices, teacher_temperature):
        if self.step >= epoch * len(self.batches) + 1:
            raise KeyboardInterrupt
        return original(self, indices, teacher_temperature)

    monkeypatch.setattr(Trainer, "train_batch", train_batch)


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_interrupt_can_keep_what_was_learnt(world, monkeypatch, epoch):
    interrupt_in_epoch(monkeypatch, epoch)
    found = discover(world.X, codes_of(world), change(on_interrupt="keep", max_iter=5))
    assert len(found.history) == epoch
    assert len(found.row_classes) == len(world.X)
    assert not found.encoder.training
    assert (found.row_classes[world.has_label] == world.y[world.has_label]).mean() > 0.95


def test_an_interrupt_is_raised_by_default(world, monkeypatch):
    interrupt_in_epoch(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        discover(world.X, codes_of(world), SETTINGS)


def test_an_interrupt_in_a_report_can_keep_the_epoch_it_reports(world):
    def report(stage, row):
        if stage == "epoch":
            raise KeyboardInterrupt

    found = discover(world.X, codes_of(world), change(on_interrupt="keep", max_iter=5), report=report)
    assert len(found.history) == 1


# --- copies of a row ---------------------------------------------------------------------------------------


def test_copies_of_a_row_count_once_and_get_its_class(world):
    codes = codes_of(world)
    once = discover(world.X, codes, SETTINGS)
    thrice = discover(np.repeat(world.X, 3, axis=0), np.repeat(codes, 3), SETTINGS)
    np.testing.assert_array_equal(thrice.row_classes, np.repeat(once.row_classes, 3))
    np.testing.assert_array_equal(thrice.labelling.prototypes, once.labelling.prototypes)


def test_a_copy_takes_the_first_label_that_one_of_them_has():
    rows = np.array([[1.0, 0.0], [0.0, 0.0], [-0.0, 0.0], [1.0, 0.0], [2.0, 2.0]])
    copies = VectorRows(rows).find_copies()
    assert copies.first.tolist() == [0, 1, 4]
    assert copies.place.tolist() == [0, 1, 1, 0, 2]
    assert training._merge_codes(np.array([-1, 1, 2, 0, -1]), copies).tolist() == [0, 1, -1]


def test_copies_are_kept_where_too_few_different_rows_would_be_left(world):
    rows = np.repeat(world.X[:6], 5, axis=0)
    found = discover(rows, np.repeat([0, 0, 1, 1, -1, -1], 5), SETTINGS)
    assert len(found.row_classes) == 30


def test_copies_are_kept_where_a_known_class_would_lose_its_only_label(world):
    # The one labelled row of class 1 is a copy of a labelled row of class 0: as one row it has one label.
    X, codes = world.X.copy(), np.where(world.has_label & (world.y == 0), 0, -1)
    at = int(np.flatnonzero(world.y == 1)[0])
    X[at], codes[at] = X[codes == 0][0], 1
    found = discover(X, codes, change(max_iter=0))
    assert found.labelling.n_known == 2
    assert len(found.row_classes) == len(X)


@pytest.mark.parametrize("is_balanced", [False, True])
def test_a_fit_balances_if_calibration_says_so(world, monkeypatch, is_balanced):
    seen = []
    probe = one_epoch.probe_classes

    def watched(features, codes, settings, **options):
        seen.append(settings.is_balanced)
        return probe(features, codes, settings, **options)

    calibrate = training.calibrate
    monkeypatch.setattr(one_epoch, "probe_classes", watched)
    monkeypatch.setattr(
        training,
        "calibrate",
        lambda *args, **options: dataclasses.replace(calibrate(*args, **options), is_balanced=is_balanced),
    )
    discover(world.X, codes_of(world), change(max_iter=1, merge_cut=None))
    assert seen == [is_balanced] * 2  # in the epoch and at the end
