"""How many processes Slurm's ``srun`` and MPI's ``mpirun`` start, from their options."""

from __future__ import annotations

import re
from typing import Dict, Mapping, Optional

from ...model.sizes import whole_number
from ..shell.reader import MARK, Word

__all__ = ["BY_MPI", "task_counts"]

BY_MPI = frozenset(["mpirun", "mpiexec", "orterun", "mpiexec.hydra"])
#: Options by the count that they state: Slurm's srun(1); Open MPI's mpirun(1), Hydra's -ppn.
_SRUN = {
    "nodes": ("N", "nodes"),
    "ntasks": ("n", "ntasks"),
    "ntasks-per-node": ("ntasks_per_node",),
}
_MPI = {
    "np": ("np", "n", "c"),
    "npernode": ("npernode", "N", "ppn", "perhost", "ntasks_per_node"),
}
_HOSTS, _HOST_FILES = ("H", "host", "hosts"), ("hostfile", "f", "machinefile")
_PER_NODE = re.compile(r"ppr:(\d+):node\b")


def task_counts(
    launcher: Word, options: Mapping[str, Word], job: Mapping[str, str]
) -> Dict[str, Word]:
    """Return nodes and processes by the launcher's own names; nothing where each node has one
    process, of which it is not known what that starts in turn.

    job: the variables that the job's own directives set (SLURM_NNODES …).
    """
    by_mpi = launcher.text in BY_MPI
    counts = _of_mpi(launcher, options) if by_mpi else _of_slurm(launcher, options, job)
    each = counts.get("npernode" if by_mpi else "ntasks-per-node")
    total = counts.get("np" if by_mpi else "ntasks")
    if total is None:
        return counts if each is not None and each.text != "1" else {}
    is_several = total.text not in ("1", counts["nodes"].text)
    return counts if is_several and (each is None or each.text != "1") else {}


def _of_slurm(
    launcher: Word, options: Mapping[str, Word], job: Mapping[str, str]
) -> Dict[str, Word]:
    counts = _stated(options, _SRUN)
    unset = {"nodes": "SLURM_NNODES"}
    if "ntasks" not in counts:
        unset["ntasks-per-node"] = "SLURM_NTASKS_PER_NODE"
    for name, variable in unset.items():
        if name not in counts and variable in job:
            counts[name] = launcher._replace(text=job[variable])
    unclear = launcher._replace(text=MARK, why="srun is not told how many nodes")
    counts.setdefault("nodes", unclear)
    return counts


def _of_mpi(launcher: Word, options: Mapping[str, Word]) -> Dict[str, Word]:
    counts = _stated(options, _MPI)
    mapped = options.get("map_by")
    ways = _PER_NODE.search(mapped.text) if mapped is not None else None
    if mapped is not None and ways is not None:
        counts["npernode"] = mapped._replace(text=ways.group(1))
    hosts = next((options[name] for name in _HOSTS if name in options), None)
    nodes = 1  # without hosts they are started here
    if hosts is not None and hosts.known:
        nodes = len({host.partition(":")[0] for host in hosts.text.split(",")})
    elif hosts is not None or any(name in options for name in _HOST_FILES):
        nodes = _quotient(counts.get("np"), counts.get("npernode"))
    unclear = launcher._replace(text=MARK, why="a file names the hosts")
    counts["nodes"] = launcher._replace(text=str(nodes)) if nodes else unclear
    return counts


def _stated(options: Mapping[str, Word], names: Mapping[str, tuple[str, ...]]) -> Dict[str, Word]:
    stated = {}
    for count, spellings in names.items():
        word = next((options[name] for name in spellings if name in options), None)
        if word is not None:
            stated[count] = word
    return stated


def _quotient(total: Optional[Word], each: Optional[Word]) -> int:
    """Return how many nodes hold that many processes, 0 where that cannot be told."""
    numbers = [whole_number(word.text) if word is not None else None for word in (total, each)]
    whole, part = numbers
    return whole // part if whole and part and whole % part == 0 else 0
