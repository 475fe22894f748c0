"""ED310: wheel files against the Python, the machine and the glibc that are to take them; ED311:
releases that have no wheel for the platform.
"""

from __future__ import annotations

from ..matrix.tags import glibc_for, serves_python
from ..model.calls import InstallerCall
from ..model.facts import Distribution
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import try_version
from .python_versions import tag_version
from .requirement_lines import unconditional
from .rule import Context, Rule, distribution_evidence, is_unindexed, minor_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List, Optional, Sequence, Set, Tuple

    from ..matrix.tables import Release
    from ..model.facts import Facts
    from ..model.versions import Version

__all__ = [
    "RULES_HERE",
    "place_without_wheels",
    "platform_words",
    "serves_platform",
    "ways_without_wheels",
]

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


#: Of a platform of ``sys.platform``: what people call it, and what runs what is for Linux there.
_ELSEWHERE = {
    "win32": ("Windows", "Use WSL 2, where the wheels for Linux work."),
    "darwin": ("macOS", "Use a machine with Linux."),
}


def check_platform_wheels(context: Context) -> Iterator[Finding]:
    """A package has no wheel for this operating system, processor or glibc.

    What it checks:
        The platform tags of all files of the releases that may be meant, for each distribution
        that a report only names, or says is missing, and of what all of these releases require,
        against the target's operating system, processor and glibc. What was seen installed got
        there somehow.

    Why it matters:
        pip says "no matching distribution found", takes a release of years ago, or builds from
        source what needs a compiler and a CUDA toolkit, if it can be built there at all.

    How to fix:
        Use a release that has wheels for the platform, or a platform that they are for.

    References:
        https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    if not platform_words(context.facts):
        return
    known = context.matrix.packages_known
    for distribution in _only_named(context):
        if distribution.name not in known or is_unindexed(distribution):
            continue
        releases = _releases_meant(context, distribution)
        if releases and not any(serves_platform(entry, context.facts) for _, entry in releases):
            yield _unserved(context, distribution, releases)
        for name in _required_in_vain(context, distribution, releases):
            yield _without_requirement(context, distribution, name)


def _required_in_vain(
    context: Context, distribution: Distribution, releases: Sequence[Tuple[Version, Release]]
) -> List[str]:
    """Return what every release that may be meant requires here, and no release of has a wheel for
    this platform.
    """
    asked: Optional[Set[str]] = None
    for version, _ in releases:
        meant = Distribution(distribution.name, str(version))
        names = {entry.name for entry in unconditional(meant, context.facts, context.matrix)}
        asked = names if asked is None else asked & names
        if not asked:
            break
    return [
        name
        for name in sorted(asked or ())
        if name not in context.distributions and place_without_wheels(context, name)
    ]


def _without_requirement(context: Context, distribution: Distribution, name: str) -> Finding:
    place = platform_words(context.facts)
    whose = f"{distribution.name} {distribution.version or ''}".strip()
    every = "" if distribution.version else " in every release"
    return Finding(
        code="ED311",
        component=name,
        kind="unsupported",
        severity="warning",
        effect="may-block",
        message=f"{whose} requires {name}{every}, of which no release has a wheel for {place}.",
        evidence=context.evidence("os.platform", "os.architecture", "distributions.absent"),
        sources=(Source(f"package metadata of {distribution.name}", name), _TAGS),
        remedies=ways_without_wheels(context, name),
        packages=(distribution.name, name),
    )


def _only_named(context: Context) -> List[Distribution]:
    """Return what the sentences and commands of a report alone name, and what they say is missing:
    what a tool's list has as not installed nobody misses.
    """
    said = context.facts.value("distributions.said", ())
    named = [context.distributions.get(name) for name in said]
    missing = context.facts.value("distributions.absent", ())
    return [
        *(entry for entry in named if entry is not None and not entry.location and not entry.tags),
        *(Distribution(name, None) for name in missing if name in said),
    ]


def _releases_meant(context: Context, distribution: Distribution) -> List[Tuple[Version, Release]]:
    """Return the releases that a name, a range or a version may mean, newest first; none where
    wheels of one of them are not known.
    """
    package = context.matrix.package(distribution.name)
    version = try_version(distribution.version)
    if package is None or (version is not None and version.local is not None):
        return []
    if distribution.version is not None:
        release = package.release(version) if version is not None else None
        meant = [(version, release)] if version is not None and release is not None else []
    else:
        from .quantified import releases_in

        everything = reversed([pair for pair in package.releases() if not pair[0].is_prerelease])
        meant = releases_in(context.matrix, distribution) or list(everything)
    return [pair for pair in meant if pair[1].platforms]


def serves_platform(release: Release, facts: Facts) -> bool:
    """Tell whether a wheel of a release is for a platform, and its glibc where that is known; of
    macOS either processor counts where nothing tells which it is.
    """
    platform = facts.value("os.platform") or "linux"
    machine = facts.value("os.architecture") or "x86_64"
    glibc = _glibc(facts)
    tags = [tag for tags in release.platforms for tag in tags.split(".")]
    if platform == "darwin" and facts.value("os.architecture") is not None:
        processor = "x86_64" if machine == "x86_64" else "arm64"
        tags = [tag for tag in tags if tag == "any" or tag.endswith((processor, "universal2"))]
    floors = [glibc_for(tag, platform, machine) for tag in tags]
    return any(floor is not None and (glibc is None or floor <= glibc) for floor in floors)


def _glibc(facts: Facts) -> Optional[Version]:
    return try_version(facts.value("glibc.version"))


def platform_words(facts: Facts) -> str:
    """Return what a platform is called for which not all packages have wheels; "" for Linux on
    x86_64 of which the glibc is not known, or where nothing is known.
    """
    platform = facts.value("os.platform")
    machine = facts.value("os.architecture")
    if platform in _ELSEWHERE:
        on = f" on {machine}" if platform == "darwin" and machine == "x86_64" else ""
        return f"{_ELSEWHERE[platform][0]}{on}"
    if (platform or "linux") != "linux":
        return ""
    glibc = _glibc(facts)
    beside = f" with glibc {glibc}" if glibc is not None else ""
    if machine == "aarch64":
        return f"Linux on {machine}{beside}"
    return f"Linux{beside}" if beside else ""


def place_without_wheels(context: Context, name: str) -> str:
    """Return what the platform here is called where no release of a package has a wheel for it; ""
    where one has, where that is not known, or where its newest release is a source archive alone,
    which is built everywhere.
    """
    place = platform_words(context.facts)
    releases = _releases_meant(context, Distribution(name, None)) if place else ()
    if not releases or _is_built(context.matrix.package(name)):
        return ""
    served = any(serves_platform(entry, context.facts) for _, entry in releases)
    return "" if served else place


def _is_built(package: Any) -> bool:
    """Tell whether the newest final release of a package is a source archive alone."""
    finals = [version for version in package.versions if not version.is_prerelease]
    newest = package.release(finals[-1]) if finals else None
    return newest is not None and newest.sdist and not newest.platforms


def _unserved(
    context: Context,
    distribution: Distribution,
    releases: Sequence[Tuple[Version, Release]],
) -> Finding:
    name, place = distribution.name, platform_words(context.facts)
    newest, release = releases[0]
    meant = f"{name} {distribution.version}" if distribution.version else f"No release of {name}"
    has = "has no" if distribution.version else "has a"
    source = " pip builds it from source, where that can be built." if release.sdist else ""
    return Finding(
        code="ED311",
        component=name,
        kind="unsupported",
        severity="warning",
        effect="may-block",
        message=f"{meant} {has} wheel for {place} on the index.{source}",
        evidence=(
            *context.evidence("os.platform", "os.architecture", "glibc.version"),
            *(
                (distribution_evidence(context.facts, distribution),)
                if name in context.distributions
                else context.evidence("distributions.absent")
            ),
        ),
        sources=(
            Source(f"files of {name} {newest} on the index", " ".join(release.platforms)),
            _TAGS,
        ),
        remedies=ways_without_wheels(context, name),
        packages=(name,),
    )


def ways_without_wheels(context: Context, name: str) -> Tuple[Remedy, ...]:
    """Return what to do where a package has no wheel for the platform here: what others build for
    it, a release that has one, another system.
    """
    from .addressing import NAMED_OTHERWISE

    platform, place = context.facts.value("os.platform"), platform_words(context.facts)
    way = _ELSEWHERE[platform][1] if platform in _ELSEWHERE else ""
    package = context.matrix.package(name)
    served = [
        version
        for version, entry in (package.releases() if package is not None else ())
        if not version.is_prerelease and serves_platform(entry, context.facts)
    ]
    other = NAMED_OTHERWISE.get(platform, {}).get(name)
    ways = [Remedy(way)] if way else []
    if other:
        call = InstallerCall("install", (other,))
        ways.insert(0, Remedy(f"Install {other}, which others build for {place}.", (call,)))
    elif served:
        words = f"Install {name} {served[-1]}, the newest with a wheel for {place}."
        call = InstallerCall("install", (f"{name}=={served[-1]}",))
        ways.insert(0, Remedy(words, (call,)))
    return tuple(ways)


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED310",
        "wheel-tags",
        "unsupported",
        "A wheel file is for another Python, machine or glibc",
        check_wheel_tags,
        half="environment",
    ),
    Rule(
        "ED311",
        "wheels-for-platform",
        "unsupported",
        "A package has no wheel for this operating system, processor or glibc",
        check_platform_wheels,
        half="environment",
    ),
)
