"""The methods that a benchmark compares, by name, and what each is given.

Knows how estimators are made, and no data. What is slow to import waits until a method is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

__all__ = ["METHODS", "RESERVED", "Method", "Task", "build_method", "find_method"]

Given = Literal["nothing", "the number of classes"]

# Parameters of the paper's presets that only images have.
_OF_IMAGES = ("backbone", "n_trainable_blocks", "cache_size")
RESERVED = ("random_state", "verbose", "cache_dir")
# The paper's k for most of its fine-grained sets, for data that it does not know.
_NEAREST_PRESET = "cub200"


class Task(NamedTuple):
    """What a method may know of the data when it is built."""

    has_images: bool
    preset: str | None
    n_clusters: int | None  # only for methods that are given it
    seed: int
    cache_dir: str | None = None
    verbose: int = 0


class Method(NamedTuple):
    """A method: what it is, what it is given, how it is built, and whether it can see images."""

    summary: str
    given: Given
    build: Callable[[Task], Any]
    sees_images: bool = False


def build_method(name: str, task: Task, parameters: Mapping[str, Any]) -> Any:
    """Build the estimator of a method.

    Parameters
    ----------
    name : str
        A name of ``METHODS``.
    task : Task
    parameters : mapping
        Of the estimator, in place of the method's own.

    Returns
    -------
    estimator
        Not fitted.

    Examples
    --------
    >>> from pnp_gcd.benchmark.methods import Task, build_method
    >>> build_method("pnp", Task(False, None, None, seed=0), {"max_iter": 3})
    PNPDiscoverer(max_iter=3, random_state=0)
    """
    method = find_method(name)
    reserved = [parameter for parameter in RESERVED if parameter in parameters]
    if reserved:
        raise ValueError(
            f"parameters={dict(parameters)} sets {reserved[0]!r}, which belongs to the run. Leave it "
            "out: the run's own seed, verbosity and folder are used."
        )
    if method.given == "nothing" and task.n_clusters is not None:
        raise ValueError(f"n_clusters={task.n_clusters} is given to {name}, which is to find it. Pass None.")
    estimator = method.build(task)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    try:
        return estimator.set_params(**values)
    except ValueError as error:
        raise ValueError(f"method={name!r} cannot take parameters={dict(parameters)}: {error}") from error


def find_method(name: str) -> Method:
    """Return the method of a name, or say which names there are."""
    if name not in METHODS:
        raise ValueError(f"method={name!r} is unknown. Pass one of {', '.join(METHODS)}.")
    return METHODS[name]


def _build_discoverer(task: Task, **parameters: Any) -> Any:
    from pnp_gcd import PNPDiscoverer

    if task.has_images and task.cache_dir:
        parameters["cache_dir"] = task.cache_dir
    return PNPDiscoverer(task.n_clusters, random_state=task.seed, verbose=task.verbose, **parameters)


def _build_paper(task: Task) -> Any:
    from pnp_gcd import presets

    known = task.preset in presets.PAPER_DATASETS
    parameters = presets.paper(task.preset if known and task.preset else _NEAREST_PRESET)
    if not task.has_images:
        parameters = {name: value for name, value in parameters.items() if name not in _OF_IMAGES}
    return _build_discoverer(task, **parameters)


def _build_peer(name: str) -> Callable[[Task], Any]:
    def build(task: Task) -> Any:
        from pnp_gcd.benchmark import peers

        return getattr(peers, name)(task.n_clusters, random_state=task.seed)

    return build


def _build_infomap(task: Task) -> Any:
    from pnp_gcd.benchmark import peers

    return peers.InfomapPeer(random_state=task.seed)


METHODS: dict[str, Method] = {
    "pnp": Method("PNPDiscoverer with its defaults", "nothing", _build_discoverer, sees_images=True),
    "pnp-paper": Method("PNPDiscoverer with the paper's settings", "nothing", _build_paper, sees_images=True),
    "pnp-given-k": Method(
        "PNPDiscoverer, given the number of classes",
        "the number of classes",
        _build_discoverer,
        sees_images=True,
    ),
    "k-means": Method("k-means of all rows", "the number of classes", _build_peer("KMeansPeer")),
    "ss-k-means": Method(
        "semi-supervised k-means (GCD)", "the number of classes", _build_peer("SemiSupervisedKMeans")
    ),
    "ss-k-means-estimated": Method(
        "semi-supervised k-means, the number estimated by Max-ACC (GCD)",
        "nothing",
        _build_peer("SemiSupervisedKMeans"),
    ),
    "simgcd": Method("SimGCD on the same features", "the number of classes", _build_peer("SimGCD")),
    "simgcd-estimated": Method(
        "SimGCD on the same features, the number estimated by Max-ACC", "nothing", _build_peer("SimGCD")
    ),
    "infomap-all": Method("Infomap on all rows, DCCL's clustering", "nothing", _build_infomap),
}
"""Names and methods, ours first."""
