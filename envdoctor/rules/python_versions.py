"""ED3xx: which Python distributions are for."""

from __future__ import annotations

from ..matrix.tags import serves_python
from ..model.facts import PLANNED, Distribution
from ..model.finding import Finding, Remedy
from ..model.row import Source
from ..model.sizes import whole_number
from ..model.versions import Version, parse_version, try_version
from . import requirement_lines
from .packages import FEW, SIDES, first_of
from .requirement_lines import direction, meets
from .rule import Context, Rule, distribution_evidence, is_unindexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple

    from ..matrix.tables import Package, Release

__all__ = ["RULES_HERE", "tag_version"]

_MOST = 0.5  # of the releases that a statement allows
_SPECIFIERS = Source(
    "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python"
)


def check_python(context: Context) -> Iterator[Finding]:
    """Python is outside what a distribution supports.

    What it checks:
        Requires-Python of each distribution, from its METADATA or from the metadata of the release,
        against the target's Python.

    Why it matters:
        Installers refuse the release, or pick an old one without saying so; where it was forced in,
        code may not even compile.

    How to fix:
        Use a Python version that all of them support.

    References:
        https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python
    """
    python = context.fact_version("python.version")
    if python is None:
        return
    known = context.matrix.packages_known
    sides: Dict[str, List[Tuple[Distribution, str]]] = {}
    for distribution in context.distributions.values():
        wanted = distribution.requires_python or _released_for(context, distribution, known)
        if wanted is None and distribution.version is None and distribution.name in known:
            yield from _most_refuse(context, python, distribution)
        if not wanted or meets(python, wanted) is not False:
            continue
        sides.setdefault(direction(Distribution("python", str(python)), wanted), []).append(
            (distribution, wanted)
        )
    for kind, entries in sides.items():
        yield _python_finding(context, python, kind, entries)


def _most_refuse(
    context: Context, python: Version, distribution: Distribution
) -> Iterator[Finding]:
    """Judge a release that nobody names: by what all, or most, of those that may be meant ask. Of a
    name alone, and of a range that begins somewhere, an installer takes what has a wheel for this
    Python; of one that only ends the newest are meant.
    """
    from .quantified import releases_meant, share_of

    releases = releases_meant(context, distribution)

    def refuses(release: Release) -> bool:
        wanted = requirement_lines.served_here(release, context.facts).requires_python
        return wanted is not None and meets(python, wanted) is False

    stated = distribution.constraint
    is_open = not stated or ">" in stated or "~=" in stated
    if is_open and any(
        not refuses(meant.release)
        and any(serves_python(tag, python) for tag in meant.release.pythons)
        for meant in releases
    ):
        return
    share = share_of(releases, refuses)
    if share <= _MOST:
        return
    newest = next(meant.release for meant in releases if refuses(meant.release))
    wanted = requirement_lines.served_here(newest, context.facts).requires_python or ""
    kind = direction(Distribution("python", str(python)), wanted)
    finding = _python_finding(context, python, kind, [(distribution, wanted)])
    if share < 1:
        yield finding._replace(
            severity="warning",
            message=f"Python {python} is {SIDES.get(kind, 'not')} for most releases of "
            f"{distribution.name} {stated or 'that may be meant'}: the newest ask for {wanted}.",
        )
    else:
        yield finding


def _python_finding(
    context: Context, python: Version, kind: str, entries: Sequence[Tuple[Distribution, str]]
) -> Finding:
    """Say that Python lies on one side of what distributions ask for, each with its specifier."""
    first, wanted = entries[0]
    demands = [
        f"{entry.name} {entry.version or ''}".strip() + f" ({specifier.replace(' ', '')})"
        for entry, specifier in entries
    ]
    # What lies in site-packages was installed somehow; what is only named in a file or a report
    # cannot be.
    named_only = any(
        not entry.location and entry.installer in ("", PLANNED) for entry, _ in entries
    )
    return Finding(
        code="ED303",
        component="python",
        kind=kind if kind in SIDES else "bad-version",
        severity="error" if named_only else "warning",
        message=f"Python {python} is {SIDES.get(kind, 'not')} for {first_of(demands)}.",
        evidence=(
            *context.evidence("python.version"),
            *(distribution_evidence(context.facts, entry) for entry, _ in entries[:FEW]),
        ),
        sources=(
            _SPECIFIERS,
            Source(
                f"package metadata of {first.name} {first.version or ''}".strip(),
                f"Requires-Python: {wanted}",
            ),
        ),
        remedies=(
            Remedy(
                f"Use a Python that meets {wanted}.",
                (f"uv venv --python '{wanted.replace(' ', '')}'",),
            ),
        ),
        packages=tuple(entry.name for entry, _ in entries),
    )


def _released_for(
    context: Context, distribution: Distribution, known: FrozenSet[str]
) -> Optional[str]:
    """Return Requires-Python of the release in the matrix; None where the version is not known."""
    if distribution.name not in known or is_unindexed(distribution):
        return None
    version = try_version(distribution.version)
    package = context.matrix.package(distribution.name)
    if version is None or package is None:
        return None
    release = package.release(version)
    if release is None:
        return None
    return requirement_lines.served_here(release, context.facts).requires_python


def check_wheels(context: Context) -> Iterator[Finding]:
    """A release that is asked for has no wheel for this Python.

    What it checks:
        The wheel tags of a release that a file or a report names, without an installed copy,
        against the target's Python.

    Why it matters:
        pip builds from source, which for CUDA packages takes long and needs a toolkit, or refuses:
        "no matching distribution found".

    How to fix:
        Use a Python version that has a wheel, or another release.

    References:
        https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    python = context.fact_version("python.version")
    if python is None or len(python.release) < 2:
        return
    known = context.matrix.packages_known
    for distribution in context.distributions.values():
        if distribution.location or distribution.name not in known:
            continue
        release = _release_on_index(context, distribution)
        if release is None or not release.pythons or release.sdist_only:
            continue
        if not any(serves_python(tag, python) for tag in release.pythons):
            yield _wheels_finding(context, python, distribution, release.pythons)


def _release_on_index(context: Context, distribution: Distribution) -> Optional[Release]:
    """Return the release that a distribution is, unless it is a build that the index lacks."""
    version = try_version(distribution.version)
    if version is None or version.local is not None or is_unindexed(distribution):
        return None
    package: Optional[Package] = context.matrix.package(distribution.name)
    return package.release(version) if package is not None else None


def _wheels_finding(
    context: Context, python: Version, distribution: Distribution, tags: Sequence[str]
) -> Finding:
    title = f"{distribution.name} {distribution.version}"
    served = sorted(set(filter(None, map(tag_version, tags))))
    newest = served[-1] if served else None
    return Finding(
        code="ED305",
        component="python",
        kind="too-new" if newest is not None and python > newest else "too-old",
        severity="warning",
        subject=distribution.name,
        message=f"{title} has no wheel for Python {python}; there are wheels for "
        f"{', '.join(map(str, served)) or 'none'}.",
        evidence=(
            *context.evidence("python.version"),
            distribution_evidence(context.facts, distribution),
        ),
        sources=(Source(f"files of {title} on the index", " ".join(tags)),),
        remedies=(
            Remedy(f"Use Python {newest}.", (f"uv venv --python {newest}",))
            if newest is not None
            else Remedy("Use another release.", ()),
        ),
        packages=(distribution.name,),
    )


def tag_version(tag: str) -> Optional[Version]:
    """Return the Python of a tag: 3.12 of ``cp312-cp312``, 3 of ``py3``; None for any other."""
    digits = tag.split("-")[0][2:]
    if whole_number(digits) is None:
        return None
    return parse_version(digits[0] + ("." + digits[1:] if len(digits) > 1 else ""))


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED303",
        "python-version",
        "too-new",
        "Python is outside what a distribution supports",
        check_python,
        half="environment",
    ),
    Rule(
        "ED305",
        "wheels-for-python",
        "too-new",
        "A release has no wheel for this Python",
        check_wheels,
        half="environment",
    ),
)
