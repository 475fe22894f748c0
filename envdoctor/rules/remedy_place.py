"""Remedies that a machine has no place for: what is said and run on Linux alone, on Windows or
macOS; what belongs to the host of a WSL; what is NVIDIA's, beside builds for other devices.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.pattern import pattern
from .rule import STATED_VENDORS, vendor_of_builds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Sequence

    from ..model.facts import Facts
    from ..model.finding import Finding, Remedy

__all__ = ["is_of_another_place", "without_other_places"]

_OF_LINUX = pattern(
    r"\b(?:LD_LIBRARY_PATH|LD_PRELOAD|apt(?:-get)? install|ldconfig|modprobe|nvidia-fabricmanager"
    r"|systemctl|ulimit|dmesg)\b|/dev/shm|/etc/|/proc/"
)
# WSL has the driver of Windows: no kernel module of its own, and no daemon of NVIDIA's
# (https://docs.nvidia.com/cuda/wsl-user-guide/).
_OF_HOST = pattern(
    r"\b(?:modprobe|nvidia-fabricmanager|nvidia-persistenced|kernel module|reboot)\b"
)
_OF_NVIDIA = pattern(
    r"\b(?:nvidia-smi|nvidia-fabricmanager|cuda-compat|nvcc|NVIDIA container toolkit)\b|--gpus\b"
)
#: Where another remedy for Windows or macOS is named, the words for Linux are one of several.
_NAMED = {"win32": pattern(r"\b(?:Windows|PATH|WSL)\b"), "darwin": pattern(r"\bmacOS\b")}


def without_other_places(findings: Sequence[Finding], facts: Facts) -> List[Finding]:
    """Return findings without the remedies that are for another machine than the one that facts
    describe; where these do not tell which it is, with all.
    """
    return [
        finding._replace(
            remedies=tuple([way for way in finding.remedies if not is_of_another_place(way, facts)])
        )
        if finding.remedies
        else finding
        for finding in findings
    ]


def is_of_another_place(remedy: Remedy, facts: Facts) -> bool:
    """Tell whether the words or commands of a remedy are for another system, for the host of this
    one, or for the devices of another vendor.
    """
    calls = [call for call in remedy.commands if not isinstance(call, InstallerCall)]
    words = "\n".join([remedy.text, *map(str, calls)])
    system = facts.value("os.platform")
    if system in _NAMED and _OF_LINUX.search(words):
        return _NAMED[system].search(words) is None
    if facts.value("os.wsl") and _OF_HOST.search(words):
        return "wsl" not in words.casefold()
    is_elsewhere = vendor_of_builds(facts) in STATED_VENDORS
    return is_elsewhere and _OF_NVIDIA.search(words) is not None
