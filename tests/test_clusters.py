"""The same search on real local clusters of dask and ray."""

import itertools
import os
import secrets
import signal
import threading
import time
from contextlib import contextmanager
from unittest import mock

import joblib
import numpy as np
import pytest
import torch
from conftest import make_world
from sklearn.model_selection import GridSearchCV
from sklearn.semi_supervised import LabelSpreading

from pnp_gcd import PNPDiscoverer
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive

X, Y = make_world(240, 6, 4).stacked
# Large beside what a task weighs by itself, some 20 kB; for a model that fits it in no time.
WIDE, WIDE_Y = make_world(1000, 6, 4, width=64).stacked
FOLDS = ClassHoldoutSplit(2, random_state=0)


def make_search(cv=FOLDS):
    """Six fits, whose scores differ between settings and folds."""
    model = PNPDiscoverer(
        n_neighbors=5,
        similarity_threshold=0.0,
        resolution=1.0,
        whitening="soft-total",
        max_iter=1,
        random_state=0,
    )
    return GridSearchCV(
        Transductive(model, lazy=True), {"estimator__n_clusters": [3, 4, None]}, cv=cv, error_score="raise"
    )


def make_quick_search():
    """Six fits too, of a model that costs nothing: for what is sent, not for what is found."""
    model = Transductive(LabelSpreading(kernel="knn"), lazy=True)
    return GridSearchCV(model, {"estimator__n_neighbors": [3, 5, 7]}, cv=FOLDS, refit=False)


def read_scores(search):
    return np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(2)])


def assert_same_answer(search, serial):
    np.testing.assert_array_equal(read_scores(search), read_scores(serial))
    assert search.best_params_ == serial.best_params_


@pytest.fixture(scope="module")
def serial():
    """The search in this process, on one thread as on the workers."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        search = make_search().fit(X, Y)
    finally:
        torch.set_num_threads(n_threads)
    assert len(np.unique(read_scores(search))) > 2  # else equal scores would say little
    return search


@contextmanager
def own_environment(**variables):
    """Let a cluster set the threads by itself, and take back all that it sets: dask writes into ours."""
    with mock.patch.dict(os.environ, variables):
        os.environ.pop("OMP_NUM_THREADS", None)
        yield


# --- dask --------------------------------------------------------------------------------------------------


@contextmanager
def start_dask():
    distributed = pytest.importorskip("distributed")
    with (
        own_environment(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def dask_client():
    with start_dask() as client:
        yield client


@pytest.fixture
def sent(dask_client, monkeypatch):
    """Bytes that this process, which is client and scheduler, has written to its sockets."""
    from distributed.comm.tcp import TCP

    written, write = [], TCP.write

    async def count(self, *args, **kwargs):
        n_bytes = await write(self, *args, **kwargs)
        written.append(n_bytes)
        return n_bytes

    monkeypatch.setattr(TCP, "write", count)
    return lambda: sum(written)


def test_dask_gives_exactly_the_serial_answer(dask_client, serial):
    with joblib.parallel_config(backend="dask"):
        search = make_search().fit(X, Y)
    assert_same_answer(search, serial)


def test_a_dask_worker_uses_one_thread_of_torch(dask_client):
    assert list(dask_client.run(torch.get_num_threads).values()) == [1, 1]


def test_on_dask_the_rows_are_sent_once_and_not_with_every_fit(dask_client, sent):
    with joblib.parallel_config(backend="dask"):
        make_quick_search().fit(WIDE, WIDE_Y)
    assert WIDE.nbytes < sent() < 3 * WIDE.nbytes


@pytest.mark.slow
def test_on_dask_a_pool_given_to_fit_is_sent_with_every_fit(dask_client, sent):
    # It stands in a dict, which joblib does not look into. So the count above would see rows sent each time.
    world = make_world(240, 6, 4, width=64)
    search = make_search().set_params(refit=False)
    with joblib.parallel_config(backend="dask"):
        search.fit(*world.labelled, X_unlabelled=(world.rest,))
    n_fits, n_ways = 6, 2  # from the client to the scheduler, from there to a worker
    assert sent() > n_fits * n_ways * world.rest.nbytes


def test_dask_sends_rows_to_all_workers_if_they_are_the_very_objects_of_the_search(dask_client, monkeypatch):
    one_by_one, scatter = [], dask_client.scatter

    def watch(data, *args, broadcast=False, **kwargs):
        if not broadcast:
            one_by_one.append(data)
        return scatter(data, *args, broadcast=broadcast, **kwargs)

    monkeypatch.setattr(dask_client, "scatter", watch)
    folds = list(FOLDS.split(WIDE, WIDE_Y))
    everything = [WIDE, WIDE_Y, *itertools.chain(*folds)]
    with joblib.parallel_config(backend="dask", scatter=everything):
        make_quick_search().set_params(cv=folds).fit(WIDE, WIDE_Y)
    assert one_by_one == []
    with joblib.parallel_config(backend="dask", scatter=[WIDE.copy(), WIDE_Y]):
        make_quick_search().set_params(cv=folds).fit(WIDE, WIDE_Y)
    assert any(data is WIDE for data in one_by_one)


def kill_a_busy_worker(client, killed, *, after):
    """Kill a worker at work, once more than ``after`` tasks of a search have been handed out."""
    pids, seen, deadline = client.run(os.getpid), set(), time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        at_work = {address: keys for address, keys in client.processing().items() if keys}
        seen.update(itertools.chain(*at_work.values()))
        if len(seen) > after:
            killed.append(pids[next(iter(at_work))])
            os.kill(killed[0], signal.SIGKILL)
        time.sleep(0.02)


@pytest.mark.slow
def test_a_dask_worker_killed_in_the_search_does_not_change_the_answer(serial):
    with start_dask() as client:
        client.amm.stop()  # it would thin out the copies
        folds = list(FOLDS.split(X, Y))
        killed = []
        # joblib hands out four tasks for two workers: with the fifth, one has come back.
        killer = threading.Thread(target=kill_a_busy_worker, args=(client, killed), kwargs={"after": 4})
        killer.start()
        with joblib.parallel_config(backend="dask", scatter=[X, Y, *itertools.chain(*folds)]):
            search = make_search(folds).fit(X, Y)
        killer.join()
        assert killed
        assert killed[0] not in client.run(os.getpid).values()
    assert_same_answer(search, serial)


# --- ray ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory):
    ray = pytest.importorskip("ray")
    from joblib.pool import PicklingPool
    from ray.util.joblib import register_ray

    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(secrets.token_hex(32))
    bases = PicklingPool.__bases__
    # A token of its own: ray would leave one in the home directory.
    with own_environment(RAY_AUTH_TOKEN_PATH=str(token), RAY_USAGE_STATS_ENABLED="0"):
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=200 * 2**20,
        )
        register_ray()
        try:
            yield ray
        finally:
            ray.shutdown()
            PicklingPool.__bases__ = bases  # ray's backend put its own pool there, for all of joblib


def on_ray(**kwargs):
    return joblib.parallel_config(backend="ray", n_jobs=2, **kwargs)


class Stored(np.ndarray):
    """An array that is pickled as a reference to ray's store, as docs/clusters.md has it."""

    def __reduce_ex__(self, protocol):
        import ray

        return ray.get, (self.reference,)


@pytest.mark.slow
def test_ray_gives_exactly_the_serial_answer(ray_cluster, serial):
    with on_ray():
        search = make_search().fit(X, Y)
    assert_same_answer(search, serial)


@pytest.mark.slow
def test_a_ray_worker_uses_one_thread_of_torch(ray_cluster):
    with on_ray():
        threads = joblib.Parallel()(joblib.delayed(torch.get_num_threads)() for _ in range(4))
    assert threads == [1, 1, 1, 1]


@pytest.mark.slow
def test_ray_without_n_jobs_stays_in_the_calling_process(ray_cluster):
    with joblib.parallel_config(backend="ray"):
        assert set(joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))) == {os.getpid()}
    with on_ray():
        assert os.getpid() not in joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))


@pytest.mark.slow
def test_on_ray_rows_go_with_every_fit_unless_they_stand_in_its_store(ray_cluster, monkeypatch):
    from ray.util.multiprocessing import pool

    weights, run = [], pool.Pool._run_batch

    def weigh(self, actor, task, batch):
        weights.append(len(ray_cluster.cloudpickle.dumps(task)))
        return run(self, actor, task, batch)

    monkeypatch.setattr(pool.Pool, "_run_batch", weigh)
    with on_ray():
        plain = make_quick_search().fit(WIDE, WIDE_Y)
    if pool.RayBatchedCalls is None:  # ray's own store for joblib, which it leaves out with newer ones
        assert sum(weights) > 6 * WIDE.nbytes
    weights.clear()
    stored = WIDE.view(Stored)
    stored.reference = ray_cluster.put(WIDE)
    with on_ray():
        by_reference = make_quick_search().fit(stored, WIDE_Y)
    assert 0 < sum(weights) < WIDE.nbytes
    np.testing.assert_array_equal(read_scores(by_reference), read_scores(plain))


def find_actors():
    """Return the processes of ray's pool that are at work; ray writes what they do in their title."""
    psutil = pytest.importorskip("psutil")
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "PoolActor.run_batch" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def kill_an_actor(killed):
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for process in find_actors()[:1]:
            process.kill()
            killed.append(process.pid)
        time.sleep(0.02)


@pytest.mark.slow
def test_a_ray_worker_killed_in_the_search_ends_it_with_an_error(ray_cluster):
    killed = []
    killer = threading.Thread(target=kill_an_actor, args=(killed,))
    killer.start()
    with pytest.raises(ray_cluster.exceptions.ActorDiedError), on_ray():
        make_search().fit(X, Y)
    killer.join()
    assert killed


@pytest.mark.slow
def test_a_ray_worker_that_may_restart_does_not_change_the_answer(ray_cluster, serial):
    killed = []
    killer = threading.Thread(target=kill_an_actor, args=(killed,))
    killer.start()
    with on_ray(ray_remote_args={"max_restarts": 2, "max_task_retries": 2}):
        search = make_search().fit(X, Y)
    killer.join()
    assert killed
    assert_same_answer(search, serial)
