"""Pictures to classes in one Pipeline: embed them with a network, then discover.

``ImageEmbedder`` learns nothing, so what it makes of a picture never changes. With ``memory`` the pictures
of a fold are embedded for the first setting of a search, and read again for all others. Files travel as
their names; ``pool`` stacks them, and the search cuts them into folds.

The search asks how directions of the features should be scaled (``whitening``). Whole kinds are hidden in
each fold, and the best setting is the one that finds them again.

The pictures are drawn by examples/coloured_shapes.py, which trains a network on them. Here the network
stays as it is, tiny and random, so that nothing has to be downloaded. For photographs take a pretrained
one: ``ImageEmbedder("vit_small_patch14_dinov2.lvd142m")``.

    python examples/image_pipeline.py
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from coloured_shapes import KINDS, LABELLED, draw
from PIL import Image
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from pnp_gcd import ImageEmbedder, PNPDiscoverer, pool
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive


def draw_files(folder: Path, n_each: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw pictures of every kind; return the names of their files, and their kinds."""
    names = np.repeat(list(KINDS), n_each)
    paths = [folder / f"{place:04d}.png" for place in range(len(names))]
    for name, path in zip(names, paths, strict=True):
        Image.fromarray(draw(name, rng)).save(path)
    return np.array([str(path) for path in paths]), names


def main() -> None:
    """Draw, embed, search and discover; then predict from pixels."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        paths, names = draw_files(Path(folder), 30, rng)
        has_label = np.isin(names, LABELLED) & (rng.random(len(names)) < 0.5)
        X, y = pool(paths[has_label], names[has_label], paths[~has_label])
        truth = names[~has_label]
        print(f"{has_label.sum()} files of {len(LABELLED)} kinds have a label, {len(truth)} have none")

        pipe = Pipeline(
            [
                (
                    "embed",
                    ImageEmbedder(
                        "test_resnet",  # any timm name goes here
                        backbone_weights=None,  # random; "auto" would download pretrained ones
                        image_size=64,
                        n_views=4,  # the mean of several crops is steadier than one picture
                        memory=str(Path(folder) / "features"),
                    ),
                ),
                ("discover", PNPDiscoverer(n_neighbors=10, resolution=1.0, max_iter=1, random_state=0)),
            ]
        )
        search = GridSearchCV(
            Transductive(pipe, lazy=True),
            {"estimator__discover__whitening": ["soft-total", "within", None]},
            cv=ClassHoldoutSplit(2, random_state=0),
        )
        start = time.perf_counter()
        search.fit(X, y)
        print(f"searched in {time.perf_counter() - start:.0f} seconds")
        for parameters, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        ):
            print(f"  whitening={parameters['estimator__discover__whitening']!r:<13} score {score:.3f}")

        found = search.best_estimator_.estimator_  # the Pipeline with the best setting, fitted to all files
        model = found["discover"]
        print(f"{model.n_clusters_} kinds, {len(model.novel_classes_)} of them new (truly {len(KINDS)})")
        for name in model.novel_classes_:
            kinds, counts = np.unique(truth[model.unlabelled_labels_ == name], return_counts=True)
            print(f"  {name}: {counts.sum():3d} pictures, mostly {kinds[counts.argmax()]}")
        score = split_cluster_accuracy(truth, model.unlabelled_labels_, LABELLED)
        print(
            f"right: {score.all:.0%} of all, {score.known:.0%} of known kinds, {score.novel:.0%} of new ones"
        )

        # Fitted on files, the Pipeline takes pixels as well.
        new_pictures = np.stack([draw(kind, rng) for kind in ("red disc", "black star", "orange triangle")])
        print("never seen before:", ", ".join(found.predict(new_pictures)))


if __name__ == "__main__":
    main()
