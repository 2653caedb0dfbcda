"""Steps of gradient descent, beside those of torch."""

import numpy as np
import pytest
import torch
from torch import nn

from pnp_gcd.optimisers import MomentumSGD, ParameterGroup, group_parameters


def draw(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def parameters(seed, *shapes):
    return [nn.Parameter(tensor) for tensor in draw(seed, *shapes)]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("max_gradient", [0.5, 1e6])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_every_step_is_that_of_torch_with_clipped_gradients(momentum, max_gradient, weight_decay):
    shapes = [(4, 3), (5,)]
    ours, theirs = parameters(0, *shapes), parameters(0, *shapes)
    other_ours, other_theirs = parameters(1, (2, 2)), parameters(1, (2, 2))
    optimiser = MomentumSGD(
        [ParameterGroup(ours, weight_decay=weight_decay), ParameterGroup(other_ours, relative_rate=0.25)],
        momentum=momentum,
        max_gradient=max_gradient,
    )
    reference = torch.optim.SGD(
        [{"params": theirs, "weight_decay": weight_decay}, {"params": other_theirs}],
        lr=1.0,
        momentum=momentum,
    )
    for step, rate in enumerate([0.3, 0.2, 0.25, 0.01]):
        gradients = draw(10 + step, *shapes, (2, 2))
        for mine, yours, gradient in zip(
            [*ours, *other_ours], [*theirs, *other_theirs], gradients, strict=True
        ):
            mine.grad, yours.grad = gradient.clone(), gradient.clone()
        optimiser.step(rate)
        for group, relative in zip(reference.param_groups, (1.0, 0.25), strict=True):
            nn.utils.clip_grad_norm_(group["params"], max_gradient)
            group["lr"] = rate * relative
        reference.step()
        for mine, yours in zip([*ours, *other_ours], [*theirs, *other_theirs], strict=True):
            torch.testing.assert_close(mine, yours)


def test_two_steps_by_hand():
    (weight,) = parameters(0, (1,))
    start = weight.item()
    optimiser = MomentumSGD([ParameterGroup([weight])], momentum=0.5, max_gradient=2.0)
    weight.grad = torch.tensor([1.0])
    optimiser.step(0.1)
    assert weight.item() == pytest.approx(start - 0.1)
    weight.grad = torch.tensor([-8.0])  # clipped to −2; velocity 0.5 · 1 − 2
    optimiser.step(0.1)
    assert weight.item() == pytest.approx(start - 0.1 + 0.15)


def test_the_gradients_of_a_group_are_clipped_by_their_length_together():
    first, second = parameters(0, (1,), (1,))
    before = np.array([first.item(), second.item()])
    optimiser = MomentumSGD([ParameterGroup([first, second])], momentum=0.0, max_gradient=1.0)
    first.grad, second.grad = torch.tensor([3.0]), torch.tensor([4.0])
    optimiser.step(1.0)
    np.testing.assert_allclose(before - [first.item(), second.item()], [0.6, 0.8], rtol=1e-5)


def test_a_parameter_without_a_gradient_stays_even_if_it_has_momentum_and_decay():
    still, moving = parameters(0, (3,), (3,))
    optimiser = MomentumSGD(
        [ParameterGroup([still, moving], weight_decay=0.5)], momentum=0.9, max_gradient=1.0
    )
    still.grad = moving.grad = torch.ones(3)
    optimiser.step(0.1)
    optimiser.forget_gradients()
    assert still.grad is None
    assert moving.grad is None
    moving.grad = torch.ones(3)
    before = still.detach().clone(), moving.detach().clone()
    optimiser.step(0.1)
    assert torch.equal(still, before[0])
    assert not torch.equal(moving, before[1])


def test_a_step_without_any_gradient_or_parameter_changes_nothing():
    (weight,) = parameters(0, (2,))
    before = weight.detach().clone()
    MomentumSGD([ParameterGroup([]), ParameterGroup([weight])], momentum=0.9, max_gradient=1.0).step(1.0)
    assert torch.equal(weight, before)


def test_a_step_leaves_gradients_as_they_were():
    (weight,) = parameters(0, (3,))
    weight.grad = torch.full((3,), 7.0)
    optimiser = MomentumSGD([ParameterGroup([weight], weight_decay=0.1)], momentum=0.9, max_gradient=1.0)
    optimiser.step(0.1)
    optimiser.step(0.1)
    assert weight.grad.tolist() == [7.0, 7.0, 7.0]


def test_only_matrices_decay():
    module = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    matrices, vectors = group_parameters(module, weight_decay=0.2, relative_rate=0.5)
    assert [tuple(p.shape) for p in matrices.parameters] == [(4, 3)]
    assert [tuple(p.shape) for p in vectors.parameters] == [(4,), (4,), (4,)]
    assert (matrices.weight_decay, vectors.weight_decay) == (0.2, 0.0)
    assert matrices.relative_rate == vectors.relative_rate == 0.5
