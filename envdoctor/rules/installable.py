"""What a remedy would install that nothing here can install, or that is made for other devices: of
another vendor, a Python or a platform that no release serves, a version that no index has, a
vendor's own torch that a release of the index would replace.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.facts import is_unindexed
from ..model.requirement import try_requirement
from ..model.versions import InvalidSpecifier, VersionSet, try_version
from .requirement_lines import meets, served_here
from .rule import STATED_VENDORS, vendor_of_builds
from .wheel_tags import platform_words, serves_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Sequence, Tuple

    from ..model.calls import Call
    from ..model.facts import Facts
    from ..model.finding import Remedy
    from ..model.requirement import Requirement
    from ..model.versions import Version

__all__ = ["admitted", "from_index_of_torch", "is_for_cuda", "label_of_index", "refused_here"]

#: What is built for one torch and comes from the index that torch came from.
_WITH_TORCH = frozenset(["torch", "torchaudio", "torchvision"])
#: What the index has wheels of for CUDA alone; others build it elsewhere for other devices.
_FOR_CUDA = frozenset(
    [
        "cupy-cuda11x",
        "cupy-cuda12x",
        "flash-attn",
        "flashinfer-python",
        "sgl-kernel",
        "vllm",
        "xformers",
    ]
)


def refused_here(remedy: Remedy, facts: Facts, matrix: Any) -> str:
    """Return in words what keeps an environment from taking what a remedy installs; "" for nothing
    that is known, or where another Python comes along.
    """
    calls = [call for call in remedy.commands if isinstance(call, InstallerCall)]
    if len(calls) < len(remedy.commands):
        return ""
    requirements = [
        requirement
        for call in calls
        for line in (call.packages if call.action == "install" else ())
        if (requirement := try_requirement(line)) is not None
    ]
    if not any(call.indexes or "--index-url" in call.options for call in calls):
        refusal = _of_other_devices(requirements, facts) or _replaced_build(requirements, facts)
        if refusal:
            return refusal
    return (
        _on_no_index(requirements, matrix)
        or _refused_by_platform(requirements, facts, matrix)
        or _refused_by_python(requirements, facts, matrix)
    )


_INDEX = "https://download.pytorch.org/whl/"


def from_index_of_torch(remedy: Remedy, facts: Facts, matrix: Any) -> Remedy:
    """Return a remedy whose torch, and what belongs to it, come from the index that the torch here
    came from, where the default index has another build: one for CUDA beside one for the CPU, and
    on Windows one for the CPU (https://pytorch.org/get-started/locally/).
    """
    torch = try_version(facts.version_of("torch"))
    label = torch.local if torch is not None and torch.local is not None else ""
    is_cuda = label.startswith("cu") and label[2:].isdigit()
    if label != "cpu" and not (is_cuda and facts.value("os.platform") == "win32"):
        return remedy

    def indexed(call: Call) -> Call:
        if not isinstance(call, InstallerCall) or call.action != "install" or call.indexes:
            return call
        asked = [try_requirement(line) for line in call.packages]
        known = [entry for entry in asked if entry is not None and entry.name in _WITH_TORCH]
        if len(known) < len(asked) or "--index-url" in call.options:
            return call
        variants = [_variant(entry, label, matrix) for entry in known if is_cuda] or [label]
        options = (*call.options, "--index-url", f"{_INDEX}{variants[0]}")
        return call._replace(options=options) if len(set(variants)) == 1 else call

    return remedy._replace(commands=tuple(map(indexed, remedy.commands)))


def label_of_index(call: InstallerCall) -> str:
    """Return the local label of what a call takes from torch's own index: ``+cpu``; "" for none."""
    index = next((option for option in call.options if option.startswith(_INDEX)), "")
    return f"+{index[len(_INDEX) :]}" if index else ""


def _variant(requirement: Requirement, label: str, matrix: Any) -> str:
    """Return the variant of CUDA in which a release is there: that of a label, else its newest."""
    package = matrix.package(requirement.name)
    releases = admitted(package, requirement.specifier)
    builds = package.release(releases[-1]).builds if releases else ()
    variants = [build.variant for build in builds if build.variant]
    return label if label in variants or not variants else max(variants)


def is_for_cuda(name: str, vendor: str) -> bool:
    """Tell whether what the index has of a package is made for CUDA, and not for these devices; its
    torch runs on any processor, too.
    """
    return name in _FOR_CUDA or (vendor in STATED_VENDORS and name in {*_WITH_TORCH, "triton"})


def _of_other_devices(requirements: Sequence[Requirement], facts: Facts) -> str:
    vendor = vendor_of_builds(facts)
    for requirement in requirements if vendor else ():
        if is_for_cuda(requirement.name, vendor):
            name = requirement.name
            return f"what the index has of {name} is built for CUDA, and this is for {vendor}."
    return ""


def _replaced_build(requirements: Sequence[Requirement], facts: Facts) -> str:
    """Of the torch of a vendor's image, with which the rest of the image was built."""
    torch = facts.value("distributions", {}).get("torch")
    if torch is None or not torch.version or not is_unindexed(torch):
        return ""
    names = [entry.name for entry in requirements if entry.name in _WITH_TORCH]
    if not names:
        return ""
    return f"torch {torch.version} is a build of no index, which the index's {names[0]} replaces."


def _on_no_index(requirements: Sequence[Requirement], matrix: Any) -> str:
    for requirement in requirements:
        package = matrix.package(requirement.name)
        if package is None or not requirement.specifier.startswith("==") or not package.versions:
            continue
        if not admitted(package, requirement.specifier, finals=False):
            return f"no index is known to have {requirement.name} {requirement.specifier[2:]}."
    return ""


def _refused_by_platform(requirements: Sequence[Requirement], facts: Facts, matrix: Any) -> str:
    """Of a package that has wheels, and none for the platform here."""
    place = platform_words(facts)
    for requirement in requirements if place else ():
        package = matrix.package(requirement.name)
        releases = [
            package.release(version) for version in admitted(package, requirement.specifier)
        ]
        known = [entry for entry in releases if entry.platforms]
        if known and not any(serves_platform(entry, facts) for entry in known):
            release = f"{requirement.name} {requirement.specifier}".rstrip()
            return f"no known release of {release} has a wheel for {place}."
    return ""


def _refused_by_python(requirements: Sequence[Requirement], facts: Facts, matrix: Any) -> str:
    python = try_version(facts.value("python.version"))
    if python is None:
        return ""
    for requirement in requirements:
        if not requirement.specifier:
            continue
        package = matrix.package(requirement.name)
        wanted = [
            served_here(package.release(version), facts).requires_python
            for version in admitted(package, requirement.specifier)
        ]
        if wanted and all(asked and meets(python, asked) is False for asked in wanted):
            release = f"{requirement.name} {requirement.specifier}"
            return f"no known release of {release} is for Python {python}, though."
    return ""


def admitted(package: Any, specifier: str, finals: bool = True) -> List[Version]:
    """Return the known releases of a package in a range, oldest first; finals: no others."""
    try:
        wanted = VersionSet.parse(specifier)
    except InvalidSpecifier:
        return []
    releases: Tuple[Version, ...] = tuple(package.versions) if package is not None else ()
    return [entry for entry in releases if entry in wanted and not (finals and entry.is_prerelease)]
