"""A table with a class nobody has labelled: scikit-learn's wine data, as a pandas DataFrame.

Thirteen chemical measurements of wines from three growers, in columns of very different scales.
Labels of two growers are known for half of their wines; the third grower's wines are only in the
pool. Needs pandas.

Shows: DataFrames in, string labels, ``set_output`` for a DataFrame out, a new class that gets
a name of its own.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pnp_gcd import PNPDiscoverer, pool

table, grower = load_wine(return_X_y=True, as_frame=True)
grower = grower.map({0: "Anna", 1: "Bruno", 2: "Carla"})

# Carla is never labelled; of the other two, every second wine is.
is_labelled = (grower != "Carla") & (np.arange(len(table)) % 2 == 0)

pipe = make_pipeline(StandardScaler(), PNPDiscoverer(random_state=0)).set_output(transform="pandas")
pipe.fit(*pool(table[is_labelled], grower[is_labelled], table[~is_labelled]))

model = pipe[-1]
print(f"{model.n_clusters_} growers found: {', '.join(model.classes_)}")
found = pd.Series(model.unlabelled_labels_, index=table.index[~is_labelled], name="found")
print(pd.crosstab(grower[~is_labelled].rename("truth"), found))

features = pipe.transform(table.head(2))
print(f"\nlearnt features are a {type(features).__name__} of {features.shape[1]} columns:")
print(features.iloc[:, :3].round(3))
