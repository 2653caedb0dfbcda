"""Images behind a backbone: each row its own image, the trunk frozen and run once, nothing left behind."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from pnp_gcd import ImageEmbedder, PNPDiscoverer, pool, presets
from pnp_gcd.activations import ActivationStore, PictureLoader, make_room, plan_views, run_trunk
from pnp_gcd.augmentations import Augmentation
from pnp_gcd.backbones import load_backbone
from pnp_gcd.clustering import GraphSettings
from pnp_gcd.datasets import read_image_folder
from pnp_gcd.exceptions import BadImageError, BadImageWarning, DiscoveryWarning
from pnp_gcd.geometry import fit_geometry, reduce_rows
from pnp_gcd.image_mode import parse_size
from pnp_gcd.image_rows import ImageRows, ImageSettings
from pnp_gcd.images import read_images
from pnp_gcd.probing import ProbeSettings
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.trainer import Trainer

SIZE = 32
COLOURS = np.array([[220, 40, 40], [40, 200, 60], [50, 70, 220], [230, 210, 50]])


def make_pictures(n_each=12, seed=0):
    """Discs of four colours on grey: pixels (n, 40, 40, 3) and the colour of each."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), n_each)
    rows, columns = np.mgrid[:40, :40]
    X = np.empty((len(y), 40, 40, 3), dtype=np.uint8)
    for place, colour in enumerate(y):
        X[place] = rng.integers(90, 160)
        centre, radius = rng.uniform(14, 26, size=2), rng.uniform(8, 13)
        inside = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < radius**2
        X[place][inside] = np.clip(COLOURS[colour] + rng.normal(0, 10, 3), 0, 255)
    order = rng.permutation(len(y))
    return X[order], y[order]


@pytest.fixture(scope="module")
def pictures():
    return make_pictures()


@pytest.fixture(scope="module")
def split(pictures):
    X, y = pictures
    has_label = (y < 3) & (np.arange(len(y)) % 2 == 0)
    return X[has_label], y[has_label], X[~has_label]


def small(**changes):
    parameters = {
        "backbone": "test_vit",
        "backbone_weights": None,
        "image_size": SIZE,
        "n_cached_views": 2,
        "max_iter": 2,
        "n_neighbors": 5,
        "device": "cpu",
        "random_state": 0,
    }
    return PNPDiscoverer(**parameters | changes)


@pytest.fixture(scope="module")
def fitted(split):
    return small().fit(*split)


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("test_vit", weights=None, image_size=SIZE, device="cpu")


def make_loader(backbone, seed=0):
    return PictureLoader(backbone, Augmentation(SIZE), seed)


def prepare(backbone, X, **settings):
    settings = ImageSettings(**{"n_cached_views": 2} | settings)
    return ImageRows.prepare(read_images(X), make_loader(backbone), settings)


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory, monkeypatch):
    """Keep folders that tests side by side make, in other processes, out of sight."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def temporary_folders():
    return set(Path(tempfile.gettempdir()).glob("pnp_gcd_*"))


# --- the trunk runs once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["test_vit", "test_resnet"])
def test_row_i_holds_the_activations_of_image_i(name, pictures):
    backbone = load_backbone(name, weights=None, image_size=SIZE, device="cpu")
    X = pictures[0]
    with prepare(backbone, X) as rows:
        for i in (0, 13, len(X) - 1):
            alone = backbone.activate(make_loader(backbone).load(read_images(X), i, 0)[None])[0]
            torch.testing.assert_close(rows.store.read(0, np.array([i]))[0], alone, rtol=1e-2, atol=2e-3)


@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.CollapseWarning")
def test_every_image_and_view_goes_through_the_trunk_once(backbone, pictures, monkeypatch):
    seen, pictures_run = [], []
    load, activate = PictureLoader.load, type(backbone).activate

    def count(self, images, index, view, **kwargs):
        seen.append((index, view))
        return load(self, images, index, view, **kwargs)

    monkeypatch.setattr(PictureLoader, "load", count)
    monkeypatch.setattr(
        type(backbone),
        "activate",
        lambda self, pixels: (pictures_run.append(len(pixels)), activate(self, pixels))[1],
    )
    X, y = pictures
    small(max_iter=3).fit(X, np.where(y < 2, y, -1))
    assert sorted(seen) == [(index, view) for index in range(len(X)) for view in range(3)]
    # Batches are filled up to 32, and one blank picture tells the shape of activations.
    assert sum(pictures_run) == 1 + 3 * 2 * 32


def test_without_a_cache_the_trunk_runs_in_every_epoch(backbone, pictures, monkeypatch):
    seen = []
    activate = type(backbone).activate
    monkeypatch.setattr(
        type(backbone), "activate", lambda self, pixels: (seen.append(len(pixels)), activate(self, pixels))[1]
    )
    X, y = pictures
    small(max_iter=3, cache_size=0).fit(X, np.where(y < 2, y, -1))
    assert sum(seen) > 1 + 3 * 3 * len(X)


def test_kept_and_fresh_activations_give_the_same_features(backbone, pictures):
    X = pictures[0]
    with prepare(backbone, X, n_cached_views=0) as kept, prepare(backbone, X, cache_size=0) as fresh:
        assert (kept.store.n_views, fresh.store.n_views) == (1, 0)
        np.testing.assert_array_equal(kept.describe(), fresh.describe())
        assert kept.find_copies().place.tolist() == fresh.find_copies().place.tolist()


def test_drawn_views_differ_from_each_other_and_from_the_evaluation_view(backbone, pictures):
    with prepare(backbone, pictures[0]) as rows:
        views = [rows.store.read(view, np.arange(len(rows))) for view in range(3)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert not torch.equal(views[first], views[second])


def test_a_batch_holds_two_different_kept_views_of_its_images(backbone, pictures):
    X = pictures[0]
    with prepare(backbone, X, n_cached_views=3) as rows:
        geometry = fit_geometry(reduce_rows(rows.describe()), np.full(len(X), -1))
        source = rows.place(geometry, TrainingSettings(), torch.Generator().manual_seed(0))
        indices = torch.tensor([5, 0, 5, 9])
        for _ in range(5):
            first, second = source.take(indices)
            for place, index in enumerate(indices.tolist()):
                kept = [rows.store.read(view, np.array([index]))[0] for view in (1, 2, 3)]
                found = [
                    [i for i, view in enumerate(kept) if torch.equal(view, x[place])] for x in (first, second)
                ]
                assert all(len(match) == 1 for match in found)
                assert found[0] != found[1]


@pytest.fixture(scope="module")
def trainer(backbone, pictures):
    X, y = pictures
    codes = np.where(y < 2, y, -1)
    settings = TrainingSettings(max_iter=2, batch_size=16, hidden_width=16, projection_width=(16, 8))
    with prepare(backbone, X) as rows:
        geometry = fit_geometry(reduce_rows(rows.describe()), codes)
        source = rows.place(geometry, settings, torch.Generator().manual_seed(0))
        seeds = np.random.SeedSequence(0).generate_state(4)
        trainer = Trainer(source, codes, ProbeSettings(GraphSettings(5)), settings, seeds)
        trainer.trunk_before = {k: v.clone() for k, v in backbone.trunk.state_dict().items()}
        trainer.tail_before = {k: v.clone() for k, v in backbone.tail.state_dict().items()}
        trainer.run_epoch(0)
        yield trainer


def test_the_trunk_is_never_updated(trainer, backbone):
    for name, value in backbone.trunk.state_dict().items():
        assert torch.equal(value, trainer.trunk_before[name]), name


def test_the_blocks_of_the_tail_learn_and_its_norm_does_not(trainer, backbone):
    learnt = trainer.student.encoder.tail.state_dict()
    changed = {name for name, value in trainer.tail_before.items() if not torch.equal(learnt[name], value)}
    assert any(name.startswith("steps.0") for name in changed)
    assert all(name.startswith("steps.0") for name in changed)
    # The backbone's own tail stays: only a copy learns.
    for name, value in backbone.tail.state_dict().items():
        assert torch.equal(value, trainer.tail_before[name]), name


def test_teacher_and_student_share_no_storage_and_both_move(trainer):
    places = [{p.data_ptr() for p in prober.parameters()} for prober in (trainer.student, trainer.teacher)]
    assert not places[0] & places[1]
    slow = dict(trainer.teacher.encoder.tail.named_parameters())
    for name, fast in trainer.student.encoder.tail.named_parameters():
        if fast.requires_grad and fast.ndim > 1:
            assert not torch.equal(slow[name], fast), name
            assert not torch.equal(slow[name], trainer.tail_before[name]), name


def test_before_training_the_encoder_gives_the_geometry_s_rows(backbone, pictures):
    X = pictures[0]
    with prepare(backbone, X, n_cached_views=0) as rows:
        described = rows.describe()
        geometry = fit_geometry(reduce_rows(described), np.full(len(X), -1))
        source = rows.place(geometry, TrainingSettings(), torch.Generator())
        np.testing.assert_allclose(source.start, geometry.apply(described), atol=1e-4)


# --- what is kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_views", "size", "expected"),
    [(4, 500, 5), (4, 499, 4), (4, 300, 3), (4, 299, 1), (4, 100, 1), (4, 99, 0), (4, 0, 0), (0, 500, 1)],
)
def test_as_many_views_are_kept_as_fit(n_views, size, expected):
    assert plan_views(100, n_views, size) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 2**32), ("1.5 kb", 1536), ("7", 7), (9, 9), (0, 0), ("2M B", None), ("4G", 2**32), ("x", None)],
)
def test_sizes_are_read(text, expected):
    if expected is None:
        with pytest.raises(ValueError, match="cache_size="):
            parse_size(text)
    else:
        assert parse_size(text) == expected


def test_nothing_is_left_behind_by_a_fit_nor_by_one_that_fails(split, monkeypatch):
    before = temporary_folders()
    small(max_iter=1).fit(*split)
    assert temporary_folders() == before

    def fail(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr("pnp_gcd.trainer.Trainer.run_epoch", fail)
    with pytest.raises(KeyboardInterrupt):
        small(max_iter=1).fit(*split)
    assert temporary_folders() == before


def test_an_interrupted_run_of_the_trunk_goes_on_where_it_stopped(backbone, pictures, tmp_path):
    X = np.concatenate([pictures[0]] * 8)  # 384 images, 12 batches a view
    uninterrupted = prepare(backbone, X)

    def stop(stage, row):
        if row["done"] >= 384 + 300:  # in the midst of the second view
            raise KeyboardInterrupt

    settings = ImageSettings(n_cached_views=2, cache_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        ImageRows.prepare(read_images(X), make_loader(backbone), settings, report=stop)
    reports = []
    with (
        ImageRows.prepare(
            read_images(X),
            make_loader(backbone),
            settings,
            report=lambda stage, row: reports.append(row["done"]),
        ) as rows,
        uninterrupted,
    ):
        assert reports[0] > 384
        for view in range(3):
            everything = np.arange(len(X))
            assert torch.equal(rows.store.read(view, everything), uninterrupted.store.read(view, everything))


def test_kept_views_serve_the_next_fit(split, tmp_path, monkeypatch):
    first = small(cache_dir=tmp_path).fit(*split)
    runs = []
    monkeypatch.setattr(
        "pnp_gcd.image_rows.run_trunk", lambda *args, **kwargs: (runs.append(len(args[2])), iter(()))[1]
    )
    again = small(cache_dir=tmp_path, max_iter=3).fit(*split)
    assert sum(runs) == 0
    assert again.n_iter_ == 3
    assert first.n_iter_ == 2


def test_other_images_weights_or_seeds_are_kept_apart(backbone, pictures, tmp_path):
    X = pictures[0]
    other = load_backbone("test_vit", weights=None, image_size=SIZE, device="cpu", seed=1)
    folders = set()
    for images, network, seed in ((X, backbone, 0), (X[::-1], backbone, 0), (X, other, 0), (X, backbone, 1)):
        settings = ImageSettings(n_cached_views=2, cache_dir=tmp_path)
        with ImageRows.prepare(read_images(images), make_loader(network, seed), settings) as rows:
            folders.add(rows.store.folder)
    assert len(folders) == 4


def test_a_folder_whose_notes_are_damaged_is_filled_anew(backbone, pictures, tmp_path):
    settings = ImageSettings(n_cached_views=0, cache_dir=tmp_path)
    with ImageRows.prepare(read_images(pictures[0]), make_loader(backbone), settings) as rows:
        folder, expected = rows.store.folder, rows.describe()
    (folder / "progress.json").write_text('{"n_images": ')
    with ImageRows.prepare(read_images(pictures[0]), make_loader(backbone), settings) as rows:
        np.testing.assert_array_equal(rows.describe(), expected)


def test_the_folder_of_the_user_holds_no_more_than_allowed(tmp_path):
    folders = [tmp_path / f"pnp_gcd_{place}{'a' * 23}" for place in range(3)]
    for place, folder in enumerate(folders):
        folder.mkdir()
        (folder / "view_0.npy").write_bytes(b"0" * 100)
        os.utime(folder, (place, place))
    for name in ("mine", "pnp_gcd_results"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("0" * 500)
    make_room(tmp_path, tmp_path / "new", 260, 100)
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert (tmp_path / "mine" / "thesis.txt").exists()
    assert (tmp_path / "pnp_gcd_results" / "thesis.txt").exists()


def test_a_folder_in_use_is_neither_shared_nor_removed(tmp_path):
    arguments = ("ab" * 12, 4, (3,), np.dtype(np.float16))
    first = ActivationStore.open(tmp_path, *arguments)
    second = ActivationStore.open(tmp_path, *arguments)
    assert first.is_kept
    assert not second.is_kept
    assert second.folder != first.folder
    make_room(tmp_path, tmp_path / "new", 0, 100)
    assert first.folder.exists()
    second.close()
    first.close()
    again = ActivationStore.open(tmp_path, *arguments)
    assert again.folder == first.folder
    again.close()


def test_a_file_that_was_cut_off_is_filled_anew(backbone, pictures, tmp_path):
    settings = ImageSettings(n_cached_views=0, cache_dir=tmp_path)
    with ImageRows.prepare(read_images(pictures[0]), make_loader(backbone), settings) as rows:
        path, expected = rows.store.folder / "view_0.npy", rows.describe()
    path.write_bytes(path.read_bytes()[:500])
    with ImageRows.prepare(read_images(pictures[0]), make_loader(backbone), settings) as rows:
        np.testing.assert_array_equal(rows.describe(), expected)


def test_a_disk_that_is_full_is_told_and_not_died_of(monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    store = ActivationStore.open(None, "", 4, (3,), np.dtype(np.float16))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="cache_size"):
        store.fill(0, lambda indices: iter(()))
    store.close()


def test_views_that_the_disk_cannot_hold_are_not_kept(backbone, pictures, monkeypatch):
    monkeypatch.setattr("pnp_gcd.image_rows.free_bytes", lambda cache_dir: 10)
    with prepare(backbone, pictures[0]) as rows:
        assert rows.store.n_views == 0


def test_a_cache_dir_that_cannot_be_one_is_named(split, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cache_dir="):
        small(cache_dir=tmp_path / "file").fit(*split)


def test_images_skipped_by_an_earlier_fit_still_stop_a_strict_one(broken, tmp_path):
    with pytest.warns(BadImageWarning):
        small(on_bad_image="skip", cache_dir=tmp_path / "cache", max_iter=0).fit(*broken)
    with pytest.raises(BadImageError, match="jpg"):
        small(cache_dir=tmp_path / "cache", max_iter=0).fit(*broken)


@pytest.mark.parametrize("name", ["test_vit", "test_resnet"])
def test_the_same_picture_twice_counts_once_wherever_it_stands(name, pictures):
    backbone = load_backbone(name, weights=None, image_size=SIZE, device="cpu")
    X = np.concatenate([pictures[0], pictures[0][:1]])
    with prepare(backbone, X, n_cached_views=0) as rows:
        assert rows.find_copies().place.tolist() == [*range(len(X) - 1), 0]


def test_a_fit_leaves_the_global_random_state_as_it_was(split):
    torch.manual_seed(7)
    before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    small(max_iter=1).fit(*split)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)


def test_device_and_bad_images_are_as_the_parameters_say_now(fitted, split, tmp_path):
    model = pickle.loads(pickle.dumps(fitted))
    (tmp_path / "bad.png").write_text("no image")
    with pytest.raises(BadImageError, match="skip"):
        model.predict([tmp_path / "bad.png"])
    with pytest.warns(BadImageWarning):
        assert model.set_params(on_bad_image="skip").predict([tmp_path / "bad.png"]).tolist() == [-1]
    with pytest.raises(ValueError, match="device='abacus'"):
        model.set_params(device="abacus").predict(split[2][:1])
    assert model.set_params(device="cpu").predict(split[2][:1]).shape == (1,)


def test_a_store_without_a_folder_of_the_user_is_removed():
    store = ActivationStore.open(None, "", 2, (3,), np.dtype(np.float16))
    assert store.folder.exists()
    store.close()
    assert not store.folder.exists()


# --- the estimator -----------------------------------------------------------------------------------------


def test_colours_are_found_again_and_a_new_one_is_discovered(pictures, split):
    y = pictures[1]
    truth = y[~((y < 3) & (np.arange(len(y)) % 2 == 0))]
    known, right, found = truth < 3, [], []
    for random_state in range(3):  # the backbone's weights are drawn, and some see colours better
        model = small(max_iter=5, random_state=random_state).fit(*split)
        assert model.known_classes_.tolist() == [0, 1, 2]
        assert len(model.novel_classes_) >= 1
        right.append((model.unlabelled_labels_[known] == truth[known]).mean())
        found.append(np.isin(model.unlabelled_labels_[~known], model.novel_classes_).mean())
    assert np.mean(right) > 0.85
    assert np.mean(found) > 0.8


def test_predictions_of_the_rows_of_a_fit_agree_with_their_labels(fitted, split):
    assert (fitted.predict(split[2]) == fitted.unlabelled_labels_).mean() > 0.85


def test_a_prediction_does_not_depend_on_the_images_beside_it(fitted, split):
    together = fitted.transform(split[2])
    alone = np.concatenate([fitted.transform(split[2][i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(together[:5], alone, atol=5e-3)


def test_the_same_seed_gives_the_same_fit(fitted, split):
    again = clone(fitted).fit(*split)
    np.testing.assert_array_equal(again.unlabelled_labels_, fitted.unlabelled_labels_)
    np.testing.assert_array_equal(again.prototypes_, fitted.prototypes_)


def test_every_method_takes_images(fitted, split):
    X = split[2]
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert fitted.novelty_score(X).shape == fitted.typicality(X).shape == (len(X),)
    assert fitted.decision_function(X).shape[0] == len(X)
    assert len(fitted.get_feature_names_out()) == fitted.transform(X).shape[1]
    assert 0.0 <= fitted.score(*split[:2]) <= 1.0


def test_a_fitted_model_survives_pickling(fitted, split):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(split[2]), fitted.predict(split[2]))


def test_a_model_may_be_fitted_on_vectors_after_images(split):
    model = small(max_iter=1).fit(*split)
    model.set_params(backbone=None).fit(np.random.default_rng(0).normal(size=(30, 4)), np.repeat([0, 1], 15))
    assert model.predict(np.zeros((2, 4))).shape == (2,)
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    "changes", [{"backbone": "test_resnet"}, {"n_trainable_blocks": 0}, {"cache_size": 0}]
)
def test_other_networks_and_ways_run(changes, split):
    model = small(max_iter=1, **changes).fit(*split)
    assert len(model.unlabelled_labels_) == len(split[2])


def test_a_cache_too_small_for_views_draws_them_anew(split):
    n_bytes = 5 * 64 * 2 * 48  # one view: tokens, columns, half precision, images
    model = small(max_iter=1, cache_size=n_bytes).fit(*split)
    assert model._image_mode.n_views == 0


def test_without_backbone_three_axes_are_views_of_vectors():
    X = np.random.default_rng(0).normal(size=(40, 3, 5))
    assert PNPDiscoverer(max_iter=0, random_state=0).fit(X, np.repeat([0, 1], 20)).n_features_in_ == 5


def test_strings_of_paths_pass_through_pool_and_cross_validation(pictures, tmp_path):
    X, y = pictures
    names = np.array(["red", "green", "blue", "yellow"])[y]
    paths = []
    for place, image in enumerate(X):
        paths.append(str(tmp_path / f"{place}.png"))
        Image.fromarray(image).save(paths[-1])
    scores = cross_val_score(small(max_iter=1), paths, names, cv=2)
    assert scores.shape == (2,)
    stacked, labels = pool(paths[:20], names[:20], paths[20:])
    assert small(max_iter=1).fit(stacked, labels).labels_.shape == (len(y),)
    frame = pd.Series(paths, index=np.arange(len(paths))[::-1])
    np.testing.assert_array_equal(small(max_iter=1).fit(frame, names).predict(frame[:3]).shape, (3,))


def test_pictures_of_several_sizes_pass_through_pool(pictures):
    sized = [Image.fromarray(image).resize((40 + place, 40)) for place, image in enumerate(pictures[0])]
    stacked, labels = pool(sized[:20], pictures[1][:20], sized[20:])
    assert stacked.shape == (len(sized),)
    assert stacked[3] is sized[3]
    assert small(max_iter=0).fit(stacked, labels).labels_.shape == (len(sized),)


def test_progress_counts_the_views(split, capsys):
    small(max_iter=1, verbose=1).fit(*split)
    shown = capsys.readouterr().err
    assert f"{3 * 48}/{3 * 48} views" in shown
    assert shown.count("reading images") < 30


# --- images that cannot be read ----------------------------------------------------------------------------


@pytest.fixture
def broken(pictures, tmp_path):
    """Paths of which one labelled and one unlabelled file are damaged, with labels and the pool's paths."""
    X, y = pictures
    paths = []
    for place, image in enumerate(X):
        paths.append(str(tmp_path / f"{place}.jpg"))
        Image.fromarray(image).save(paths[-1])
    paths = np.array(paths)
    names = np.array(["red", "green", "blue", "yellow"])[y]
    has_label = (y < 3) & (np.arange(len(y)) % 2 == 0)
    labelled, pool_paths = paths[has_label], paths[~has_label]
    for path in (labelled[3], pool_paths[5]):
        Path(path).write_bytes(Path(path).read_bytes()[:400])
    return labelled, names[has_label], pool_paths


def test_a_damaged_image_stops_the_fit_and_is_named(broken):
    before = temporary_folders()
    with pytest.raises(BadImageError, match="jpg"):
        small().fit(*broken)
    assert temporary_folders() == before


def test_missing_files_are_told_before_the_trunk_runs(split, monkeypatch):
    monkeypatch.setattr("pnp_gcd.image_rows.run_trunk", lambda *args: pytest.fail("the trunk ran"))
    with pytest.raises(BadImageError, match=r"gone_1.jpg[\s\S]*gone_2.jpg[\s\S]*on_bad_image"):
        small().fit(["gone_1.jpg", "gone_2.jpg"], [0, 1])


def test_damaged_images_are_skipped_on_request(broken):
    labelled, names, pool_paths = broken
    with pytest.warns(BadImageWarning, match="2 of 48") as caught:
        model = small(on_bad_image="skip").fit(*broken)
    assert labelled[3] in str(caught[0].message)
    np.testing.assert_array_equal(model.labels_, names)  # given labels as given
    assert model.unlabelled_labels_[5] == "-1"
    assert (np.delete(model.unlabelled_labels_, 5) != "-1").all()
    with pytest.warns(BadImageWarning):
        predicted = model.predict(pool_paths)
    assert predicted[5] == "-1"
    assert (np.delete(predicted, 5) != "-1").all()
    with pytest.warns(BadImageWarning):
        proba = model.predict_proba(pool_paths)
    assert np.isnan(proba[5]).all()
    assert np.isfinite(np.delete(proba, 5, axis=0)).all()
    for method in (model.transform, model.typicality, model.novelty_score):
        with pytest.warns(BadImageWarning):
            assert np.isnan(np.atleast_2d(method(pool_paths).T).T[5]).all()


def test_skipping_leaves_the_other_images_as_they_would_be(broken):
    labelled, names, pool_paths = broken
    with pytest.warns(BadImageWarning):
        model = small(on_bad_image="skip", max_iter=0, cache_size=10**9).fit(*broken)
    whole = small(max_iter=0).fit(np.delete(labelled, 3), np.delete(names, 3), np.delete(pool_paths, 5))
    assert model.n_clusters_ == whole.n_clusters_


def test_a_known_class_without_any_readable_image_is_an_error(broken, tmp_path):
    labelled, names, pool_paths = broken
    lonely = tmp_path / "lonely.jpg"
    lonely.write_text("no image")
    model = small(on_bad_image="skip")
    with pytest.warns(BadImageWarning), pytest.raises(ValueError, match="every known class"):
        model.fit([*labelled, str(lonely)], [*names, "purple"], pool_paths)


def test_images_are_skipped_without_a_cache_too(broken):
    with pytest.warns(BadImageWarning, match="2 of 48"):
        model = small(on_bad_image="skip", cache_size=0, max_iter=1).fit(*broken)
    assert model.unlabelled_labels_[5] == "-1"


def test_the_warning_is_one_of_ours():
    assert issubclass(BadImageWarning, DiscoveryWarning)


# --- ImageEmbedder -----------------------------------------------------------------------------------------


def embedder(**changes):
    return ImageEmbedder(
        **{"backbone": "test_vit", "backbone_weights": None, "image_size": SIZE, "device": "cpu"} | changes
    )


def test_embeddings_are_the_network_s_own_features(pictures):
    X = pictures[0][:5]
    backbone = load_backbone("test_vit", weights=None, image_size=SIZE, n_trainable_blocks=0, device="cpu")
    expected = np.concatenate([backbone.activate(backbone.crop(Image.fromarray(x))[None]) for x in X])
    np.testing.assert_allclose(embedder().fit_transform(X), expected, rtol=1e-4, atol=1e-5)


def test_batches_do_not_matter(pictures):
    X = pictures[0][:7]
    np.testing.assert_allclose(
        embedder(batch_size=2).fit_transform(X), embedder().fit_transform(X), rtol=1e-4, atol=1e-5
    )


def test_more_views_are_averaged(pictures):
    X = pictures[0][:3]
    one, many = embedder().fit_transform(X), embedder(n_views=3).fit_transform(X)
    assert not np.allclose(one, many)
    np.testing.assert_array_equal(many, embedder(n_views=3).fit_transform(X))


def test_a_memory_spares_the_second_run(pictures, tmp_path, monkeypatch):
    X = pictures[0][:4]
    memory = joblib.Memory(tmp_path, verbose=0)
    first = embedder(memory=memory).fit_transform(X)
    monkeypatch.setattr("pnp_gcd.image_mode.encode_images", lambda *a, **k: pytest.fail("embedded again"))
    np.testing.assert_array_equal(embedder(memory=memory, verbose=0).fit_transform(X), first)
    with pytest.raises(pytest.fail.Exception):
        embedder(memory=memory).fit_transform(X[::-1])


def test_a_memory_tells_shapes_views_and_bad_images_apart(pictures, tmp_path):
    X = pictures[0][:2]
    memory = joblib.Memory(tmp_path / "memory", verbose=0)
    model = embedder(memory=memory).fit(X)
    assert len(model.transform(X)) == 2
    assert len(model.transform(X.reshape(1, 80, 40, 3))) == 1
    two_views = model.set_params(n_views=2).transform(X)
    np.testing.assert_array_equal(two_views, embedder(n_views=2).fit_transform(X))
    (tmp_path / "bad.png").write_text("no image")
    items = [tmp_path / "bad.png", None, X[0]]
    for _ in range(2):  # the second time from the memory
        with pytest.warns(BadImageWarning):
            assert np.isnan(embedder(memory=memory, on_bad_image="skip").fit_transform(items)[:2]).all()
    with pytest.raises(BadImageError, match=r"bad.png"):
        embedder(memory=memory).fit_transform(items)


def test_a_pipeline_of_images_is_an_ordinary_one(pictures):
    X, y = pictures
    has_label = (y < 3) & (np.arange(len(y)) % 2 == 0)
    pipe = make_pipeline(embedder(), PNPDiscoverer(max_iter=1, random_state=0))
    pipe.fit(*pool(X[has_label], y[has_label], X[~has_label]))
    assert pipe.predict(X[:3]).shape == (3,)
    assert clone(pipe).get_params()["imageembedder__image_size"] == SIZE


def test_columns_have_names_and_bad_rows_are_nan(pictures, tmp_path):
    Image.fromarray(pictures[0][0]).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_text("no image")
    model = embedder(on_bad_image="skip").set_output(transform="pandas")
    with pytest.warns(BadImageWarning):
        frame = model.fit_transform([tmp_path / "good.png", tmp_path / "bad.png"])
    assert list(frame.columns[:2]) == ["imageembedder0", "imageembedder1"]
    assert frame.iloc[0].notna().all()
    assert frame.iloc[1].isna().all()
    with pytest.raises(BadImageError, match=r"bad.png"):
        embedder().fit_transform([tmp_path / "bad.png"])


# --- folders and presets -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for name in (
        "cat/b.jpg",
        "cat/a.JPG",
        "dog/deep/c.png",
        "unlabelled/x.webp",
        "cat/.hidden.jpg",
        "cat/.ipynb_checkpoints/a.jpg",
        "cat/notes.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_folder_becomes_the_arguments_of_fit(folder):
    X_labelled, y_labelled, X_unlabelled = read_image_folder(folder)
    assert [str(Path(path).relative_to(folder)) for path in X_labelled] == [
        "cat/a.JPG",
        "cat/b.jpg",
        "dog/deep/c.png",
    ]
    assert y_labelled.tolist() == ["cat", "cat", "dog"]
    assert X_unlabelled.tolist() == [str(folder / "unlabelled" / "x.webp")]


def test_the_unlabelled_folder_may_have_another_name(folder):
    assert set(read_image_folder(folder, unlabelled="cat").y_labelled) == {"dog", "unlabelled"}


def test_folders_that_cannot_be_read_say_what_is_wrong(folder):
    with pytest.raises(ValueError, match="no folder"):
        read_image_folder(folder / "gone")
    with pytest.raises(ValueError, match="no sub-folder 'pool'"):
        read_image_folder(folder, unlabelled="pool")
    (folder / "empty").mkdir()
    with pytest.raises(ValueError, match="no image in .'empty'"):
        read_image_folder(folder)
    with pytest.raises(ValueError, match="no class beside"):
        read_image_folder(folder / "dog", unlabelled="deep")


# The paper, "Implementation Details".
PAPER_K = {
    "cifar10": 2000,
    "cifar100": 250,
    "imagenet100": 1000,
    "herbarium19": 10,
    "cub200": 10,
    "stanford_cars": 10,
    "fgvc_aircraft": 20,
}


@pytest.mark.parametrize("dataset", PAPER_K)
def test_presets_are_the_paper_s_table(dataset):
    model = PNPDiscoverer(**presets.paper(dataset))
    assert model.n_neighbors == PAPER_K[dataset]
    assert (model.similarity_threshold, model.batch_size, model.max_iter) == (0.6, 128, 200)
    assert (model.learning_rate, model.distillation_weight, model.supervised_weight) == (0.1, 0.65, 0.35)
    assert (model.entropy_weight, model.temperature, model.contrastive_temperature) == (2.0, 0.1, 1.0)
    assert (model.teacher_temperature, model.teacher_momentum) == ((0.07, 0.04), (0.7, 0.99))
    assert (model.prototypes_per_class, model.n_trainable_blocks, model.projection_width[0]) == (4, 1, 2048)
    model._validate_params()


def test_a_preset_runs(split):
    settings = presets.paper("cub200") | {
        "backbone": "test_vit", "backbone_weights": None, "image_size": SIZE, "max_iter": 1, "n_neighbors": 5,
    }  # fmt: skip
    assert PNPDiscoverer(**settings, random_state=0).fit(*split).n_iter_ == 1


def test_an_unknown_data_set_is_told_the_known_ones():
    with pytest.raises(ValueError, match="cub200"):
        presets.paper("mnist")


def test_changing_a_preset_leaves_the_next_one_alone():
    presets.paper("cub200")["max_iter"] = 1
    assert presets.paper("cub200")["max_iter"] == 200


def test_run_trunk_reads_ahead_and_keeps_the_order(backbone, pictures):
    X = pictures[0]
    images, loader = read_images(X), make_loader(backbone)
    order = np.arange(len(X))[::-1].copy()
    found = torch.cat([a for _, a, _ in run_trunk(backbone, lambda i: loader.load(images, i, 0), order, 7)])
    expected = torch.cat(
        [a for _, a, _ in run_trunk(backbone, lambda i: loader.load(images, i, 0), order[::-1].copy())]
    )
    torch.testing.assert_close(found, expected.flip(0), rtol=1e-2, atol=2e-3)


def test_importing_the_embedder_loads_no_torch():
    program = "import sys; from pnp_gcd import ImageEmbedder; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
