"""One fit by several processes, or by one: the same program, the same answer.

    python examples/distributed_training.py
    torchrun --nproc-per-node 2 examples/distributed_training.py [--images] [--checkpoints DIR]

The page "More than one machine" of the docs shows the line for several machines.

Rows are scikit-learn's handwritten digits, five of ten classes labelled. With ``--images`` they are pictures
of 8 by 8 pixels behind a small network with random weights, of which the last block learns: it shows how,
and finds little.

Shows: ``process_group``, what one worker alone does, ``checkpoint_dir`` under ``torchrun --max-restarts``.
"""

import argparse

import numpy as np

from pnp_gcd import PNPDiscoverer
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.distributed import process_group
from pnp_gcd.metrics import split_cluster_accuracy

parser = argparse.ArgumentParser()
parser.add_argument("--images", action="store_true", help="pixels through a network, not as they are")
parser.add_argument("--checkpoints", help="folder in which the state is kept after every epoch")
arguments = parser.parse_args()

split = load_digits_split(n_known=5, random_state=0)  # every worker reads the same rows
step = 4 if arguments.images else 1
X, y = split.X_labelled[::step], split.y_labelled[::step]
pool, truth = split.X_unlabelled[::step], split.y_unlabelled[::step]
model = PNPDiscoverer(random_state=0, checkpoint_dir=arguments.checkpoints, verbose=1)
if arguments.images:
    X, pool = (np.uint8(rows.reshape(-1, 8, 8) / 16 * 255) for rows in (X, pool))
    model.set_params(backbone="test_vit", backbone_weights=None, image_size=32, n_cached_views=2)

with process_group(needs_torchrun=False) as world:
    model.fit(X, y, pool)
    if world.is_first:  # all workers have the same model now; one of them writes
        accuracy = split_cluster_accuracy(truth, model.unlabelled_labels_, split.known_classes)
        print(f"{world.size} workers found {model.n_clusters_} classes")
        print(f"All {accuracy.all:.3f}, Known {accuracy.known:.3f}, Novel {accuracy.novel:.3f}")
