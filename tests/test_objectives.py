"""Every loss term against hand cases, closed forms and plain loops written from the paper's formulas."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from pnp_gcd.objectives import (
    LossTerms,
    LossWeights,
    combine_losses,
    contrastive_from_similarity,
    contrastive_loss,
    distillation_loss,
    known_class_loss,
    mean_entropy_loss,
    projection_similarity,
    prototype_logits,
    supervised_contrastive_from_similarity,
    supervised_contrastive_loss,
    teacher_probabilities,
)

UNLABELLED = -1


def random_rows(n_rows, n_columns, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_rows, n_columns, generator=generator, dtype=torch.float64)


def unit_rows(n_rows, n_columns, seed):
    return normalize(random_rows(n_rows, n_columns, seed), dim=1)


def angles(*degrees):
    """Points on the unit circle."""
    radians = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=1)


# --- the formulas by plain loops ----------------------------------------------------------------------------


def loop_dot(left, right):
    return sum(x * y for x, y in zip(left, right, strict=True))


def loop_softmax(logits):
    highest = max(logits)
    shares = [math.exp(logit - highest) for logit in logits]
    return [share / sum(shares) for share in shares]


def loop_logits(features, prototypes, temperature):
    result = []
    for feature in features.tolist():
        row = []
        for prototype in prototypes.tolist():
            length = math.sqrt(loop_dot(prototype, prototype))
            row.append(loop_dot(feature, prototype) / length / temperature)
        result.append(row)
    return result


def loop_distillation(student_a, student_b, teacher_a, teacher_b):
    total = 0.0
    for student, teacher in ((student_a, teacher_b), (student_b, teacher_a)):
        for logits, targets in zip(student.tolist(), teacher.tolist(), strict=True):
            for probability, target in zip(loop_softmax(logits), targets, strict=True):
                total -= target * math.log(probability)
    return total / (2 * len(student_a))


def loop_mean_prediction(student_a, student_b):
    rows = [loop_softmax(logits) for logits in student_a.tolist() + student_b.tolist()]
    return [sum(row[k] for row in rows) / len(rows) for k in range(len(rows[0]))]


def loop_known(logits, codes):
    losses = []
    for row, code in zip(logits.tolist(), codes.tolist(), strict=True):
        if code >= 0:
            losses.append(-math.log(loop_softmax(row)[code]))
    return sum(losses) / len(losses)


def loop_supervised(projections, codes, temperature):
    points, codes = projections.tolist(), codes.tolist()
    labelled = [i for i in range(len(points)) if codes[i] >= 0]
    per_anchor = []
    for i in labelled:
        positives = [q for q in labelled if q != i and codes[q] == codes[i]]
        if not positives:
            continue
        denominator = sum(math.exp(loop_dot(points[i], points[j]) / temperature) for j in labelled if j != i)
        per_positive = [
            -math.log(math.exp(loop_dot(points[i], points[q]) / temperature) / denominator) for q in positives
        ]
        per_anchor.append(sum(per_positive) / len(positives))
    return sum(per_anchor) / len(per_anchor)


def loop_contrastive(projections_a, projections_b, temperature):
    first, second = projections_a.tolist(), projections_b.tolist()
    total = 0.0
    for own_view, other_view in ((first, second), (second, first)):
        for i, anchor in enumerate(own_view):
            denominator = 0.0
            for j in range(len(own_view)):
                denominator += math.exp(loop_dot(anchor, other_view[j]) / temperature)
                if j != i:
                    denominator += math.exp(loop_dot(anchor, own_view[j]) / temperature)
            total -= math.log(math.exp(loop_dot(anchor, other_view[i]) / temperature) / denominator)
    return total / (2 * len(first))


# --- logits and teacher -------------------------------------------------------------------------------------


def test_prototype_logits_equal_the_loops_for_prototypes_of_any_length():
    features = unit_rows(4, 3, seed=0)
    prototypes = random_rows(5, 3, seed=1) * torch.tensor([[0.01], [1.0], [3.0], [50.0], [0.5]])
    expected = torch.tensor(loop_logits(features, prototypes, 0.1), dtype=torch.float64)
    torch.testing.assert_close(prototype_logits(features, prototypes, 0.1), expected)


def test_prototype_logits_by_hand_on_the_circle():
    logits = prototype_logits(angles(0, 90), 7 * angles(0, 60), temperature=0.5)
    expected = torch.tensor([[2.0, 1.0], [0.0, math.sqrt(3)]], dtype=torch.float64)
    torch.testing.assert_close(logits, expected)


def test_teacher_probabilities_equal_the_loops():
    features, prototypes = unit_rows(4, 3, seed=2), random_rows(5, 3, seed=3)
    expected = [loop_softmax(row) for row in loop_logits(features, prototypes, 0.07)]
    torch.testing.assert_close(
        teacher_probabilities(features, prototypes, 0.07), torch.tensor(expected, dtype=torch.float64)
    )


def test_a_lower_teacher_temperature_sharpens_the_assignment():
    features, prototypes = angles(10), angles(0, 90)
    warm, sharp = (teacher_probabilities(features, prototypes, t)[0, 0] for t in (0.5, 0.1))
    assert 0.5 < warm < sharp < 1


def test_teacher_probabilities_carry_no_gradient():
    features = unit_rows(3, 2, seed=4).requires_grad_()
    prototypes = random_rows(3, 2, seed=5).requires_grad_()
    assert not teacher_probabilities(features, prototypes, 0.1).requires_grad


# --- distillation -------------------------------------------------------------------------------------------


def test_distillation_equals_the_loops():
    student_a, student_b = random_rows(4, 3, seed=6), random_rows(4, 3, seed=7)
    teacher_a, teacher_b = (random_rows(4, 3, seed=s).softmax(dim=1) for s in (8, 9))
    loss = distillation_loss(student_a, student_b, teacher_a, teacher_b)
    assert loss.item() == pytest.approx(loop_distillation(student_a, student_b, teacher_a, teacher_b))


def test_distillation_compares_each_view_with_the_teacher_of_the_other_view():
    sure_of_first, sure_of_second = torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, 50.0]])
    first, second = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    crossed = distillation_loss(sure_of_first, sure_of_second, second, first)
    same_view = distillation_loss(sure_of_first, sure_of_second, first, second)
    assert crossed.item() == pytest.approx(0.0, abs=1e-6)
    assert same_view.item() == pytest.approx(50.0)


def test_distillation_of_an_undecided_student_is_log_k():
    logits, targets = torch.zeros(3, 5), random_rows(3, 5, seed=10).softmax(dim=1).float()
    assert distillation_loss(logits, logits, targets, targets).item() == pytest.approx(math.log(5))


def test_distillation_is_least_when_the_student_agrees_with_the_teacher():
    logits = random_rows(3, 4, seed=11)
    targets = logits.softmax(dim=1)
    entropy = -(targets * targets.log()).sum(dim=1).mean().item()
    assert distillation_loss(logits, logits, targets, targets).item() == pytest.approx(entropy)
    moved = logits + 0.3 * random_rows(3, 4, seed=12)
    assert distillation_loss(moved, moved, targets, targets).item() > entropy + 1e-4


def test_distillation_sends_gradient_to_the_student_and_none_to_the_teacher():
    features_a, features_b = (unit_rows(4, 3, seed=s).requires_grad_() for s in (13, 14))
    prototypes = random_rows(5, 3, seed=15).requires_grad_()
    teacher_features, teacher_prototypes = (random_rows(n, 3, seed=16).requires_grad_() for n in (4, 5))
    # Plain softmax, so that only the loss itself can stop the gradient.
    targets = prototype_logits(teacher_features, teacher_prototypes, 0.07).softmax(dim=1)
    targets.retain_grad()
    distillation_loss(
        prototype_logits(features_a, prototypes, 0.1),
        prototype_logits(features_b, prototypes, 0.1),
        targets,
        targets,
    ).backward()
    for tensor in (features_a, features_b, prototypes):
        assert tensor.grad.abs().sum() > 0
    for tensor in (teacher_features, teacher_prototypes, targets):
        assert tensor.grad is None


def test_distillation_of_an_empty_batch_is_zero_and_differentiable():
    logits, targets = torch.zeros(0, 3, requires_grad=True), torch.zeros(0, 3)
    loss = distillation_loss(logits, logits, targets, targets)
    loss.backward()
    assert loss.item() == 0.0
    assert logits.grad.shape == (0, 3)


# --- mean entropy -------------------------------------------------------------------------------------------


def test_mean_entropy_equals_the_loops():
    student_a, student_b = random_rows(4, 3, seed=17), random_rows(4, 3, seed=18)
    mean = loop_mean_prediction(student_a, student_b)
    expected = sum(p * math.log(p) for p in mean) + math.log(3)
    assert mean_entropy_loss(student_a, student_b).item() == pytest.approx(expected)


def test_mean_entropy_with_a_prior_equals_the_loops():
    student_a, student_b = random_rows(4, 3, seed=19), random_rows(4, 3, seed=20)
    mean, prior = loop_mean_prediction(student_a, student_b), [0.5, 0.3, 0.2]
    expected = sum(p * math.log(p / q) for p, q in zip(mean, prior, strict=True))
    loss = mean_entropy_loss(student_a, student_b, prior=torch.tensor(prior, dtype=torch.float64))
    assert loss.item() == pytest.approx(expected)


def test_mean_entropy_of_sure_rows_spread_evenly_is_zero():
    logits = 100 * torch.eye(4)
    assert mean_entropy_loss(logits, logits.flip(0)).item() == pytest.approx(0.0, abs=1e-6)


def test_mean_entropy_of_rows_all_on_one_prototype_is_log_k():
    logits = torch.tensor([[200.0, 0.0, 0.0, 0.0]]).repeat(6, 1)
    assert mean_entropy_loss(logits, logits).item() == pytest.approx(math.log(4), abs=1e-6)


def test_mean_entropy_averages_over_both_views_before_the_entropy():
    view_a, view_b = torch.tensor([[100.0, 0.0]]), torch.tensor([[0.0, 100.0]])
    assert mean_entropy_loss(view_a, view_b).item() == pytest.approx(0.0, abs=1e-6)
    assert mean_entropy_loss(view_a, view_a).item() == pytest.approx(math.log(2))


def test_a_uniform_prior_gives_the_plain_mean_entropy_loss():
    student_a, student_b = 3 * random_rows(5, 4, seed=21), 3 * random_rows(5, 4, seed=22)
    plain = mean_entropy_loss(student_a, student_b)
    assert plain.item() > 0.01
    torch.testing.assert_close(
        mean_entropy_loss(student_a, student_b, prior=torch.ones(4).double() / 4), plain
    )


def test_mean_entropy_is_zero_when_the_mean_prediction_is_the_prior_given_as_counts():
    counts = torch.tensor([6.0, 3.0, 1.0], dtype=torch.float64)
    logits = counts.log().repeat(4, 1)
    assert mean_entropy_loss(logits, logits, prior=counts).item() == pytest.approx(0.0, abs=1e-12)
    assert mean_entropy_loss(logits, logits).item() > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_mean_entropy_is_never_negative(seed):
    logits = random_rows(3, 4, seed=seed)
    prior = random_rows(1, 4, seed=seed + 100)[0].softmax(dim=0)
    assert mean_entropy_loss(logits, logits).item() > 0
    assert mean_entropy_loss(logits, logits, prior=prior).item() > 0


def test_mean_entropy_sends_gradient_to_features_and_prototypes_but_none_to_the_prior():
    features = unit_rows(4, 3, seed=23).requires_grad_()
    prototypes = random_rows(5, 3, seed=24).requires_grad_()
    prior = torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1], dtype=torch.float64, requires_grad=True)
    logits = prototype_logits(features, prototypes, 0.1)
    mean_entropy_loss(logits, logits, prior=prior).backward()
    assert features.grad.abs().sum() > 0
    assert prototypes.grad.abs().sum() > 0
    assert prior.grad is None


def test_a_descent_step_on_mean_entropy_brings_an_unused_prototype_into_use():
    logits = torch.tensor([[2.0, 0.0, -1.0]], requires_grad=True)
    mean_entropy_loss(logits, logits).backward()
    assert (logits - logits.grad).softmax(dim=1)[0, 2] > logits.softmax(dim=1)[0, 2]


def test_mean_entropy_of_an_empty_batch_is_zero_and_differentiable():
    logits = torch.zeros(0, 3, requires_grad=True)
    loss = mean_entropy_loss(logits, logits)
    loss.backward()
    assert loss.item() == 0.0
    assert logits.grad.shape == (0, 3)


@pytest.mark.parametrize(
    ("prior", "message"),
    [([0.5, 0.5], "each of 3"), ([0.5, 0.5, 0.0], "positive"), ([1.0, -1.0, 1.0], "positive")],
)
def test_a_prior_of_wrong_length_or_with_an_empty_share_is_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        mean_entropy_loss(torch.zeros(2, 3), torch.zeros(2, 3), prior=torch.tensor(prior))


# --- known classes ------------------------------------------------------------------------------------------


def test_known_class_loss_equals_the_loops_on_the_labelled_rows():
    logits, codes = random_rows(5, 3, seed=25), torch.tensor([2, UNLABELLED, 0, UNLABELLED, 2])
    assert known_class_loss(logits, codes).item() == pytest.approx(loop_known(logits, codes))


def test_known_class_loss_of_undecided_rows_is_log_c():
    loss = known_class_loss(torch.zeros(4, 7), torch.tensor([0, 6, UNLABELLED, 3]))
    assert loss.item() == pytest.approx(math.log(7))


def test_known_class_loss_gives_unlabelled_rows_no_gradient():
    logits = random_rows(3, 3, seed=26).requires_grad_()
    known_class_loss(logits, torch.tensor([1, UNLABELLED, 0])).backward()
    assert logits.grad[1].abs().sum() == 0
    assert (logits.grad[[0, 2]].abs().sum(dim=1) > 0).all()


def test_known_class_loss_reaches_features_and_prototypes():
    features = unit_rows(3, 2, seed=27).requires_grad_()
    prototypes = random_rows(2, 2, seed=28).requires_grad_()
    known_class_loss(prototype_logits(features, prototypes, 0.1), torch.tensor([0, 1, UNLABELLED])).backward()
    assert features.grad[:2].abs().sum() > 0
    assert prototypes.grad.abs().sum() > 0


def test_known_class_loss_reads_codes_of_any_integer_type():
    logits, codes = random_rows(3, 3, seed=29), torch.tensor([0, UNLABELLED, 2])
    torch.testing.assert_close(known_class_loss(logits, codes.int()), known_class_loss(logits, codes))


@pytest.mark.parametrize("n_known", [0, 3])
def test_known_class_loss_without_labelled_rows_is_exactly_zero_even_without_any_known_class(n_known):
    logits = torch.full((4, n_known), math.inf, requires_grad=True)
    loss = known_class_loss(logits, torch.full((4,), UNLABELLED))
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros(4, n_known))


# --- supervised contrastive ---------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.07])
def test_supervised_contrastive_equals_the_loops(temperature):
    projections = unit_rows(12, 3, seed=30)
    codes = torch.tensor([0, 1, UNLABELLED, 0, UNLABELLED, 2] * 2)
    loss = supervised_contrastive_loss(projections, codes, temperature)
    assert loss.item() == pytest.approx(loop_supervised(projections, codes, temperature))


def test_supervised_contrastive_by_hand_on_the_circle():
    # Anchors at 0° and 60° are each other's positives (cosine 1/2); the row at 180° has none.
    loss = supervised_contrastive_loss(angles(0, 60, 180), torch.tensor([0, 0, 1]), 1.0)
    at_0 = -math.log(math.exp(0.5) / (math.exp(0.5) + math.exp(-1.0)))
    at_60 = -math.log(math.exp(0.5) / (math.exp(0.5) + math.exp(-0.5)))
    assert loss.item() == pytest.approx((at_0 + at_60) / 2)


def test_supervised_contrastive_ignores_unlabelled_rows():
    labelled, codes = unit_rows(4, 3, seed=31), torch.tensor([0, 1, 0, 1])
    with_others = torch.cat([labelled, unit_rows(5, 3, seed=32)])
    with_codes = torch.cat([codes, torch.full((5,), UNLABELLED)])
    torch.testing.assert_close(
        supervised_contrastive_loss(with_others, with_codes, 0.1),
        supervised_contrastive_loss(labelled, codes, 0.1),
    )


def test_supervised_contrastive_averages_over_anchors_with_a_positive_only():
    # The lone row stays a negative of the others but is not counted as an anchor.
    projections, codes = unit_rows(5, 3, seed=33), torch.tensor([0, 0, 1, 1, 2])
    loss = supervised_contrastive_loss(projections, codes, 0.5)
    assert loss.item() == pytest.approx(loop_supervised(projections, codes, 0.5))
    without_lone = supervised_contrastive_loss(projections[:4], codes[:4], 0.5)
    assert loss.item() > without_lone.item() + 1e-3


def test_supervised_contrastive_with_one_instance_in_two_views_is_zero():
    # The positive is the whole denominator.
    projections = unit_rows(2, 3, seed=34)
    loss = supervised_contrastive_loss(projections, torch.tensor([3, 3]), 0.07)
    assert loss.item() == pytest.approx(0.0, abs=1e-9)


def test_supervised_contrastive_of_identical_rows_is_the_log_of_the_other_rows():
    projections = unit_rows(1, 3, seed=35).repeat(6, 1)
    loss = supervised_contrastive_loss(projections, torch.tensor([0, 1, 2] * 2), 0.07)
    assert loss.item() == pytest.approx(math.log(5))


def test_supervised_contrastive_falls_when_a_class_draws_together():
    codes = torch.tensor([0, 0, 1, 1])
    loose = supervised_contrastive_loss(angles(0, 60, 180, 240), codes, 0.5)
    tight = supervised_contrastive_loss(angles(0, 10, 180, 190), codes, 0.5)
    assert tight < loose


@pytest.mark.parametrize(
    "codes",
    [[UNLABELLED] * 4, [0, UNLABELLED, UNLABELLED, UNLABELLED], [0, 1, 2, UNLABELLED], [0, 1, 2, 3]],
    ids=["none labelled", "one labelled", "three lone rows", "all lone rows"],
)
def test_supervised_contrastive_without_any_positive_is_exactly_zero_with_zero_gradient(codes):
    projections = unit_rows(4, 3, seed=36).requires_grad_()
    loss = supervised_contrastive_loss(projections, torch.tensor(codes), 0.07)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(projections.grad, torch.zeros_like(projections))


def test_supervised_contrastive_gradient_is_finite_beside_a_lone_row():
    projections = unit_rows(3, 3, seed=37).requires_grad_()
    supervised_contrastive_loss(projections, torch.tensor([0, 0, 1]), 0.07).backward()
    assert projections.grad.isfinite().all()
    assert (projections.grad.abs().sum(dim=1) > 0).all()


# --- InfoNCE ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.07])
def test_contrastive_equals_the_loops(temperature):
    view_a, view_b = unit_rows(5, 3, seed=38), unit_rows(5, 3, seed=39)
    loss = contrastive_loss(view_a, view_b, temperature)
    assert loss.item() == pytest.approx(loop_contrastive(view_a, view_b, temperature))


def test_contrastive_by_hand_on_the_circle():
    # Each row equals its other view (cosine 1) and opposes both views of the other row (cosine −1).
    loss = contrastive_loss(angles(0, 180), angles(0, 180), 1.0)
    assert loss.item() == pytest.approx(math.log(1 + 2 * math.exp(-2.0)))


def test_contrastive_of_a_single_row_is_zero_because_its_positive_is_the_denominator():
    assert contrastive_loss(angles(0), angles(120), 0.1).item() == pytest.approx(0.0, abs=1e-12)


def test_contrastive_of_identical_rows_is_the_log_of_the_other_rows():
    rows = unit_rows(1, 3, seed=40).repeat(4, 1)
    assert contrastive_loss(rows, rows, 0.07).item() == pytest.approx(math.log(7))


def test_contrastive_pairs_rows_across_views_not_within_one():
    # The views agree row by row, or one view has its rows exchanged: only the pairing differs.
    view = angles(0, 180)
    assert contrastive_loss(view, view, 1.0) < contrastive_loss(view, view.flip(0), 1.0)


def test_contrastive_does_not_depend_on_which_view_comes_first():
    view_a, view_b = unit_rows(4, 3, seed=41), unit_rows(4, 3, seed=42)
    torch.testing.assert_close(contrastive_loss(view_a, view_b, 0.5), contrastive_loss(view_b, view_a, 0.5))


def test_contrastive_sends_gradient_to_every_row_of_both_views():
    view_a, view_b = (unit_rows(3, 3, seed=s).requires_grad_() for s in (43, 44))
    contrastive_loss(view_a, view_b, 0.5).backward()
    for view in (view_a, view_b):
        assert (view.grad.abs().sum(dim=1) > 0).all()


def test_contrastive_of_an_empty_batch_is_zero_and_differentiable():
    view = torch.zeros(0, 3, requires_grad=True)
    loss = contrastive_loss(view, view, 0.5)
    loss.backward()
    assert loss.item() == 0.0


def test_contrastive_refuses_an_odd_number_of_rows():
    with pytest.raises(ValueError, match="odd number of rows: 3"):
        contrastive_from_similarity(torch.eye(3))


def test_one_similarity_serves_both_contrastive_terms_unchanged():
    view_a, view_b = unit_rows(4, 3, seed=45), unit_rows(4, 3, seed=46)
    both, codes = torch.cat([view_a, view_b]), torch.tensor([0, UNLABELLED, 1, 0] * 2)
    similarity = projection_similarity(both)
    before = similarity.clone()
    torch.testing.assert_close(
        contrastive_from_similarity(similarity, 0.3), contrastive_loss(view_a, view_b, 0.3)
    )
    torch.testing.assert_close(
        supervised_contrastive_from_similarity(similarity, codes, 0.07),
        supervised_contrastive_loss(both, codes, 0.07),
    )
    assert torch.equal(similarity, before)


def test_a_similarity_already_divided_needs_no_temperature():
    similarity, codes = projection_similarity(unit_rows(6, 3, seed=47)), torch.tensor([0, 1, 0] * 2)
    torch.testing.assert_close(
        contrastive_from_similarity(similarity / 0.2), contrastive_from_similarity(similarity, 0.2)
    )
    torch.testing.assert_close(
        supervised_contrastive_from_similarity(similarity / 0.2, codes),
        supervised_contrastive_from_similarity(similarity, codes, 0.2),
    )


def test_a_shared_similarity_gives_the_gradient_of_the_two_separate_terms():
    codes = torch.tensor([0, UNLABELLED, 0] * 2)
    shared = unit_rows(6, 3, seed=48).requires_grad_()
    similarity = projection_similarity(shared)
    loss = contrastive_from_similarity(similarity, 0.5)
    (loss + supervised_contrastive_from_similarity(similarity, codes, 0.5)).backward()
    separate = unit_rows(6, 3, seed=48).requires_grad_()
    loss = contrastive_loss(separate[:3], separate[3:], 0.5)
    (loss + supervised_contrastive_loss(separate, codes, 0.5)).backward()
    torch.testing.assert_close(shared.grad, separate.grad)


@pytest.mark.parametrize(
    "loss",
    [
        lambda rows: contrastive_loss(rows[:3], rows[3:], 0.3),
        lambda rows: supervised_contrastive_loss(rows, torch.tensor([0, 1, -1, 0, 1, 2]), 0.3),
        lambda rows: mean_entropy_loss(rows[:3], rows[3:]),
        lambda rows: mean_entropy_loss(rows[:3], rows[3:], prior=torch.tensor([3.0, 2.0, 1.0]).double()),
        lambda rows: known_class_loss(rows, torch.tensor([0, 1, -1, 2, 1, -1])),
        lambda rows: distillation_loss(rows[:3], rows[3:], *torch.eye(3).double().expand(2, 3, 3)),
        lambda rows: prototype_logits(rows[:3], rows[3:], 0.3).sum(),
    ],
    ids=["contrastive", "supervised", "entropy", "entropy with prior", "known", "distillation", "logits"],
)
def test_gradient_agrees_with_finite_differences(loss):
    assert torch.autograd.gradcheck(loss, unit_rows(6, 3, seed=49).requires_grad_())


# --- all terms ----------------------------------------------------------------------------------------------


def every_loss(view_a, view_b, teacher_a, teacher_b, codes):
    """Every term on features of two views, prototypes fixed."""
    prototypes = unit_rows(5, 3, seed=50)
    logits_a, logits_b = (prototype_logits(view, prototypes, 0.1) for view in (view_a, view_b))
    probs_a, probs_b = (teacher_probabilities(view, prototypes, 0.05) for view in (teacher_a, teacher_b))
    both, both_codes = torch.cat([view_a, view_b]), codes.repeat(2)
    return {
        "distillation": distillation_loss(logits_a, logits_b, probs_a, probs_b),
        "entropy": mean_entropy_loss(logits_a, logits_b),
        "known": known_class_loss(torch.cat([logits_a, logits_b]), both_codes),
        "supervised": supervised_contrastive_loss(both, both_codes, 0.1),
        "unsupervised": contrastive_loss(view_a, view_b, 0.1),
    }


def test_the_order_of_the_rows_changes_no_loss():
    views = [unit_rows(6, 3, seed=s) for s in range(51, 55)]
    codes = torch.tensor([0, 1, UNLABELLED, 0, 4, UNLABELLED])
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    before = every_loss(*views, codes)
    after = every_loss(*(view[order] for view in views), codes[order])
    for name, value in before.items():
        torch.testing.assert_close(after[name], value, msg=name)


def test_breaking_the_pairing_of_the_views_changes_the_losses_that_pair_them():
    views = [unit_rows(6, 3, seed=s) for s in range(51, 55)]
    codes = torch.full((6,), UNLABELLED)
    before = every_loss(*views, codes)
    after = every_loss(views[0], views[1].roll(1, 0), views[2], views[3].roll(1, 0), codes)
    for name in ("distillation", "unsupervised"):
        assert abs(after[name] - before[name]) > 1e-3
    torch.testing.assert_close(after["entropy"], before["entropy"])


def test_identical_rows_give_finite_losses_and_gradients():
    rows = unit_rows(1, 3, seed=55).repeat(4, 1).requires_grad_()
    codes = torch.tensor([0, 0, 1, UNLABELLED])
    losses = every_loss(rows, rows, rows, rows, codes)
    sum(losses.values()).backward()
    assert all(loss.isfinite() for loss in losses.values())
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_logits_give_finite_losses_and_gradients(dtype):
    logits_a = torch.tensor([[1e4, -1e4, 0.0], [1e4, -1e4, -1e4]], dtype=dtype, requires_grad=True)
    logits_b = torch.tensor([[1e4, -1e4, 1e4], [0.0, -1e4, -1e4]], dtype=dtype, requires_grad=True)
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], dtype=dtype)
    losses = [
        distillation_loss(logits_a, logits_b, targets, targets),
        mean_entropy_loss(logits_a, logits_b),
        mean_entropy_loss(logits_a, logits_b, prior=torch.tensor([1e-6, 1.0, 1.0], dtype=dtype)),
        known_class_loss(logits_a, torch.tensor([1, 2])),
    ]
    sum(losses).backward()
    assert all(loss.isfinite() for loss in losses)
    assert logits_a.grad.isfinite().all()
    assert logits_b.grad.isfinite().all()
    # Cross-entropy grows with the gap of the logits: clipping it would lose this value.
    assert losses[3].item() == pytest.approx(2e4)


def test_extreme_similarities_give_finite_contrastive_losses_and_gradients():
    similarity = torch.full((4, 4), -1e4)
    similarity[0, 1] = similarity[1, 0] = 1e4
    similarity.requires_grad_()
    unsupervised = contrastive_from_similarity(similarity)
    supervised = supervised_contrastive_from_similarity(similarity, torch.tensor([0, 1, 0, 2]))
    (unsupervised + supervised).backward()
    # Rows 0 and 1 miss their positives by 2e4; rows 2 and 3 see three equal rows.
    assert unsupervised.item() == pytest.approx((2e4 + 2e4 + 2 * math.log(3)) / 4)
    # Anchors 0 and 2 alone have a positive.
    assert supervised.item() == pytest.approx((2e4 + math.log(3)) / 2)
    assert similarity.grad.isfinite().all()


# --- the sum ------------------------------------------------------------------------------------------------


def terms(**changes):
    values = (
        dict(distillation=1.0, entropy=10.0, known=100.0, supervised=1000.0, unsupervised=10000.0) | changes
    )
    return {name: torch.tensor(value) for name, value in values.items()}


def test_weights_of_the_paper_are_alpha_gamma_and_beta():
    assert LossWeights.from_paper() == LossWeights(
        distillation=0.65, entropy=1.3, known=0.35, supervised=0.35, unsupervised=0.65
    )


def test_the_total_is_the_papers_formula():
    alpha, gamma, beta = 0.6, 4.0, 0.3
    combined = combine_losses(**terms(), weights=LossWeights.from_paper(alpha, gamma, beta))
    expected = alpha * (1 + gamma * 10) + (1 - alpha) * 100 + beta * 1000 + (1 - beta) * 10000
    assert combined.total.item() == pytest.approx(expected)


def test_the_terms_come_back_unweighted_and_by_name():
    given = terms()
    combined = combine_losses(**given, weights=LossWeights.from_paper())
    assert isinstance(combined, LossTerms)
    for name, value in given.items():
        assert getattr(combined, name) is value


@pytest.mark.parametrize("name", ["distillation", "entropy", "known", "supervised", "unsupervised"])
def test_each_term_can_stand_alone_and_a_term_of_weight_zero_cannot_spoil_the_total(name):
    weights = LossWeights(**{other: 0.0 for other in terms()} | {name: 2.0})
    broken = {other: torch.tensor(math.nan, requires_grad=True) for other in terms()}
    alive = torch.tensor(3.0, requires_grad=True)
    total = combine_losses(**broken | {name: alive}, weights=weights).total
    total.backward()
    assert total.item() == 6.0
    assert alive.grad.item() == 2.0
    assert all(broken[other].grad is None for other in broken if other != name)


def test_the_total_of_a_batch_without_labelled_rows_is_finite_and_trains_the_features():
    views = [unit_rows(4, 3, seed=s).requires_grad_() for s in range(56, 60)]
    losses = every_loss(*views, torch.full((4,), UNLABELLED))
    assert losses["known"].item() == 0.0
    assert losses["supervised"].item() == 0.0
    total = combine_losses(**losses, weights=LossWeights.from_paper()).total
    total.backward()
    assert total.isfinite()
    for student in views[:2]:
        assert student.grad.isfinite().all()
        assert student.grad.abs().sum() > 0
    assert all(teacher.grad is None for teacher in views[2:])


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_a_negative_or_endless_weight_is_refused_by_name(weight):
    with pytest.raises(ValueError, match="known="):
        LossWeights(distillation=1.0, entropy=1.0, known=weight, supervised=1.0, unsupervised=1.0)


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="all weights are 0"):
        LossWeights(distillation=0.0, entropy=0.0, known=0.0, supervised=0.0, unsupervised=0.0)


@pytest.mark.parametrize(
    ("name", "value"), [("distillation_weight", 1.2), ("supervised_weight", -0.1), ("entropy_weight", -1.0)]
)
def test_a_coefficient_of_the_paper_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name}={value}"):
        LossWeights.from_paper(**{name: value})
