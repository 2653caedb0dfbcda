"""The paper's analyses: each a function from a study to a table and a picture.

Their runs are records like any other, shared between analyses and not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pnp_gcd.benchmark import pictures
from pnp_gcd.benchmark.running import Run
from pnp_gcd.benchmark.studies import (
    Outcome,
    Study,
    Variant,
    collect,
    find_shared_classes,
    mean_score,
    name_best,
    percent,
    read_answers,
    tabulate,
)
from pnp_gcd.benchmark.timing import N_REPEATS, THRESHOLD, time_pool_and_all
from pnp_gcd.metrics import intra_class_bias, prediction_bias

__all__ = ["ANALYSES", "Analysis"]

_WITHOUT = Variant("without potential prototypes", {"potential_prototypes": None})
_WITH = Variant("with potential prototypes")


class Analysis(NamedTuple):
    """What an analysis shows, where the paper has it, the function that does it, the paper's own table."""

    title: str
    place: str
    run: Callable[[Study], Outcome]
    published: str | None = None


# --- ablations ---------------------------------------------------------------------------------------------


def ablate_components(study: Study) -> Outcome:
    """Switch potential prototypes, teacher and its slow update on and off."""
    variants = (
        Variant("none of them", {"teacher": None, "potential_prototypes": None}),
        Variant("PP", {"teacher": None}),
        Variant("teacher", {"teacher": "epoch", "potential_prototypes": None}),
        Variant("PP, teacher", {"teacher": "epoch"}),
        Variant("teacher, EMA", {"potential_prototypes": None}),
        Variant("PP, teacher, EMA: all", {}),
    )
    return _ablate(study, variants, "PP: potential prototypes; EMA: the teacher follows the student slowly.")


def ablate_losses(study: Study) -> Outcome:
    """Leave out each term of the loss."""
    variants = (
        Variant("without L_crl (known classes)", {"known_weight": 0.0}),
        Variant("without L_cru (distillation)", {"distillation_weight": 0.0}),
        Variant("without L_sup (supervised contrast)", {"supervised_weight": 0.0}),
        Variant("without L_unsup (contrast of views)", {"unsupervised_weight": 0.0}),
        Variant("all terms"),
    )
    return _ablate(study, variants)


def compare_potential_prototypes(study: Study) -> Outcome:
    """Leave potential prototypes out, freeze them, train them."""
    frozen = Variant("frozen potential prototypes", {"potential_prototypes": "frozen"})
    return _ablate(study, (_WITHOUT, frozen, Variant("trainable potential prototypes")))


def _ablate(study: Study, variants: Sequence[Variant], *notes: str) -> Outcome:
    results = study.run(variants)
    return tabulate(
        results,
        *notes,
        *name_best(results),
        draw=lambda: pictures.draw_bars(collect(results, "all"), "All, %", percent=True),
    )


# --- one setting varied ------------------------------------------------------------------------------------


def vary_overlap(study: Study) -> Outcome:
    """Let a quarter, a half and three quarters of the classes be known."""
    methods, parts = ("pnp", "ss-k-means-estimated", "infomap-all"), (0.25, 0.5, 0.75)
    named = {
        (method, part): Variant(f"{method}, {part:.0%} known", {}, None if method == "pnp" else method, part)
        for method in methods
        for part in parts
    }
    results = study.run(named.values())
    lines = {
        title: {
            method: [(100 * part, mean_score(of_set[named[method, part].label], "all")) for part in parts]
            for method in methods
        }
        for title, of_set in results.items()
    }
    return tabulate(
        results,
        "No method is given the number of classes.",
        draw=lambda: pictures.draw_lines(lines, "known classes, %", "All, %", percent=True),
    )


def vary_memory(study: Study) -> Outcome:
    """Change the size of the memory: 2 to 5 prototypes for each known class."""
    named = {
        size: Variant(f"{size} per known class", {"prototypes_per_class": size}) for size in (2, 3, 4, 5)
    }
    results = study.run(named.values())
    lines = {title: {"All": _follow(of_set, named, "all")} for title, of_set in results.items()}
    return tabulate(
        results,
        "A memory with less room than there are clusters grows.",
        draw=lambda: pictures.draw_lines(lines, "prototypes per known class", "All, %", percent=True),
    )


def vary_neighbours(study: Study) -> Outcome:
    """Change the number of neighbours: classes found, with communities merged and as they come."""
    numbers = (5, 10, 20, 40, 80)
    merged = {k: Variant(f"k = {k}", {"n_neighbors": k}) for k in numbers}
    single = {
        k: Variant(f"k = {k}, nothing merged", {"n_neighbors": k, "merge_threshold": float("inf")})
        for k in numbers
    }
    results = study.run([*merged.values(), *single.values()])
    lines = {
        title: {
            "merged by evidence": _follow(of_set, merged, "n_clusters"),
            "nothing merged": _follow(of_set, single, "n_clusters"),
            "true": _follow(of_set, merged, "n_true"),
        }
        for title, of_set in results.items()
    }
    return tabulate(
        results,
        "“Nothing merged”: a community is a class unless it is a known one's, as in the paper.",
        draw=lambda: pictures.draw_lines(lines, "neighbours", "classes found", is_log=True),
    )


def _follow(
    of_set: dict[str, list[Run]], variants: dict[int, Variant], score: str
) -> list[tuple[float, float]]:
    return [(float(x), mean_score(of_set[variant.label], score)) for x, variant in variants.items()]


# --- with and without potential prototypes -----------------------------------------------------------------


def compare_inter_class_bias(study: Study) -> Outcome:
    """Sort errors by where they go: FO, FN, TO, TN."""
    results = study.run((_WITHOUT, _WITH))
    kinds, rows, bars = ("FO", "FN", "TO", "TN"), [], {}
    for title, of_set in results.items():
        biases = _mean_biases(of_set)
        rows += [(title, label, *(f"{100 * part:.1f}" for part in bias)) for label, bias in biases.items()]
        bars[title] = {
            kind: {label: float(bias[place]) for label, bias in biases.items()}
            for place, kind in enumerate(kinds)
        }
    return Outcome(
        ("data", "variant", *kinds),
        rows,
        [
            "Per cent of the rows of classes that both variants found. FO: novel rows called known; FN: "
            "known rows called novel; TO, TN: rows called another known, another novel class."
        ],
        lambda: pictures.draw_grouped_bars(bars, "rows, %"),
    )


def _mean_biases(of_set: dict[str, list[Run]]) -> dict[str, np.ndarray]:
    """Return FO, FN, TO and TN of each variant, means over seeds."""
    biases: dict[str, list[tuple[float, ...]]] = {label: [] for label in of_set}
    for pair in zip(*of_set.values(), strict=True):
        answers = [read_answers(run) for run in pair]
        shared = find_shared_classes(answers)
        for label, one in zip(of_set, answers, strict=True):
            kept = np.isin(one.truth, shared)
            biases[label].append(prediction_bias(one.truth[kept], one.found[kept], one.known_classes))
    return {label: np.mean(of_seeds, axis=0) for label, of_seeds in biases.items()}


def compare_intra_class_bias(study: Study) -> Outcome:
    """Count, class by class, the rows that are right."""
    results = study._replace(seeds=study.seeds[:1]).run((_WITHOUT, _WITH))
    rows, curves = [], {}
    for title, of_set in results.items():
        answers = {label: read_answers(runs[0]) for label, runs in of_set.items()}
        shared = find_shared_classes(list(answers.values()))
        biases = {label: intra_class_bias(one.truth, one.found) for label, one in answers.items()}
        first = next(iter(biases.values()))
        kept = np.flatnonzero(np.isin(first.classes, shared))
        kept = kept[np.argsort(-first.n_rows[kept], kind="stable")]
        curves[title] = {"rows of the class": first.n_rows[kept]}
        for label, bias in biases.items():
            curves[title][f"right {label}"] = bias.n_correct[kept]
            mean = float(np.mean(bias.n_correct[kept] - bias.n_rows[kept]))
            rows.append((title, label, str(len(kept)), f"{mean:.2f}"))
    return Outcome(
        ("data", "variant", "classes found by both", "mean bias, rows"),
        rows,
        ["Mean over classes of the rows that are right less the rows there are; the first seed only."],
        lambda: pictures.draw_curves(curves, "classes, largest first", "rows"),
    )


def compare_maps(study: Study) -> Outcome:
    """Draw the pool's learnt features in two dimensions by t-SNE."""
    bench = study.bench.with_features()
    results = study._replace(seeds=study.seeds[:1], bench=bench).run((_WITHOUT, _WITH))
    rows, maps = [], {}
    for title, of_set in results.items():
        for label, (run,) in of_set.items():
            scores = run.record["scores"]
            counts = (str(scores["n_clusters"]), str(scores["n_true"]))
            rows.append((title, label, *counts, percent(scores["all"])))
            with np.load(run.path.with_suffix(".npz")) as arrays:
                maps[f"{title}: {counts[0]} classes of {counts[1]}\n{label}"] = pictures.Map(
                    arrays["features"].astype(np.float32),
                    arrays["truth"],
                    np.isin(arrays["truth"], arrays["known_classes"]),
                )
    return Outcome(
        ("data", "variant", "classes found", "true", "All"),
        rows,
        ["The first seed only. Drawn: at most 2,000 rows of the pool, coloured by their true class."],
        lambda: pictures.draw_maps(maps),
    )


# --- number of classes, time -------------------------------------------------------------------------------


def compare_class_counts(study: Study) -> Outcome:
    """Compare the numbers of classes found by methods that are not given it."""
    methods = ("pnp", "infomap-all", "ss-k-means-estimated")
    results = study.run([Variant(method, {}, None if method == "pnp" else method) for method in methods])
    rows, bars = [], {}
    for title, of_set in results.items():
        true = mean_score(of_set["pnp"], "n_true")
        found = [
            ", ".join(str(run.record["scores"]["n_clusters"]) for run in of_set[method]) for method in methods
        ]
        rows.append((title, f"{true:.0f}", *found))
        bars[title] = {"true": true} | {
            method: mean_score(of_set[method], "n_clusters") for method in methods
        }
    return Outcome(
        ("data", "true", *methods),
        rows,
        ["One number for each seed; the picture shows their mean."],
        lambda: pictures.draw_bars(bars, "classes"),
    )


def time_clustering(study: Study) -> Outcome:
    """Time a clustering of the unlabelled rows alone, and of all rows: the same graph, in the same run."""
    rows, bars = [], {}
    for base in study.bases:
        split = base.split
        dataset = study.bench.load(base.with_method("infomap-all", {}))
        if dataset.kind != "features":
            raise ValueError(
                f"{dataset.name} is {dataset.kind}. Name a network, --backbone NAME, to time features."
            )
        seed = study.seeds[0] if study.split_seed is None else study.split_seed
        data = dataset.split(seed, known=split.known, labelled=split.labelled, unseen=split.unseen)
        n_neighbors = base.parameters.get("n_neighbors", "auto")
        times = time_pool_and_all(data, n_neighbors=10 if n_neighbors == "auto" else int(n_neighbors))
        ratio = times.seconds_all / times.seconds_unlabelled
        cells = (times.n_unlabelled, times.seconds_unlabelled, times.n_all, times.seconds_all, ratio)
        rows.append(
            (base.title, *(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells))
        )
        bars[base.title] = {"unlabelled rows": times.seconds_unlabelled, "all rows": times.seconds_all}
    return Outcome(
        ("data", "unlabelled rows", "seconds", "all rows", "seconds", "ratio"),
        rows,
        [f"Medians of {N_REPEATS} turns, one after the other; k = 10 unless set, threshold {THRESHOLD}."],
        lambda: pictures.draw_bars(bars, "seconds"),
    )


ANALYSES: dict[str, Analysis] = {
    "clustering-time": Analysis(
        "Time of clustering: unlabelled rows, all rows", "Table 4", time_clustering, "tab:time"
    ),
    "components": Analysis(
        "Teacher, slow teacher, potential prototypes", "Table 5", ablate_components, "tab:ablat"
    ),
    "losses": Analysis("Each term of the loss left out", "Table 7", ablate_losses, "tab:ablat_losses"),
    "potential-prototypes": Analysis(
        "Potential prototypes: none, frozen, trainable", "Table 8", compare_potential_prototypes, "tab:fvt"
    ),
    "overlap": Analysis("Part of the classes that are known", "Table 6", vary_overlap, "tab:overlap"),
    "memory": Analysis("Size of the memory", "Figure 3, left", vary_memory),
    "neighbours": Analysis("Number of neighbours", "Figure 3, right", vary_neighbours),
    "maps": Analysis("t-SNE without and with potential prototypes", "Figure 4", compare_maps),
    "inter-class-bias": Analysis(
        "Errors between known and novel classes", "Figure 5", compare_inter_class_bias
    ),
    "intra-class-bias": Analysis("Right rows of each class", "Figure 6", compare_intra_class_bias),
    "class-count": Analysis("Number of classes found", "Figure 7", compare_class_counts),
}
"""The paper's analyses by name."""
