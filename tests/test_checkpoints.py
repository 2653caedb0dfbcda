"""Checkpoints: a fit that was stopped goes on as if nothing had happened, and nothing is ever mixed up."""

import copy
import os
import resource
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from conftest import make_world
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from test_image_mode import make_pictures, small

from pnp_gcd import PNPDiscoverer, training
from pnp_gcd.atomic_files import take_lock
from pnp_gcd.checkpoint_files import CheckpointFolder, DamagedCheckpointError, State
from pnp_gcd.checkpoints import Checkpoints, fingerprint_fit
from pnp_gcd.exceptions import CheckpointWarning
from pnp_gcd.rows import VectorRows
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.trainer import Trainer

QUICK = {"max_iter": 4, "batch_size": 64, "hidden_width": 16, "random_state": 0, "cluster_interval": 2}


class KilledError(Exception):
    """Stands for the end of a process."""


@pytest.fixture(scope="module")
def arguments():
    world = make_world(200, 5, 3, seed=1)
    return *world.labelled, world.rest


@pytest.fixture(scope="module")
def whole(arguments):
    return quick().fit(*arguments)


def quick(**changes):
    return PNPDiscoverer(**QUICK | changes)


def stop_in_epoch(monkeypatch, epoch, error=KilledError):
    """Let training fail in the middle of an epoch, once."""
    original = Trainer.train_batch

    def train_batch(self, indices, teacher_temperature):
        if self.step == epoch * len(self.batches) + 1:
            monkeypatch.setattr(Trainer, "train_batch", original)
            raise error
        return original(self, indices, teacher_temperature)

    monkeypatch.setattr(Trainer, "train_batch", train_batch)


def stop(monkeypatch, model, arguments, epoch):
    stop_in_epoch(monkeypatch, epoch)
    with pytest.raises(KilledError):
        model.fit(*arguments)


def assert_same_fit(found, expected):
    for name in ("labels_", "unlabelled_labels_", "prototypes_", "prototype_labels_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    weights = expected.encoder_.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in found.encoder_.state_dict().items())
    without = [[{**row, "seconds": 0} for row in model.history_] for model in (found, expected)]
    assert without[0] == without[1]
    assert found.calibration_ == expected.calibration_
    assert found.n_clusters_interval_ == expected.n_clusters_interval_


def files_in(folder):
    return sorted(path.name for path in Path(folder).rglob("*") if path.is_file())


# --- going on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_a_fit_that_was_stopped_ends_as_one_that_was_not(arguments, whole, tmp_path, monkeypatch, epoch):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, epoch)
    assert files_in(tmp_path) == ["calibration.safetensors", *["epoch.safetensors"] * bool(epoch), "lock"]
    seen = []
    original = Trainer.run_epoch
    monkeypatch.setattr(Trainer, "run_epoch", lambda self, n: seen.append(n) or original(self, n))
    assert_same_fit(quick(checkpoint_dir=tmp_path).fit(*arguments), whole)
    assert seen == list(range(epoch, 4))  # what was done is not done again
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("is_balanced", [False, True])
def test_a_fit_goes_on_with_groups_balanced_or_not_as_it_began(arguments, tmp_path, monkeypatch, is_balanced):
    calibrate = training.calibrate
    monkeypatch.setattr(
        training,
        "calibrate",
        lambda *args, **options: replace(calibrate(*args, **options), is_balanced=is_balanced),
    )
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 1)
    seen = []
    original = Trainer.__init__

    def made(self, source, codes, probing, *others):
        seen.append(probing.is_balanced)
        original(self, source, codes, probing, *others)

    monkeypatch.setattr(Trainer, "__init__", made)
    quick(checkpoint_dir=tmp_path).fit(*arguments)
    assert seen == [is_balanced]


def test_checkpoints_change_nothing(arguments, whole, tmp_path):
    assert_same_fit(quick(checkpoint_dir=str(tmp_path / "new" / "folder")).fit(*arguments), whole)


@pytest.mark.parametrize(
    "changes",
    [
        {"teacher": None},
        {"teacher": "epoch", "potential_prototypes": "frozen"},
        {"potential_prototypes": None},
        {"prototypes_per_class": 1},  # the memory grows
        {"cluster_on": "unlabelled", "view_dropout": 0.0},
        {"n_clusters": 5, "whitening": "soft-total", "n_neighbors": 6},
    ],
)
@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.DiscoveryWarning")
def test_every_way_of_training_goes_on(arguments, tmp_path, monkeypatch, changes):
    stop(monkeypatch, quick(**changes, checkpoint_dir=tmp_path), arguments, 3)
    found = quick(**changes, checkpoint_dir=tmp_path).fit(*arguments)
    assert_same_fit(found, quick(**changes).fit(*arguments))


def test_clustering_without_labels_goes_on(arguments, tmp_path, monkeypatch):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments[2:], 2)
    found = quick(checkpoint_dir=tmp_path).fit(arguments[2])
    assert_same_fit(found, quick().fit(arguments[2]))


def test_rows_of_several_views_and_copies_of_rows_go_on(arguments, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y, pool = arguments
    X, pool = (rows[:, None] + 0.1 * rng.normal(size=(len(rows), 3, rows.shape[1])) for rows in (X, pool))
    pool = np.concatenate([pool, pool[:20]])
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), (X, y, pool), 2)
    assert_same_fit(quick(checkpoint_dir=tmp_path).fit(X, y, pool), quick().fit(X, y, pool))


@pytest.mark.parametrize("changes", [{}, {"cache_size": 0}])
def test_images_go_on(tmp_path, monkeypatch, changes):
    X, y = make_pictures()
    has_label = (y < 3) & (np.arange(len(y)) % 2 == 0)
    arguments = X[has_label], y[has_label], X[~has_label]
    stop(monkeypatch, small(batch_size=16, checkpoint_dir=tmp_path, **changes), arguments, 1)
    assert "epoch.safetensors" in files_in(tmp_path)
    found = small(batch_size=16, checkpoint_dir=tmp_path, **changes).fit(*arguments)
    assert_same_fit(found, small(batch_size=16, **changes).fit(*arguments))


def test_what_has_no_effect_on_the_result_may_change_in_between(arguments, whole, tmp_path, monkeypatch):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    monkeypatch.setattr("pnp_gcd.training.calibrate", None)  # not called any more
    found = quick(checkpoint_dir=tmp_path, verbose=1, on_interrupt="keep").fit(*arguments)
    assert_same_fit(found, whole)


@pytest.mark.parametrize("change", [{"max_iter": 5}, {"random_state": 1}, {"learning_rate": 0.05}])
def test_another_setting_begins_anew_and_leaves_the_other_fit_alone(
    arguments, whole, tmp_path, monkeypatch, change
):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    found = quick(**change, checkpoint_dir=tmp_path).fit(*arguments)
    assert_same_fit(found, quick(**change).fit(*arguments))
    assert_same_fit(quick(checkpoint_dir=tmp_path).fit(*arguments), whole)


def test_the_fingerprint_tells_rows_labels_and_settings_apart():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(20, 3)), np.repeat([0, -1], 10)
    base = fingerprint_fit(VectorRows(X), codes, TrainingSettings())
    nudged, turned, moved = X.copy(), X[::-1].copy(), codes.copy()
    nudged[7, 1] = np.nextafter(nudged[7, 1], 9.0)
    moved[[0, 10]] = moved[[10, 0]]
    others = [
        fingerprint_fit(VectorRows(nudged), codes, TrainingSettings()),
        fingerprint_fit(VectorRows(turned), codes, TrainingSettings()),
        fingerprint_fit(VectorRows(X.astype(np.float32)), codes, TrainingSettings()),
        fingerprint_fit(VectorRows(X), moved, TrainingSettings()),
        fingerprint_fit(VectorRows(X), codes, TrainingSettings(seed=1)),
        fingerprint_fit(VectorRows(X), codes, TrainingSettings(max_iter=11)),
    ]
    assert len({base, *others}) == 7
    same = TrainingSettings(
        on_interrupt="keep",
        checkpoint_dir="x",
        max_iter=np.int64(TrainingSettings().max_iter),
        temperature=np.float64(0.1),
    )
    assert fingerprint_fit(VectorRows(np.asfortranarray(X)), codes.copy(), same) == base


def test_other_versions_have_other_fingerprints(monkeypatch):
    X, codes = np.eye(4), np.array([0, 1, -1, -1])
    base = fingerprint_fit(VectorRows(X), codes, TrainingSettings())
    monkeypatch.setattr("pnp_gcd.checkpoints._version", lambda package: "0")
    assert fingerprint_fit(VectorRows(X), codes, TrainingSettings()) != base


def test_a_fit_without_a_seed_is_refused(arguments, tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint_dir=.* needs a seed.* Pass random_state=0"):
        quick(checkpoint_dir=tmp_path, random_state=None).fit(*arguments)
    assert files_in(tmp_path) == []


def test_a_place_that_cannot_be_a_folder_is_named(arguments, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match=r'checkpoint_dir=".*file" cannot be used'):
        quick(checkpoint_dir=tmp_path / "file").fit(*arguments)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_parameter_survives_clone_and_save(arguments, tmp_path):
    model = clone(quick(checkpoint_dir=tmp_path / "kept")).fit(*arguments)
    model.save(tmp_path / "model")
    assert PNPDiscoverer.load(tmp_path / "model").checkpoint_dir == tmp_path / "kept"


# --- Ctrl-C ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [0, 2])
def test_ctrl_c_keeps_the_state_of_the_last_completed_epoch(arguments, monkeypatch, epoch):
    states = {}
    original = Trainer.run_epoch

    def run_epoch(self, number):
        states[number] = copy.deepcopy(self.student.encoder.state_dict())  # as the epoch begins
        return original(self, number)

    monkeypatch.setattr(Trainer, "run_epoch", run_epoch)
    stop_in_epoch(monkeypatch, epoch, KeyboardInterrupt)
    model = quick(on_interrupt="keep").fit(*arguments)
    assert model.n_iter_ == epoch
    found = model.encoder_.state_dict()
    assert all(torch.equal(tensor, found[name]) for name, tensor in states[epoch].items())


def test_ctrl_c_in_the_first_epoch_gives_what_no_epoch_gives(arguments, monkeypatch):
    untrained = quick(max_iter=0).fit(*arguments)
    stop_in_epoch(monkeypatch, 0, KeyboardInterrupt)
    model = quick(on_interrupt="keep").fit(*arguments)
    np.testing.assert_array_equal(model.unlabelled_labels_, untrained.unlabelled_labels_)
    np.testing.assert_array_equal(model.prototypes_, untrained.prototypes_)


def test_ctrl_c_before_there_is_anything_to_keep_raises(arguments, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("pnp_gcd.training.calibrate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        quick(on_interrupt="keep").fit(*arguments)


@pytest.mark.parametrize("on_interrupt", ["keep", "raise"])
def test_after_ctrl_c_a_later_fit_goes_on(arguments, whole, tmp_path, monkeypatch, on_interrupt):
    stop_in_epoch(monkeypatch, 2, KeyboardInterrupt)
    model = quick(checkpoint_dir=tmp_path, on_interrupt=on_interrupt)
    if on_interrupt == "keep":
        assert model.fit(*arguments).n_iter_ == 2
    else:
        with pytest.raises(KeyboardInterrupt):
            model.fit(*arguments)
    assert "epoch.safetensors" in files_in(tmp_path)
    assert_same_fit(model.fit(*arguments), whole)


# --- damage ------------------------------------------------------------------------------------------------


def cut(data):
    return data[: len(data) // 2]


def flip(data):
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


@pytest.mark.parametrize("damage", [cut, flip, lambda data: b"", lambda data: b"\x80\x04pickle" * 9])
@pytest.mark.parametrize("name", ["calibration", "epoch"])
def test_a_damaged_checkpoint_is_told_and_not_used(arguments, whole, tmp_path, monkeypatch, name, damage):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    path = next(tmp_path.rglob(f"{name}.safetensors"))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(CheckpointWarning, match=f"{name}.*damaged.*begins anew"):
        found = quick(checkpoint_dir=tmp_path).fit(*arguments)
    assert_same_fit(found, whole)


def test_a_pipe_in_place_of_a_checkpoint_is_told_and_not_waited_for(arguments, whole, tmp_path, monkeypatch):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    path = next(tmp_path.rglob("epoch.safetensors"))
    path.unlink()
    os.mkfifo(path)
    with pytest.warns(CheckpointWarning, match="no plain file.*begins anew"):
        assert_same_fit(quick(checkpoint_dir=tmp_path).fit(*arguments), whole)
    assert files_in(tmp_path) == []


def test_a_state_of_another_calibration_is_not_used(arguments, whole, tmp_path, monkeypatch):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    stop(monkeypatch, quick(checkpoint_dir=tmp_path / "b", random_state=5, whitening=None), arguments, 2)
    ours, other = (next(tmp_path.glob(f"{place}fit-*/epoch.safetensors")) for place in ("", "b/"))
    ours.write_bytes(other.read_bytes())
    with pytest.warns(CheckpointWarning, match="belongs to another calibration"):
        found = quick(checkpoint_dir=tmp_path).fit(*arguments)
    assert_same_fit(found, whole)


def test_a_state_that_does_not_fit_leaves_the_trainer_as_it_was(arguments, whole, tmp_path, monkeypatch):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    folder = CheckpointFolder.open(tmp_path, next(tmp_path.iterdir()).name.removeprefix("fit-"))
    (values, arrays), _ = folder.read("epoch")
    arrays["known_prototypes"] = np.zeros((1, 1), dtype=np.float32)  # found wrong after others were written
    folder.write("epoch", State(values, arrays))
    folder.close()
    with pytest.warns(CheckpointWarning, match="known_prototypes has shape"):
        found = quick(checkpoint_dir=tmp_path).fit(*arguments)
    assert_same_fit(found, whole)


def test_what_is_written_comes_back_with_type_and_order(tmp_path):
    folder = CheckpointFolder.open(tmp_path, "a" * 64)
    arrays = {
        "c": np.arange(6.0).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "empty": np.zeros((0, 4), dtype=np.float32),
        "flags": np.array([True, False]),
    }
    values = {"large": 2**127 + 1, "nan": float("nan"), "tuple": (1, None), "float": 0.1 + 0.2}
    digest = folder.write("a", State(values, arrays))
    (found, found_arrays), found_digest = folder.read("a")
    assert found_digest == digest
    assert repr(found) == repr(values)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found_arrays[name], array)
        assert found_arrays[name].dtype == array.dtype
        assert found_arrays[name].flags.f_contiguous == array.flags.f_contiguous
    assert folder.read("b") is None


def test_every_changed_byte_is_noticed(tmp_path):
    folder = CheckpointFolder.open(tmp_path, "a" * 64)
    folder.write("a", State({"n": 1}, {"x": np.arange(4, dtype=np.uint8)}))
    data = folder.path("a").read_bytes()
    for place in range(len(data)):
        folder.path("a").write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        try:
            state, _ = folder.read("a")
        except DamagedCheckpointError:
            continue
        assert state.values == {"n": 1}, place
        np.testing.assert_array_equal(state.arrays["x"], np.arange(4, dtype=np.uint8))


# --- two at once -------------------------------------------------------------------------------------------


def test_a_fit_beside_one_with_the_same_fingerprint_goes_without(arguments, whole, tmp_path):
    X, y, pool = arguments
    rows, codes = np.concatenate([X, pool]), np.concatenate([y, np.full(len(pool), -1)])
    seen = []
    original = Checkpoints.open

    def note(*told):
        seen.append(original(*told))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "open", note)
        quick(checkpoint_dir=tmp_path).fit(rows, codes)
    name = seen[0].folder.folder.name
    with CheckpointFolder.open(tmp_path, name.removeprefix("fit-"))._lock:
        with pytest.warns(CheckpointWarning, match="Another fit with the same settings and rows"):
            found = quick(checkpoint_dir=tmp_path).fit(*arguments)
        assert files_in(tmp_path) == ["lock"]
    assert_same_fit(found, whole)


@pytest.mark.filterwarnings("ignore::pnp_gcd.exceptions.DiscoveryWarning")
def test_clones_in_a_search_have_a_folder_each_and_the_result_of_a_search_without(arguments, tmp_path):
    X, y, _ = arguments
    folders = set()
    original = Checkpoints.open

    def note(*told):
        opened = original(*told)
        folders.add(opened.folder and opened.folder.folder)
        return opened

    def search(**changes):
        grid = {"max_iter": [1, 2], "learning_rate": [0.05, 0.1]}
        with joblib.parallel_config("threading", n_jobs=2):
            return GridSearchCV(quick(n_neighbors=5, whitening=None, **changes), grid, cv=2).fit(X, y)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "open", note)
        found = search(checkpoint_dir=tmp_path)
    assert len(folders - {None}) == 2 * 4 + 1  # folds, settings, and the refit
    assert files_in(tmp_path) == []
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], search().cv_results_["mean_test_score"]
    )


def test_a_lock_is_held_by_one_and_not_taken_on_a_file_that_was_removed(tmp_path, monkeypatch):
    first = take_lock(tmp_path / "lock")
    assert take_lock(tmp_path / "lock") is None
    original = os.stat
    monkeypatch.setattr(
        os, "stat", lambda path, **kw: first.close() or (_ for _ in ()).throw(FileNotFoundError())
    )
    first.close()
    assert take_lock(tmp_path / "lock") is None  # locked, but no longer there
    monkeypatch.setattr(os, "stat", original)
    assert take_lock(tmp_path / "lock") is not None


def test_leftovers_of_a_killed_write_are_removed(tmp_path):
    folder = CheckpointFolder.open(tmp_path, "a" * 64)
    (folder.folder / ".pnp-gcd-0123.safetensors").write_bytes(b"half")
    folder.close()
    CheckpointFolder.open(tmp_path, "a" * 64).close()
    assert files_in(tmp_path) == ["lock"]


# --- really killed, really full ----------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
from conftest import make_world
from pnp_gcd import PNPDiscoverer

world = make_world(200, 5, 3, seed=1)
print("ready", flush=True)
model = PNPDiscoverer(**{quick}, verbose=1, checkpoint_dir=sys.argv[1]).fit(*world.labelled, world.rest)
np.save(sys.argv[2], model.unlabelled_labels_)
"""


def start(tmp_path, **changes):
    program = PROGRAM.format(quick=QUICK | {"max_iter": 40} | changes)
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "kept"), str(tmp_path / "labels.npy")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def test_a_process_that_is_killed_three_times_ends_as_one_that_is_not(arguments, tmp_path):
    for line_wanted in ("calibrating", "epoch 5/", "epoch 20/"):
        process = start(tmp_path)
        for line in process.stderr:
            if line_wanted in line:
                break
        else:
            pytest.fail(f"the process never came to {line_wanted}")
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        process.stdout.close()
    assert "epoch.safetensors" in files_in(tmp_path / "kept")
    process = start(tmp_path)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert "calibrating" not in told
    expected = quick(max_iter=40).fit(*arguments)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected.unlabelled_labels_)
    assert files_in(tmp_path / "kept") == []


@pytest.fixture
def small_files():
    """Let every write beyond some bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit(n_bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_the_checkpoint_before_and_the_fit_goes_on(
    arguments, whole, tmp_path, monkeypatch, small_files
):
    stop(monkeypatch, quick(checkpoint_dir=tmp_path), arguments, 2)
    path = next(tmp_path.rglob("epoch.safetensors"))
    before = path.read_bytes()
    small_files(len(before) // 2)
    stop_in_epoch(monkeypatch, 3)
    with (
        pytest.warns(CheckpointWarning, match="File too large.*The fit goes on.*Make room") as told,
        pytest.raises(KilledError),
    ):
        quick(checkpoint_dir=tmp_path).fit(*arguments)
    assert len(told) == 1
    assert path.read_bytes() == before
    assert files_in(tmp_path) == ["calibration.safetensors", "epoch.safetensors", "lock"]
    with pytest.warns(CheckpointWarning, match="could not be written"):
        assert_same_fit(quick(checkpoint_dir=tmp_path).fit(*arguments), whole)


def test_a_full_disk_leaves_the_model_saved_before(whole, tmp_path, small_files):
    whole.save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    small_files(max(map(len, before.values())) // 2)
    with pytest.raises(OSError, match="File too large"):
        whole.save(tmp_path / "model", overwrite=True)
    with pytest.raises(OSError, match="File too large"):
        whole.save(tmp_path / "new")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert os.listdir(tmp_path) == ["model"]
    PNPDiscoverer.load(tmp_path / "model")


ON_A_SMALL_DISK = """
import errno, os, sys, warnings
from pathlib import Path
from conftest import make_world
from pnp_gcd import PNPDiscoverer
from pnp_gcd.exceptions import CheckpointWarning

place, world = Path(sys.argv[1]), make_world(200, 5, 3, seed=1)
model = PNPDiscoverer(**{quick}).fit(*world.labelled, world.rest)
model.save(place / "model")
before = {{path.name: path.read_bytes() for path in (place / "model").iterdir()}}
with open(place / "filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(512))
    except OSError as error:
        assert error.errno == errno.ENOSPC
for name, options in (("model", {{"overwrite": True}}), ("new", {{}})):
    try:
        model.save(place / name, **options)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    else:
        raise AssertionError("the disk is not full")
assert {{path.name: path.read_bytes() for path in (place / "model").iterdir()}} == before
assert sorted(os.listdir(place)) == ["filler", "model"]
PNPDiscoverer.load(place / "model")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    again = PNPDiscoverer(**{quick}, checkpoint_dir=place / "kept").fit(*world.labelled, world.rest)
assert [w.category for w in told] == [CheckpointWarning], told
assert "No space left on device" in str(told[0].message)
assert again.prototypes_.tobytes() == model.prototypes_.tobytes()
print("all is well")
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full_leaves_what_was_there(tmp_path):
    """On a file system in memory, of 400 kilobytes, that only this process sees."""
    shell = 'mount -t tmpfs -o size=400k tmpfs "$1" && shift 1 && exec "$@"'
    alone = ["unshare", "-rm", "sh", "-c", shell, "sh", str(tmp_path)]
    try:
        subprocess.run([*alone, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    program = ON_A_SMALL_DISK.format(quick=QUICK)
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    ran = subprocess.run(
        [*alone, sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert ran.stdout == "all is well\n", ran.stderr


def test_nothing_is_written_without_a_folder(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(max_iter=1).fit(*arguments)
    assert files_in(tmp_path) == []
