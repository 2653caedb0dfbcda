"""Write the small model of this folder: once for each format, never again for an old one.

The format it writes is that of the version that runs it: `python tests/saved_models/make_format_1.py FOLDER`.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_blobs

from pnp_gcd import PNPDiscoverer


def main(folder: Path) -> None:
    """Fit, name, merge, save, and write down some answers."""
    centres = 9 * np.eye(6, 4)
    X, y = make_blobs(120, centers=centres, random_state=0)
    names = np.array(["oak", "elm", "?", "?", "?", "?"])[y]
    frame = pd.DataFrame(X, columns=["height", "girth", "leaves", "äge"])
    model = PNPDiscoverer(
        6, missing_label="?", max_iter=1, n_neighbors=5, whitening=None, hidden_width=4, random_state=0
    ).fit(frame, names)
    model.rename_classes({"novel_0": "orchid"}).merge_classes([["novel_1", "novel_2"]])
    model.save(folder / "format_1")
    rows = frame[:12]
    answers = {
        "X": rows.to_numpy().tolist(),
        "classes": model.classes_.tolist(),
        "confirmed": model.confirmed_classes_.tolist(),
        "predict": model.predict(rows).tolist(),
        "predict_proba": model.predict_proba(rows).tolist(),
        "typicality": model.typicality(rows).tolist(),
    }
    (folder / "format_1_answers.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
