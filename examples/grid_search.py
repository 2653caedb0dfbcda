"""Search two parameters with GridSearchCV, and see what its score is worth.

The rows are stacked by ``pool``: unlabelled ones have y = -1. The folds are made by hand so that
unlabelled rows are in every training fold (the model needs them) and in no test fold (they have
no label to score against).

What the score can see: whether labelled rows that were held out get their own label back. What it
cannot see: whether the *new* classes came out right, as no test row belongs to one. A setting that
finds no new class at all can score perfectly: ``n_clusters=3`` is in the grid to show that, and is
what never to search in this way. Read the score as "does no harm to the known classes", and look at
the number of classes found too.
"""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.metrics import split_cluster_accuracy

# Six groups in ten dimensions; the first three are known, half of their rows are labelled.
X, truth = make_blobs(240, n_features=10, centers=6, cluster_std=2.5, random_state=0)
has_label = (truth < 3) & (np.random.default_rng(0).random(len(truth)) < 0.5)
X, y = pool(X[has_label], truth[has_label], X[~has_label])
pool_truth = truth[~has_label]


def keep_unlabelled(y, n_splits):
    """Yield folds that split the labelled rows; unlabelled rows are always for training."""
    labelled, unlabelled = np.flatnonzero(y != -1), np.flatnonzero(y == -1)
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=0).split(labelled, y[labelled])
    for train, test in folds:
        yield np.concatenate([labelled[train], unlabelled]), labelled[test]


search = GridSearchCV(
    PNPDiscoverer(max_iter=3, random_state=0),
    {"n_clusters": [None, 3], "cluster_on": ["all", "unlabelled"]},
    cv=list(keep_unlabelled(y, n_splits=2)),
    n_jobs=1,
)
search.fit(X, y)

print("n_clusters  cluster_on   score on held-out labels   All on the pool (needs the truth)")
for parameters, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    model = PNPDiscoverer(max_iter=3, random_state=0, **parameters).fit(X, y)
    accuracy = split_cluster_accuracy(pool_truth, model.unlabelled_labels_, model.known_classes_)
    print(
        f"{parameters['n_clusters']!s:<11} {parameters['cluster_on']:<12} {score:<26.3f} {accuracy.all:.3f}"
    )
print("chosen:", search.best_params_, "which finds", search.best_estimator_.n_clusters_, "classes")
print("The score saw known classes only; the last column is what it could not see.")
