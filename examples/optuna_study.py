"""Let Optuna choose settings by hidden classes.

Needs Optuna: ``pip install optuna``.

GridSearchCV tries a grid; Optuna proposes what to try next from what it has seen, and takes numbers from a
range. It needs a score for a setting, which scikit-learn's ``cross_val_score`` gives: whole known classes
are hidden in each fold (``ClassHoldoutSplit``), and ``Transductive`` lets the model see their rows without
labels. The score is the accuracy on these rows and on some of visible classes: finding no new class does not
pay.

The data are handwritten digits. Five are known; how many directions to keep of the 64 pixels, how many
neighbours a row has and how directions are scaled is searched.

    python examples/optuna_study.py
"""

import sys

from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive

try:
    import optuna
except ImportError:
    print("This example needs Optuna: pip install optuna")
    sys.exit(0)

split = load_digits_split(n_known=5, random_state=1)
# A part of the rows is enough to compare settings.
X, y = pool(split.X_labelled[::2], split.y_labelled[::2], split.X_unlabelled[::4])


def make_pipeline(n_components, n_neighbors, whitening):
    """Return the model that these settings describe."""
    return Pipeline(
        [
            ("reduce", PCA(n_components, random_state=0)),
            (
                "discover",
                PNPDiscoverer(
                    n_neighbors=n_neighbors, whitening=whitening, resolution=1.0, max_iter=0, random_state=0
                ),
            ),
        ]
    )


def judge(trial):
    """Return how well settings that Optuna proposes find hidden classes again."""
    pipe = make_pipeline(
        n_components=trial.suggest_int("n_components", 2, 40, log=True),
        n_neighbors=trial.suggest_int("n_neighbors", 3, 30),
        whitening=trial.suggest_categorical("whitening", ["soft-total", "within", None]),
    )
    folds = ClassHoldoutSplit(2, random_state=0)  # the same classes are hidden for every trial
    return cross_val_score(Transductive(pipe, lazy=True), X, y, cv=folds, error_score="raise").mean()


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.enqueue_trial({"n_components": 2, "n_neighbors": 3, "whitening": None})  # a poor guess, to compare
study.optimize(judge, n_trials=10)

print("score  settings")
for trial in sorted(study.trials, key=lambda trial: -trial.value):
    print(f"{trial.value:.3f}  {trial.params}")

for name, settings in (("best", study.best_params), ("guess", study.trials[0].params)):
    model = make_pipeline(**settings).fit(*pool(split.X_labelled, split.y_labelled, split.X_unlabelled))
    found = model["discover"]
    accuracy = split_cluster_accuracy(split.y_unlabelled, found.unlabelled_labels_, split.known_classes)
    print(
        f"{name}: {found.n_clusters_} classes of 10; All {accuracy.all:.3f}, Known {accuracy.known:.3f}, "
        f"Novel {accuracy.novel:.3f} on the unlabelled rows"
    )
