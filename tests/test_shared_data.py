"""Discovery quality on larger data that does not ship with the package."""

from pathlib import Path

import numpy as np
import pytest

from pnp_gcd import PNPDiscoverer
from pnp_gcd.metrics import split_cluster_accuracy

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

pytestmark = pytest.mark.benchmark


def half_known(y, seed):
    """Return the known classes, the labelled rows and the pool: the split of the shared benchmark."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    known = np.sort(rng.permutation(classes)[: len(classes) // 2])
    unseen = rng.random(len(y)) < 0.1
    labelled = np.zeros(len(y), dtype=bool)
    for name in known:
        rows = rng.permutation(np.flatnonzero((y == name) & ~unseen))
        labelled[rows[: (len(rows) + 1) // 2]] = True
    return known, labelled, ~labelled & ~unseen


@pytest.mark.skipif(not (DATA / "banking77_minilm.npz").exists(), reason="shared data are not here")
def test_banking_with_half_of_its_classes_known_is_discovered():
    data = np.load(DATA / "banking77_minilm.npz")
    X, y = data["X"].astype(np.float32), data["y"].astype(int)
    known, labelled, pool = half_known(y, 0)
    model = PNPDiscoverer(random_state=0).fit(X[labelled], y[labelled], X[pool])
    found = split_cluster_accuracy(y[pool], model.unlabelled_labels_, known)
    assert found.all >= 0.70, (found, model.n_clusters_)


FLOWERS, WEIGHTS = DATA / "flowers30", DATA.parent / "weights" / "vit_small_patch14_saliency.safetensors"


@pytest.mark.skipif(not (FLOWERS.exists() and WEIGHTS.exists()), reason="shared data are not here")
def test_flowers_are_discovered_behind_a_pretrained_backbone():
    paths = np.array(sorted(str(path) for path in FLOWERS.glob("*/*")))
    names = np.array([Path(path).parent.name for path in paths])
    known, labelled, pool = half_known(names, 0)
    model = PNPDiscoverer(
        backbone="vit_small_patch14_dinov2", backbone_weights=WEIGHTS, image_size=70, random_state=0
    )
    model.fit(paths[labelled], names[labelled], paths[pool])
    found = split_cluster_accuracy(names[pool], model.unlabelled_labels_, known)
    assert found.all >= 0.75, (found, model.n_clusters_)
