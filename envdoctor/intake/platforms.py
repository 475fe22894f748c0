"""Operating systems, machines and clusters, as tools and people name them."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from .clean_text import Line
from .draft import EXACT, LABEL, Draft
from .word_lists import phrases

__all__ = [
    "OS_RELEASE",
    "architecture",
    "glibc_of_release",
    "operating_system",
    "platform_words",
    "python_platform",
    "system_of_build",
    "systems_with_glibc",
]

_KERNEL = re.compile(r"Linux (\d+\.\d+\S*)(?: #|$)")
_NOTHING = phrases(", n/a, could not collect, none, not found, unknown, na")
_PLATFORM = re.compile(
    r"Linux-(\d+\.\d+\S*?)-(x86_64|aarch64|arm64|ppc64le)(?:-(?:x86_64|aarch64))?-with-glibc"
    r"(\d+\.\d+)"
)
_ARCHITECTURES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "x64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "ppc64le": "ppc64le",
}

#: A release of a distribution, as sentences name it.
OS_RELEASE = re.compile(
    r"(?<![\w./:@=-])(?:Ubuntu|Debian(?: GNU/Linux)?|Rocky(?: Linux)?|Alma ?Linux|"
    r"RHEL|Red Hat Enterprise Linux|CentOS(?: Linux| Stream)?|Oracle Linux|Amazon Linux)"
    r"(?: release)? ?\d{1,4}(?:\.\d{1,2}){0,2}(?![\w-]|\.\w)",
    re.IGNORECASE,
)
#: The glibc of each release; it stays the same for the life of one. Sources: libc6 at
#: packages.ubuntu.com and packages.debian.org, glibc in Red Hat's and Amazon's release notes.
_GLIBC = {
    "ubuntu": {
        "16.04": "2.23", "18.04": "2.27", "20.04": "2.31", "22.04": "2.35", "22.10": "2.36",
        "23.04": "2.37", "23.10": "2.38", "24.04": "2.39", "24.10": "2.40", "25.04": "2.41",
    },
    "debian": {"9": "2.24", "10": "2.28", "11": "2.31", "12": "2.36", "13": "2.41"},
    "red hat": {"7": "2.17", "8": "2.28", "9": "2.34", "10": "2.39"},
    "amazon": {"2": "2.26", "2023": "2.34"},
}  # fmt: skip
_RELEASE = re.compile(
    r"(?:(?P<ubuntu>ubuntu)|(?P<debian>debian)|(?P<amazon>amazon linux)|(?P<red_hat>rocky|"
    r"alma ?linux|rhel|red hat enterprise|centos|oracle linux))\D{0,30}(?P<number>\d[\d.]*)",
    re.IGNORECASE,
)


def glibc_of_release(name: str) -> Optional[str]:
    """Return the glibc of ``Ubuntu 22.04.3 LTS``, or None where the name tells none."""
    match = _RELEASE.search(name)
    if match is None:
        return None
    vendor = next(key for key in ("ubuntu", "debian", "amazon", "red_hat") if match.group(key))
    parts = match.group("number").rstrip(".").split(".")
    number = ".".join(parts[: 2 if vendor == "ubuntu" else 1])
    if vendor == "ubuntu" and len(parts) == 1:  # "Ubuntu 20" is the release with long support
        number = f"{number}.04"
    return _GLIBC[vendor.replace("_", " ")].get(number)


#: How the distributions mark the compilers that they build, and kernels of Red Hat's.
_OF_UBUNTU = re.compile(r"\d+ubuntu[\d.]+~(\d\d\.\d\d)")
_OF_DEBIAN = re.compile(r"\bDebian (\d{1,2})\.\d{1,2}\.\d{1,2}-\d")
_OF_RED_HAT = re.compile(
    r"(?:\bRed Hat (\d{1,2})\.\d{1,2}\.\d{1,2}-\d)|[\w-]\.el(\d{1,2})(?:_\d+)?\b"
)
#: The GCC of each release.
_GCC_OF_DEBIAN = {"6": "9", "8": "10", "10": "11", "12": "12", "14": "13"}
_GCC_OF_RED_HAT = {"4": "7", "8": "8", "11": "9", "14": "10"}


def system_of_build(text: str) -> Optional[str]:
    """Return the distribution that built a compiler or a kernel, by its mark
    (``9.4.0-1ubuntu1~20.04.2``, ``Debian 10.2.1-6``, ``3.10.0-1160.el7``); None for no mark.
    """
    ubuntu = _OF_UBUNTU.search(text)
    if ubuntu:
        return f"Ubuntu {ubuntu.group(1)}"
    debian = _OF_DEBIAN.search(text)
    if debian and debian.group(1) in _GCC_OF_DEBIAN:
        return f"Debian {_GCC_OF_DEBIAN[debian.group(1)]}"
    red_hat = _OF_RED_HAT.search(text)
    if red_hat is None:
        return None
    release = red_hat.group(2) or _GCC_OF_RED_HAT.get(red_hat.group(1))
    return f"RHEL {release}" if release else None


def systems_with_glibc(version: str) -> List[str]:
    """Return of each distribution the oldest release that has a glibc or a newer one."""
    wanted = _numbers(version)
    names = {"ubuntu": "Ubuntu", "debian": "Debian", "red hat": "RHEL", "amazon": "Amazon Linux"}
    systems = []
    for vendor, releases in _GLIBC.items():
        fitting = [name for name, glibc in releases.items() if _numbers(glibc) >= wanted]
        if fitting:
            systems.append(f"{names[vendor]} {min(fitting, key=_numbers)}")
    return systems


def _numbers(text: str) -> Tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def architecture(text: str) -> Optional[str]:
    """Return the machine architecture that a text names."""
    match = re.search(r"\b(x86_64|amd64|x64|aarch64|arm64|ppc64le)\b", text, re.IGNORECASE)
    return _ARCHITECTURES[match.group(1).lower()] if match else None


def python_platform(text: str, line: Line, draft: Draft) -> bool:
    """Read what ``platform.platform()`` returns."""
    match = _PLATFORM.search(text)
    if match:
        draft.put("os.kernel", match.group(1), line, EXACT)
        draft.put("os.platform", "linux", line, EXACT)
        draft.put("os.architecture", _ARCHITECTURES[match.group(2)], line, EXACT)
        draft.put("glibc.version", match.group(3), line, EXACT + 1)
        if "microsoft" in match.group(1).lower():
            draft.put("os.wsl", True, line, EXACT)
        return True
    for beginning, name in (("Windows-", "win32"), ("macOS-", "darwin"), ("Linux-", "linux")):
        if text.strip().startswith(beginning):
            draft.put("os.platform", name, line, EXACT)
            return True
    return False


#: What conda calls a platform.
_SUBDIR = re.compile(r"(linux|osx|win)-(64|aarch64|arm64)")
_SUBDIRS = {"linux": "linux", "osx": "darwin", "win": "win32"}


def operating_system(value: str, line: Line, draft: Draft, rank: int = LABEL) -> bool:
    """Read the name of an operating system; False where it is none."""
    if value.lower() in _NOTHING:
        return False
    kernel = _KERNEL.match(value)
    if kernel is not None:  # as uname and Slurm say it
        draft.put("os.platform", "linux", line, rank)
        draft.put("os.kernel", kernel.group(1), line, rank)
        return True
    lowered = value.lower()
    subdir = _SUBDIR.fullmatch(lowered)
    if subdir is not None:
        draft.put("os.platform", _SUBDIRS[subdir.group(1)], line, rank)
        draft.put("os.architecture", "x86_64" if subdir.group(2) == "64" else "aarch64", line, rank)
        return True
    machine = architecture(value)
    name = re.sub(r"\s*\((?:x86_64|amd64|aarch64|arm64)\)", "", value).strip()
    if re.search(r"windows|\bwin ?1[01]\b", lowered) and "wsl" not in lowered:
        draft.put("os.platform", "win32", line, rank)
    elif "macos" in lowered or "darwin" in lowered:
        draft.put("os.platform", "darwin", line, rank)
    elif re.search(
        r"linux|ubuntu|debian|centos|red hat|rhel|rocky|alma|suse|sles|fedora|arch linux|amazon|"
        r"tencentos|openeuler|euleros|anolis|pop!_os|mint|kylin|photon|nixos|alpine|wsl",
        lowered,
    ):
        draft.put("os.platform", "linux", line, rank)
    else:
        return False
    if "wsl" in lowered:
        draft.put("os.wsl", True, line, rank)
    draft.put("os.name", name[:120], line, rank)
    if machine:
        draft.put("os.architecture", machine, line, rank)
    return True


def platform_words(value: str, line: Line, draft: Draft) -> bool:
    """Read a platform in words: WSL2, GKE, Docker, an operating system."""
    if re.search(r"\bWSL ?[12]?\b", value):
        draft.put("os.wsl", True, line)
        draft.put("os.platform", "linux", line)
    if re.search(r"\b(?:GKE|EKS|AKS|k8s|kubernetes|helm|OpenShift)\b", value, re.IGNORECASE):
        draft.put("kubernetes.pod", True, line)
        draft.put("container.runtime", "kubernetes", line)
    known = operating_system(value, line, draft)
    machine = architecture(value)
    if machine:
        draft.put("os.architecture", machine, line)
    return known or machine is not None
