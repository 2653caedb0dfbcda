"""scikit-learn's callbacks reach every epoch; before they existed nothing changes."""

import importlib.util
import sys
import time

import pytest
from conftest import make_world
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pnp_gcd._compat
from pnp_gcd import PNPDiscoverer
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive

needs_callbacks = pytest.mark.skipif(
    importlib.util.find_spec("sklearn.callback") is None, reason="callbacks came with scikit-learn 1.9"
)


class Recorder:
    """Notes which tasks begin and end; asks to stop after some epochs."""

    def __init__(self, stop_after=None):
        self.events, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name}")
        n_epochs = self.events.count("end epoch")
        return context.task_name == "epoch" and n_epochs == self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


class Propagated(Recorder):
    """The same, handed on to estimators inside others."""

    max_propagation_depth = None


def quick(**parameters):
    settings = {"n_neighbors": 5, "resolution": 1.0, "whitening": "soft-total", "max_iter": 2}
    return PNPDiscoverer(similarity_threshold=0.0, random_state=0, **{**settings, **parameters})


@needs_callbacks
def test_a_callback_sees_the_fit_and_each_epoch(world):
    recorder = Recorder()
    quick().set_callbacks(recorder).fit(*world.stacked)
    epoch = ["begin epoch", "end epoch"]
    assert recorder.events == ["setup", "begin fit", *epoch, *epoch, "end fit", "teardown"]


@needs_callbacks
def test_a_callback_may_end_the_training(world):
    model = quick(max_iter=5).set_callbacks(Recorder(stop_after=2)).fit(*world.stacked)
    assert model.n_iter_ == 2
    assert model.predict(world.X).shape == world.y.shape


@needs_callbacks
def test_callbacks_change_nothing_that_is_learnt(world):
    plain, watched = quick(), quick().set_callbacks(Recorder())
    assert (plain.fit(*world.stacked).labels_ == watched.fit(*world.stacked).labels_).all()


class Failing(Recorder):
    def on_fit_task_begin(self, estimator, context):
        super().on_fit_task_begin(estimator, context)
        if context.task_name == "epoch":
            raise RuntimeError("no")


@needs_callbacks
def test_a_callback_is_taken_down_where_a_fit_fails(world):
    recorder = Failing()
    with pytest.raises(RuntimeError, match="no"):
        quick().set_callbacks(recorder).fit(*world.stacked)
    assert recorder.events == ["setup", "begin fit", "begin epoch", "teardown"]


class Clock(Recorder):
    """Notes how long epochs took, and whether the estimator was ready when its fit ended."""

    def __init__(self):
        super().__init__()
        self.began, self.seconds, self.was_ready = 0.0, [], None

    def on_fit_task_begin(self, estimator, context):
        self.began = time.perf_counter()

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "epoch":
            self.seconds.append(time.perf_counter() - self.began)
        else:
            self.was_ready = hasattr(estimator, "classes_")


@needs_callbacks
def test_an_epoch_begins_before_it_is_done_and_a_fit_ends_when_it_is_stored(world):
    clock = Clock()
    model = quick().set_callbacks(clock).fit(*world.stacked)
    for seconds, row in zip(clock.seconds, model.history_, strict=True):
        assert seconds >= row["seconds"]
    assert clock.was_ready


@needs_callbacks
def test_a_callback_of_a_search_sees_the_epochs_of_every_fit():
    X, y = make_world(120, 6, 4, seed=1).stacked
    recorder = Propagated()
    search = GridSearchCV(
        Transductive(make_pipeline(StandardScaler(), quick(max_iter=1))),
        {"estimator__pnpdiscoverer__n_neighbors": [4, 6]},
        cv=ClassHoldoutSplit(2, random_state=0),
    )
    search.set_callbacks(recorder).fit(X, y)
    assert recorder.events.count("end epoch") == 2 * 2 + 1  # settings × folds, and the best one again
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1


@needs_callbacks
def test_the_progress_bar_of_scikit_learn_runs_over_a_search(capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    X, y = make_world(120, 6, 4, seed=1).stacked
    search = GridSearchCV(
        Transductive(quick(max_iter=1), lazy=True),
        {"estimator__n_neighbors": [4, 6]},
        cv=ClassHoldoutSplit(2, random_state=0),
        refit=False,
    )
    search.set_callbacks(ProgressBar(max_propagation_depth=2)).fit(X, y)
    assert "GridSearchCV" in capsys.readouterr().out


def test_before_callbacks_existed_a_fit_is_as_it_was(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)  # importing it now fails
    spec = importlib.util.spec_from_file_location("older_compat", pnp_gcd._compat.__file__)
    older = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)

    class Estimator(older.CallbackSupportMixin):
        @older.with_callbacks
        def fit(self):
            context = self._init_callback_context(max_subtasks=1)
            context.call_on_fit_task_begin(estimator=self)
            task = context.subcontext(task_name="epoch").call_on_fit_task_begin(estimator=self)
            with task.propagate_callback_context(self):
                return context.call_on_fit_task_end(estimator=self)

    assert Estimator().fit() is False
    assert not hasattr(Estimator(), "set_callbacks")
