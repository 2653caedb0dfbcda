"""Search parameters by hidden classes, and see what a search by recognition would have chosen.

Two questions can be asked of a setting. *Does it recognise?* Labelled rows are held out and must come
back under their label (``KeepUnlabelled``). *Does it discover?* Whole known classes are hidden, and must
be found again in rows without labels (``ClassHoldoutSplit`` with ``Transductive``). The second is what
PNPDiscoverer is for; the first is what GridSearchCV asks by default, and a setting that finds no new
class at all can win it. ``n_clusters=4``, just the known ones, is in the grid to show that.

The rows are stacked by ``pool``: unlabelled ones have y = -1. Here their truth is known, so the last
column can show what each setting is worth.

    python examples/grid_search.py
"""

import warnings

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.exceptions import WorkflowWarning
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.model_selection import ClassHoldoutSplit, KeepUnlabelled, Transductive, discovery_scorer

GRID = {"n_clusters": [4, None], "n_neighbors": [10, 20]}

# Seven groups in ten dimensions; the first four are known, half of their rows are labelled.
X, truth = make_blobs(350, n_features=10, centers=7, cluster_std=2.5, random_state=0)
has_label = (truth < 4) & (np.random.default_rng(0).random(len(truth)) < 0.5)
X, y = pool(X[has_label], truth[has_label], X[~has_label])
pool_truth = truth[~has_label]
# Prototypes are counted per known class; folds that hide some need more of them for each.
model = PNPDiscoverer(
    whitening="soft-total", resolution=1.0, prototypes_per_class=8, max_iter=1, random_state=0
)

# By hidden classes. Two of the four known classes are hidden in each fold. A lazy Transductive fits once
# per fold and setting. The scorer gives five measures; refit names the one to choose by.
by_discovery = GridSearchCV(
    Transductive(model, lazy=True),
    {f"estimator__{name}": values for name, values in GRID.items()},
    cv=ClassHoldoutSplit(2, random_state=0),
    scoring=discovery_scorer,
    refit="all",
)
by_discovery.fit(X, y)

# By recognition. Unlabelled rows are in every training fold and in no test fold. Fitting warns, for the
# reason this example is about; the warning is kept here and shown below.
by_recognition = GridSearchCV(
    model, GRID, cv=KeepUnlabelled(StratifiedKFold(2, shuffle=True, random_state=0))
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", WorkflowWarning)
    by_recognition.fit(X, y)


def look_up_truth(parameters):
    """Return the accuracy on the unlabelled rows, which only an example can know, and the classes found."""
    fitted = PNPDiscoverer(**{**model.get_params(), **parameters}).fit(X, y)
    accuracy = split_cluster_accuracy(pool_truth, fitted.unlabelled_labels_, fitted.known_classes_)
    return accuracy.all, fitted.n_clusters_


settings = by_recognition.cv_results_["params"]  # both searches go through the grid in one order
discovery, recognition = (
    by_discovery.cv_results_["mean_test_all"],
    by_recognition.cv_results_["mean_test_score"],
)
truths = [look_up_truth(parameters) for parameters in settings]
print("n_clusters  n_neighbors  recognition  discovery  | truth: All  classes")
for parameters, recognised, discovered, (accuracy, n_found) in zip(
    settings, recognition, discovery, truths, strict=True
):
    print(
        f"{parameters['n_clusters']!s:<11} {parameters['n_neighbors']:<12} {recognised:<12.3f} "
        f"{discovered:<10.3f} |        {accuracy:.3f} {n_found}"
    )

for name, search in (("recognition", by_recognition), ("discovery", by_discovery)):
    accuracy, n_found = truths[search.best_index_]
    print(f"{name} chooses {settings[search.best_index_]}: All {accuracy:.3f}, {n_found} classes of 7")
print("What the search by recognition warned of:")
for message in sorted({str(warning.message) for warning in caught}):
    print("  ", message)

# The best setting, fitted to all rows, predicts new rows without another fit.
found = by_discovery.best_estimator_.estimator_
print("classes of three rows:", found.predict(X[:3]))
