"""Groups that hold two classes come apart, and pieces of one class together: at the same number."""

import numpy as np
import pytest

from pnp_gcd.balancing import balance_groups
from pnp_gcd.merging import ClassSizes, MergePath, Ownership, find_merges

NEW = -1


def usual_of(size, spread=0.1):
    return ClassSizes(np.log(size), spread, 0.0, np.array([float(size)]))


def links_of(n, pairs):
    links = np.zeros((n, n))
    for (one, other), number in pairs.items():
        links[one, other] = links[other, one] = number
    return links


def path_of(n, merges):
    kept, dropped, strength = zip(*merges, strict=True)
    return MergePath(n, np.array(kept), np.array(dropped), np.array(strength, dtype=float))


def ownership_of(owner, is_new=None):
    owner = np.array(owner)
    return Ownership(owner, owner < 0 if is_new is None else np.array(is_new))


def together(group):
    """Return the sets of communities that are one group."""
    return {frozenset(np.flatnonzero(group == each).tolist()) for each in np.unique(group)}


# Two whole classes of 100 (0, 1) that were merged, and two halves of one (2, 3) that were not.
SIZES = np.array([100, 100, 50, 50])
LINKS = links_of(4, {(0, 1): 100, (2, 3): 20, (1, 2): 1})
MERGED = path_of(4, [(0, 1, 0.01)])


def balance(links=LINKS, sizes=SIZES, path=MERGED, owner=(NEW,) * 4, usual=None, min_size=10, is_new=None):
    usual = usual_of(100) if usual is None else usual
    ownership = ownership_of(owner, is_new)
    return balance_groups(path, len(path.kept), links, sizes, ownership, usual, min_size=min_size)


def test_a_group_of_two_classes_is_parted_and_two_halves_merge():
    assert together(balance()) == {frozenset({0}), frozenset({1}), frozenset({2, 3})}


def test_what_is_as_large_as_classes_are_stays_as_it_is():
    sizes = np.array([50, 50, 100, 100])
    assert together(balance(sizes=sizes)) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}


def test_where_sizes_of_classes_say_little_links_decide():
    usual = usual_of(100, spread=3.0)
    assert together(balance(usual=usual)) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}


def test_halves_without_a_link_never_merge():
    links = links_of(4, {(0, 1): 100})
    assert together(balance(links=links)) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}


def test_what_labels_put_together_is_not_parted():
    path = path_of(4, [(0, 1, np.inf)])
    found = balance(path=path, owner=(0, 0, NEW, NEW))
    assert together(found) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}


def test_a_new_class_that_a_known_one_took_comes_free():
    found = balance(owner=(0, NEW, NEW, NEW), is_new=(False, False, False, False))
    assert together(found) == {frozenset({0}), frozenset({1}), frozenset({2, 3})}


@pytest.mark.parametrize("is_surely_new", [False, True])
def test_a_small_piece_joins_a_known_class_unless_it_is_surely_new(is_surely_new):
    """Here the only group linked with the pieces is the known class 3."""
    sizes = np.array([100, 100, 20, 80])
    links = links_of(4, {(0, 1): 100, (2, 3): 40})
    found = balance(links, sizes, owner=(NEW, NEW, NEW, 0), is_new=(True, True, is_surely_new, False))
    joined = {frozenset({0}), frozenset({1}), frozenset({2, 3})}
    apart = {frozenset({0, 1}), frozenset({2}), frozenset({3})}
    assert together(found) == (apart if is_surely_new else joined)


def test_leftovers_too_small_for_a_class_give_no_room_for_one():
    """Merging them would not end a class, so that parting another would make one more than was counted."""
    sizes = np.array([100, 100, 8, 8])
    assert together(balance(sizes=sizes)) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}


def make_pieces(seed, n_classes=30, n_pieces=90, n_known=10, per_class=60):
    """Return links, sizes, ownership and usual sizes of classes in pieces, some linked by chance."""
    rng = np.random.default_rng(seed)
    classes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_pieces - n_classes)])
    sizes = np.maximum(2, rng.lognormal(np.log(per_class * n_classes / n_pieces), 1.0, n_pieces)).astype(int)
    inside = np.where(classes[:, None] == classes, 0.1 * rng.random((n_pieces, n_pieces)), 0.0)
    by_chance = np.where(rng.random((n_pieces, n_pieces)) < 0.1, 0.05 * rng.random((n_pieces, n_pieces)), 0.0)
    upper = np.triu(rng.poisson(np.outer(sizes, sizes) * (inside + by_chance)), 1)
    owner = np.where(np.arange(n_pieces) < n_known, classes, NEW)
    ownership = ownership_of(owner, (owner == NEW) & (rng.random(n_pieces) < 0.7))
    return (upper + upper.T).astype(float), sizes, ownership, usual_of(per_class)


def test_the_number_of_classes_and_what_labels_say_are_kept_in_random_worlds():
    n_changed, min_size = 0, 5
    for seed in range(20):
        links, sizes, ownership, usual = make_pieces(seed)
        owner = ownership.owner
        path = find_merges(links, sizes, ownership, usual=usual)
        n_merges = 60

        def count_new(group, owner=owner, sizes=sizes):
            classes = [members for members in together(group) if (owner[list(members)] == NEW).all()]
            return sum(sizes[list(members)].sum() >= min_size for members in classes)

        before = path.groups_after(n_merges)
        after = balance_groups(path, n_merges, links, sizes, ownership, usual, min_size=min_size)
        assert count_new(after) == count_new(before)
        for members in together(after):
            known = {int(code) for code in owner[list(members)] if code != NEW}
            assert len(known) <= 1
            assert not (known and ownership.is_new[list(members)].any())
        n_changed += together(after) != together(before)
    assert n_changed >= 15


def test_a_group_that_comes_apart_does_not_merge_in_the_same_exchange():
    """The merge that would gain most is with the group of two classes itself: the next one is made."""
    links = links_of(4, {(0, 1): 100, (0, 2): 3000, (1, 2): 3000, (2, 3): 20})
    assert together(balance(links=links)) == {frozenset({0}), frozenset({1}), frozenset({2, 3})}


def test_a_gain_that_may_be_chance_is_none():
    """Sizes may differ much here: what they gain is a little more than what links lose."""
    sizes, usual = np.array([71, 71, 50, 50]), usual_of(100, spread=0.5)
    weak = links_of(4, {(0, 1): 100, (2, 3): 50, (1, 2): 1})
    strong = links_of(4, {(0, 1): 100, (2, 3): 300, (1, 2): 1})
    apart = {frozenset({0, 1}), frozenset({2}), frozenset({3})}
    assert together(balance(weak, sizes, usual=usual)) == apart
    assert together(balance(strong, sizes, usual=usual)) != apart


def test_every_exchange_is_found_anew_from_what_is_left():
    """Two groups of two classes each, and two pairs of halves: two exchanges, at places taken again."""
    sizes = np.array([100, 100, 50, 50, 100, 100, 50, 50])
    pairs = {(0, 1): 100, (2, 3): 20, (4, 5): 90, (6, 7): 20, (1, 2): 1, (5, 6): 1}
    path = path_of(8, [(0, 1, 0.01), (4, 5, 0.009)])
    found = balance(links_of(8, pairs), sizes, path, owner=(NEW,) * 8)
    assert together(found) == {*map(frozenset, [{0}, {1}, {2, 3}, {4}, {5}, {6, 7}])}
