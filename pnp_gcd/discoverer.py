"""``PNPDiscoverer``: scikit-learn's face of the method.

Checks what comes in, calls one plain function, stores what comes out. Knows no torch, no
faiss, no infomap: they are imported when a fit or a prediction first needs them.
"""

from __future__ import annotations

import functools
import numbers
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from pnp_gcd._compat import CallbackSupportMixin, NoCallbacks, ParameterHelpMixin, Tags, with_callbacks
from pnp_gcd._progress import ProgressLine
from pnp_gcd._threads import sensible_threads
from pnp_gcd.distributed import take_part
from pnp_gcd.fitted import FittedDiscoverer, count_axes
from pnp_gcd.inputs import check_range, check_same_scale, unwrap_pool
from pnp_gcd.labels import (
    EncodedLabels,
    choose_marker,
    encode_labels,
    join_classes,
    mark_rejected,
    name_novel_classes,
)
from pnp_gcd.parameters import CONSTRAINTS, read_settings
from pnp_gcd.workers import World
from pnp_gcd.workflows import warn_if_cut, warn_if_passed_by

if TYPE_CHECKING:
    from pnp_gcd.images import Images
    from pnp_gcd.rows import Rows, VectorRows
    from pnp_gcd.training import Discovery

__all__ = ["PNPDiscoverer"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _ignore(stage: str, row: dict[str, Any]) -> None:
    """Show nothing."""


def _with_aliases(method: _Method) -> _Method:
    """Accept ``X_labelled`` for X and ``y_labelled`` for y, as keywords only.

    Real parameters of those names would be taken for metadata by scikit-learn's routing.
    """

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        for position, (alias, name) in enumerate((("X_labelled", "X"), ("y_labelled", "y"))):
            if alias in kwargs:
                if name in kwargs or len(args) > position:
                    raise TypeError(f"{alias}= is another name of {name}=: pass one of them, not both.")
                kwargs[name] = kwargs.pop(alias)
        return method(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


class PNPDiscoverer(CallbackSupportMixin, ParameterHelpMixin, FittedDiscoverer):
    """Find the known and the new classes in unlabelled rows, and how many there are.

    Labelled rows come from some classes; unlabelled rows hold those classes and others nobody
    has labelled. ``fit`` says which class each unlabelled row is, names the new classes and
    counts them; ``predict`` does the same for rows it never saw. The method is *Probing New
    Prototypes* [1]_ on feature vectors of any kind, with what it needs tuned by hand (geometry,
    neighbours, thresholds) chosen from the labelled rows. With ``backbone`` a row is an image:
    see :doc:`the guide </images>`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of classes, known ones included. ``None`` estimates it. Without unlabelled rows
        there is nothing to discover: exactly the known classes come back.
    n_neighbors : int or "auto", default="auto"
        Edges kept per row in the neighbour graph, never counting the row itself (k). "auto"
        takes the number that best finds hidden known classes again.
    similarity_threshold : float or "auto", default="auto"
        Edges need a cosine above this (τ_f). "auto" cuts edges only where that helps.
    resolution : float or "auto", default="auto"
        Infomap's Markov time; above 1 gives fewer and larger communities. "auto" lowers it, in
        calibration and in training, to a half at most, for several communities a class to merge.
    edge_weights : {"shared", "cosine"}, default="shared"
        Weight of an edge: its cosine, as in the paper, or that times the part of their nearest
        rows that the two rows share.
    merge_threshold : float or "auto", default="auto"
        Communities with at least this many neighbour edges per pair of rows are pieces of one
        class and merge. "auto" merges until the number of classes is left that hidden known
        classes speak for; ``inf`` merges nothing but the communities of one known class.
    cluster_interval : int, default=4
        Epochs from one clustering to the next; the paper's is 1. Prototypes follow the features in
        every epoch.
    cluster_on : {"all", "unlabelled"}, default="all"
        Rows that are clustered. The paper clusters the unlabelled rows only.
    whitening : {"auto", "discriminant", "within", "soft-within", "soft-total"} or None, default="auto"
        How directions are scaled before rows are put on the unit sphere: by the spread inside
        known classes ("within"), its square root ("soft-within"), that and how far all rows are
        spread beyond it, because classes differ there ("discriminant"), the square root of the
        spread of all rows, or not at all. "auto" compares them on hidden classes.
    n_components : int or None, default=256
        Principal directions kept before anything else; ``None`` keeps all (of rows wider than
        2,048 columns, the first 512).
    max_iter : int, default=4
        Epochs. 0 clusters the features as they come.
    max_samples : int or None, default=50_000
        Rows that a fit learns from. Of more, so many are drawn, of every known class the same part but
        20 labelled rows at least, and all others get their class as new rows do. ``None`` learns from all.
    batch_size : int, default=256
        Rows per step, half of them labelled where both kinds exist.
    learning_rate : float, default=0.15
        Of SGD with momentum 0.9, falling by a cosine.
    distillation_weight : float, default=0.65
        Weight of the student's cross-entropy with the teacher (α₁).
    entropy_weight : float, default=2.0
        Weight of the mean-entropy term, relative to ``distillation_weight`` (γ).
    known_weight : float, default=0.35
        Weight of the cross-entropy of labelled rows with known-class prototypes (1 − α₁).
    supervised_weight : float, default=0.35
        Weight of the supervised contrastive term (β₁).
    unsupervised_weight : float, default=0.65
        Weight of the contrastive term between the two views (1 − β₁).
    temperature : float, default=0.1
        Of the student's softmax over prototypes, and of ``predict_proba`` (τ).
    teacher_temperature : pair of float, default=(0.07, 0.04)
        Of the teacher's softmax at the start and after its warm-up (τ_t).
    contrastive_temperature : float, default=1.0
        Of the contrastive term between views (τ_r).
    supervised_temperature : float, default=0.07
        Of the supervised contrastive term (the paper: τ_r).
    teacher : {"ema", "epoch"} or None, default="ema"
        "ema" follows the student slowly; "epoch" is a copy made each epoch; None lets the
        student's other view teach.
    teacher_momentum : pair of float, default=(0.7, 0.99)
        ω_min and ω_max of the teacher's update.
    potential_prototypes : {"trainable", "frozen"} or None, default="trainable"
        What fills the memory beside the prototypes of clusters.
    prototypes_per_class : int, default=4
        Size of the memory, in prototypes per known class.
    distill_on : {"all", "unlabelled"}, default="all"
        Rows on which student and teacher are compared. The paper says unlabelled.
    view_noise : float, default=0.6
        Length of the noise that makes a view, relative to the usual distance between neighbours.
    view_dropout : float, default=0.1
        Part of the columns set to zero in a view.
    hidden_width : int, default=512
        Hidden columns of the residual adapter that is trained.
    projection_width : pair of int, default=(256, 128)
        Hidden and output columns of the projection head.
    backbone : str or None, default=None
        Name of a timm network. X then holds images: an array of shape (n, height, width, 3),
        (n, 3, height, width) or (n, height, width), uint8 from 0 to 255 or float from 0 to 1; a
        list or column of file paths or PIL images; or a torch ``Dataset``.
    backbone_weights : str, path or None, default="auto"
        "auto" downloads timm's weights; a path reads a file of DINO, DINOv2 or timm (.pth or
        .safetensors), of which nothing is executed; None leaves them random.
    image_size : int or None, default=None
        Height and width at which images enter the backbone; None takes its own.
    n_trainable_blocks : int, default=1
        Last blocks of the backbone that learn. With 0 only the adapter on its features does.
    augmentation : {"standard", "strong"}, default="standard"
        How the two views of an image are drawn: crop, mirror and colours; "strong" also hue,
        grey and blur.
    n_cached_views : int, default=4
        Drawn views of each image that go through the frozen part of the backbone once and are
        kept. Images are represented by the mean of their views, in ``predict`` too.
    cache_size : int or str, default="4GB"
        What may be kept on disk, in bytes or as "500MB", "4GB". Fewer views are kept if they do not
        fit. 0 keeps nothing: the whole backbone runs in every epoch, as in the paper.
    cache_dir : str, path or None, default=None
        Folder in which kept views outlive the fit, for a fit that was interrupted, or the next one on
        the same images with the same integer ``random_state``. None takes a temporary folder and removes it.
    on_bad_image : {"error", "skip"}, default="error"
        Images that cannot be read raise an error, or are left out with a warning. A row left out
        gets the missing label, and NaN where numbers are asked for.
    device : str, default="auto"
        Where the backbone works: "cuda", "mps", "cpu", or the first of them there is. On CUDA it
        computes in mixed precision. Feature vectors are learnt from on the CPU.
    missing_label : object, default="auto"
        What marks an unlabelled row in y. "auto" takes −1, "-1", None and NaN.
    checkpoint_dir : str, path or None, default=None
        Folder in which a fit keeps its state after calibration and after every epoch. A fit that was
        killed goes on from there when it is called again with the same settings and rows; one that
        ends removes it. Needs a ``random_state``. See :doc:`the guide </long_fits>`.
    on_interrupt : {"raise", "keep"}, default="raise"
        On Ctrl-C during training: raise, or finish with the last epoch that was completed.
    random_state : int, RandomState or None, default=None
        Seeds everything; an int makes ``fit`` repeatable. The global random state is never
        read or changed.
    verbose : int, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    n_clusters_ : int
        Number of classes, ``len(classes_)``; a known class counts even if no row of the pool
        is in it.
    n_clusters_interval_ : tuple of int
        Lowest and highest number of classes that the evidence allows, nine times in ten. One
        number twice if ``n_clusters`` was given, or if no label could tell.
    classes_ : ndarray of shape (n_clusters_,)
        Known and new classes, sorted.
    known_classes_, novel_classes_ : ndarray
        New ones are named largest first: integers go on after the largest known label, strings
        are ``novel_0``, ``novel_1``, …
    confirmed_classes_ : ndarray
        Known classes, and new ones that a person has named or merged.
    labels_ : ndarray of shape (n_rows,)
        For the rows of X: given labels as given, unlabelled rows as found.
    unlabelled_labels_ : ndarray
        X's own unlabelled rows in order, then the rows of ``X_unlabelled``.
    prototypes_ : ndarray of shape (n_prototypes, n_features_out)
        Unit-length; a class has its mean direction and those of its communities.
    prototype_labels_ : ndarray of shape (n_prototypes,)
        The class each prototype stands for.
    history_ : list of dict
        A row per epoch: every loss term, communities and clusters found, the part of the true neighbours
        that the search found, seconds.
    calibration_ : list of dict
        A row per setting tried, see :doc:`the guide </calibration>`.
    n_neighbors_, similarity_threshold_, resolution_, whitening_
        The values used.
    encoder_ : torch.nn.Module
        The trained adapter.
    n_iter_ : int
        Epochs done.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    See Also
    --------
    pnp_gcd.pool : Stack labelled and unlabelled rows for Pipelines and searches.
    pnp_gcd.metrics : Accuracy of known and new classes.

    References
    ----------
    .. [1] Y. Wang, Y. Wang, Y. Wu, B. Zhao, X. Qian, "Beyond Known Clusters: Probe New
       Prototypes for Efficient Generalized Class Discovery", 2024.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from pnp_gcd import PNPDiscoverer
    >>> X, y = make_blobs(400, n_features=8, centers=5, random_state=0)
    >>> has_label = (y < 3) & (X[:, 0] > X[:, 0].mean())
    >>> has_label[::2] = y[::2] < 3
    >>> model = PNPDiscoverer(random_state=0).fit(X[has_label], y[has_label], X[~has_label])
    >>> model.n_clusters_
    5
    >>> model.known_classes_, model.novel_classes_
    (array([0, 1, 2]), array([3, 4]))
    >>> model.predict(X[:3]).shape
    (3,)
    """

    # The pool needs no set_fit_request to be routed.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"X_unlabelled": True}

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = CONSTRAINTS

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        similarity_threshold: float | Literal["auto"] = "auto",
        resolution: float | Literal["auto"] = "auto",
        edge_weights: Literal["shared", "cosine"] = "shared",
        merge_threshold: float | Literal["auto"] = "auto",
        cluster_interval: int = 4,
        cluster_on: Literal["all", "unlabelled"] = "all",
        whitening: Literal["auto", "discriminant", "within", "soft-within", "soft-total"] | None = "auto",
        n_components: int | None = 256,
        max_iter: int = 4,
        max_samples: int | None = 50_000,
        batch_size: int = 256,
        learning_rate: float = 0.15,
        distillation_weight: float = 0.65,
        entropy_weight: float = 2.0,
        known_weight: float = 0.35,
        supervised_weight: float = 0.35,
        unsupervised_weight: float = 0.65,
        temperature: float = 0.1,
        teacher_temperature: tuple[float, float] = (0.07, 0.04),
        contrastive_temperature: float = 1.0,
        supervised_temperature: float = 0.07,
        teacher: Literal["ema", "epoch"] | None = "ema",
        teacher_momentum: tuple[float, float] = (0.7, 0.99),
        potential_prototypes: Literal["trainable", "frozen"] | None = "trainable",
        prototypes_per_class: int = 4,
        distill_on: Literal["all", "unlabelled"] = "all",
        view_noise: float = 0.6,
        view_dropout: float = 0.1,
        hidden_width: int = 512,
        projection_width: tuple[int, int] = (256, 128),
        backbone: str | None = None,
        backbone_weights: str | os.PathLike[str] | None = "auto",
        image_size: int | None = None,
        n_trainable_blocks: int = 1,
        augmentation: Literal["standard", "strong"] = "standard",
        n_cached_views: int = 4,
        cache_size: int | str = "4GB",
        cache_dir: str | os.PathLike[str] | None = None,
        on_bad_image: Literal["error", "skip"] = "error",
        device: str = "auto",
        missing_label: Any = "auto",
        checkpoint_dir: str | os.PathLike[str] | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.similarity_threshold = similarity_threshold
        self.resolution = resolution
        self.edge_weights = edge_weights
        self.merge_threshold = merge_threshold
        self.cluster_interval = cluster_interval
        self.cluster_on = cluster_on
        self.whitening = whitening
        self.n_components = n_components
        self.max_iter = max_iter
        self.max_samples = max_samples
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.distillation_weight = distillation_weight
        self.entropy_weight = entropy_weight
        self.known_weight = known_weight
        self.supervised_weight = supervised_weight
        self.unsupervised_weight = unsupervised_weight
        self.temperature = temperature
        self.teacher_temperature = teacher_temperature
        self.contrastive_temperature = contrastive_temperature
        self.supervised_temperature = supervised_temperature
        self.teacher = teacher
        self.teacher_momentum = teacher_momentum
        self.potential_prototypes = potential_prototypes
        self.prototypes_per_class = prototypes_per_class
        self.distill_on = distill_on
        self.view_noise = view_noise
        self.view_dropout = view_dropout
        self.hidden_width = hidden_width
        self.projection_width = projection_width
        self.backbone = backbone
        self.backbone_weights = backbone_weights
        self.image_size = image_size
        self.n_trainable_blocks = n_trainable_blocks
        self.augmentation = augmentation
        self.n_cached_views = n_cached_views
        self.cache_size = cache_size
        self.cache_dir = cache_dir
        self.on_bad_image = on_bad_image
        self.device = device
        self.missing_label = missing_label
        self.checkpoint_dir = checkpoint_dir
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.two_d_array = self.backbone is None
        return tags

    @with_callbacks
    @_with_aliases
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, X_unlabelled: Any = None) -> PNPDiscoverer:
        """Learn from labelled and unlabelled rows.

        Also called as ``fit(X_labelled=…, y_labelled=…, X_unlabelled=…)``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features)
            Rows with labels in y; rows whose y is a missing label belong to the pool. With
            three axes, precomputed views of each row.
        y : array-like of shape (n_rows,) or None
            Labels of known classes. None means that no row has a label: clustering.
        X_unlabelled : array-like of shape (n_pool, n_features), 1-tuple of it, or None
            Further rows of the pool. A 1-tuple keeps searches from slicing a pool that is as
            long as X.

        Returns
        -------
        self : PNPDiscoverer
        """
        self._validate_params()
        with take_part(self.checkpoint_dir) as world:
            if self.backbone is not None:
                return self._fit_images(X, y, X_unlabelled, world)
            return self._fit_vectors(X, y, X_unlabelled, world)

    def _fit_vectors(
        self, X: ArrayLike, y: ArrayLike | None, X_unlabelled: Any, world: World
    ) -> PNPDiscoverer:
        """Fit on feature vectors."""
        rows, encoded, codes = world.together(lambda: self._read_vectors(X, y, X_unlabelled, world))
        progress = ProgressLine(self.verbose, self.max_iter)
        with sensible_threads(len(rows) * rows.parts[0][0].size):
            found, context = self._discover(rows, codes, progress)
        self._image_mode = None
        self._store(found, encoded, codes)
        context.call_on_fit_task_end(estimator=self)
        return self

    def _read_vectors(
        self, X: ArrayLike, y: ArrayLike | None, X_unlabelled: Any, world: World
    ) -> tuple[VectorRows, EncodedLabels, NDArray[np.int64]]:
        """Return all rows, the labels of X, and codes of all rows."""
        from pnp_gcd.rows import VectorRows

        rows = self._read_rows(X, "X", is_first=True)
        encoded = self._encode(y, len(rows))
        pool = self._check_pool(X_unlabelled, rows)
        together = VectorRows(*([rows] if pool is None else [rows, pool]), world=world)
        check_range(*together.parts)
        codes = encoded.with_unlabelled(len(together))
        self._check_counts(codes, len(encoded.classes))
        return together, encoded, codes

    def _fit_images(self, X: Any, y: ArrayLike | None, X_unlabelled: Any, world: World) -> PNPDiscoverer:
        """Fit on images: the same, behind a frozen trunk."""
        from pnp_gcd.image_mode import ImageMode

        images, encoded, codes = world.together(lambda: self._read_images(X, y, X_unlabelled))
        progress = ProgressLine(self.verbose, self.max_iter)
        mode = ImageMode.from_parameters(self, seed=self._seed(world), world=world)
        with mode.prepare(images, world=world, report=progress.show if world.is_first else _ignore) as rows:
            is_read = mode.tell_read(rows)
            self._check_read(is_read, encoded, codes)
            found, context = self._discover(rows.take(np.flatnonzero(is_read)), codes[is_read], progress)
        self._image_mode = mode
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._store(found.spread_over(is_read), encoded, codes)
        context.call_on_fit_task_end(estimator=self)
        return self

    def _read_images(
        self, X: Any, y: ArrayLike | None, X_unlabelled: Any
    ) -> tuple[Images, EncodedLabels, NDArray[np.int64]]:
        """Return all images, the labels of X, and codes of all images."""
        from pnp_gcd.images import join_images, read_images

        images = read_images(X)
        encoded = self._encode(y, len(images))
        if X_unlabelled is not None:
            pool = read_images(unwrap_pool(X_unlabelled), "X_unlabelled")
            self._check_workflow(len(images), len(pool), X_unlabelled)
            images = join_images([images, pool])
        codes = encoded.with_unlabelled(len(images))
        self._check_counts(codes, len(encoded.classes))
        return images, encoded, codes

    def _check_read(
        self, is_read: NDArray[np.bool_], encoded: EncodedLabels, codes: NDArray[np.int64]
    ) -> None:
        """Refuse to fit on too few images that could be read."""
        if len(is_read) < 2:
            raise ValueError(f"X holds {len(is_read)} image, but a fit needs 2 at least. Pass more.")
        if int(is_read.sum()) < 2 or encoded.classes.size > len(np.unique(codes[is_read & (codes >= 0)])):
            raise ValueError(
                "Too few images are left without those that could not be read: every known class needs "
                "one. Mend the images that the warning names, or drop their class from y."
            )
        self._check_counts(codes[is_read], len(encoded.classes))

    def _discover(
        self, rows: Rows, codes: NDArray[np.int64], progress: ProgressLine
    ) -> tuple[Discovery, Any]:
        """Return what was found, and the callbacks' context, which ends when that is stored."""
        from pnp_gcd.training import discover

        is_first = rows.world.is_first  # the one worker that speaks
        context = self._init_callback_context(max_subtasks=int(self.max_iter)) if is_first else NoCallbacks()
        context.call_on_fit_task_begin(estimator=self)
        epochs: list[Any] = []

        def report(stage: str, row: dict[str, Any]) -> bool:
            """Show what was done; tell whether a callback asks to stop after this epoch."""
            if is_first:
                progress.show(stage, row)
            if stage == "begin":
                epochs.append(context.subcontext(task_name="epoch"))
                epochs[-1].call_on_fit_task_begin(estimator=self)
            return stage == "epoch" and bool(epochs[-1].call_on_fit_task_end(estimator=self))

        try:
            settings = read_settings(self, self._seed(rows.world))
            return discover(rows, codes, settings, report=report), context
        finally:
            progress.close()

    def _encode(self, y: ArrayLike | None, n_rows: int) -> EncodedLabels:
        """Return codes of the rows of X, and the known classes."""
        if y is None:
            return EncodedLabels(np.full(n_rows, -1, dtype=np.int64), np.empty(0, dtype=np.int64))
        encoded = encode_labels(y, self.missing_label)
        check_consistent_length(np.empty(n_rows), encoded.codes)
        if not len(encoded.classes):
            raise ValueError(
                f"y holds no label: all {n_rows} entries mark unlabelled rows. Label some rows of each "
                "known class, or pass y=None to cluster without labels."
            )
        return encoded

    def _check_pool(self, given: Any, rows: NDArray[np.floating]) -> NDArray[np.floating] | None:
        X_unlabelled = unwrap_pool(given)
        if X_unlabelled is None:
            return None
        if count_axes(X_unlabelled) and len(X_unlabelled) == 0:
            raise ValueError("X_unlabelled has 0 rows. Pass at least one row, or None to fit without a pool.")
        try:
            pool = self._read_rows(X_unlabelled, "X_unlabelled")
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabelled cannot be used: {error}") from error
        if pool.shape[1:] != rows.shape[1:]:
            raise ValueError(
                f"X_unlabelled has rows of shape {pool.shape[1:]}, X of shape {rows.shape[1:]}. "
                "Pass both with the same features."
            )
        if not self._check_workflow(len(rows), len(pool), given):
            check_same_scale(rows, pool)
        return pool

    def _check_workflow(self, n_rows: int, n_pool: int, given: Any) -> bool:
        """Warn where a search has cut the pool, or a Pipeline has not transformed it; True for the latter."""
        if not isinstance(given, tuple):
            warn_if_cut(n_rows, n_pool)
        return warn_if_passed_by(self)

    def _check_counts(self, codes: NDArray[np.int64], n_known: int) -> None:
        """Refuse numbers that these rows cannot satisfy."""
        n_unlabelled = int((codes < 0).sum())
        if not n_unlabelled:  # nothing to discover: exactly the known classes come back
            return
        if self.n_clusters is not None:
            if self.n_clusters < n_known:
                raise ValueError(
                    f"n_clusters={self.n_clusters} is below the {n_known} known classes in y. "
                    f"Pass at least {n_known}, or None to estimate it."
                )
            if self.n_clusters - n_known > n_unlabelled:
                raise ValueError(
                    f"n_clusters={self.n_clusters} asks for {self.n_clusters - n_known} new classes, but "
                    f"there are {n_unlabelled} unlabelled rows. Lower n_clusters or pass None."
                )
        n_clustered = n_unlabelled if self.cluster_on == "unlabelled" else len(codes)
        if self.n_neighbors != "auto" and self.n_neighbors >= n_clustered:
            kind = "unlabelled rows" if self.cluster_on == "unlabelled" else "rows"
            raise ValueError(
                f"n_neighbors={self.n_neighbors} needs more than {self.n_neighbors} {kind}, "
                f'got {n_clustered}. Lower n_neighbors or pass "auto".'
            )

    def _seed(self, world: World) -> int:
        """Return one seed for the whole fit; None draws fresh entropy, not the global state's.

        One that is not fixed is the first worker's.
        """
        if self.random_state is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        first = world.broadcast(seed)
        return seed if isinstance(self.random_state, numbers.Integral) else first

    def _store(self, found: Discovery, encoded: EncodedLabels, codes: NDArray[np.int64]) -> None:
        """Turn what was found into the attributes that end in an underscore."""
        labelling, graph = found.labelling, found.calibration.graph
        self.known_classes_ = encoded.classes
        self.novel_classes_ = name_novel_classes(
            encoded.classes, labelling.n_classes - labelling.n_known, missing_label=self.missing_label
        )
        self.classes_, self._position = join_classes(self.known_classes_, self.novel_classes_)
        self.n_clusters_ = len(self.classes_)
        self._homes = np.arange(self.n_clusters_)
        self._is_confirmed = np.zeros(len(self.novel_classes_), dtype=bool)
        self.n_clusters_interval_ = found.interval
        self._sharpness, self._usual_closeness = found.sharpness, found.usual_closeness
        names = self.classes_[self._position]
        rows = np.where(codes >= 0, codes, found.row_classes)
        row_names = names[rows]
        if (rows < 0).any():  # images that were skipped
            marker = choose_marker(self.classes_, self.missing_label)
            row_names = mark_rejected(row_names, rows < 0, marker)
        self.labels_ = row_names[: len(encoded.codes)]
        self.unlabelled_labels_ = row_names[codes < 0]
        self.encoder_, self._geometry, self._labelling = (
            found.encoder,
            found.calibration.geometry,
            labelling,
        )
        self.prototypes_ = labelling.prototypes
        self.prototype_labels_ = names[labelling.classes]
        self.history_, self.n_iter_ = found.history, len(found.history)
        self.calibration_ = found.calibration.table
        self.n_neighbors_, self.similarity_threshold_ = graph.n_neighbors, graph.similarity_threshold
        self.resolution_, self.whitening_ = graph.resolution, found.calibration.geometry.whitening
        self._n_features_out = self.prototypes_.shape[1]

    @_with_aliases
    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, X_unlabelled: Any = None) -> NDArray[Any]:
        """Fit and return ``labels_``, the classes of the rows of X.

        Parameters
        ----------
        X, y, X_unlabelled
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.fit(X, y, X_unlabelled).labels_
