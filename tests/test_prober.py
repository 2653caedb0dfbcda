"""Student, teacher and their memories."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from pnp_gcd.encoders import ProjectionHead, ResidualAdapter
from pnp_gcd.prober import Prober, count_taken, make_teacher, refresh_memory, update_teacher


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def make_prober(memory):
    torch.manual_seed(0)
    return Prober(ResidualAdapter(memory.shape[1], 5), torch.from_numpy(memory))


@pytest.fixture
def memory():
    return unit(np.eye(6)[:4])


@pytest.fixture
def student(memory):
    return make_prober(memory)


NO_ROWS = np.empty((0, 6), dtype=np.float32)


def test_the_adapter_starts_as_the_identity():
    rows = functional.normalize(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    torch.testing.assert_close(ResidualAdapter(6, 16)(rows), rows)


def test_the_adapter_and_the_projection_give_unit_rows():
    rows = functional.normalize(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    adapter = ResidualAdapter(6, 16)
    torch.nn.init.normal_(adapter.contract.weight)
    torch.testing.assert_close(adapter(rows).norm(dim=1), torch.ones(20))
    assert not torch.allclose(adapter(rows), rows)
    projected = ProjectionHead(6, 10, 3)(rows)
    assert projected.shape == (20, 3)
    torch.testing.assert_close(projected.norm(dim=1), torch.ones(20))


def test_a_memory_is_made_of_unit_rows():
    prober = Prober(ResidualAdapter(3, 4), torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.5, 0.5]]))
    torch.testing.assert_close(prober.memory.norm(dim=1), torch.ones(2))
    assert prober.n_active == 0


def test_teacher_and_student_share_no_storage(student):
    teacher = make_teacher(student)
    pairs = list(zip(teacher.state_dict().values(), student.state_dict().values(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert all(a.data_ptr() != b.data_ptr() for a, b in pairs)


@pytest.mark.parametrize("n_spare", [0, 3])
@pytest.mark.parametrize("potential", ["trainable", None])
def test_a_refresh_leaves_teacher_and_student_equal_but_apart(student, n_spare, potential):
    teacher = make_teacher(student)
    centroids = unit(np.random.default_rng(0).normal(size=(3, 6)))
    spare = unit(np.random.default_rng(1).normal(size=(max(n_spare, 1), 6)))[:n_spare]
    refresh_memory(student, teacher, centroids, potential_prototypes=potential, spare=spare)
    assert torch.equal(student.memory, teacher.memory)
    assert torch.equal(student.is_active, teacher.is_active)
    with torch.no_grad():
        student.memory.add_(1.0)
        student.is_active.logical_not_()
    assert not torch.isclose(student.memory, teacher.memory).any()
    assert not (student.is_active == teacher.is_active).any()


@pytest.mark.parametrize("n_spare", [0, 2])
def test_the_teacher_takes_no_gradient_also_after_its_memory_grew(student, n_spare):
    teacher = make_teacher(student)
    spare = unit(np.ones((2, 6)))[:n_spare]
    refresh_memory(student, teacher, unit(np.eye(6)[:2]), potential_prototypes="trainable", spare=spare)
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    assert student.memory.requires_grad


def test_the_teacher_moves_by_the_closed_form_of_its_average(student):
    teacher = make_teacher(student)
    start = [p.clone() for p in teacher.parameters()]
    momenta = [0.7, 0.8, 0.95]
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    for momentum in momenta:
        update_teacher(teacher, student, momentum)
    left = float(np.prod(momenta))
    for slow, fast, first in zip(teacher.parameters(), student.parameters(), start, strict=True):
        torch.testing.assert_close(slow, left * first + (1 - left) * fast)
    update_teacher(teacher, student, 0.0)
    assert all(torch.equal(a, b) for a, b in zip(teacher.parameters(), student.parameters(), strict=True))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_a_cluster_keeps_its_row_when_communities_are_renumbered(student, order):
    clusters = unit(np.eye(6)[:3] + 0.1)
    refresh_memory(student, None, clusters, potential_prototypes="trainable", spare=NO_ROWS)
    moved = unit(clusters + 0.05 * np.random.default_rng(0).normal(size=clusters.shape))
    origin = refresh_memory(student, None, moved[order], potential_prototypes="trainable", spare=NO_ROWS)
    np.testing.assert_allclose(student.memory.detach().numpy()[:3], moved, rtol=1e-6)
    np.testing.assert_array_equal(origin, np.arange(4))
    assert student.is_active.tolist() == [True, True, True, False]


def test_all_clusters_together_get_the_nearest_rows_not_each_greedily(student):
    # Both clusters are nearest to row 0; the second one has nowhere else to go.
    centroids = unit([[1.0, 0.9, 0, 0, 0, 0], [1.0, 0.0, 0, 0, 0, 0.1]])
    refresh_memory(student, None, centroids, potential_prototypes="trainable", spare=NO_ROWS)
    np.testing.assert_allclose(student.memory.detach().numpy()[[1, 0]], centroids, rtol=1e-6)


def test_rows_that_no_cluster_takes_keep_what_they_learnt(student, memory):
    refresh_memory(student, None, unit(np.eye(6)[:2] + 0.1), potential_prototypes="trainable", spare=NO_ROWS)
    np.testing.assert_array_equal(student.memory.detach().numpy()[2:], memory[2:])
    assert student.is_active.tolist() == [True, True, False, False]


def test_the_memory_grows_by_the_spare_rows_when_clusters_outnumber_it(student):
    clusters = unit(np.random.default_rng(0).normal(size=(6, 6)))
    clusters[:4] = student.memory.detach().numpy()
    student.is_active[:] = True
    spare = unit(np.random.default_rng(1).normal(size=(2, 6)))
    origin = refresh_memory(student, None, clusters, potential_prototypes="trainable", spare=spare)
    assert len(student.memory) == student.n_active == 6
    assert origin.tolist() == [0, 1, 2, 3, -1, -1]
    found = {tuple(row) for row in student.memory.detach().numpy().round(5).tolist()}
    assert found == {tuple(row) for row in clusters.round(5).tolist()}


def test_without_potential_prototypes_exactly_the_clusters_are_left(student):
    clusters = unit(np.eye(6)[[3, 1]] + 0.05)
    student.is_active[:] = True
    origin = refresh_memory(student, None, clusters, potential_prototypes=None, spare=NO_ROWS)
    assert len(student.memory) == student.n_active == 2
    assert origin.tolist() == [1, 3]
    np.testing.assert_allclose(student.memory.detach().numpy(), clusters[[1, 0]], rtol=1e-6)


def test_a_cluster_unlike_any_of_before_takes_a_potential_row_and_starts_afresh(student):
    student.is_active[:2] = True
    clusters = unit(
        np.concatenate([student.memory.detach().numpy()[:1], -student.memory.detach().numpy()[1:2]])
    )
    origin = refresh_memory(student, None, clusters, potential_prototypes="trainable", spare=NO_ROWS)
    assert origin[0] == 0
    assert (origin == -1).sum() == 1
    assert not student.is_active[1]


@pytest.mark.parametrize(("n_rows", "n_taken"), [(0, 0), (4, 0), (5, 1), (30, 1)])
def test_a_potential_prototype_that_gets_half_a_clusters_rows_has_taken_members(student, n_rows, n_taken):
    student.is_active[:2] = True  # rows 2 and 3 of the memory are potential
    features = unit(np.repeat(np.eye(6)[:3], [10, 10, n_rows], axis=0))
    assert count_taken(student, features) == n_taken


def test_without_potential_prototypes_or_without_clusters_none_has_taken_members(student, memory):
    assert count_taken(student, memory) == 0  # nothing was found yet
    student.is_active[:] = True
    assert count_taken(student, memory) == 0
