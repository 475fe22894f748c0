"""What a machine says of the places that a run names: paths, the disk for its checkpoints, ports,
and models of the hub. Read only where the run is to start on that very machine.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Optional, Tuple

from .record import NamedTuple

__all__ = ["HubModel", "RunPath", "RunPlaces", "step_of"]

#: verl, OpenRLHF, EasyR1: global_step_40; transformers: checkpoint-500; Megatron: iter_0000100.
_STEP = re.compile(r"(?:global_step|checkpoint|iter|step)[-_]0*(\d+)")


def step_of(path: str) -> Optional[int]:
    """Return the step that a checkpoint is of, by the last part of its path; None where that names
    none.
    """
    match = _STEP.fullmatch(path.rstrip("/").rpartition("/")[2])
    return int(match.group(1)) if match else None


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
