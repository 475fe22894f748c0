"""Where a node's GPUs and network cards sit: NUMA node, host bridge, root port."""

from __future__ import annotations

from .figures import Box

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from ..model.facts import Facts, Gpu, NetworkPort, PciPlace

__all__ = ["topology_of"]


def topology_of(facts: Facts, title: str) -> Optional[Box]:
    """Return the boxes of one node; None where it has no GPU, or where it is not known where."""
    places = facts.value("pci.places", ())
    if not any(place.kind == "gpu" for place in places):
        return None
    nodes: Dict[str, Dict[str, Dict[str, List[Box]]]] = {}
    for place in sorted(places, key=lambda place: (place.numa_node is None, place.numa_node or 0)):
        known = place.numa_node is not None
        node = f"NUMA node {place.numa_node}" if known else "NUMA node not known"
        bridge, _, below = place.path.partition("/")
        port = below.partition("/")[0] if "/" in below else ""
        ports = nodes.setdefault(node, {}).setdefault(bridge or "PCI bus", {})
        ports.setdefault(port, []).extend(_devices(place, facts))
    return Box(
        title,
        [
            Box(node, [Box(bridge, _behind(ports)) for bridge, ports in bridges.items()])
            for node, bridges in nodes.items()
        ],
    )


def _behind(ports: Dict[str, List[Box]]) -> List[Box]:
    """Return what is behind the root ports; what sits on the host bridge itself has none."""
    boxes: List[Box] = []
    for port, devices in ports.items():
        boxes += [Box(f"root port {port}", devices)] if port else devices
    return boxes


def _devices(place: PciPlace, facts: Facts) -> List[Box]:
    """Return a GPU, or the ports of a card, with what of it is not as it should be marked."""
    lanes, style = _lanes(place)
    if place.kind == "gpu":
        device = _gpu_at(place, facts)
        words = [place.bus, (device.name if device else None) or "GPU", lanes]
        if device is not None and device.nvlinks:
            words.append(f"{device.nvlinks} NVLinks")
        if device is not None and device.fault:
            words, style = [*words, device.fault], "error"
        return [Box(", ".join(filter(None, words)), (), style or "gpu")]
    ports = [port for port in facts.value("network.ports", ()) if port.pci_bus == place.bus]
    return [_port(port, lanes, style) for port in ports] or [Box(place.bus, (), style)]


def _port(port: NetworkPort, lanes: str, style: str) -> Box:
    down = port.state not in (None, "up")
    speed = f"{port.speed / 1000:g} Gbit/s" if port.speed else ""
    words = [f"{port.name} ({port.kind})", port.state or "", speed, lanes]
    return Box(", ".join(filter(None, words)), (), "error" if down else style or "network")


def _lanes(place: PciPlace) -> Tuple[str, str]:
    if place.width is None:
        return "", ""
    if place.width_max is not None and place.width < place.width_max:
        return f"x{place.width} of x{place.width_max}", "warning"
    return f"x{place.width}", ""


def _gpu_at(place: PciPlace, facts: Facts) -> Optional[Gpu]:
    for device in facts.value("gpus", ()):
        # NVML writes the domain with eight digits, sysfs with four.
        if device.pci_bus and device.pci_bus.lower()[-12:] == place.bus.lower()[-12:]:
            gpu: Gpu = device
            return gpu
    return None
