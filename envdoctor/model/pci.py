"""How near two devices on the PCI bus are to each other, in the words of ``nvidia-smi topo -m``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

__all__ = ["DISTANCES", "distance"]

#: The nearest first. docs.nvidia.com/datacenter: nvidia-smi topo -m, legend.
DISTANCES = {
    "PIX": "through at most one PCIe bridge",
    "PXB": "through several PCIe bridges",
    "PHB": "through the host bridge of the CPU",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes",
}


def distance(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Return a key of ``DISTANCES`` for two places as JSON (``PciPlace``)."""
    one, other = (str(place.get("path", "")).split("/") for place in (first, second))
    if one[0] == other[0] and one[0]:
        shared = 0
        while shared < min(len(one), len(other)) and one[shared] == other[shared]:
            shared += 1
        if shared == 1:
            return "PHB"
        # Bridges between each and what both are below: its own address is the last part.
        between = max(len(one), len(other)) - 1 - shared
        return "PIX" if between <= 1 else "PXB"
    nodes = first.get("numa_node"), second.get("numa_node")
    return "NODE" if None not in nodes and nodes[0] == nodes[1] else "SYS"
