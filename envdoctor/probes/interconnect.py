"""What joins GPUs and nodes: network ports and their link, where devices sit on the PCI bus, and
whether the IOMMU or the bridges redirect what devices send each other.

Nothing is asked but files of sysfs, of few devices. No start of a container reads this.
"""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import NetworkPort, PciPlace
from .machine import FOLDER_ONLY, Probe
from .nvidia_files import pci_displays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

    from .machine import Machine

__all__ = ["PROBES_HERE", "acs_redirects", "parse_port_state", "parse_rate", "probe_interconnect"]

_MOST_PORTS = 256
_MOST_GROUPS = 256
_FIELDS = ("network.ports", "pci.places", "pcie.acs_iommu", "iommu.modes")

# Documentation/ABI/stable/sysfs-class-infiniband: "4: ACTIVE", "400 Gb/sec (4X NDR)".
_PORT_STATES = {"ACTIVE": "up", "DOWN": "down", "INIT": "initializing", "ARMED": "initializing"}

# PCI Express Base Specification 6.0, 7.7.11: Access Control Services. Redirection of requests (2)
# and completions (3) sends what one device below a bridge writes to another up to the root.
_ACS, _REDIRECT = 0x000D, 0b1100
_EXTENDED = 0x100  # where extended capabilities begin; only the superuser reads that far
_CONFIG = 4096


def parse_port_state(text: str) -> str:
    """Return up, down or initializing for ``4: ACTIVE``; another state in its own words."""
    word = text.rpartition(":")[2].strip()
    return _PORT_STATES.get(word, word.lower()[:20])


def parse_rate(text: str) -> Optional[int]:
    """Return the Mbit/s of ``400 Gb/sec (4X NDR)`` and ``2.5 Gb/sec``; None for anything else."""
    words = text.split()
    if words[1:2] != ["Gb/sec"]:
        return None
    whole, _, part = words[0].partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) < 6):
        return None
    return int(whole) * 1000 + (int(part[0]) * 100 if part[:1].isdigit() else 0)


def acs_redirects(config: bytes) -> Optional[bool]:
    """Tell whether a bridge sends traffic between the devices below it up to the root.

    Args:
        config: Its configuration space; None is returned where that ends before the extended
            capabilities, as it does for all but the superuser.
    """
    if len(config) <= _EXTENDED:
        return None
    at, steps = _EXTENDED, 0
    while _EXTENDED <= at <= len(config) - 8 and steps < 64:
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == _ACS:
            return bool(int.from_bytes(config[at + 6 : at + 8], "little") & _REDIRECT)
        at, steps = header >> 20, steps + 1
    return False


def probe_interconnect(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read ports, places on the PCI bus, IOMMU and ACS."""
    if machine.root and not machine.exists("/sys/class"):
        return dict.fromkeys(_FIELDS, Unknown(FOLDER_ONLY))
    ports = list(_ports(machine)) if machine.exists("/sys/class/net") else None
    facts: Dict[str, Fact[Any]] = {"iommu.modes": _iommu_modes(machine)}
    facts["network.ports"] = (
        Unknown("no /sys/class/net")
        if ports is None
        else Known(tuple(ports), Evidence("/sys/class/net, /sys/class/infiniband"))
    )
    gpus = [device.bus for device in pci_displays(machine) or () if device.vendor == "10de"]
    buses = [*gpus, *dict.fromkeys([port.pci_bus for port in ports or () if port.pci_bus])]
    places = [_place(machine, bus, bus in gpus) for bus in buses]
    facts["pci.places"] = Known(
        tuple([place for place in places if place is not None]), Evidence("/sys/bus/pci/devices")
    )
    redirected = _redirected(machine, [place for place in places if place is not None])
    if redirected is not None:
        facts["pcie.acs_iommu"] = redirected
    return facts


def _ports(machine: Machine) -> Iterator[NetworkPort]:
    """Yield the ports that have a device behind them; a bridge, a tunnel or a pod's end of a
    virtual cable has none.
    """
    for name in (machine.listdir("/sys/class/net") or ())[:_MOST_PORTS]:
        folder = f"/sys/class/net/{name}"
        if machine.exists(f"{folder}/device"):
            yield NetworkPort(
                name,
                "ethernet" if _word(machine, f"{folder}/type") == "1" else "other",
                _word(machine, f"{folder}/operstate") or None,
                _number(machine, f"{folder}/speed"),  # Mbit/s; -1 or an error where it has none
                _number(machine, f"{folder}/mtu"),
                _bus_of(machine, f"{folder}/device"),
            )
    for device in (machine.listdir("/sys/class/infiniband") or ())[:_MOST_PORTS]:
        folder = f"/sys/class/infiniband/{device}"
        for number in (machine.listdir(f"{folder}/ports") or ())[:8]:
            port = f"{folder}/ports/{number}"
            state = _word(machine, f"{port}/state")
            yield NetworkPort(
                f"{device}/{number}",
                {"InfiniBand": "infiniband", "Ethernet": "roce"}.get(
                    _word(machine, f"{port}/link_layer"), "rdma"
                ),
                parse_port_state(state) if state else None,
                parse_rate(_word(machine, f"{port}/rate")),
                None,
                _bus_of(machine, f"{folder}/device"),
            )


def _word(machine: Machine, path: str) -> str:
    return (machine.read_text(path, 256) or "").strip()


def _number(machine: Machine, path: str) -> Optional[int]:
    word = _word(machine, path)
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None


def _bus_of(machine: Machine, link: str) -> Optional[str]:
    """Return the PCI address behind a link: that of virtio's own device lies one folder up."""
    parts = [part for part in machine.realpath(link).split("/") if _is_address(part)]
    return parts[-1] if parts else None


def _is_address(word: str) -> bool:
    """Tell whether a name in sysfs is the address of a PCI device, 0000:18:00.0."""
    return word.count(":") == 2 and word[-2:-1] == "."


def _place(machine: Machine, bus: str, is_gpu: bool) -> Optional[PciPlace]:
    folder = f"/sys/bus/pci/devices/{bus}"
    if not machine.exists(folder):
        return None
    # "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0": the host bridge, then every bridge.
    path = machine.realpath(folder).partition("/devices/")[2]
    return PciPlace(
        bus,
        "gpu" if is_gpu else "network",
        path,
        _number(machine, f"{folder}/numa_node"),  # -1 where firmware names none
        _number(machine, f"{folder}/current_link_width"),
        _number(machine, f"{folder}/max_link_width"),
    )


def _redirected(machine: Machine, places: Sequence[PciPlace]) -> Optional[Fact[Any]]:
    """Tell whether a bridge above a GPU redirects; None where that cannot be read, or where there
    are no two GPUs.
    """
    paths = [place.path.split("/")[1:-1] for place in places if place.kind == "gpu"]
    bridges = list(dict.fromkeys([bridge for path in paths for bridge in path]))
    if len(paths) < 2 or not bridges:
        return None
    answers: List[Tuple[str, Optional[bool]]] = []
    for bridge in bridges[:_MOST_PORTS]:
        config = machine.read_bytes(f"/sys/bus/pci/devices/{bridge}/config", _CONFIG) or b""
        answers.append((bridge, acs_redirects(config)))
    redirecting = [bridge for bridge, answer in answers if answer]
    if redirecting:
        detail = f"ACS redirects at {', '.join(redirecting[:8])}"
        return Known(True, Evidence("/sys/bus/pci/devices/*/config", detail))
    # Without redirection the IOMMU may still translate, which the driver's probe has seen.
    return None


def _iommu_modes(machine: Machine) -> Fact[Any]:
    """Return how the IOMMU maps what devices do: identity, DMA, DMA-FQ; Absent without one."""
    groups = machine.listdir("/sys/kernel/iommu_groups")
    if groups is None:
        return Unknown("no /sys/kernel/iommu_groups")
    evidence = Evidence("/sys/kernel/iommu_groups")
    if not groups:
        return Absent(evidence)
    folder = "/sys/kernel/iommu_groups"
    modes = {_word(machine, f"{folder}/{group}/type") for group in groups[:_MOST_GROUPS]}
    return Known(", ".join(sorted(modes - {""})) or "on", evidence)


PROBES_HERE: Tuple[Probe, ...] = (Probe("interconnect", probe_interconnect, _FIELDS, False, 2.0),)
