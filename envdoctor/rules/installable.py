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

__all__ = [
    "INDEX_OF_TORCH",
    "admitted",
    "as_it_is_carried_out",
    "build_of",
    "is_for_cuda",
    "label_of_index",
    "refused_here",
    "takes",
]

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


#: Where torch's own builds are, each label in a folder of its name.
INDEX_OF_TORCH = "https://download.pytorch.org/whl/"


def as_it_is_carried_out(remedy: Remedy, facts: Facts, matrix: Any) -> Remedy:
    """Return a remedy whose commands name the releases that an installer would take beside what
    they pin, and the index that these come from.
    """
    named = tuple([_with_releases(call, facts, matrix) for call in remedy.commands])
    return _from_index_of_torch(remedy._replace(commands=named), facts, matrix)


def _with_releases(call: Call, facts: Facts, matrix: Any) -> Call:
    """Return a call that upgrades a package to what goes with a pin (``torchvision torch==2.3.0``)
    with the newest release that does.
    """
    if not isinstance(call, InstallerCall) or "--upgrade" not in call.options:
        return call
    asked = [try_requirement(line) for line in call.packages]
    pins = {
        entry.name: version
        for entry in asked
        if entry is not None
        and entry.specifier.startswith("==")
        and (version := try_version(entry.specifier[2:])) is not None
    }
    if len(pins) != 1 or None in asked:
        return call
    ((pinned, version),) = pins.items()
    packages = []
    for line, entry in zip(call.packages, asked):
        package: Any = None
        if entry is not None and not entry.specifier:
            package = matrix.package(entry.name)
        fitting = [
            release
            for release in (admitted(package, "") if package is not None else ())
            if takes(served_here(package.release(release), facts), pinned, version)
        ]
        packages.append(f"{line}=={fitting[-1]}" if fitting else line)
    return call._replace(packages=tuple(packages))


def takes(release: Any, name: str, version: Version) -> bool:
    """Tell whether a release asks for something, and a version meets all that it asks for."""
    asked = [
        requirement
        for line in release.requires or ()
        if (requirement := try_requirement(line)) is not None and requirement.name == name
    ]
    return bool(asked) and all(
        not requirement.specifier or meets(version, requirement.specifier) for requirement in asked
    )


def _from_index_of_torch(remedy: Remedy, facts: Facts, matrix: Any) -> Remedy:
    """Return a remedy whose torch, and what belongs to it, come from the index that the torch here
    came from, where the default index has another build: one for another CUDA, or for CUDA beside
    one for the CPU, and on Windows one for the CPU (https://pytorch.org/get-started/locally/).
    """
    torch = try_version(facts.version_of("torch"))
    label = torch.local if torch is not None and torch.local is not None else ""
    is_of_cuda = label.startswith("cu") and label[2:].isdigit()
    if label not in ("cpu", "xpu") and not is_of_cuda and not label.startswith("rocm"):
        return remedy
    is_default = facts.value("os.platform") != "win32"

    def indexed(call: Call) -> Call:
        if not isinstance(call, InstallerCall) or call.action != "install" or call.indexes:
            return call
        asked = [try_requirement(line) for line in call.packages]
        known = [entry for entry in asked if entry is not None and entry.name in _WITH_TORCH]
        if len(known) < len(asked) or "--index-url" in call.options:
            return call
        variants = {_variant(entry, label, matrix, is_default) for entry in known}
        variant = variants.pop() if len(variants) == 1 else ""
        options = (*call.options, "--index-url", f"{INDEX_OF_TORCH}{variant}")
        return call._replace(options=options) if variant else call

    return remedy._replace(commands=tuple(map(indexed, remedy.commands)))


def _variant(requirement: Requirement, label: str, matrix: Any, is_default: bool) -> str:
    """Return the variant in which to install a release: that of a label, else its newest; "" where
    the default index has it (``is_default``: its builds are for CUDA), or none is known.
    """
    if not label.startswith("cu"):
        return label
    package = matrix.package(requirement.name)
    releases = admitted(package, requirement.specifier)
    builds = package.release(releases[-1]).builds if releases else ()
    variants = {build.variant: build.index_name for build in builds if build.variant}
    chosen = label if label in variants or not variants or is_default else max(variants)
    return "" if is_default and variants.get(chosen) in ("pypi", None) else chosen


def label_of_index(call: InstallerCall) -> str:
    """Return the local label of what a call takes from torch's own index: ``+cpu``; "" for none."""
    index = next((option for option in call.options if option.startswith(INDEX_OF_TORCH)), "")
    return f"+{index[len(INDEX_OF_TORCH) :]}" if index else ""


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
    is_mac = facts.value("os.platform") == "darwin"
    names = [entry.name for entry in requirements if entry.name in _FOR_CUDA]
    return f"{names[0]} is made for CUDA, which macOS does not have." if is_mac and names else ""


def _replaced_build(requirements: Sequence[Requirement], facts: Facts) -> str:
    """Of the torch of a vendor's image, with which the rest of the image was built."""
    torch = facts.value("distributions", {}).get("torch")
    if torch is None or not torch.version or not is_unindexed(torch):
        return ""
    names = [entry.name for entry in requirements if entry.name in _WITH_TORCH]
    if not names:
        return ""
    return f"torch {torch.version} is {build_of(facts)}, which the index's {names[0]} replaces."


def build_of(facts: Facts) -> str:
    """Say what build of torch is there that the index for CUDA does not have."""
    vendor = vendor_of_builds(facts)
    return f"a build for {vendor}" if vendor else "a build of no index"


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
        package = matrix.package(requirement.name)
        wanted = [
            served_here(package.release(version), facts).requires_python
            for version in admitted(package, requirement.specifier)
        ]
        if wanted and all(asked and meets(python, asked) is False for asked in wanted):
            release = f"{requirement.name} {requirement.specifier}".rstrip()
            oldest = (wanted[0] or "").replace(" ", "")
            return f"no known release of {release} is for Python {python}: take one {oldest}."
    return ""


def admitted(package: Any, specifier: str, finals: bool = True) -> List[Version]:
    """Return the known releases of a package in a range, oldest first; finals: no others."""
    try:
        wanted = VersionSet.parse(specifier)
    except InvalidSpecifier:
        return []
    releases: Tuple[Version, ...] = tuple(package.versions) if package is not None else ()
    return [entry for entry in releases if entry in wanted and not (finals and entry.is_prerelease)]
