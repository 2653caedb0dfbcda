"""The paper's settings for its seven benchmarks, as parameters of :class:`~pnp_gcd.PNPDiscoverer`.

Knows names and numbers only.
"""

from __future__ import annotations

from typing import Any

__all__ = ["PAPER_DATASETS", "paper"]

# k of the neighbour graph, the only setting that the paper changes from one data set to the next.
_N_NEIGHBORS = {
    "cifar10": 2000,
    "cifar100": 250,
    "imagenet100": 1000,
    "herbarium19": 10,
    "cub200": 10,
    "stanford_cars": 10,
    "fgvc_aircraft": 20,
}

PAPER_DATASETS = tuple(_N_NEIGHBORS)
"""Names of the data sets that :func:`paper` knows."""


def paper(dataset: str) -> dict[str, Any]:
    """Return the paper's settings for one of its data sets.

    A ViT-B/16 of DINO whose last block is trained for 200 epochs in batches of 128, the graph of the
    unlabelled images with the paper's k and threshold, clustered in every epoch; nothing is chosen from
    the data. :doc:`Fidelity </fidelity>` says what of the paper these settings leave different.

    Parameters
    ----------
    dataset : str
        One of ``presets.PAPER_DATASETS``.

    Returns
    -------
    dict
        Parameters; change what you like before you pass them on.

    Examples
    --------
    >>> from pnp_gcd import PNPDiscoverer, presets
    >>> model = PNPDiscoverer(**presets.paper("cub200"), random_state=0)
    >>> model.n_neighbors, model.backbone
    (10, 'vit_base_patch16_224.dino')
    >>> PNPDiscoverer(**presets.paper("cifar10") | {"backbone_weights": None, "max_iter": 1}).n_neighbors
    2000
    """
    if dataset not in _N_NEIGHBORS:
        raise ValueError(
            f"dataset={dataset!r} is none of the paper's. Pass one of {', '.join(PAPER_DATASETS)}."
        )
    return {
        "backbone": "vit_base_patch16_224.dino",
        "n_trainable_blocks": 1,
        "cache_size": 0,
        "n_neighbors": _N_NEIGHBORS[dataset],
        "similarity_threshold": 0.6,
        "resolution": 1.0,
        "edge_weights": "cosine",
        "merge_threshold": float("inf"),
        "cluster_interval": 1,
        "cluster_on": "unlabelled",
        "distill_on": "unlabelled",
        "whitening": None,
        "n_components": None,
        "max_iter": 200,
        "batch_size": 128,
        "learning_rate": 0.1,
        "distillation_weight": 0.65,
        "known_weight": 0.35,
        "entropy_weight": 2.0,
        "supervised_weight": 0.35,
        "unsupervised_weight": 0.65,
        "temperature": 0.1,
        "teacher_temperature": (0.07, 0.04),
        "contrastive_temperature": 1.0,
        "supervised_temperature": 1.0,
        "teacher": "ema",
        "teacher_momentum": (0.7, 0.99),
        "potential_prototypes": "trainable",
        "prototypes_per_class": 4,
        "projection_width": (2048, 256),
    }
