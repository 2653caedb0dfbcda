"""The loss terms of the method, one function each, and their weighted sum.

Knows tensors only: no network, no optimiser, no epochs, no class names. Every function takes unit-length
features (or the cosines between them) and leaves its arguments unchanged. A term that has no rows to work on
(a batch without labelled rows, say) is exactly 0 and can still be differentiated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

__all__ = [
    "LossTerms",
    "LossWeights",
    "combine_losses",
    "contrastive_from_similarity",
    "contrastive_loss",
    "distillation_loss",
    "known_class_loss",
    "mean_entropy_loss",
    "projection_similarity",
    "prototype_logits",
    "supervised_contrastive_from_similarity",
    "supervised_contrastive_loss",
    "teacher_probabilities",
]


class LossTerms(NamedTuple):
    """The five terms of one batch, each before weighting, and their weighted sum (all scalar tensors)."""

    distillation: Tensor
    entropy: Tensor
    known: Tensor
    supervised: Tensor
    unsupervised: Tensor
    total: Tensor


@dataclass(frozen=True)
class LossWeights:
    """The factor of each term in the total; any of them may be 0, but not all.

    Attributes
    ----------
    distillation : float
        Student against teacher, the paper's α₁.
    entropy : float
        Mean-entropy regulariser, the paper's α₁·γ.
    known : float
        Cross-entropy on the known classes, the paper's 1 − α₁.
    supervised : float
        Supervised contrastive term, the paper's β₁.
    unsupervised : float
        InfoNCE between the two views, the paper's 1 − β₁.

    """

    distillation: float
    entropy: float
    known: float
    supervised: float
    unsupervised: float

    def __post_init__(self) -> None:
        """Refuse negative or non-finite weights, and a total without any term."""
        weights = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, weight in weights.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"LossWeights: {name}={weight} must be finite and at least 0.")
        if not any(weights.values()):
            raise ValueError("LossWeights: all weights are 0, so nothing would be learnt. Give one a value.")

    @classmethod
    def from_paper(
        cls, distillation_weight: float = 0.65, entropy_weight: float = 2.0, supervised_weight: float = 0.35
    ) -> LossWeights:
        """Turn the paper's three coefficients into five weights.

        Parameters
        ----------
        distillation_weight : float, in [0, 1]
            Share of the unlabelled part of the prototype objective, α₁; the known part gets the rest.
        entropy_weight : float, at least 0
            Mean-entropy regulariser relative to distillation, γ.
        supervised_weight : float, in [0, 1]
            Share of the supervised part of the contrastive objective, β₁; InfoNCE gets the rest.

        """
        for name, share in (
            ("distillation_weight", distillation_weight),
            ("supervised_weight", supervised_weight),
        ):
            if not 0 <= share <= 1:
                raise ValueError(f"{name}={share} must lie in [0, 1].")
        if not 0 <= entropy_weight < math.inf:
            raise ValueError(f"entropy_weight={entropy_weight} must be finite and at least 0.")
        return cls(
            distillation=distillation_weight,
            entropy=distillation_weight * entropy_weight,
            known=1 - distillation_weight,
            supervised=supervised_weight,
            unsupervised=1 - supervised_weight,
        )


def combine_losses(
    *,
    distillation: Tensor,
    entropy: Tensor,
    known: Tensor,
    supervised: Tensor,
    unsupervised: Tensor,
    weights: LossWeights,
) -> LossTerms:
    """Add the weighted terms and return them all.

    With ``LossWeights.from_paper(α₁, γ, β₁)`` the total is
    α₁·(distillation + γ·entropy) + (1 − α₁)·known + β₁·supervised + (1 − β₁)·unsupervised.

    Parameters
    ----------
    distillation, entropy, known, supervised, unsupervised : Tensor, scalar
        The terms before weighting. One whose weight is 0 is left out of the sum altogether, so it may be any
        placeholder, even a non-finite one.
    weights : LossWeights
        The factor of each term.

    """
    weighted = (
        (weights.distillation, distillation),
        (weights.entropy, entropy),
        (weights.known, known),
        (weights.supervised, supervised),
        (weights.unsupervised, unsupervised),
    )
    total = torch.stack([weight * term for weight, term in weighted if weight]).sum()
    return LossTerms(distillation, entropy, known, supervised, unsupervised, total)


def prototype_logits(features: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Cosine of every row with every prototype, divided by the temperature.

    Parameters
    ----------
    features : Tensor of shape (B, D)
        Unit-length rows.
    prototypes : Tensor of shape (K, D)
        Of any length but 0: an optimiser step moves prototypes off the sphere, so they are normalised here.
    temperature : float
        Positive; τ for the student.

    Returns
    -------
    Tensor of shape (B, K)

    """
    return features @ normalize(prototypes, dim=1).T / temperature


def teacher_probabilities(features: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Give the teacher's soft assignment of every row; no gradient passes through it.

    Parameters
    ----------
    features : Tensor of shape (B, D)
        The teacher's unit-length rows.
    prototypes : Tensor of shape (K, D)
        The teacher's prototypes, normalised here.
    temperature : float
        Positive; τ_t, sharper than the student's.

    Returns
    -------
    Tensor of shape (B, K)
        Rows sum to 1.

    """
    with torch.no_grad():
        return prototype_logits(features, prototypes, temperature).softmax(dim=1)


def distillation_loss(
    student_logits_a: Tensor, student_logits_b: Tensor, teacher_probs_a: Tensor, teacher_probs_b: Tensor
) -> Tensor:
    """Cross-entropy of the student on one view against the teacher on the other, mean of both directions.

    Parameters
    ----------
    student_logits_a, student_logits_b : Tensor of shape (B, K)
        The student's logits for the two views, already divided by τ.
    teacher_probs_a, teacher_probs_b : Tensor of shape (B, K)
        The teacher's probabilities for the two views. They are targets: no gradient reaches them.

    Returns
    -------
    Tensor, scalar
        0 for an empty batch.

    """
    if not len(student_logits_a):
        return _zero_like(student_logits_a, student_logits_b)
    a_from_b = cross_entropy(student_logits_a, teacher_probs_b.detach())
    b_from_a = cross_entropy(student_logits_b, teacher_probs_a.detach())
    return (a_from_b + b_from_a) / 2


def mean_entropy_loss(
    student_logits_a: Tensor, student_logits_b: Tensor, prior: Tensor | None = None
) -> Tensor:
    """Distance of the batch's mean prediction p̄ from an even (or a given) use of the prototypes.

    Σ p̄·log p̄ + log K, which is the Kullback–Leibler divergence of p̄ from the uniform distribution; with
    ``prior``, the divergence from that instead. The minimum is 0 either way.

    Parameters
    ----------
    student_logits_a, student_logits_b : Tensor of shape (B, K)
        The student's logits for the two views, already divided by τ.
    prior : Tensor of shape (K,), optional
        The expected use of each prototype: positive, of any sum (it is scaled to 1). A constant: no gradient
        reaches it.

    Returns
    -------
    Tensor, scalar
        0 for an empty batch.

    """
    logits = torch.cat([student_logits_a, student_logits_b])
    n_rows, n_prototypes = logits.shape
    if not n_rows:
        return _zero_like(logits)
    # Averaging in log space keeps log p̄ and its gradient finite where p̄ underflows to 0.
    log_mean = logits.log_softmax(dim=1).logsumexp(dim=0) - math.log(n_rows)
    mean = log_mean.exp()
    if prior is None:
        return (mean * log_mean).sum() + math.log(n_prototypes)
    return (mean * (log_mean - _log_prior(prior, n_prototypes))).sum()


def known_class_loss(logits: Tensor, codes: Tensor) -> Tensor:
    """Cross-entropy of the labelled rows over the known classes.

    Parameters
    ----------
    logits : Tensor of shape (B, C)
        Logits of every row for every known class, already divided by τ.
    codes : Tensor of shape (B,), integer
        Class of each row; a negative code marks an unlabelled row, which has no part in the loss.

    Returns
    -------
    Tensor, scalar
        Mean over the labelled rows; exactly 0 if there are none.

    """
    is_labelled = codes >= 0
    if not is_labelled.any():
        return _zero_like(logits)
    return cross_entropy(logits[is_labelled], codes[is_labelled].long())


def projection_similarity(projections: Tensor) -> Tensor:
    """Cosine between all pairs of projections, to be shared by the two contrastive terms.

    Parameters
    ----------
    projections : Tensor of shape (2B, P)
        Unit-length projections: all rows of the first view, then the same rows of the second.

    Returns
    -------
    Tensor of shape (2B, 2B)

    """
    return projections @ projections.T


def supervised_contrastive_loss(projections: Tensor, codes: Tensor, temperature: float) -> Tensor:
    """Draw labelled rows of one class together, away from the other labelled rows.

    Parameters
    ----------
    projections : Tensor of shape (2B, P)
        Unit-length projections of both views, stacked.
    codes : Tensor of shape (2B,), integer
        Class of each row; negative where unlabelled.
    temperature : float
        Positive; the paper's τ_r.

    Returns
    -------
    Tensor, scalar
        See `supervised_contrastive_from_similarity`.

    """
    # Unlabelled rows are dropped before the product, which is a quarter of the work when half are labelled.
    is_labelled = codes >= 0
    similarity = projection_similarity(projections[is_labelled])
    return supervised_contrastive_from_similarity(similarity, codes[is_labelled], temperature)


def supervised_contrastive_from_similarity(
    similarity: Tensor, codes: Tensor, temperature: float = 1.0
) -> Tensor:
    """Compute the supervised contrastive loss from the cosines between the projections.

    For an anchor i with the positives N(i) (the other labelled rows of its class, its own second view among
    them): the mean over q in N(i) of −log(exp(s_iq/τ) / Σ_{j≠i} exp(s_ij/τ)), j over the labelled rows.

    Parameters
    ----------
    similarity : Tensor of shape (N, N)
        Cosines between all rows of both views.
    codes : Tensor of shape (N,), integer
        Class of each row; negative where unlabelled.
    temperature : float, default=1.0
        Divides the cosines here.

    Returns
    -------
    Tensor, scalar
        Mean over the anchors that have a positive; exactly 0 if none has.

    """
    rows = torch.nonzero(codes >= 0).squeeze(1)
    if not len(rows):
        return _zero_like(similarity)
    codes = codes[rows]
    is_positive = codes[:, None] == codes
    is_positive.fill_diagonal_(False)
    n_positives = is_positive.sum(dim=1)
    has_positive = n_positives > 0

    logits = _without_self(similarity[rows[:, None], rows], temperature)
    mean_positive = (logits * is_positive).sum(dim=1) / n_positives.clamp(min=1)
    losses = torch.where(has_positive, logits.logsumexp(dim=1) - mean_positive, 0.0)
    return losses.sum() / has_positive.sum().clamp(min=1)


def contrastive_loss(projections_a: Tensor, projections_b: Tensor, temperature: float) -> Tensor:
    """InfoNCE: tell each row's other view from all the other rows of both views.

    Parameters
    ----------
    projections_a, projections_b : Tensor of shape (B, P)
        Unit-length projections of the two views, row for row.
    temperature : float
        Positive; the paper's τ_r.

    Returns
    -------
    Tensor, scalar
        See `contrastive_from_similarity`.

    """
    similarity = projection_similarity(torch.cat([projections_a, projections_b]))
    return contrastive_from_similarity(similarity, temperature)


def contrastive_from_similarity(similarity: Tensor, temperature: float = 1.0) -> Tensor:
    """Compute InfoNCE from the cosines between the projections.

    For an anchor i with the other view i′ of the same row: −log(exp(s_ii′/τ) / Σ_{j≠i} exp(s_ij/τ)), j over
    all 2B − 1 other rows, the positive among them.

    Parameters
    ----------
    similarity : Tensor of shape (2B, 2B)
        Cosines between all rows: row i and row i + B are the two views of one instance.
    temperature : float, default=1.0
        Divides the cosines here.

    Returns
    -------
    Tensor, scalar
        Mean over the 2B anchors; 0 for an empty batch.

    """
    n_rows = len(similarity)
    if n_rows % 2:
        raise ValueError(f"similarity must hold two views of every row, got an odd number of rows: {n_rows}.")
    if not n_rows:
        return _zero_like(similarity)
    other_view = torch.arange(n_rows, device=similarity.device).roll(n_rows // 2)
    return cross_entropy(_without_self(similarity, temperature), other_view)


def _without_self(similarity: Tensor, temperature: float) -> Tensor:
    """Divide cosines (N, N) by the temperature and take each row's cosine with itself out of any softmax."""
    logits = similarity / temperature
    # The lowest finite number, not −inf: a lone row then gives a finite value that can be masked with 0.
    return logits.fill_diagonal_(torch.finfo(logits.dtype).min)


def _log_prior(prior: Tensor, n_prototypes: int) -> Tensor:
    """Check the prior (K,) and return the logarithm of its shares."""
    if prior.shape != (n_prototypes,):
        raise ValueError(
            f"prior of shape {tuple(prior.shape)} must hold one share for each of {n_prototypes} prototypes."
        )
    if not (prior > 0).all():
        raise ValueError("prior must be positive everywhere: a share of 0 makes the divergence infinite.")
    prior = prior.detach()
    return (prior / prior.sum()).log()


def _zero_like(*tensors: Tensor) -> Tensor:
    """Return a scalar 0 that depends on the tensors, so that ``backward`` works and gives them zeros."""
    # An empty sum, not a product with 0: non-finite entries must not turn it into NaN.
    return torch.stack([tensor[:0].sum() for tensor in tensors]).sum()
