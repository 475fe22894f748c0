"""ED710, ED712 and ED713: what is wrong with a node, seen by its peers or by what it was."""

from __future__ import annotations

from ..model.evidence import Evidence
from ..model.facts import Facts
from ..model.finding import Finding, Remedy
from ..model.row import Source
from ..model.sizes import size_text
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Tuple

__all__ = ["RULES_HERE"]

_XID = Source("https://docs.nvidia.com/deploy/xid-errors/")
_MUNGE = Source(
    "https://github.com/dun/munge/wiki/Man-8-munged",
    "--ttl: a credential is valid for 300 seconds by default",
)
#: GPUs of one kind that a board or a node is sold with.
_USUAL_COUNTS = (1, 2, 4, 8, 16)
_ENOUGH = 3  # nodes that tell what is usual


def check_lost_gpus(context: Context) -> Iterator[Finding]:
    """A node shows fewer GPUs than the others of its kind, in a number that none is built with.

    What it checks:
        How many GPUs of one model each node shows, where most nodes with that model show more.

    Why it matters:
        A GPU fell off the bus, was disabled by the driver, or is hidden from the container: the job
        starts with fewer ranks, or waits for one that never comes.

    How to fix:
        Look for Xid lines in the kernel log of that node (dmesg | grep Xid), reset or reboot it;
        drain it if the GPU does not come back.

    References:
        https://docs.nvidia.com/deploy/xid-errors/
    """
    for model, counts in sorted(_counts_of_models(context.nodes).items()):
        nodes: Dict[int, int] = {}
        for count, facts in counts:
            nodes[count] = nodes.get(count, 0) + int(facts.value("node.count", 1))
        usual = max(nodes, key=lambda count: (nodes[count], count))
        if nodes[usual] < _ENOUGH or 2 * nodes[usual] <= sum(nodes.values()):
            continue
        for count, facts in counts:
            if count < usual and count not in _USUAL_COUNTS:
                yield _lost(model, count, usual, facts)


def _counts_of_models(nodes: Tuple[Facts, ...]) -> Dict[str, List[Tuple[int, Facts]]]:
    counts: Dict[str, List[Tuple[int, Facts]]] = {}
    for facts in nodes:
        names = [device.name for device in facts.value("gpus", ()) if device.name]
        for name in set(names):
            counts.setdefault(name, []).append((names.count(name), facts))
    return counts


def _lost(model: str, count: int, usual: int, facts: Facts) -> Finding:
    node = facts.value("node.name", "?")
    return Finding(
        code="ED710",
        component="gpu",
        kind="hardware-fault",
        severity="error",
        message=f"{node} shows {count} of {usual} GPUs ({model}): most nodes show {usual}.",
        evidence=(Evidence(node, f"{count} x {model}"),),
        sources=(_XID,),
        remedies=(
            Remedy(
                f"Look for Xid lines in the kernel log of {node}, reset or reboot it, and drain it "
                "where the GPU does not come back.",
                safety="changes-host",
            ),
        ),
        nodes=(node,),
    )


_CLOCK_ADVICE = 5.0  # seconds: make, logs of several nodes
_CLOCK_WARNING = 300.0  # munge, Kerberos


def check_clock(context: Context) -> Iterator[Finding]:
    """The clock of a node is wrong.

    What it checks:
        The time that a node gave beside the time in which it was asked.

    Why it matters:
        From five minutes on Slurm's and Kerberos' credentials are refused; before that logs of
        several nodes cannot be put in order.

    How to fix:
        Start chronyd or ntpd on that node.

    References:
        https://github.com/dun/munge/wiki/Man-8-munged
    """
    offset = context.facts.value("clock.offset", 0.0)
    if abs(offset) < _CLOCK_ADVICE:
        return
    grave = abs(offset) >= _CLOCK_WARNING
    yield Finding(
        code="ED712",
        component="clock",
        kind="version-mismatch-across-nodes",
        severity="warning" if grave else "advice",
        message=(
            f"The clock is {abs(offset):.0f} s {'ahead' if offset > 0 else 'behind'}: "
            + (
                "credentials of munge (Slurm) and Kerberos are refused from 300 s on."
                if grave
                else "log lines from several nodes cannot be put in order."
            )
        ),
        evidence=context.evidence("clock.offset"),
        sources=(_MUNGE,) if grave else (),
        remedies=(Remedy("Start chronyd or ntpd on this node.", safety="changes-host"),),
    )


_LESS_MEMORY = 0.97  # a DIMM of 32 is more; what firmware and kernel take changes by less


def check_less(context: Context) -> Iterator[Finding]:
    """The machine has less than it had.

    What it checks:
        GPUs of each model, memory, RDMA devices and NUMA nodes against what this node had when the
        file of --since was written.

    Why it matters:
        What worked with all of it may start and hang, or not fit: a GPU fell off the bus, a DIMM
        was taken out of use, a network card is gone.

    How to fix:
        Look into the kernel log of that node (dmesg) for Xid, EDAC and mlx5 lines; reset, reboot or
        drain it. Where less was given on purpose, write the file anew.

    References:
        https://docs.nvidia.com/deploy/xid-errors/
    """
    if context.before is None:
        return
    node = context.facts.value("node.name", "")
    for what, had, has, lost in _shrunk(context.before, context.facts):
        yield Finding(
            code="ED713",
            component=what,
            kind="hardware-fault",
            severity="error" if lost else "warning",
            message=f"{what}: {has} here, {had} before.",
            evidence=(Evidence(node or "now", has), Evidence("before", had)),
            sources=(_XID,) if lost else (),
            remedies=(
                Remedy(
                    "Look into this machine's kernel log for what was lost; if it was removed on "
                    "purpose, write the file of --since again.",
                    safety="changes-host",
                ),
            ),
            nodes=(node,) if context.nodes else (),
        )


def _shrunk(before: Facts, facts: Facts) -> Iterator[Tuple[str, str, str, bool]]:
    """Yield what is less than before, as it was and as it is, and whether it surely is a fault."""
    devices = before.value("gpus"), facts.value("gpus")
    if None not in devices:
        had, has = ([device.name or "GPU" for device in gpus] for gpus in devices)
        for model in sorted({name for name in had if has.count(name) < had.count(name)}):
            left = has.count(model)
            # A job may be given four of eight GPUs; nobody is given seven.
            lost = left not in (0, *_USUAL_COUNTS)
            yield f"GPUs ({model})", str(had.count(model)), str(left), lost
    size = before.value("memory.total"), facts.value("memory.total")
    if None not in size and size[1] < _LESS_MEMORY * size[0]:
        yield "memory", size_text(size[0]), size_text(size[1]), False
    cards = before.value("rdma.devices"), facts.value("rdma.devices")
    if None not in cards and set(cards[0]) - set(cards[1]):
        yield "RDMA devices", ", ".join(cards[0]), ", ".join(cards[1]) or "none", False
    numa = before.value("numa.nodes"), facts.value("numa.nodes")
    if None not in numa and numa[1] < numa[0]:
        yield "NUMA nodes", str(numa[0]), str(numa[1]), False


RULES_HERE: Tuple[Rule, ...] = (
    Rule("ED710", "lost-gpu", "hardware-fault", "A node has lost a GPU", check_lost_gpus),
    Rule(
        "ED712",
        "node-clock",
        "version-mismatch-across-nodes",
        "The clock of a node is wrong",
        check_clock,
    ),
    Rule("ED713", "less-than-before", "hardware-fault", "Less than before", check_less),
)
