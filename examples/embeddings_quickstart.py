"""From embeddings to named classes, known and new, in one fit.

Embeddings are any (rows, features) array: of texts, images, sounds, tables. Here the 64 pixels
of scikit-learn's handwritten digits stand in for them. Five digits have names; half of their
rows carry them. The unlabelled rows hold those five and five others that nobody has named.

Shows: fit on labelled rows and a pool, the classes found, the names given to new ones,
``predict`` and ``novelty_score`` on rows that fit never saw, accuracy.
"""

import numpy as np

from pnp_gcd import PNPDiscoverer
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.metrics import named_accuracy, split_cluster_accuracy

WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])

split = load_digits_split(n_known=5, random_state=0)
known = WORDS[split.known_classes]

model = PNPDiscoverer(random_state=0)
model.fit(split.X_labelled, WORDS[split.y_labelled], split.X_unlabelled)

print(f"{model.n_clusters_} classes found")
print("known:", ", ".join(model.known_classes_))
print("new:  ", ", ".join(model.novel_classes_))

# The truth of the pool is used here, after the fit, and nowhere before.
truth = WORDS[split.y_unlabelled]
accuracy = split_cluster_accuracy(truth, model.unlabelled_labels_, known)
print(f"\npool:        All {accuracy.all:.3f}, Known {accuracy.known:.3f}, Novel {accuracy.novel:.3f}")

predicted = model.predict(split.X_unseen)
truth = WORDS[split.y_unseen]
accuracy = split_cluster_accuracy(truth, predicted, known)
print(f"unseen rows: All {accuracy.all:.3f}, Known {accuracy.known:.3f}, Novel {accuracy.novel:.3f}")
named = named_accuracy(truth, predicted, known)
print(f"unseen rows of known classes that got their own name: {named.known:.3f}")

novelty = model.novelty_score(split.X_unseen)
is_known = np.isin(truth, known)
medians = np.median(novelty[is_known]), np.median(novelty[~is_known])
print(f"\nnovelty score, median: known {medians[0]:.2f}, new {medians[1]:.2f}")
print("\ntruth   predicted  novelty")
for row in range(8):
    print(f"{truth[row]:<7} {predicted[row]:<10} {novelty[row]:.2f}")
