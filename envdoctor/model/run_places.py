"""What a machine says of the places that a run names: paths, the disk for its checkpoints, ports,
and models of the hub. Read only where the run is to start on that very machine.
"""

from __future__ import annotations

from typing import FrozenSet, Optional, Tuple

from .record import NamedTuple

__all__ = ["HubModel", "RunPath", "RunPlaces"]


class RunPath(NamedTuple):
    """One path that a field of the workload names. exists: None where it could not be looked up."""

    field: str
    path: str
    exists: Optional[bool]


class HubModel(NamedTuple):
    """A model that is named by its place on the hub. cached: some snapshot of it lies in the cache
    of the hub's client; None where the cache could not be read.
    """

    field: str
    name: str
    cached: Optional[bool]


class RunPlaces(NamedTuple):
    """What was read of a run's places.

    disk: folder for checkpoints, or the nearest above it that exists; free: bytes that this user
    may write there; fresh: the folder does not exist, or is empty. ports: on which something
    listens. offline: the variable that keeps the hub's client from the network. token: one is
    stored or set; what it is, is never kept. step: the last one that a checkpoint in the folder is
    of.
    """

    paths: Tuple[RunPath, ...] = ()
    disk: str = ""
    free: Optional[int] = None
    fresh: bool = False
    ports: Optional[FrozenSet[int]] = None
    hub: Tuple[HubModel, ...] = ()
    cache: str = ""
    offline: str = ""
    token: Optional[bool] = None
    step: Optional[int] = None
