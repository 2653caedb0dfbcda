"""Displays: what is drawn where, in which colour, and what is left behind."""

import subprocess
import sys
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import make_world
from matplotlib.colors import to_hex, to_rgb
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.metrics import PredictionBias, prediction_bias
from pnp_gcd.model_selection import Transductive
from pnp_gcd.plotting import (
    CalibrationTableDisplay,
    ClassSizesDisplay,
    DiscoveryMapDisplay,
    NoveltyHistogramDisplay,
    PredictionBiasDisplay,
    TrainingHistoryDisplay,
    canvas,
)
from pnp_gcd.plotting.reading import hide_missing, read_classes

mpl.use("Agg")
WORLD = make_world(300, 6, 4, seed=1)
BY_ESTIMATOR = {
    DiscoveryMapDisplay: (WORLD.rest,),
    TrainingHistoryDisplay: (),
    CalibrationTableDisplay: (),
    ClassSizesDisplay: (WORLD.rest,),
    PredictionBiasDisplay: (WORLD.rest, WORLD.truth),
    NoveltyHistogramDisplay: (WORLD.rest, WORLD.truth),
}
ALL = pytest.mark.parametrize("display_class", BY_ESTIMATOR, ids=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def model():
    return PNPDiscoverer(max_iter=2, random_state=0).fit(*WORLD.labelled, WORLD.rest)


@pytest.fixture(autouse=True)
def _no_figures():
    plt.close("all")
    yield
    plt.close("all")


def draw(display_class, model, **kwargs):
    return display_class.from_estimator(model, *BY_ESTIMATOR[display_class], **kwargs)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def make_many(n_known, n_novel):
    """Return places and labels of so many classes; class c has 3 + c rows around a point of a grid."""
    codes = np.repeat(np.arange(n_known + n_novel), 3 + np.arange(n_known + n_novel))
    places = np.column_stack([codes % 15, codes // 15]) / 7.5 - 1
    places = places + 0.01 * np.random.default_rng(0).normal(size=(len(codes), 2))
    return places, codes, np.arange(n_known)


# --- all displays -----------------------------------------------------------------------------------------


@ALL
def test_a_display_of_an_unfitted_model_is_refused(display_class):
    with pytest.raises(NotFittedError):
        draw(display_class, PNPDiscoverer())
    assert not plt.get_fignums()


@ALL
def test_an_estimator_of_another_kind_is_refused_by_name(display_class):
    scaler = StandardScaler().fit(WORLD.X)
    with pytest.raises(TypeError, match="StandardScaler has no .*Pass a fitted PNPDiscoverer"):
        draw(display_class, scaler)


@ALL
def test_drawing_leaves_settings_and_the_current_figure_as_found(display_class, model):
    mine = plt.figure()
    mine.add_subplot()
    before = dict(mpl.rcParams)
    display = draw(display_class, model)
    assert plt.gcf() is mine
    assert dict(mpl.rcParams) == before
    assert display.figure_ is not mine
    assert len(mine.axes) == 1
    assert not mine.axes[0].has_data()


@ALL
def test_pyplot_shows_a_new_figure(display_class, model):
    display = draw(display_class, model)
    assert plt.get_fignums() == [display.figure_.number]


@ALL
def test_a_given_ax_is_drawn_on_and_no_figure_opened(display_class, model):
    figure = mpl.figure.Figure()
    ax = figure.add_subplot()
    display = draw(display_class, model, ax=ax)
    assert display.figure_ is figure
    assert not plt.get_fignums()
    if display_class is TrainingHistoryDisplay:
        assert list(display.ax_) == ax.child_axes
    else:
        assert display.ax_ is ax


@ALL
def test_a_display_can_be_plotted_again_elsewhere(display_class, model):
    display = draw(display_class, model)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


@ALL
def test_making_a_display_draws_nothing(display_class):
    data = {
        DiscoveryMapDisplay: lambda: DiscoveryMapDisplay(np.zeros((1, 2)), [0], known_classes=[0]),
        TrainingHistoryDisplay: lambda: TrainingHistoryDisplay([]),
        CalibrationTableDisplay: lambda: CalibrationTableDisplay([]),
        ClassSizesDisplay: lambda: ClassSizesDisplay([1], [0], [True]),
        PredictionBiasDisplay: lambda: PredictionBiasDisplay(PredictionBias(0, 0, 0, 0)),
        NoveltyHistogramDisplay: lambda: NoveltyHistogramDisplay([0.5], [True]),
    }
    display = data[display_class]()
    assert not hasattr(display, "ax_")
    assert not plt.get_fignums()


@ALL
def test_nothing_is_cut_at_the_borders_of_a_new_figure(display_class, model):
    figure = draw(display_class, model).figure_
    figure.draw_without_rendering()
    inside, around = figure.get_tightbbox(), figure.bbox_inches
    assert inside.x0 >= 0
    assert inside.y0 >= 0
    assert inside.x1 <= around.x1 + 0.01
    assert inside.y1 <= around.y1 + 0.01


@ALL
def test_an_ax_that_is_no_axes_is_refused(display_class, model):
    with pytest.raises((TypeError, ValueError), match="ax"):
        draw(display_class, model, ax=["axes"])


def test_displays_see_through_pipelines_and_wrappers(model):
    rows, y = WORLD.stacked
    pipe = make_pipeline(FunctionTransformer(lambda X: X / 3), PNPDiscoverer(max_iter=1, random_state=0))
    pipe.fit(*pool(*WORLD.labelled, WORLD.rest))
    display = ClassSizesDisplay.from_estimator(pipe, WORLD.rest)
    expected = np.unique(pipe.predict(WORLD.rest), return_counts=True)[1]
    assert sorted(display.sizes) == sorted(expected)
    scores = NoveltyHistogramDisplay.from_estimator(pipe, WORLD.rest).novelty
    np.testing.assert_allclose(scores, pipe[-1].novelty_score(WORLD.rest / 3))
    wrapped = Transductive(PNPDiscoverer(max_iter=1, random_state=0)).fit(rows, y)
    assert len(TrainingHistoryDisplay.from_estimator(wrapped).history) == 1


def test_without_matplotlib_displays_can_be_imported_and_drawing_gives_the_pip_line():
    program = (
        "import sys\nsys.modules['matplotlib'] = None\n"
        "from pnp_gcd.plotting import ClassSizesDisplay\n"
        "ClassSizesDisplay.from_predictions([0], known_classes=[0])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert 'pip install "pnp-gcd[plots]"' in ran.stderr
    assert ran.returncode == 1


# --- colours ----------------------------------------------------------------------------------------------


# What the three kinds of colour blindness make of linear red, green and blue (Machado and others, 2009).
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def perceive(colours, blindness):
    """Return CIE Lab of colours as seen, in which distances of about 2 can just be told apart."""
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.array(BLINDNESS[blindness]).T, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


def nearest(colours, blindness):
    lab = perceive(colours, blindness)
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    return distances[~np.eye(len(lab), dtype=bool)].min()


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_can_be_told_apart_by_the_colour_blind(blindness):
    assert nearest(canvas.CLASS_COLOURS, blindness) > 18
    assert nearest([canvas.KNOWN, canvas.NOVEL], blindness) > 60


# --- the map ----------------------------------------------------------------------------------------------


def test_the_map_shows_each_row_at_its_place_in_the_colour_of_its_class():
    places = np.array([[-1, 0], [0.1, 0.5], [1, 0.2], [0.9, -0.1], [-0.8, 0.3]])
    labels = ["cat", "new", "cat", "dog", "new"]
    display = DiscoveryMapDisplay(places, labels, known_classes=["cat", "dog"]).plot()
    known, novel = display.points_["known"], display.points_["novel"]
    np.testing.assert_array_equal(known.get_offsets(), places[[0, 2, 3]])
    np.testing.assert_array_equal(novel.get_offsets(), places[[1, 4]])
    cat, second_cat, dog = (to_hex(colour) for colour in known.get_facecolors())
    new, second_new = (to_hex(colour) for colour in novel.get_facecolors())
    assert (cat, new) == (second_cat, second_new)
    assert len({cat, dog, new}) == 3


def test_known_and_novel_rows_have_different_markers(model):
    points = draw(DiscoveryMapDisplay, model).points_
    known, novel = (points[kind].get_paths()[0].vertices for kind in ("known", "novel"))
    assert known.shape != novel.shape


def test_the_map_of_a_model_is_its_features_coloured_by_its_predictions(model):
    display = draw(DiscoveryMapDisplay, model)
    np.testing.assert_array_equal(display.labels, model.predict(WORLD.rest))
    other = DiscoveryMapDisplay.from_predictions(
        model.transform(WORLD.rest), model.predict(WORLD.rest), known_classes=model.known_classes_
    )
    np.testing.assert_array_equal(display.places, other.places)
    assert sum(len(points.get_offsets()) for points in display.points_.values()) == len(WORLD.rest)


def test_few_classes_are_all_named_on_the_map_and_in_the_legend(model):
    display = draw(DiscoveryMapDisplay, model)
    assert set(display.text_) == set(model.classes_.tolist())
    assert legend_texts(display.ax_) == [
        "4 known classes",
        *("0", "1", "2", "3"),
        "2 novel classes",
        *("4", "5"),
    ]


def test_a_name_stands_among_the_rows_of_its_class():
    places = np.concatenate([np.full((9, 2), 0.5), np.full((4, 2), -1.0)])
    places = places + 0.001 * np.random.default_rng(0).normal(size=places.shape)
    display = DiscoveryMapDisplay(places, np.zeros(13, dtype=int), known_classes=[0]).plot()
    np.testing.assert_allclose(display.text_[0].xy, [0.5, 0.5], atol=0.02)


@pytest.mark.parametrize(("n_known", "n_novel"), [(1, 1), (12, 0), (100, 100), (2, 60), (60, 2)])
def test_the_legend_stays_short_and_counts_every_class(n_known, n_novel):
    places, labels, known = make_many(n_known, n_novel)
    display = DiscoveryMapDisplay(places, labels, known_classes=known).plot()
    texts = legend_texts(display.ax_)
    assert len(texts) <= 12 + 2 + 2
    counted = sum(int(text.split()[0]) for text in texts if "classes" in text or "class" in text)
    assert counted == n_known + n_novel
    named = [text for text in texts if text.isdigit()]
    assert len(named) == min(12, n_known + n_novel)


def test_of_many_classes_the_largest_known_and_novel_ones_are_named():
    places, labels, known = make_many(100, 100)
    display = DiscoveryMapDisplay(places, labels, known_classes=known).plot()
    texts = legend_texts(display.ax_)
    assert texts[1:8] == [*(str(code) for code in range(94, 100)), "94 others"]
    assert texts[9:] == [*(str(code) for code in range(194, 200)), "94 others"]


def test_names_on_the_map_do_not_overlap():
    places, labels, known = make_many(6, 6)
    display = DiscoveryMapDisplay(places / 9, labels, known_classes=known).plot()
    display.figure_.draw_without_rendering()
    boxes = [text.get_window_extent() for text in display.text_.values()]
    assert 0 < len(boxes) <= 12
    assert not [1 for i, box in enumerate(boxes) for other in boxes[:i] if box.overlaps(other)]


def test_rows_without_a_class_are_drawn_as_such():
    places = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    display = DiscoveryMapDisplay(places, [0, 1, -1, 0, -1], known_classes=[0]).plot()
    np.testing.assert_array_equal(display.points_["none"].get_offsets(), places[[2, 4]])
    assert legend_texts(display.ax_)[-1] == "no class"


def test_settings_of_the_map_go_to_scatter_in_either_spelling():
    places = np.zeros((2, 2))
    display = DiscoveryMapDisplay(places, [0, 1], known_classes=[0])
    display.plot(s=50, color="black", linewidths=3, legend_kw={"loc": "center"})
    points = display.points_["known"]
    assert points.get_sizes().tolist() == [50]
    assert to_hex(points.get_facecolors()[0]) == "#000000"
    assert points.get_linewidths() == [3]
    assert display.legend_._loc == 10


@pytest.mark.parametrize("max_named", [-1, 13])
def test_more_names_than_colours_are_refused(max_named):
    with pytest.raises(ValueError, match=f"max_named={max_named} must be from 0 to 12"):
        DiscoveryMapDisplay(np.zeros((1, 2)), [0], known_classes=[0]).plot(max_named=max_named)


def test_names_are_shown_as_they_are():
    names = ["_hidden", r"$\frac{1}{0}$", "two\nlines", "x" * 80, "price $5"]
    places = np.array([[-1, -1], [1, 1], [-1, 1], [1, -1], [0, 0]])
    display = DiscoveryMapDisplay(places, names, known_classes=names).plot()
    ClassSizesDisplay.from_predictions(names, known_classes=names)
    for number in plt.get_fignums():
        with warnings.catch_warnings(action="error"):
            plt.figure(number).draw_without_rendering()
    texts = legend_texts(display.ax_)
    assert "_hidden" in texts
    assert "two lines" in texts
    assert max(map(len, texts)) <= 28


def test_features_and_labels_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="features has 3 rows but y_pred has 2"):
        DiscoveryMapDisplay.from_predictions(np.eye(3), [0, 1], known_classes=[0])


# --- the history ------------------------------------------------------------------------------------------


def test_the_history_shows_every_loss_and_every_number(model):
    display = draw(TrainingHistoryDisplay, model)
    for name in set(model.history_[0]) - {"epoch", "seconds", "recall"}:
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), [row[name] for row in model.history_])
        np.testing.assert_array_equal(display.lines_[name].get_xdata(), [0, 1])
    losses, numbers = display.ax_
    assert display.lines_["total"].axes is losses
    assert display.lines_["n_active"].axes is numbers
    assert legend_texts(numbers) == ["communities", "classes", "prototypes", "possible classes with rows"]


def test_the_history_takes_two_axes(model):
    _, axes = plt.subplots(1, 2)
    display = draw(TrainingHistoryDisplay, model, ax=axes)
    assert list(display.ax_) == list(axes)
    with pytest.raises(ValueError, match="ax holds 3 axes, but 2 are drawn on"):
        draw(TrainingHistoryDisplay, model, ax=[*axes, axes[0]])


def test_an_untrained_model_has_no_history_to_draw():
    untrained = PNPDiscoverer(max_iter=0, random_state=0).fit(*WORLD.labelled, WORLD.rest)
    with pytest.raises(ValueError, match="not trained.*max_iter of 1 or more"):
        TrainingHistoryDisplay.from_estimator(untrained)
    assert not plt.get_fignums()


def test_losses_of_which_one_is_not_positive_are_drawn_on_a_plain_scale():
    rows = [{"epoch": 0, "total": 5.0, "entropy": -0.1}, {"epoch": 1, "total": 4.0, "entropy": 0.0}]
    assert TrainingHistoryDisplay(rows).plot().ax_[0].get_yscale() == "linear"
    rows = [{"epoch": 0, "total": 5.0, "entropy": 0.1}]
    assert TrainingHistoryDisplay(rows).plot().ax_[0].get_yscale() == "log"


# --- calibration ------------------------------------------------------------------------------------------


def test_the_table_shows_every_setting_and_marks_the_chosen_one(model):
    display = draw(CalibrationTableDisplay, model)
    table = model.calibration_
    for name in ("known", "novel", "score"):
        expected = [(row[name], place) for place, row in enumerate(table)]
        np.testing.assert_allclose(display.points_[name].get_offsets(), expected)
    lines = [label.get_text().split() for label in display.ax_.get_yticklabels()]
    assert lines[0] == ["whitening", "neighbors", "threshold", "resolution", "balanced", "classes"]
    assert lines[-1][:2] == [model.whitening_, str(model.n_neighbors_)]
    assert display.chosen_.get_y() == len(table) - 1.5
    assert [label.get_fontweight() for label in display.ax_.get_yticklabels()].index("bold") == len(table)


def test_no_row_or_another_can_be_marked_as_chosen(model):
    assert CalibrationTableDisplay(model.calibration_, chosen=None).plot().chosen_ is None
    assert CalibrationTableDisplay(model.calibration_, chosen=0).plot().chosen_.get_y() == -0.5
    with pytest.raises(ValueError, match="chosen=99 must be a row"):
        CalibrationTableDisplay(model.calibration_, chosen=99).plot()


def test_a_model_that_tried_nothing_has_no_table_to_draw():
    rows, y = WORLD.labelled
    one_class = PNPDiscoverer(max_iter=0, random_state=0).fit(rows[y == 0], y[y == 0], WORLD.rest)
    with pytest.raises(ValueError, match="nothing was tried.*two known classes"):
        CalibrationTableDisplay.from_estimator(one_class)


# --- sizes ------------------------------------------------------------------------------------------------


def test_bars_are_as_long_as_classes_are_large_and_largest_first():
    found = ["b"] * 2 + ["a"] * 3 + ["new"] * 4 + ["newer"] * 5
    display = ClassSizesDisplay.from_predictions(found, known_classes=["a", "b", "empty"])
    lengths = {kind: [bar.get_width() for bar in bars] for kind, bars in display.bars_.items()}
    assert lengths == {"known": [3, 2, 0], "novel": [5, 4]}
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["a", "b", "empty", "newer", "new"]
    assert legend_texts(display.ax_) == ["3 known: 5 rows", "2 novel: 9 rows"]


def test_known_and_novel_bars_differ_in_colour_and_hatch():
    display = ClassSizesDisplay.from_predictions([0, 1], known_classes=[0])
    known, novel = (display.bars_[kind][0] for kind in ("known", "novel"))
    assert to_hex(known.get_facecolor()) != to_hex(novel.get_facecolor())
    assert (known.get_hatch(), novel.get_hatch()) == (None, canvas.NOVEL_HATCH)


def test_two_hundred_classes_stand_without_names():
    labels = np.repeat(np.arange(200), np.arange(1, 201))
    display = ClassSizesDisplay.from_predictions(labels, known_classes=np.arange(100))
    heights = [bar.get_height() for bar in display.bars_["novel"]]
    assert heights == list(range(200, 100, -1))
    assert len(display.ax_.get_xticklabels()) < 15


def test_without_rows_the_pool_of_the_fit_is_counted(model):
    display = ClassSizesDisplay.from_estimator(model)
    assert sum(display.sizes) == len(WORLD.rest)
    assert dict(zip(display.classes, display.sizes, strict=True)) == {
        label: (model.unlabelled_labels_ == label).sum() for label in model.classes_.tolist()
    }


def test_a_fit_without_a_pool_has_nothing_to_count():
    supervised = PNPDiscoverer(max_iter=0, random_state=0).fit(*WORLD.labelled)
    with pytest.raises(ValueError, match="no unlabelled rows to count"):
        ClassSizesDisplay.from_estimator(supervised)


# --- biases -----------------------------------------------------------------------------------------------


def test_bars_are_the_biases_in_per_cent_of_all_rows():
    truth = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3])
    found = np.array([0, 0, 1, 1, 1, 2, 2, 2, 3, 0])
    display = PredictionBiasDisplay.from_predictions(truth, found, known_classes=[0, 1])
    bias = prediction_bias(truth, found, [0, 1])
    widths = [bar.get_width() for bar in display.bars_]
    expected = [bias.true_old, bias.false_new, bias.false_old, bias.true_new]
    np.testing.assert_allclose(widths, 100 * np.array(expected))
    assert widths == [10, 10, 10, 0]
    assert display.ax_.get_title(loc="left") == "70.0 % of rows are right"
    assert [bar.get_hatch() for bar in display.bars_] == ["", "", canvas.NOVEL_HATCH, canvas.NOVEL_HATCH]


def test_perfect_predictions_have_bars_of_no_length():
    display = PredictionBiasDisplay.from_predictions([0, 1], [0, 1], known_classes=[0])
    assert [text.get_text() for text in display.text_] == ["0.0 %"] * 4
    assert display.ax_.get_xlim() == (0, 1)


def test_rows_without_truth_are_left_out_of_the_biases(model):
    truth = WORLD.truth.copy()
    truth[::2] = -1
    display = PredictionBiasDisplay.from_estimator(model, WORLD.rest, truth)
    expected = prediction_bias(truth[1::2], model.predict(WORLD.rest)[1::2], model.known_classes_)
    assert display.bias == expected
    with pytest.raises(ValueError, match="y has 3 labels"):
        PredictionBiasDisplay.from_estimator(model, WORLD.rest, truth[:3])


# --- novelty ----------------------------------------------------------------------------------------------


def heights(display):
    return {kind: [bar.get_height() for bar in bars] for kind, bars in display.bars_.items()}


def test_known_and_novel_rows_are_counted_apart():
    scores, truth = [0.1, 0.3, 0.3, 0.9, np.nan, 0.8], ["a", "a", "new", "new", "a", None]
    display = NoveltyHistogramDisplay.from_predictions(truth, scores, known_classes=["a"], bins=4)
    assert heights(display) == {"known": [1, 1, 0, 0], "novel": [0, 1, 0, 1]}
    np.testing.assert_array_equal(display.bins_, [0, 0.25, 0.5, 0.75, 1])
    assert legend_texts(display.ax_) == ["truly known: 2 rows", "truly novel: 2 rows"]
    assert {bar.get_hatch() for bar in display.bars_["known"]} == {None}
    assert {bar.get_hatch() for bar in display.bars_["novel"]} == {canvas.NOVEL_HATCH}


def test_without_truth_rows_are_told_by_the_class_predicted(model):
    display = NoveltyHistogramDisplay.from_estimator(model, WORLD.rest)
    is_novel = ~np.isin(model.predict(WORLD.rest), model.known_classes_)
    assert sum(heights(display)["novel"]) == is_novel.sum()
    assert legend_texts(display.ax_)[1] == f"predicted novel: {is_novel.sum()} rows"
    np.testing.assert_array_equal(display.novelty, model.novelty_score(WORLD.rest))


def test_settings_of_the_histogram_go_to_hist():
    display = NoveltyHistogramDisplay([0.1, 0.9], [False, True]).plot(bins=2, stacked=False, density=True)
    assert heights(display) == {"known": [2, 0], "novel": [0, 2]}
    assert display.ax_.get_ylabel() == "density"


def test_scores_and_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="novelty has shape .3,. but there are 2 labels"):
        NoveltyHistogramDisplay.from_predictions([0, 1], [0.1, 0.2, 0.3], known_classes=[0])
    with pytest.raises(ValueError, match="No row has a class"):
        NoveltyHistogramDisplay.from_predictions([-1, -1], [0.1, 0.2], known_classes=[0])


@pytest.mark.parametrize(("known", "mark"), [(["a", "b"], "?"), ([1, 2], 99), ([1, 2], float("nan"))])
def test_a_missing_label_that_the_model_was_given_is_no_class(model, monkeypatch, known, mark):
    monkeypatch.setattr(model, "missing_label", mark)
    rows = read_classes(hide_missing([known[0], mark, known[1], mark], model, name="y"), known)
    assert rows.classes == known
    assert rows.codes.tolist() == [0, -1, 1, -1]


def test_rows_without_truth_are_no_novel_rows_whatever_marks_them(model, monkeypatch):
    monkeypatch.setattr(model, "missing_label", 99)
    truth = np.where(np.arange(len(WORLD.rest)) < 50, 99, WORLD.truth)
    display = NoveltyHistogramDisplay.from_estimator(model, WORLD.rest, truth)
    assert len(display.novelty) == len(truth) - 50
    monkeypatch.setattr(type(model), "predict", lambda self, X: truth)
    assert 99 not in ClassSizesDisplay.from_estimator(model, WORLD.rest).classes


# --- labels -----------------------------------------------------------------------------------------------


def test_known_classes_come_first_and_gaps_are_no_class():
    rows = read_classes(["b", "new", None, "-1", "b", float("nan")], ["c", "b"])
    assert rows.classes == ["b", "c", "new"]
    assert rows.is_known.tolist() == [True, True, False]
    assert rows.codes.tolist() == [0, 2, -1, -1, 0, -1]
    assert rows.sizes.tolist() == [2, 0, 1]


def test_minus_one_is_a_class_where_it_is_a_known_one():
    assert read_classes([-1, 1], [-1, 1]).codes.tolist() == [0, 1]


def test_known_classes_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="of another kind than the labels of y_pred"):
        read_classes([0, 1], ["0", "1"])


def test_labels_of_two_axes_are_refused():
    with pytest.raises(ValueError, match="must be 1-d"):
        read_classes([[0, 1]], [0])
