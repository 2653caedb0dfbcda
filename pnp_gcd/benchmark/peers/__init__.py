"""Methods that ours is compared with, behind the interface of ``PNPDiscoverer``.

Each is written from its paper; :doc:`/peers` says what it is given and where it differs from there.
"""

from pnp_gcd.benchmark.peers.base import Peer
from pnp_gcd.benchmark.peers.communities import InfomapPeer
from pnp_gcd.benchmark.peers.kmeans import KMeansPeer, SemiSupervisedKMeans
from pnp_gcd.benchmark.peers.simgcd import SimGCD

__all__ = ["InfomapPeer", "KMeansPeer", "Peer", "SemiSupervisedKMeans", "SimGCD"]
