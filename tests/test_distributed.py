"""A fit by several processes: the answer of one, one voice, and an end that is told when a worker dies."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import _distributed_program as program
import numpy as np
import pytest
import torch

import pnp_gcd
from pnp_gcd import distributed
from pnp_gcd.distributed import process_group, take_part
from pnp_gcd.exceptions import WorkerLostError
from pnp_gcd.image_rows import ImageRows
from pnp_gcd.workers import ALONE, World, is_lost, shorten

# What two workers may differ by from one process, in features, prototypes, weights and losses: sums of
# other lengths are rounded otherwise. Measured: 2e-7.
TOLERANCE = 1e-5


def launch(choice, folder, *options):
    """Run the program by torchrun with two workers, and return what each of them saw."""
    package = str(Path(pnp_gcd.__file__).parents[1])
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        *options,
    ]
    path = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [*command, program.__file__, choice, str(folder)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(2)], ran.stderr


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    return launch("several", tmp_path_factory.mktemp("several"))[0]


def largest_difference(found, expected):
    pairs = [(found["features"], expected["features"]), (found["prototypes"], expected["prototypes"])]
    pairs += zip(found["weights"], expected["weights"], strict=True)
    pairs += [
        (row[name], other[name])
        for row, other in zip(found["history"], expected["history"], strict=True)
        for name in other
    ]
    return max(float(np.abs(np.asarray(a) - b).max()) for a, b in pairs)


def assert_same_answer(found, expected):
    for labels, others in zip(found["labels"], expected["labels"], strict=True):
        np.testing.assert_array_equal(labels, others)
    assert found["interval"] == expected["interval"]
    assert largest_difference(found, expected) < TOLERANCE


# --- two workers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", program.FITS)
def test_two_workers_find_what_one_process_finds(workers, name):
    assert [seen["world"] for seen in workers] == [(0, 2), (1, 2)]
    assert_same_answer(workers[0][name], program.fit(name))


@pytest.mark.parametrize("name", program.FITS)
def test_every_worker_ends_with_the_same_model(workers, name):
    assert_same_answer(workers[1][name], workers[0][name])
    assert largest_difference(workers[1][name], workers[0][name]) == 0


def test_all_that_learns_is_equal_to_the_last_bit_in_the_middle_of_an_epoch(workers):
    assert workers[0]["state"] == workers[1]["state"]


def test_gradients_of_rows_that_are_dealt_unevenly_are_those_of_one_process(workers):
    for seen in workers:
        assert seen["gradients"]["difference"] < 1e-6
        assert seen["gradients"]["rows"]
        assert seen["gradients"]["nobody"] == (0, 2)
        assert seen["gradients"]["one has none"] == (2, 3)


def test_images_are_described_to_the_last_bit_as_by_one_process(workers):
    for seen in workers:
        for found, expected in zip(seen["described"], program.describe_pictures(), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_seed_that_is_not_given_is_the_first_worker_s(workers):
    np.testing.assert_array_equal(workers[0]["drawn"], workers[1]["drawn"])


@pytest.mark.parametrize(("what", "name"), [("other rows", "rows"), ("other seed", "parameters")])
def test_workers_that_were_given_something_else_are_told_so(workers, what, name):
    for seen in workers:
        assert seen[what].startswith(
            f"WorkerMismatchError: Worker 1 does not have the same {name} as worker 0"
        )


def test_an_error_of_one_worker_is_everybody_s_and_the_next_fit_goes_on(workers):
    for seen in workers:
        assert seen["bad rows"].startswith("ValueError: X_unlabelled cannot be used")
        assert seen["error on the first"].startswith("EmptyGraphError")


def test_no_thread_of_the_group_is_left_that_would_abort_the_process_as_it_ends(workers):
    assert not [name for seen in workers for name in seen["threads"] if "gloo" in name]


def test_only_the_first_worker_warns(workers):
    assert workers[0]["warnings"] == ["FeatureScaleWarning"]
    assert workers[1]["warnings"] == []


def test_an_interrupt_of_any_worker_ends_the_epoch_for_all(workers):
    assert [seen["keep"] for seen in workers] == ["no error: 2", "no error: 2"]
    assert [seen["raise"] for seen in workers] == ["KeyboardInterrupt: "] * 2


def test_an_error_in_the_middle_is_told_and_the_others_do_not_wait(workers):
    assert workers[1]["mine"] == "ArithmeticError: mine alone"
    assert workers[0]["mine"].startswith("WorkerLostError: Worker 0 of 2 lost another one, in epoch 2 of 4 (")
    assert "pass checkpoint_dir= and an integer random_state" in workers[0]["mine"]
    assert all("an earlier fit" in seen["afterwards"].lower() for seen in workers)


def test_a_fit_goes_on_after_a_worker_was_killed(tmp_path):
    workers, errors = launch("killed", tmp_path, "--max-restarts", "1")
    name, message = json.loads((tmp_path / "lost.json").read_text())
    assert name == "WorkerLostError"
    assert message.startswith("Worker 0 of 2 lost another one, in epoch 3 of 4 (")
    assert f'checkpoint_dir="{tmp_path / "checkpoints"}"' in message
    assert "WorkerLostError" in errors
    assert [seen["epochs"] for seen in workers] == [[2, 3], [2, 3]]  # what was done is not done again
    for seen in workers:
        assert_same_answer(seen["fit"], program.fit("vectors"))


# --- one process -------------------------------------------------------------------------------------------


def test_without_torchrun_a_group_says_how_to_start_one(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(RuntimeError, match=r"no RANK in the environment.*torchrun --nproc-per-node 2"):
        process_group().__enter__()
    with process_group(needs_torchrun=False) as world:
        assert world is ALONE
        assert world.is_first


@pytest.fixture
def group_of_one(monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("group_of_one")
def test_a_group_is_entered_once_and_left_behind_clean():
    before = signal.getsignal(signal.SIGTERM)
    with process_group() as world:
        assert (world.rank, world.size) == (0, 1)
        assert torch.distributed.is_initialized()
        with pytest.raises(RuntimeError, match="already"):
            process_group().__enter__()
    assert not torch.distributed.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is before
    assert distributed._current() is ALONE


@pytest.mark.usefixtures("group_of_one")
def test_a_worker_that_torchrun_ends_says_so():
    def fit():
        with process_group():
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()

    with pytest.raises(WorkerLostError, match="told to end, as torchrun does"):
        fit()
    assert not torch.distributed.is_initialized()
    os.kill(os.getpid(), signal.SIGTERM)  # let pass, so that the error is seen
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_fits_in_other_threads_and_processes_are_no_part_of_the_group(monkeypatch):
    entered = World(0, 2)
    monkeypatch.setattr(distributed._HERE, "entered", (entered, os.getpid()), raising=False)
    assert distributed._current() is entered
    seen = []
    thread = threading.Thread(target=lambda: seen.append(distributed._current()))
    thread.start()
    thread.join()
    assert seen == [ALONE]
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a process that was forked
    assert distributed._current() is ALONE


def test_alone_nothing_is_done():
    rows = torch.ones(3, 2, requires_grad=True)
    network = torch.nn.Linear(2, 2)
    with take_part("somewhere") as world:
        assert world is ALONE
    assert ALONE.join(rows, np.zeros(3, int)) is rows
    assert ALONE.share_gradients(network) is network
    assert ALONE.mine(np.zeros(3, int)) == slice(None)
    assert ALONE.on_first(lambda: 7) == 7


def test_a_backbone_computes_where_every_worker_can():
    assert World(1, 2).choose_device("auto") == "cpu"
    assert World(1, 2, has_gpu=True).choose_device("auto") == "auto"
    with pytest.raises(ValueError, match=r'device="cuda" needs a GPU .* 2 workers'):
        World(1, 2, n_local=2).choose_device("cuda")


def test_fewer_images_than_workers_are_refused():
    with pytest.raises(ValueError, match="2 images for 3 workers: start no more"):
        ImageRows.prepare([None] * 2, None, None, world=World(0, 3))


def test_messages_of_torch_are_told_without_its_own_files():
    message = (
        "[/a/gloo/pair.cc:545] Read error [127.0.0.1]:1: Connection reset by peer. This is typical. GLHF!"
    )
    assert shorten(message) == "Read error [127.0.0.1]:1: Connection reset by peer"
    assert is_lost(RuntimeError(message))
    assert not is_lost(RuntimeError("shapes differ"))
