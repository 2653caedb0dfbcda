"""Long use: many threads, many fits, and what is left behind, also by a process that was killed."""

import errno
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import make_world
from test_image_mode import make_pictures, small

from pnp_gcd import PNPDiscoverer, clustering, image_mode
from pnp_gcd.activations import ActivationStore
from pnp_gcd.atomic_files import lock_folder, make_temporary_folder
from pnp_gcd.image_rows import ImageSettings

QUICK = {"max_iter": 1, "n_neighbors": 5, "whitening": None, "hidden_width": 8, "random_state": 0}


@pytest.fixture(scope="module")
def world():
    return make_world(60, 3, 2, width=4)


def fit(world):
    return PNPDiscoverer(3, **QUICK).fit(*world.labelled, world.rest)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files that nobody else writes to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")


def test_many_threads_get_the_answers_of_one(world):
    model = fit(world)
    parts = [np.roll(world.X, shift, axis=0) for shift in range(40)]
    expected = [model.predict_proba(part).tobytes() for part in parts]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda part: model.predict_proba(part).tobytes(), parts))
    assert found == expected


def test_many_threads_get_the_answers_of_one_about_images():
    X, y = make_pictures(n_each=6)
    model = small(max_iter=1).fit(X, np.where(np.arange(len(y)) % 2 == 0, np.minimum(y, 2) * (y < 3), -1))
    parts = [np.roll(X, shift, axis=0)[:8] for shift in range(12)]
    expected = [model.predict_proba(part).tobytes() for part in parts]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda part: model.predict_proba(part).tobytes(), parts))
    assert found == expected


def test_on_a_gpu_one_thread_after_the_other_moves_the_networks(monkeypatch):
    busy, most = [], []

    def encode(*args, **kwargs):
        busy.append(1)
        most.append(len(busy))
        time.sleep(0.02)
        busy.pop()
        return np.zeros((1, 2)), {}

    monkeypatch.setattr(image_mode, "encode_images", encode)
    monkeypatch.setattr(image_mode, "choose_device", torch.device)
    network = SimpleNamespace(to=lambda device: network, cpu=lambda: network)
    backbone = SimpleNamespace(size=32, interpolation="bicubic", to=lambda device: None)
    for device, n_at_once in (("meta", {1}), ("cpu", {2, 3, 4})):
        most.clear()
        mode = image_mode.ImageMode(backbone, ImageSettings(), "error", device, 0)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: mode.run(network, None), range(4)))  # noqa: B023
        assert max(most) in n_at_once


def test_fits_in_threads_side_by_side_are_the_fit_of_one(world):
    expected = fit(world).prototypes_.tobytes()
    with ThreadPoolExecutor(3) as threads:
        found = [model.prototypes_.tobytes() for model in threads.map(lambda _: fit(world), range(3))]
    assert found == [expected] * 3


@needs_proc
def test_neither_fits_nor_saved_models_leave_files_open_or_behind(world, temporary):
    fit(world).save(temporary / "first")  # what is opened once stays: libraries, devices
    PNPDiscoverer.load(temporary / "first")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        model = fit(world)
        model.save(temporary / str(number))
        PNPDiscoverer.load(temporary / str(number)).predict(world.X)
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(path.name for path in temporary.iterdir()) == ["0", "1", "2", "first"]


@needs_proc
@pytest.mark.parametrize("where", ["pnp_gcd.clustering.np.loadtxt", "pnp_gcd.trainer.Trainer.run_epoch"])
def test_a_fit_that_fails_leaves_nothing(world, temporary, monkeypatch, where):
    fit(world)
    before = len(os.listdir("/proc/self/fd"))

    def fail(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(where, fail)
    with pytest.raises(MemoryError):
        fit(world)
    assert not list(temporary.iterdir())
    assert len(os.listdir("/proc/self/fd")) == before


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@needs_proc
@pytest.mark.slow
def test_memory_does_not_grow_with_fits(world):
    sizes = []
    for _ in range(3):
        for _ in range(20):
            fit(world)
        gc.collect()
        sizes.append(resident_bytes())
    # Twenty fits that kept their rows, networks or graphs alone would take more than this.
    assert sizes[2] - sizes[1] < 4 * 2**20


def test_a_model_that_is_forgotten_is_freed(world):
    import weakref

    model = fit(world)
    seen = weakref.ref(model.encoder_)
    del model
    gc.collect()
    assert seen() is None


OPENS_A_STORE = """
import sys, tempfile, time, numpy as np
tempfile.tempdir = sys.argv[1]
from pnp_gcd.activations import ActivationStore
store = ActivationStore.open(None, "", 4, (3,), np.dtype("f2"))
(store.folder / "view_0.npy").write_bytes(b"much")
print(store.folder, flush=True)
time.sleep(60)
"""


def test_the_next_fit_removes_what_a_killed_one_left_and_nothing_else(temporary):
    foreign = temporary / "pnp_gcd_views-of-mine"  # a name like ours, but no lock in it
    foreign.mkdir()
    (foreign / "photo.png").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", OPENS_A_STORE, str(temporary)], stdout=subprocess.PIPE, text=True
    )
    try:
        left = Path(process.stdout.readline().strip())
        ActivationStore.open(None, "", 4, (3,), np.dtype("f2")).close()
        assert (left / "view_0.npy").exists()  # its process lives
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert left.exists()
        ActivationStore.open(None, "", 4, (3,), np.dtype("f2")).close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert [path.name for path in temporary.iterdir()] == [foreign.name]


KILLED_WHILE_SAVING = """
import os, sys
from pnp_gcd import PNPDiscoverer
model = PNPDiscoverer.load(sys.argv[1])
real, calls = os.fsync, []
def fsync(handle):
    calls.append(handle)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    real(handle)
os.fsync = fsync
model.save(sys.argv[1], overwrite=True)
"""


@pytest.mark.parametrize("nth", [1, 2, 3, 4])  # the fourth is after the new model is in its place
def test_a_process_killed_while_saving_leaves_the_model_that_was_there(world, tmp_path, nth):
    model = fit(world)
    model.save(tmp_path / "model")
    ran = subprocess.run([sys.executable, "-c", KILLED_WHILE_SAVING, str(tmp_path / "model"), str(nth)])
    assert ran.returncode == -signal.SIGKILL
    again = PNPDiscoverer.load(tmp_path / "model")
    assert again.predict_proba(world.X).tobytes() == model.predict_proba(world.X).tobytes()
    left = [path.name for path in tmp_path.iterdir() if path.name != "model"]
    assert all(name.startswith(".model.") and name.endswith(".saving") for name in left)
    model.save(tmp_path / "model", overwrite=True)  # removes what the killed one left
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_another_process_saves_just_now_and_what_is_not_ours_stays(world, tmp_path):
    model = fit(world)
    busy, foreign = (tmp_path / f".model.{name}.saving" for name in ("01234567", "89abcdef"))
    busy.mkdir()
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    handle = lock_folder(busy)
    assert lock_folder(busy) is None
    model.save(tmp_path / "model")
    os.close(handle)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([busy.name, foreign.name, "model"])
    model.save(tmp_path / "model", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([foreign.name, "model"])


def test_the_first_fit_of_a_process_removes_graphs_that_a_killed_one_left(world, temporary):
    left, lock = make_temporary_folder("pnp_gcd_graph-")
    (left / "communities.clu").write_text("1 1")
    fit(world)
    assert left.exists()  # its process lives
    lock.close()
    clustering._sweep_once.cache_clear()
    fit(world)
    assert not list(temporary.iterdir())


def test_a_disk_without_locks_is_no_hindrance_and_nothing_is_swept_there(world, temporary, monkeypatch):
    import fcntl

    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    left, lock = make_temporary_folder("pnp_gcd_graph-")
    lock.close()
    monkeypatch.setattr(fcntl, "flock", refuse)
    clustering._sweep_once.cache_clear()
    fit(world).save(temporary / "model")
    store = ActivationStore.open(None, "", 4, (3,), np.dtype("f2"))
    store.close()
    assert sorted(path.name for path in temporary.iterdir()) == sorted(["model", left.name])
    with pytest.raises(ValueError, match=r"checkpoint_dir=.*cannot be used.*No locks"):
        PNPDiscoverer(3, checkpoint_dir=temporary / "kept", **QUICK).fit(*world.labelled, world.rest)


SEARCH_WITH_A_CRASH = """
import os, sys, tempfile, threading
import numpy as np
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.model_selection import GridSearchCV
from conftest import make_world
from pnp_gcd import PNPDiscoverer

class Dies(PNPDiscoverer):
    def fit(self, X, y):
        if self.max_iter == 3:
            threading.Timer(0.2, os.kill, (os.getpid(), 9)).start()
        return super().fit(X, y)

world = make_world(600, 5, 3, width=300)  # more than a megabyte: joblib hands it over as a file
y = np.where(world.has_label, world.y, -1)
model = Dies(random_state=0, checkpoint_dir=sys.argv[1])
search = GridSearchCV(model, {"max_iter": [1, 3, 2]}, cv=2, n_jobs=2)
try:
    search.fit(world.X, y)
except TerminatedWorkerError:
    print("crashed")
"""


@needs_proc
@pytest.mark.slow
def test_a_search_whose_worker_dies_leaves_what_the_next_fit_removes_and_checkpoints_alone(world, temporary):
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    place = temporary / "temporary"
    place.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SEARCH_WITH_A_CRASH, str(temporary / "kept")],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TMPDIR": str(place),
            "JOBLIB_TEMP_FOLDER": str(place),
        },
    )
    assert ran.stdout == "crashed\n", ran.stderr
    tempfile.tempdir = str(place)
    clustering._sweep_once.cache_clear()
    fit(world)
    assert not list(place.iterdir())
    left = {path.name for path in (temporary / "kept").rglob("*") if path.is_file()}
    assert left <= {"lock", "calibration.safetensors", "epoch.safetensors"}
