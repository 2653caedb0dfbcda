"""A few hundred cases of the fuzzers in ``benchmarks``, and what a hostile folder or picture must not do."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import make_world
from test_persistence import FORMAT_1, rewrite, set_array, set_at

from pnp_gcd import PNPDiscoverer
from pnp_gcd.exceptions import BadImageError, ModelFileError
from pnp_gcd.images import read_images

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import _mutations  # noqa: E402
import fuzz_images  # noqa: E402
import fuzz_models  # noqa: E402


@pytest.fixture
def saved(tmp_path):
    return Path(shutil.copytree(FORMAT_1, tmp_path / "model"))


def test_several_hundred_damaged_and_forged_models_are_refused_or_answer(tmp_path):
    bases = tmp_path / "bases"
    shutil.copytree(FORMAT_1, bases / "format_1")
    outcomes, ways = {"refused": 0, "answered": 0}, set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(1, 300):
            ways.add(fuzz_models.prepare(number, 0, bases, tmp_path / "case"))
            outcomes[fuzz_models.ask(tmp_path / "case")] += 1
    assert len(ways) == 9
    assert outcomes["refused"] > 150
    assert outcomes["answered"] > 20


def test_several_hundred_damaged_images_are_read_or_refused(tmp_path):
    files, path = fuzz_images.make_files(), tmp_path / "image"
    outcomes = {"read": 0, "refused": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(300):
            path.write_bytes(fuzz_images.make_case(number, 0, files)[1])
            outcomes[fuzz_images.read(path)] += 1
    assert min(outcomes.values()) > 50


def test_the_same_number_makes_the_same_case():
    files = fuzz_images.make_files()
    assert fuzz_images.make_case(7, 0, files) == fuzz_images.make_case(7, 0, files)
    assert fuzz_images.make_case(7, 0, files) != fuzz_images.make_case(8, 0, files)


def test_two_fits_are_the_same_files_to_begin_with(tmp_path):
    world = make_world(40, 3, 2, width=4)
    for name in ("first", "second"):
        model = PNPDiscoverer(3, max_iter=1, n_neighbors=5, whitening=None, random_state=0)
        fuzz_models.save_alike(model.fit(*world.labelled, world.rest), tmp_path / name)
    for name in ("model.json", "arrays.safetensors"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


WORKER = """
import sys, json, os, time
sys.path.insert(0, {benchmarks!r})
from pathlib import Path
from _fuzzing import run_cases, run_worker, tell
def case(number, folder):
    if number == 1: os.kill(os.getpid(), 11)
    if number == 2: time.sleep(60)
    if number == 3: raise KeyError("x")
    if number == 4: eval(compile("1", "f", "eval"))
    if number == 5: open("/etc/hostname").close()
    if number == 6: bytearray(2**33)
    return "fine"
if "--worker" in sys.argv:
    first, last = map(int, sys.argv[-2:])
    room = Path("/nowhere")
    run_worker(case, lambda number, folder: None, first=first, last=last, folder=room, memory=2**31)
else:
    result = run_cases([sys.executable, __file__], 8, start=0, n_jobs=1, limit=2.0)
    print(json.dumps(dict(result.outcomes)))
    sys.exit(tell(result))
"""


def test_the_fuzzer_sees_crashes_hangs_errors_code_foreign_files_and_memory(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WORKER.format(benchmarks=str(BENCHMARKS)))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 1, ran.stderr
    for outcome in ("crash -11", "hang", "KeyError", "watched", "MemoryError"):
        assert f"BUG {outcome}" in ran.stdout
    assert '"fine": 2' in ran.stdout
    assert '"BUG watched": 2' in ran.stdout


# --- folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["model.json", "/dev/zero", "nowhere"], ids=["loop", "endless", "dangling"]
)
@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors"])
def test_a_link_to_what_is_no_plain_file_is_refused(saved, name, target):
    (saved / name).unlink()
    (saved / name).symlink_to(name if target == "model.json" else target)
    with pytest.raises(ModelFileError):
        PNPDiscoverer.load(saved)


def test_a_link_to_a_plain_file_is_read_as_that_file(saved, tmp_path):
    (saved / "arrays.safetensors").rename(tmp_path / "elsewhere")
    (saved / "arrays.safetensors").symlink_to(tmp_path / "elsewhere")
    assert PNPDiscoverer.load(saved).n_clusters_ == 5


@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors", "."])
def test_what_may_not_be_read_is_told_by_its_path(saved, name, monkeypatch):
    if os.geteuid() == 0:  # root may read all: the answer of the system is made up
        real = Path.open

        def refuse(path, *args, **kwargs):
            if path.name == name or (name == "." and path.parent == saved):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **kwargs)

        monkeypatch.setattr(Path, "open", refuse)
    else:
        (saved / name).chmod(0)
    try:
        with pytest.raises((ModelFileError, PermissionError), match="model"):
            PNPDiscoverer.load(saved)
    finally:
        (saved / name).chmod(0o700)


NUMBERS = {
    "long prototypes": (set_array("prototypes", lambda a: a * 3), "prototypes must be rows of length 1"),
    "no directions": (set_array("discriminant.directions", lambda a: a * 0), "directions must be rows of"),
    "a cosine of 2": (set_array("usual_closeness", lambda a: a + 2), "must lie from -1 to 1"),
    "huge weights": (set_array("encoder.expand.weight", lambda a: a + 3e38), r"expand\.weight is too large"),
    "a centre far away": (set_array("geometry.centre", lambda a: a + 1e300), "centre is too large"),
    "a whole number of 4,000 digits": (set_at(["content", "n_known"], 10**4000), "4001 digits"),
    "next to no sharpness": (set_at(["content", "values", "_sharpness"], 5e-324), "_sharpness=5e-324 is not"),
    "much sharpness": (set_at(["content", "values", "_sharpness"], 10**299), "_sharpness=1000.* is not from"),
    "a sharpness of 4,000 digits": (set_at(["content", "values", "_sharpness"], 10**4000), "4001 digits"),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_that_no_fit_has_are_refused_by_name(saved, kind):
    change, told = NUMBERS[kind]
    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=told):
        PNPDiscoverer.load(saved)


@pytest.mark.parametrize("seed", range(12))
def test_values_nested_very_deep_are_refused(saved, seed):
    _mutations.forge_depth(saved, np.random.default_rng(seed))
    with pytest.raises(ModelFileError):
        PNPDiscoverer.load(saved)


# --- pictures ----------------------------------------------------------------------------------------------


def test_a_pipe_among_images_is_named_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(BadImageError, match=r"pipe\.png is no plain file"):
        read_images([tmp_path / "pipe.png"]).open(0)


def test_a_picture_that_would_start_a_program_is_not_opened(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    path = tmp_path / "page.png"  # whatever its name says, its content is PostScript
    path.write_bytes(fuzz_images.make_files()["eps"])
    with pytest.raises(BadImageError, match=r"page\.png cannot be read as an image"):
        read_images([path]).open(0)
