"""Scale, reduce, discover: PNPDiscoverer as the last step of a Pipeline.

``Pipeline.fit`` takes X and y, so the unlabelled rows travel inside them: ``pool`` stacks the
labelled rows and the unlabelled ones and marks the latter in y (-1 among numbers). Every step
then sees every row.

Why not ``pipe.fit(X, y, pnp__X_unlabelled=...)``? A Pipeline hands such an argument straight to
the last step. The pool would arrive there neither scaled nor reduced; here the number of columns
gives it away, but with the scaler alone nothing would, and the answer would be wrong.
"""

from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.metrics import split_cluster_accuracy

split = load_digits_split(n_known=5, random_state=1)
X, y = pool(split.X_labelled, split.y_labelled, split.X_unlabelled)
print(f"{len(X)} rows go through the pipeline, {(y == -1).sum()} of them without a label")

pipe = Pipeline(
    [
        ("scale", StandardScaler()),
        ("reduce", PCA(n_components=30, random_state=0)),
        ("pnp", PNPDiscoverer(random_state=0)),
    ]
)
pipe.fit(X, y)

model = pipe["pnp"]
print(f"{model.n_clusters_} classes: known {model.known_classes_}, new {model.novel_classes_}")
accuracy = split_cluster_accuracy(split.y_unlabelled, model.unlabelled_labels_, split.known_classes)
print(f"pool:        All {accuracy.all:.3f}, Known {accuracy.known:.3f}, Novel {accuracy.novel:.3f}")

# New rows take the same way as the training rows: scaled and reduced, then predicted.
accuracy = split_cluster_accuracy(split.y_unseen, pipe.predict(split.X_unseen), split.known_classes)
print(f"unseen rows: All {accuracy.all:.3f}, Known {accuracy.known:.3f}, Novel {accuracy.novel:.3f}")
