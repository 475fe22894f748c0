"""ED3xx: what distributions require of each other and of Python."""

from __future__ import annotations

from ..matrix.tags import serves_python
from ..model.evidence import Evidence
from ..model.facts import Distribution
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import InvalidSpecifier, Version, VersionSet, parse_version, try_version
from . import requirement_lines
from .requirement_lines import Violation, meets
from .rule import Context, Rule, distribution_evidence, is_unindexed
from .torch_extensions import LINKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

__all__ = ["RULES_HERE", "WEIGHED", "accepted_edges", "requirement_sets"]

#: Engines whose binaries are compiled against one torch release: their pin on torch is a fact about
#: code.
_ENGINES = frozenset(
    [
        "vllm",
        "sglang",
        "sgl-kernel",
        "sglang-kernel",
        "lmdeploy",
        "tensorrt-llm",
        "vllm-flash-attn",
        "aphrodite-engine",
        "tgi-kernels",
    ]
)
#: Companions of torch, released with it: where they differ, they are what has to change.
_COMPANIONS = frozenset(
    ["torchvision", "torchaudio", "torchtext", "xformers", "torchcodec", "functorch"]
)
#: transformers checks these against its own requirements when it is imported, and raises
#: (dependency_versions_check.py).
_CHECKED_AT_IMPORT = frozenset(
    [
        "tokenizers",
        "huggingface-hub",
        "safetensors",
        "tqdm",
        "regex",
        "requests",
        "packaging",
        "filelock",
        "numpy",
        "pyyaml",
    ]
)
#: Whose metadata can make an error or take one back (a build of one's own is judged less surely);
#: that of all others makes warnings.
WEIGHED = _ENGINES | _COMPANIONS | _CHECKED_AT_IMPORT | {"transformers", *LINKED}
_TRANSFORMERS = Source(
    "https://github.com/huggingface/transformers/blob/main/src/transformers/dependency_versions_check.py",
    "pkgs_to_check_at_runtime: an ImportError is raised where a version does not fit",
)
_NMS = Source(
    "https://github.com/pytorch/vision#installation",
    "the table of torch and torchvision versions; RuntimeError: operator torchvision::nms does not "
    "exist",
)
_SPECIFIERS = Source(
    "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python"
)


def accepted_edges(context: Context) -> Callable[[str, str], bool]:
    """Return a test for metadata edges that a matrix row breaks on purpose, with its fix
    installed.
    """
    matrix = context.matrix
    return context.once(
        "accepted-edges",
        lambda: requirement_lines.accepted_edges(
            context.facts,
            lambda: [matrix.complete(row) for row in matrix.rows_about(context.distributions)],
        ),
    )


def requirement_sets(context: Context, found: Distribution) -> List[Tuple[str, str]]:
    """Return (name, specifier) of the requirements of one distribution that apply to this
    target.
    """
    return [
        (entry.name, entry.specifier.replace(" ", ""))
        for entry in requirement_lines.unconditional(found, context.facts, context.matrix)
    ]


class _Conflict(NamedTuple):
    component: str
    kind: str
    violations: List[Violation]


def _shown(found: Distribution) -> str:
    """The version as a message names it: what is installed, or the range that is asked for."""
    return found.version or found.constraint


def _direction(installed: Distribution, specifier: str) -> str:
    """Say on which side of a specifier a version (or a whole range) lies: too-old, too-new, or a
    release that is left out.
    """
    version = try_version(installed.version)
    try:
        wanted = VersionSet.parse(specifier)
        if version is None and installed.constraint:
            asked = VersionSet.parse(installed.constraint).intervals
            version = asked[0][0] if asked and asked[0][0] is not None else None
            if version is None and asked and asked[-1][1] is not None:
                return "too-old"  # open below and outside: it ends before what is wanted begins
    except InvalidSpecifier:
        return "conflict"
    if version is None or not wanted.intervals:
        return "conflict"
    first, last = wanted.intervals[0][0], wanted.intervals[-1][1]
    if first is not None and version < first:
        return "too-old"
    if last is not None and version >= last:
        return "too-new"
    return "bad-version"


def _all_violations(context: Context) -> List[Violation]:
    """Return the requirements that are not met, without those that a row breaks on purpose and
    those on torch's own CUDA wheels (ED205).
    """
    return context.once("violations", lambda: _find_violations(context))


def _find_violations(context: Context) -> List[Violation]:
    found = []
    accepted: Optional[Callable[[str, str], bool]] = None
    for violation in requirement_lines.violations(context.facts, context.matrix):
        name = violation.requirement.name
        if (
            violation.requirer.name == "torch"
            and name.startswith("nvidia-")
            and violation.installed is not None
        ):
            continue
        if violation.installed is not None:
            if accepted is None:
                accepted = accepted_edges(context)
            if accepted(violation.requirer.name, name):
                continue
        found.append(violation)
    return found


def _same_minor(first: Optional[str], second: str) -> bool:
    mine, its = try_version(first), try_version(second)
    return mine is not None and its is not None and mine.release[:2] == its.release[:2]


def _demands(violations: List[Violation]) -> str:
    """``vllm 0.8.5 (==2.6.0) and xformers 0.0.29 (==2.5.1)``."""
    shown = [
        f"{entry.requirer.name} {_shown(entry.requirer)}".strip()
        + f" ({entry.requirement.specifier.replace(' ', '')})"
        for entry in violations
    ]
    if len(shown) > 6:
        shown = [*shown[:5], f"{len(shown) - 5} more"]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def _packages(violations: List[Violation]) -> Tuple[str, ...]:
    """Return both ends of all requirements, what is required first."""
    required = [entry.requirement.name for entry in violations]
    return tuple(dict.fromkeys([*required, *(entry.requirer.name for entry in violations)]))


def _evidence(context: Context, violations: List[Violation]) -> Tuple[Evidence, ...]:
    found: List[Evidence] = []
    for violation in violations:
        source = distribution_evidence(context.facts, violation.requirer)
        line = f"{violation.requirement.name}{violation.requirement.specifier}"
        origin = "METADATA" if violation.from_metadata else "release metadata on the index"
        entries = [Evidence(source.source, f"{source.detail} requires {line} ({origin})")]
        if violation.installed is not None:
            entries.append(distribution_evidence(context.facts, violation.installed))
        found.extend(entry for entry in entries if entry not in found)
    return tuple(found)


def _pins(component: str, violations: List[Violation]) -> str:
    """Return one requirement that meets all, or the first where they contradict each other."""
    clauses: List[str] = []
    for violation in violations:
        for clause in violation.requirement.specifier.replace(" ", "").split(","):
            if clause and clause not in clauses:
                clauses.append(clause)
    joined = ",".join(clauses)
    try:
        meeting = VersionSet.parse(joined)
        if not meeting:
            joined = violations[0].requirement.specifier
        elif len(clauses) > 1 and len(meeting.intervals) == 1 and "==" not in joined:
            joined = str(meeting).replace(" ", "")
    except InvalidSpecifier:
        joined = violations[0].requirement.specifier
    return f"pip install '{component}{joined}'"


def check_torch_pin(context: Context) -> Iterator[Finding]:
    """The engine is built for another torch than the one installed.

    What it checks:
        The requirement of engines (vllm, sglang and their kernels) and of torch's companions
        (torchvision, torchaudio, xformers) on torch against the installed torch.

    Why it matters:
        Their binaries are compiled against one torch release; torch's C++ interface changes with
        every minor, so that they fail to load: "undefined symbol", "'_OpNamespace' '_C' object has
        no attribute", "operator torchvision::nms does not exist".

    How to fix:
        Install the torch that the engine asks for, best in one command with it; then its companions
        of the same release.

    References:
        https://github.com/vllm-project/vllm/issues/13047,
        https://github.com/pytorch/vision#installation
    """
    torch = context.distributions.get("torch")
    if torch is None:
        return
    found = [
        entry
        for entry in _all_violations(context)
        if entry.requirement.name == "torch" and entry.installed is not None
    ]
    engines: Dict[str, List[Violation]] = {}
    for entry in found:
        if entry.requirer.name in _ENGINES:
            engines.setdefault(_direction(torch, entry.requirement.specifier), []).append(entry)
    for kind, entries in engines.items():
        pins = [entry.requirement.specifier.replace(" ", "") for entry in entries]
        far = any(
            not pin.startswith("==") or not _same_minor(torch.version, pin[2:].rstrip(".*"))
            for pin in pins
        )
        exempt = is_unindexed(torch) or all(is_unindexed(entry.requirer) for entry in entries)
        yield Finding(
            code="ED304",
            component="torch",
            kind=kind,
            severity="error" if far and not exempt else "warning",
            message=(
                f"torch {_shown(torch)} is installed, but {_demands(entries)} "
                f"{'is' if len(entries) == 1 else 'are'} built for another one"
            )
            + ("." if far else ", of the same minor: this mostly works."),
            evidence=_evidence(context, entries),
            sources=(
                Source(
                    f"package metadata of {entries[0].requirer.name} {entries[0].requirer.version}",
                    f"torch{pins[0]}",
                ),
            ),
            remedies=(
                Remedy(
                    "Install the torch that it is built for, together with it.",
                    (
                        (
                            "pip install "
                            f"'{entries[0].requirer.name}=={_public(entries[0].requirer)}' "
                            f"'torch{pins[0]}'"
                        ),
                    ),
                ),
            ),
            packages=_packages(entries),
        )
    for entry in found:
        name = entry.requirer.name
        if name not in _COMPANIONS:
            continue
        pin = entry.requirement.specifier.replace(" ", "")
        far = not pin.startswith("==") or not _same_minor(torch.version, pin[2:].rstrip(".*"))
        exempt = is_unindexed(torch) or is_unindexed(entry.requirer)
        yield Finding(
            code="ED304",
            component=name,
            kind="version-mismatch",
            severity="error"
            if far and not exempt and name == "torchvision"
            else "warning"
            if far
            else "advice",
            message=(
                f"{name} {entry.requirer.version} is built for torch{pin}, but torch "
                f"{_shown(torch)} is installed"
            )
            + (": importing it fails." if far and name == "torchvision" else "."),
            evidence=_evidence(context, [entry]),
            sources=(_NMS,)
            if name == "torchvision"
            else (Source(f"package metadata of {name} {entry.requirer.version}", f"torch{pin}"),),
            remedies=(
                Remedy(
                    "It goes with torch: once torch is the engine's, install its companion of the "
                    "same release."
                )
                if engines
                else Remedy(
                    f"Install the release of {name} that belongs to torch {_shown(torch)}.",
                    (f"pip install --upgrade '{name}' 'torch=={_public(torch)}'",),
                ),
            ),
            packages=_packages([entry]),
        )


def _public(found: Distribution) -> str:
    version = try_version(found.version)
    return version.public if version is not None else found.version or ""


def check_requirements(context: Context) -> Iterator[Finding]:
    """The metadata of installed distributions contradict each other.

    What it checks:
        Every requirement of installed distributions without extras, from their own METADATA or,
        where that was not read, from the metadata of the release; markers are evaluated for the
        target. What a known fix overrides on purpose is accepted.

    Why it matters:
        A package outside what another one asks for may fail at import or at run time. Many such
        pins are only cautious, so this is a warning, and an error only where the requirer itself
        checks the version and stops.

    How to fix:
        Install a version that all of them accept, or update the one that asks for the old one.

    References:
        https://packaging.python.org/en/latest/specifications/core-metadata/#requires-dist-multiple-use
    """
    groups: Dict[Tuple[str, str], _Conflict] = {}
    for entry in _all_violations(context):
        if entry.installed is None:
            continue
        requirer, name = entry.requirer, entry.requirement.name
        side = _direction(entry.installed, entry.requirement.specifier)
        if name == "torch":
            if requirer.name in _ENGINES or requirer.name in _COMPANIONS:
                continue  # ED304
            # torch is what everything else is chosen for: the one that does not fit it is to
            # change.
            component, kind = (
                requirer.name,
                {"too-old": "too-new", "too-new": "too-old"}.get(side, "version-mismatch"),
            )
        else:
            component, kind = name, side
        groups.setdefault((component, kind), _Conflict(component, kind, [])).violations.append(
            entry
        )
    for conflict in groups.values():
        entries = conflict.violations
        about_torch = entries[0].requirement.name == "torch"
        installed = entries[0].installed
        stops = (
            any(
                entry.requirer.name == "transformers"
                and entry.requirement.name in _CHECKED_AT_IMPORT
                for entry in entries
            )
            and not about_torch
        )
        if about_torch:
            message = (
                f"{_demands(entries)} asks for another torch than the "
                f"{_shown(installed) if installed else ''} that is installed."
            )
            remedy = Remedy(
                f"Install a release of {conflict.component} for torch "
                f"{_shown(installed) if installed else ''}.",
                (),
            )
        else:
            message = (
                (
                    f"{conflict.component} {_shown(installed) if installed else ''} is not what "
                    f"{_demands(entries)} "
                )
                + ("requires" if len(entries) == 1 else "require")
                + (", and transformers stops at import." if stops else ".")
            )
            remedy = Remedy(
                f"Install a version of {conflict.component} that meets the requirement.",
                (_pins(conflict.component, entries),),
            )
        yield Finding(
            code="ED301",
            component=conflict.component,
            kind=conflict.kind,
            severity="error"
            if stops and installed is not None and not is_unindexed(installed)
            else "warning",
            message=message,
            evidence=_evidence(context, entries),
            sources=(_TRANSFORMERS,)
            if stops
            else (
                Source(
                    f"package metadata of {entries[0].requirer.name} {entries[0].requirer.version}",
                    f"{entries[0].requirement.name}{entries[0].requirement.specifier}",
                ),
            ),
            remedies=(remedy,),
            packages=_packages(entries),
        )


def check_missing_requirements(context: Context) -> Iterator[Finding]:
    """A distribution that another one requires is not installed.

    What it checks:
        Every requirement without extras whose marker holds for the target, in an environment that
        was read whole.

    Why it matters:
        The requirer fails when it imports the missing one, often long after the start.

    How to fix:
        Install it, or reinstall the requirer with its requirements.

    References:
        https://packaging.python.org/en/latest/specifications/core-metadata/#requires-dist-multiple-use
    """
    if any(found.build for found in context.distributions.values()):
        # conda calls some packages by other names (pytorch), so a missing name proves nothing
        return
    missing: Dict[str, List[Violation]] = {}
    for entry in _all_violations(context):
        if entry.installed is None and not is_unindexed(entry.requirer):
            missing.setdefault(entry.requirement.name, []).append(entry)
    for name, entries in sorted(missing.items()):
        requirers = [
            f"{entry.requirer.name} {entry.requirer.version or ''}".strip() for entry in entries
        ]
        shown = ", ".join(requirers[:5]) + (
            f" and {len(requirers) - 5} more" if len(requirers) > 5 else ""
        )
        yield Finding(
            code="ED302",
            component=name,
            kind="missing",
            severity="warning",
            message=f"{name} is not installed, although {shown} "
            f"{'requires' if len(requirers) == 1 else 'require'} it.",
            evidence=_evidence(context, entries[:5]),
            sources=(
                Source(
                    f"package metadata of {requirers[0]}",
                    f"{name}{entries[0].requirement.specifier}",
                ),
            ),
            remedies=(Remedy(f"Install {name}.", (_pins(name, entries),)),),
            packages=_packages(entries),
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
    known = frozenset(context.matrix.package_names)
    sides: Dict[str, List[Tuple[Distribution, str]]] = {}
    for found in context.distributions.values():
        wanted = found.requires_python or _released_for(context, found, known)
        if not wanted or _simply_met(python, wanted) or meets(python, wanted) is not False:
            continue
        sides.setdefault(_direction(Distribution("python", str(python)), wanted), []).append(
            (found, wanted)
        )
    for kind, entries in sides.items():
        demands = [
            f"{found.name} {found.version or ''}".strip() + f" ({wanted.replace(' ', '')})"
            for found, wanted in entries
        ]
        shown = ", ".join(demands[:5]) + (
            f" and {len(demands) - 5} more" if len(demands) > 5 else ""
        )
        # What lies in site-packages was installed somehow; what is only named in a file or a report
        # cannot be.
        named_only = any(not found.location and found.installer == "" for found, _ in entries)
        yield Finding(
            code="ED303",
            component="python",
            kind=kind if kind in ("too-old", "too-new") else "bad-version",
            severity="error" if named_only else "warning",
            message=f"Python {python} is {_SIDES.get(kind, 'not')} for {shown}.",
            evidence=(
                *context.evidence("python.version"),
                *(distribution_evidence(context.facts, found) for found, _ in entries[:5]),
            ),
            sources=(
                _SPECIFIERS,
                Source(
                    (
                        f"package metadata of {entries[0][0].name} {entries[0][0].version or ''}"
                    ).strip(),
                    f"Requires-Python: {entries[0][1]}",
                ),
            ),
            remedies=(
                Remedy(
                    f"Use a Python that meets {entries[0][1]}.",
                    (f"uv venv --python '{entries[0][1].replace(' ', '')}'",),
                ),
            ),
            packages=tuple(found.name for found, _ in entries),
        )


_SIDES = {"too-old": "too old", "too-new": "too new"}


def _simply_met(python: Version, wanted: str) -> bool:
    """Answer the usual ``>=3.8`` without making a version set."""
    if wanted.startswith(">=3.") and wanted[4:].isdigit():
        return (
            python.release[0] == 3
            and len(python.release) > 1
            and python.release[1] >= int(wanted[4:])
        )
    return False


def _released_for(context: Context, found: Distribution, known: FrozenSet[str]) -> Optional[str]:
    """Return Requires-Python of the release in the matrix; of the newest release that has one where
    the version is not known.

    Without a version, only a Python that no release supports says anything: the widest range
    counts.
    """
    if found.name not in known or is_unindexed(found):
        return None
    package = context.matrix.package(found.name)
    if package is None:
        return None
    version = try_version(found.version)
    if version is None:
        return None
    release = package.release(version)
    return (
        requirement_lines.served_here(release, context.facts).requires_python
        if release is not None
        else None
    )


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
    known = frozenset(context.matrix.package_names)
    for found in context.distributions.values():
        version = try_version(found.version)
        if found.location or found.name not in known or version is None or is_unindexed(found):
            continue
        package = context.matrix.package(found.name)
        release = package.release(version) if package is not None else None
        if (
            release is None
            or not release.pythons
            or release.sdist_only
            or (version.local is not None)
        ):
            continue
        if any(serves_python(tag, python) for tag in release.pythons):
            continue
        served = sorted(
            {_tag_version(tag) for tag in release.pythons if _tag_version(tag) is not None},
            key=lambda entry: parse_version(str(entry)),
        )
        kind = "too-new" if served and python > parse_version(str(served[-1])) else "too-old"
        yield Finding(
            code="ED305",
            component="python",
            kind=kind,
            severity="warning",
            subject=found.name,
            message=f"{found.name} {found.version} has no wheel for Python {python}; there are "
            f"wheels for {', '.join(map(str, served)) or 'none'}.",
            evidence=(
                *context.evidence("python.version"),
                distribution_evidence(context.facts, found),
            ),
            sources=(
                Source(
                    f"files of {found.name} {found.version} on the index", " ".join(release.pythons)
                ),
            ),
            remedies=(
                Remedy(
                    f"Use Python {served[-1]}." if served else "Use another release.",
                    (f"uv venv --python {served[-1]}",) if served else (),
                ),
            ),
            packages=(found.name,),
        )


def _tag_version(tag: str) -> Optional[str]:
    digits = tag.split("-")[0][2:]
    if not digits.isdigit():
        return None
    return digits[0] + ("." + digits[1:] if len(digits) > 1 else "")


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED304",
        "engine-torch",
        "version-mismatch",
        "The engine is built for another torch",
        check_torch_pin,
        half="environment",
    ),
    Rule(
        "ED301",
        "requirements",
        "conflict",
        "Metadata of installed distributions contradict each other",
        check_requirements,
        half="environment",
    ),
    Rule(
        "ED302",
        "missing-requirements",
        "missing",
        "A required distribution is not installed",
        check_missing_requirements,
        half="environment",
    ),
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
