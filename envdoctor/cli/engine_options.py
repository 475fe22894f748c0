"""Who is asked, and through which engine: what ``nodes`` and ``prove`` have in common."""

from __future__ import annotations

from ..errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Optional, Tuple

    from ..nodes.engines import NodeRequest

__all__ = ["add_engines", "named_engine", "request_of"]


def add_engines(group: Any) -> None:
    """Add the options that name an engine and its nodes to a group of a parser."""
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="the nodes of a Ray cluster, by a task on each (default: $RAY_ADDRESS)",
    )
    group.add_argument(
        "--slurm",
        action="store_true",
        help="the nodes of this Slurm job, or of --partition and --nodelist, by a step on each",
    )
    group.add_argument("--partition", "-p", metavar="NAME", default="", help="a Slurm partition")
    group.add_argument(
        "--nodelist", "-w", metavar="LIST", default="", help="Slurm nodes: gpu[01-16]"
    )
    group.add_argument(
        "--kubectl", metavar="SELECTOR", help="the running pods with these labels: app=verl"
    )
    group.add_argument("--namespace", "-n", metavar="NAME", default="", help="of the pods")
    group.add_argument("--container", "-c", metavar="NAME", default="", help="in the pods")
    group.add_argument(
        "--mpi", metavar="HOSTFILE", help="the hosts of an MPI host file, by mpirun on each"
    )
    group.add_argument("--ssh", metavar="HOSTS", help="hosts by ssh: gpu[01-16],head")


def named_engine(options: argparse.Namespace) -> Optional[Tuple[str, str]]:
    """Return the engine that the options name and what it takes, or None.

    Raises:
        InputError: they name two.
    """
    named = [
        (name, value)
        for name, value in (
            ("ray", options.ray),
            ("slurm", "" if options.slurm or options.partition or options.nodelist else None),
            ("kubectl", options.kubectl),
            ("mpi", options.mpi),
            ("ssh", options.ssh),
        )
        if value is not None
    ]
    if len(named) > 1:
        both = " and ".join(f"--{name}" for name, _ in named)
        raise InputError(f"{both} both say which nodes to ask; give one of them")
    return named[0] if named else None


def request_of(engine: Tuple[str, str], options: argparse.Namespace) -> NodeRequest:
    """Return whom to ask, and how."""
    from ..nodes.engines import NodeRequest

    name, where = engine
    return NodeRequest(
        name,
        where,
        options.partition,
        options.nodelist,
        options.namespace,
        options.container,
        options.python or "",
        options.deadline,
    )
