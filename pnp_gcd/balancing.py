"""Balance groups: part one that holds two classes, and put two together that are pieces of one.

Merging goes from pair to pair and never looks back: it leaves some groups much larger than classes are,
and pieces that should have joined others much smaller. Here a group is parted again where it was put
together last, while two others merge, as long as sizes gain more by that than links lose. The number of
classes stays as it is. Knows communities, links and sizes: no features, no rows, no torch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.merging import ClassSizes, MergePath, Ownership

__all__ = ["balance_groups"]

# An exchange has to gain this much, as the logarithm of a factor: links are counts, and differ by chance.
_LEAST_GAIN = 0.5
# Groups that are parted with least loss are looked at, and exchanges made, at most.
_N_PARTED = 5
_MAX_EXCHANGES = 1000


class _Group(NamedTuple):
    """Communities that were put together, and the two halves that were so last; a community has none."""

    members: NDArray[np.int64]
    halves: tuple[_Group, _Group] | None = None


def balance_groups(
    path: MergePath,
    n_merges: int,
    links: NDArray[np.float64],
    sizes: NDArray[np.int64],
    ownership: Ownership,
    usual: ClassSizes,
    *,
    min_size: int,
) -> NDArray[np.int64]:
    """Return the group (one of its communities) of each community, after merges and exchanges.

    An exchange parts one group and merges two others. It is judged by links per pair of rows, the more
    the better within a group, and by sizes, the more usual the better.

    Parameters
    ----------
    path : MergePath
    n_merges : int
        Merges to begin with.
    links : ndarray of shape (K, K)
        Neighbour edges between communities.
    sizes : ndarray of shape (K,)
    ownership : Ownership
    usual : ClassSizes
    min_size : int
        Smaller groups without an owner are no class.
    """
    groups = _Groups(_grow(path, n_merges), links, sizes.astype(np.float64), ownership, usual, min_size)
    for _ in range(_MAX_EXCHANGES):
        exchange = groups.best_exchange()
        if exchange is None or exchange.gain <= _LEAST_GAIN:
            break
        groups.make(exchange)
    out = np.empty(path.n_communities, dtype=np.int64)
    for group in groups.groups:
        out[group.members] = group.members.min()
    return out


def _grow(path: MergePath, n_merges: int) -> list[_Group]:
    """Return the groups after some merges, each with its history; what labels put together stays so."""
    found: dict[int, _Group] = {place: _Group(np.array([place])) for place in range(path.n_communities)}
    merges = zip(path.kept[:n_merges], path.dropped[:n_merges], path.strength[:n_merges], strict=True)
    for kept, dropped, strength in merges:
        one, other = found[int(kept)], found.pop(int(dropped))
        members = np.concatenate([one.members, other.members])
        found[int(kept)] = _Group(members, None if np.isinf(strength) else (one, other))
    return list(found.values())


class _Exchange(NamedTuple):
    """Part the group at one place; merge those at two others."""

    gain: float
    parted: int
    merged: tuple[int, int]


class _Groups:
    """Groups at places that are taken again: an exchange ends three groups and begins three."""

    def __init__(
        self,
        groups: list[_Group],
        links: NDArray[np.float64],
        sizes: NDArray[np.float64],
        ownership: Ownership,
        usual: ClassSizes,
        min_size: int,
    ) -> None:
        self.groups, self.community_links, self.community_sizes = groups, links, sizes
        self.ownership, self.usual, self.min_size = ownership, usual, min_size
        self.place = np.empty(len(sizes), dtype=np.int64)
        for place, group in enumerate(groups):
            self.place[group.members] = place
        n_groups = len(groups)
        self.sizes, self.fit, self.loss = (np.zeros(n_groups) for _ in range(3))
        self.owner, self.is_new = np.full(n_groups, -1), np.zeros(n_groups, dtype=bool)
        self.links, self.gain = np.zeros((n_groups, n_groups)), np.zeros((n_groups, n_groups))
        self._describe(range(n_groups))

    def _describe(self, places: range | tuple[int, ...]) -> None:
        """Work out what is known of the groups at these places."""
        for place in places:
            group = self.groups[place]
            self.sizes[place] = self.community_sizes[group.members].sum()
            self.fit[place] = self._fit(self.sizes[place])
            self.owner[place] = self.ownership.owner[group.members].max()
            self.is_new[place] = self.ownership.is_new[group.members].any()
            self.loss[place] = self._lose_by_parting(group)
            to_communities = self.community_links[group.members].sum(axis=0)
            to_groups = np.bincount(self.place, weights=to_communities, minlength=len(self.groups))
            self.links[place] = self.links[:, place] = to_groups
        for place in places:
            self.gain[place] = self.gain[:, place] = self._gain_by_merging(place)

    def _is_class(self, members: NDArray[np.int64]) -> bool:
        """Tell whether a group of these communities counts as a new class."""
        is_owned = self.ownership.owner[members].max() >= 0
        return bool(not is_owned and self.community_sizes[members].sum() >= self.min_size)

    def _fit(self, sizes: Any) -> Any:
        """Return the logarithm of how usual groups of these sizes are."""
        beyond = (np.log(np.maximum(sizes, 1.0)) - self.usual.mean) / self.usual.width
        return -0.5 * beyond**2

    def _lose_by_parting(self, group: _Group) -> float:
        """Return what parting a group loses; infinite where that would not make one class more."""
        if group.halves is None:
            return np.inf
        one, other = group.halves[0].members, group.halves[1].members
        n_more = self._is_class(one) + self._is_class(other) - self._is_class(group.members)
        if n_more != 1:
            return np.inf
        first, second = self.community_sizes[one].sum(), self.community_sizes[other].sum()
        n_links = max(self.community_links[np.ix_(one, other)].sum(), 0.5)  # none were counted, some exist
        fit = self._fit(np.array([first + second, first, second]))
        return float(np.log(n_links / (first * second)) + fit[0] - fit[1] - fit[2])

    def _gain_by_merging(self, place: int) -> NDArray[np.float64]:
        """Return what merging a group with each other (G,) gains; −inf where that is no merge of an exchange.

        It has to end one class, known classes stay apart, and what is surely new joins none of them.
        """
        sizes, fit = self.sizes, self.fit
        with np.errstate(divide="ignore"):
            gain = np.log(self.links[place] / (sizes[place] * sizes))
        gain += self._fit(sizes[place] + sizes) - fit[place] - fit
        owned = self.owner >= 0
        counts = ~owned & (sizes >= self.min_size)
        may_join = counts & ~self.is_new
        may = (counts[place] & (counts | (owned & may_join[place]))) | (owned[place] & may_join)
        gain[~may] = -np.inf
        gain[place] = -np.inf
        return gain

    def best_exchange(self) -> _Exchange | None:
        """Return the exchange that gains most, None where there is none."""
        best = None
        for parted in np.argsort(self.loss, kind="stable")[:_N_PARTED].tolist():
            if not np.isfinite(self.loss[parted]):
                break
            own = self.gain[parted].copy()  # a group that comes apart does not merge
            self.gain[parted] = self.gain[:, parted] = -np.inf
            one, other = np.unravel_index(self.gain.argmax(), self.gain.shape)
            gained = float(self.gain[one, other] - self.loss[parted])
            self.gain[parted] = self.gain[:, parted] = own
            if np.isfinite(gained) and (best is None or gained > best.gain):
                best = _Exchange(gained, parted, (int(one), int(other)))
        return best

    def make(self, exchange: _Exchange) -> None:
        """Part and merge."""
        one, other = (self.groups[place] for place in exchange.merged)
        halves = self.groups[exchange.parted].halves
        assert halves is not None
        merged = _Group(np.concatenate([one.members, other.members]), (one, other))
        places = (exchange.parted, *exchange.merged)
        for place, group in zip(places, (halves[0], merged, halves[1]), strict=True):
            self.groups[place] = group
            self.place[group.members] = place
        self._describe(places)
