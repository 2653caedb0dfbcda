"""Find new topics in texts: words, reduction and discovery in one Pipeline.

The script writes short notes about six topics, four of which somebody has labelled. X is a list of
strings from beginning to end: ``pool`` stacks it, the Pipeline turns it into numbers, a search cuts it
into folds, and ``predict`` takes new strings.

How many directions to keep of the words, and whether pairs of words help, nobody can tell beforehand. A
search can, if it is asked the right question: ``ClassHoldoutSplit`` hides whole topics in each fold, and
``Transductive`` lets the Pipeline see the hidden notes without their labels.

    python examples/text_pipeline.py
"""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive

TOPICS = {
    "cooking": "onion garlic butter oven flour sauce salt pepper broth dough simmer bake spoon recipe",
    "sailing": "sail mast wind harbour tide anchor deck keel rope buoy skipper hull jib compass",
    "astronomy": "galaxy telescope orbit comet nebula planet moon eclipse star lens dwarf crater dust ring",
    "football": "goal keeper penalty corner referee striker league pitch pass whistle header bench derby cup",
    "gardening": "soil seed compost rose lawn spade hedge bulb weed pruning root mulch greenhouse watering",
    "banking": "loan interest deposit mortgage account credit branch fee transfer savings bond cash debt",
}
KNOWN = ["cooking", "sailing", "astronomy", "football"]
EVERYDAY = "today again much little found bought asked friend week old new good almost enough morning later"
OPENINGS = ["We talked about", "I keep thinking of", "Note to self:", "My neighbour mentioned", "Remember"]


def write_note(topic: str, rng: np.random.Generator) -> str:
    """Return a note: five words of its topic among six that any note could have."""
    words = [*rng.choice(TOPICS[topic].split(), 5), *rng.choice(EVERYDAY.split(), 6)]
    return f"{rng.choice(OPENINGS)} {' '.join(rng.permutation(words))}."


def write_notes(n_each: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return notes about all topics, and the topic of each."""
    topics = np.repeat(list(TOPICS), n_each)
    return [write_note(topic, rng) for topic in topics], topics


def main() -> None:
    """Write, hide, search, discover, and name new notes."""
    rng = np.random.default_rng(0)
    notes, topics = write_notes(60, rng)
    has_label = np.isin(topics, KNOWN) & (rng.random(len(topics)) < 0.5)
    labelled = [note for note, is_in in zip(notes, has_label, strict=True) if is_in]
    unlabelled = [note for note, is_in in zip(notes, has_label, strict=True) if not is_in]
    truth = topics[~has_label]
    X, y = pool(labelled, topics[has_label], unlabelled)
    print(f"{len(labelled)} notes about {len(KNOWN)} topics have a label, {len(unlabelled)} have none")
    print(f"  {labelled[0]!r} is about {y[0]}")

    pipe = Pipeline(
        [
            ("words", TfidfVectorizer(stop_words="english", sublinear_tf=True)),
            ("reduce", TruncatedSVD(random_state=0)),
            ("unit", Normalizer()),
            ("discover", PNPDiscoverer(n_neighbors=10, resolution=1.0, max_iter=1, random_state=0)),
        ]
    )
    search = GridSearchCV(
        Transductive(pipe, lazy=True),
        {"estimator__reduce__n_components": [2, 10, 40], "estimator__words__ngram_range": [(1, 1), (1, 2)]},
        cv=ClassHoldoutSplit(2, random_state=0),
    )
    search.fit(X, y)
    print("directions  words up to  score with topics hidden")
    for parameters, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        n_words = parameters["estimator__words__ngram_range"][1]
        print(f"{parameters['estimator__reduce__n_components']:<11} {n_words:<12} {score:.3f}")

    found = search.best_estimator_.estimator_  # the Pipeline with the best settings, fitted to all notes
    model = found["discover"]
    print(f"{model.n_clusters_} topics: known {model.known_classes_}, new {model.novel_classes_}")
    accuracy = split_cluster_accuracy(truth, model.unlabelled_labels_, KNOWN)
    print(f"unlabelled notes: All {accuracy.all:.3f}, Known {accuracy.known:.3f}, Novel {accuracy.novel:.3f}")
    for name in model.novel_classes_:
        members = [
            note for note, label in zip(unlabelled, model.unlabelled_labels_, strict=True) if label == name
        ]
        print(f"  {name}: {len(members)} notes, mostly of the words {', '.join(find_words(members, notes))}")

    new_notes, new_topics = write_notes(1, rng)
    for note, topic, label in zip(new_notes, new_topics, found.predict(new_notes), strict=True):
        print(f"{label:<10} (truly {topic}): {note}")


def find_words(members: list[str], notes: list[str], n_words: int = 5) -> list[str]:
    """Return the words that these notes have far more often than all notes: a name for a new topic."""
    counter = TfidfVectorizer(stop_words="english", use_idf=False).fit(notes)
    excess = counter.transform(members).mean(axis=0) - counter.transform(notes).mean(axis=0)
    best = np.argsort(-np.asarray(excess).ravel())[:n_words]
    return list(counter.get_feature_names_out()[best])


if __name__ == "__main__":
    main()
