"""What tests/test_distributed.py starts by torchrun: several fits, or one in which a worker is killed.

Each worker writes what it saw to a pickle, by the number of the worker.
"""

import json
import os
import pickle
import signal
import sys
import warnings
from pathlib import Path

import faiss  # noqa: F401 - before infomap, see conftest.py
import numpy as np
import torch
from conftest import make_world
from test_image_mode import make_pictures, small

from pnp_gcd import PNPDiscoverer
from pnp_gcd.distributed import process_group
from pnp_gcd.exceptions import DiscoveryWarning
from pnp_gcd.image_mode import ImageMode
from pnp_gcd.images import read_images
from pnp_gcd.trainer import Trainer
from pnp_gcd.workers import ALONE, run_any

QUICK = {"max_iter": 4, "batch_size": 64, "hidden_width": 16, "random_state": 0, "cluster_interval": 2}


def rows():
    world = make_world(200, 5, 3, seed=1)
    return *world.labelled, world.rest


def pictures():
    X, y = make_pictures()
    has_label = (y < 3) & (np.arange(len(y)) % 2 == 0)
    return X[has_label], y[has_label], X[~has_label]


FITS = {
    "vectors": lambda: (PNPDiscoverer(**QUICK), rows()),
    "a sample": lambda: (PNPDiscoverer(**QUICK | {"max_samples": 100}), rows()),
    "batches of two": lambda: (PNPDiscoverer(**QUICK | {"batch_size": 2, "max_iter": 1}), rows()),
    "images": lambda: (small(batch_size=16), pictures()),
    "images that are not kept": lambda: (small(batch_size=16, cache_size=0), pictures()),
}


def describe(model, arguments):
    """Return what a fit found, as plain values."""
    return {
        "labels": [model.labels_, model.unlabelled_labels_],
        "features": model.transform(np.concatenate([arguments[0], arguments[2]])),
        "prototypes": model.prototypes_,
        "weights": [tensor.numpy() for tensor in model.encoder_.state_dict().values()],
        "history": [{**row, "seconds": 0} for row in model.history_],
        "interval": model.n_clusters_interval_,
    }


def fit(name):
    model, arguments = FITS[name]()
    return describe(model.fit(*arguments), arguments)


class Spy:
    """Calls a function instead of a method of the trainer at one step."""

    def __init__(self, step, function):
        self.step, self.function, self.original = step, function, Trainer.train_batch

    def __enter__(self):
        def train_batch(trainer, *arguments):
            if trainer.step == self.step:
                self.function(trainer)
            return self.original(trainer, *arguments)

        Trainer.train_batch = train_batch

    def __exit__(self, *error):
        Trainer.train_batch = self.original


def message_of(function):
    try:
        return f"no error: {function()!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def raise_error(error):
    raise error


def gradients(world):
    """Return the gradients of a loss of all rows, by sharing them and by one process."""
    owners = np.array([1, 0, 0, 1, 0, 0, 0])
    inputs = torch.arange(21.0).reshape(7, 3).sin()
    torch.manual_seed(world.rank)  # sharing starts from the first one's weights
    network = torch.nn.Linear(3, 2)
    learner = world.share_gradients(network)
    joined = world.join(run_any(learner, inputs[world.mine(owners)]), owners)
    nobody = world.join(run_any(learner, inputs[:0]), owners[:0])
    (joined.T @ joined).sin().sum().backward()
    shared = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    whole = network(inputs)
    (whole.T @ whole).sin().sum().backward()
    differences = [(a - p.grad).abs().max() for a, p in zip(shared, network.parameters(), strict=True)]
    rows = world.join_rows(inputs.numpy()[world.mine(owners)], owners)
    return {
        "difference": float(max(differences)),
        "rows": rows.tolist() == inputs.tolist(),
        "nobody": tuple(nobody.shape),
        "one has none": world.join_rows(np.ones((2 * world.is_first, 3)), np.zeros(2, int)).shape,
    }


def describe_pictures(world=ALONE):
    """Return what the geometry is chosen from, by activations that are kept and by others."""
    X = make_pictures()[0][:45]
    described = []
    for size in ("1GB", 0):
        mode = ImageMode.from_parameters(small(cache_size=size), seed=0, world=world)
        with mode.prepare(read_images(X), world=world) as prepared:
            described.append(prepared.describe())
    return described


def several(world):
    """Fit in many ways; after an error that all share, the next fit goes on."""
    X, y, pool = rows()
    seen = {name: fit(name) for name in FITS}
    seen["world"] = (world.rank, world.size)
    seen["gradients"] = gradients(world)
    seen["described"] = describe_pictures(world)

    states = []
    with Spy(5, lambda trainer: states.append(trainer.state())):
        fit("vectors")
    seen["state"] = [pickle.dumps(array) for _, array in sorted(states[0].arrays.items())]

    drawn = PNPDiscoverer(**QUICK | {"random_state": None, "max_iter": 1}).fit(X, y, pool)
    seen["drawn"] = drawn.prototypes_
    model = PNPDiscoverer(**QUICK)
    seen["other rows"] = message_of(lambda: model.fit(X, y, pool + 1e-3 * world.rank))
    seen["other seed"] = message_of(lambda: PNPDiscoverer(**QUICK | {"random_state": world.rank}).fit(X))
    seen["bad rows"] = message_of(lambda: model.fit(X, y, pool if world.is_first else pool * np.nan))
    no_edge = PNPDiscoverer(**QUICK | {"similarity_threshold": 1.0, "n_neighbors": 5})
    seen["error on the first"] = message_of(lambda: no_edge.fit(np.eye(40)))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DiscoveryWarning)
        PNPDiscoverer(**QUICK | {"max_iter": 0}).fit(X, y, 100 * pool)
    seen["warnings"] = [warning.category.__name__ for warning in caught]

    interrupt = Spy(6, lambda _: os.kill(os.getpid(), signal.SIGINT))
    for choice in ("keep", "raise"):
        model = PNPDiscoverer(**QUICK, on_interrupt=choice)
        if world.rank == 1:  # of which the first one hears
            with interrupt:
                told = message_of(lambda model=model: model.fit(X, y, pool).n_iter_)
        else:
            told = message_of(lambda model=model: model.fit(X, y, pool).n_iter_)
        seen[choice] = told

    if world.rank == 1:  # the last one: an error of one worker alone ends the group
        with Spy(4, lambda _: raise_error(ArithmeticError("mine alone"))):
            seen["mine"] = message_of(lambda: model.fit(X, y, pool))
    else:
        seen["mine"] = message_of(lambda: model.fit(X, y, pool))
    seen["afterwards"] = message_of(lambda: model.fit(X, y, pool))
    return seen


def killed(world, folder):
    """Kill the second worker in the middle of the third epoch, the first time."""
    model, arguments = FITS["vectors"]()
    model.set_params(checkpoint_dir=folder / "checkpoints")
    mark = folder / "killed"
    epochs = []
    original = Trainer.run_epoch
    Trainer.run_epoch = lambda trainer, epoch: epochs.append(epoch) or original(trainer, epoch)
    if mark.exists() or world.is_first:
        try:
            model.fit(*arguments)
        except Exception as error:
            (folder / "lost.json").write_text(json.dumps([type(error).__name__, str(error)]))
            raise
        return {"fit": describe(model, arguments), "epochs": epochs}
    mark.touch()
    with Spy(2 * 4 + 1, lambda _: os.kill(os.getpid(), signal.SIGKILL)):
        model.fit(*arguments)


if __name__ == "__main__":
    torch.set_num_threads(1)
    out = Path(sys.argv[2])
    with process_group(timeout=60) as group:
        found = several(group) if sys.argv[1] == "several" else killed(group, out)
    tasks = Path("/proc/self/task")
    found["threads"] = [(task / "comm").read_text() for task in tasks.iterdir()] if tasks.exists() else []
    (out / f"{group.rank}.pickle").write_bytes(pickle.dumps(found))
