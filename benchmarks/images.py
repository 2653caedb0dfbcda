"""Discovery on a folder of pictures: trained behind a backbone, on its features, and k-means given K.

    python benchmarks/images.py --folder DIR --weights FILE [--size 126] [--seeds 0,1,2] [--cache DIR]

DIR has a sub-folder for each class, all labelled. Each seed takes half of the classes as known and half of
their pictures as labelled; the rest is the pool. Printed for the pool: All/Known/Novel accuracy and the
number of classes, for

- k-means, given the true number of classes, on the backbone's own features;
- PNPDiscoverer on those features, given nothing;
- PNPDiscoverer(backbone=...), which trains the last block, given nothing; also on pictures kept out
  of the fit (a tenth) where ``--unseen`` asks for it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from _common import hide_pictures, read_pictures, read_seeds
from sklearn.cluster import KMeans

from pnp_gcd import ImageEmbedder, PNPDiscoverer
from pnp_gcd.metrics import split_cluster_accuracy


def show(name: str, truth, found, known, note: str = "") -> float:
    score = split_cluster_accuracy(truth, found, known)
    figures = "/".join(f"{100 * part:.1f}" for part in (score.all, score.known, score.novel))
    print(f"  {name:24s} {figures}  {note}", flush=True)
    return 100 * score.all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--backbone", default="vit_small_patch14_dinov2")
    parser.add_argument("--weights", default="auto")
    parser.add_argument("--size", type=int, default=126)
    parser.add_argument("--seeds", type=read_seeds, default=[0, 1, 2])
    parser.add_argument("--cache", default=None, help="folder to keep activations in, for a second run")
    parser.add_argument("--views", type=int, default=4, help="n_cached_views")
    parser.add_argument("--unseen", action="store_true", help="keep a tenth out of the fit and predict it")
    args = parser.parse_args()
    paths, names = read_pictures(args.folder)
    classes = np.unique(names)
    network = {"backbone": args.backbone, "backbone_weights": args.weights, "image_size": args.size}
    features = ImageEmbedder(**network, memory=args.cache).fit_transform(paths)
    table: dict[str, list[float]] = {"k-means, given K": [], "on features": [], "trained": []}
    for seed in args.seeds:
        rng = np.random.default_rng(seed)
        known, has_label = hide_pictures(names, rng)
        is_unseen = ~has_label & (rng.random(len(paths)) < 0.1) if args.unseen else np.zeros(len(paths), bool)
        rest = ~has_label & ~is_unseen
        truth = names[rest]
        print(f"seed {seed}: {has_label.sum()} labelled, {rest.sum()} in the pool, {is_unseen.sum()} unseen")
        given = KMeans(len(classes), n_init=10, random_state=seed).fit_predict(features[has_label | rest])
        found = given[rest[has_label | rest]]
        table["k-means, given K"].append(show("k-means, given K", truth, found, known))
        started = time.perf_counter()
        model = PNPDiscoverer(random_state=seed)
        model.fit(features[has_label], names[has_label], features[rest])
        note = f"K {model.n_clusters_} {model.n_clusters_interval_}, {time.perf_counter() - started:.0f} s"
        table["on features"].append(show("on features", truth, model.unlabelled_labels_, known, note))
        started = time.perf_counter()
        model = PNPDiscoverer(
            **network, n_cached_views=args.views, cache_dir=args.cache, cache_size="64GB", random_state=seed
        )
        model.fit(paths[has_label], names[has_label], paths[rest])
        note = f"K {model.n_clusters_} {model.n_clusters_interval_}, {time.perf_counter() - started:.0f} s"
        table["trained"].append(show("trained", truth, model.unlabelled_labels_, known, note))
        if args.unseen:
            show("trained, unseen", names[is_unseen], model.predict(paths[is_unseen]), known)
    for name, values in table.items():
        print(f"mean {name:24s} All {np.mean(values):.1f}")


if __name__ == "__main__":
    main()
