"""ED310: wheel files against the Python, the machine and the glibc that are to take them."""

from __future__ import annotations

from ..matrix.tags import glibc_for, serves_python
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.row import Source
from .python_versions import tag_version
from .rule import Context, Rule, distribution_evidence, minor_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Optional, Sequence, Tuple

    from ..model.facts import Distribution
    from ..model.versions import Version

__all__ = ["RULES_HERE"]

_TAGS = Source(
    "https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",
    "a wheel is installed where one of its tags is among those of the interpreter",
)
_MACHINES = ("x86_64", "aarch64", "ppc64le", "s390x")


class _Tag(NamedTuple):
    """One tag of a wheel, as its interpreter and ABI, and its platform."""

    python: str  # cp312-cp312
    platform: str  # manylinux_2_35_x86_64


def check_wheel_tags(context: Context) -> Iterator[Finding]:
    """A wheel file is for another Python, machine or glibc.

    What it checks:
        The tags in the names of wheel files that a text or a requirement names, without an
        installed copy: against the target's Python, architecture and glibc.

    Why it matters:
        pip refuses it: "is not a supported wheel on this platform".

    How to fix:
        Take the wheel whose tags fit, or a Python or an image that fits the wheel.

    References:
        https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    if context.facts.value("os.platform", "linux") != "linux":
        return
    for distribution in context.distributions.values():
        tags = _tags_of(distribution)
        if not tags or distribution.location:
            continue
        for finding in (_python_of(context, tags), _machine_of(context, distribution, tags)):
            if finding is not None:
                yield _refused(context, distribution, finding)


def _tags_of(distribution: Distribution) -> List[_Tag]:
    """Return the tags of a distribution's wheels, those that dots join one by one."""
    tags = []
    for text in distribution.tags:
        parts = text.split("-")
        if len(parts) == 3:
            pythons, abis, platforms = (part.split(".") for part in parts)
            tags += [
                _Tag(f"{python}-{abi}", platform)
                for python in pythons
                for abi in abis
                for platform in platforms
            ]
    return tags


def _python_of(context: Context, tags: Sequence[_Tag]) -> Optional[Finding]:
    python = context.fact_version("python.version")
    if python is None or len(python.release) < 2:
        return None
    served = sorted(filter(None, {tag_version(tag.python) for tag in tags}))
    if not served or any(serves_python(tag.python, python) for tag in tags):
        return None
    return Finding(
        code="ED310",
        component="python",
        kind="too-new" if python > served[-1] else "too-old",
        severity="warning",
        message=f"Python {', '.join(map(str, served))}, but this is Python {python}",
        evidence=context.evidence("python.version"),
        remedies=(Remedy(f"Take the wheel for Python {minor_text(python)}."),),
    )


def _machine_of(
    context: Context, distribution: Distribution, tags: Sequence[_Tag]
) -> Optional[Finding]:
    machine = context.facts.value("os.architecture")
    machines = sorted({_machine(tag.platform) for tag in tags} - {""})
    if machine is not None and machines and machine not in machines:
        if any(tag.platform == "any" for tag in tags):
            return None
        return Finding(
            code="ED310",
            component=distribution.name,
            kind="unsupported",
            severity="warning",
            message=f"{', '.join(machines)}, but this machine is {machine}",
            evidence=context.evidence("os.architecture"),
            remedies=(Remedy(f"Take the wheel for {machine}, or build it on this machine."),),
        )
    return _glibc_of(context, tags, machine)


def _glibc_of(context: Context, tags: Sequence[_Tag], machine: Optional[str]) -> Optional[Finding]:
    glibc = context.fact_version("glibc.version")
    needs = [glibc_for(tag.platform, "linux", machine or _machine(tag.platform)) for tag in tags]
    floors: List[Version] = [floor for floor in needs if floor is not None]
    if glibc is None or not floors or glibc >= min(floors):
        return None
    return Finding(
        code="ED310",
        component="glibc",
        kind="too-old",
        severity="warning",
        message=f"glibc {min(floors)} or newer, but this system has {glibc}",
        evidence=context.evidence("glibc.version"),
        remedies=(
            Remedy(
                f"Take a wheel whose manylinux tag asks for no more than {glibc}, or build it on "
                "this system."
            ),
            Remedy(f"Or use an image with glibc {min(floors)} or newer.", (), "changes-host"),
        ),
    )


def _machine(platform: str) -> str:
    """Return the architecture that a tag of Linux ends in, "" for any other."""
    if not platform.startswith(("linux_", "manylinux")):
        return ""
    return next((name for name in _MACHINES if platform.endswith(f"_{name}")), "")


def _refused(context: Context, distribution: Distribution, finding: Finding) -> Finding:
    """Complete a finding whose message says what the wheel is for, and what is here."""
    name = f"{distribution.name} {distribution.version or ''}".strip()
    return finding._replace(
        subject=distribution.name,
        effect="may-block",
        message=f"The wheel of {name} ({', '.join(distribution.tags)}) is for {finding.message}: "
        "pip refuses it.",
        evidence=(*finding.evidence, distribution_evidence(context.facts, distribution)),
        sources=(_TAGS,),
        packages=(distribution.name,),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED310",
        "wheel-tags",
        "unsupported",
        "A wheel file is for another Python, machine or glibc",
        check_wheel_tags,
        half="environment",
    ),
)
