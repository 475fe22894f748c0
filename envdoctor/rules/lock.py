"""ED306, ED307: an environment and a machine against a lock."""

from __future__ import annotations

import os

from ..model.calls import OwnCall
from ..model.evidence import Absent, Evidence, Unknown
from ..model.finding import Finding, Gap, Remedy
from ..model.versions import canonicalize_name, meets_pin, parse_version, try_version
from .driver import gpu_sign
from .rule import Context, Rule, distribution_evidence, minor_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Optional, Tuple

__all__ = ["RULES_HERE"]

_MOST = 10

#: What a lock requires a lowest version of: its name there, the fact, component and name here.
_FLOORS = (
    ("driver", "driver.release", "nvidia-driver", "NVIDIA driver"),
    ("glibc", "glibc.version", "glibc", "glibc"),
)
_ANOTHER_LOCK = Remedy(
    "Make a lock that also fits this machine: envdoctor lock with --target for each kind of "
    "machine."
)


def check_lock_pins(context: Context) -> Iterator[Finding]:
    """What is installed differs from the lock.

    What it checks:
        With ``--lock DIR`` of check, bake and entrypoint: every pin of ``envdoctor.lock.json``
        against the installed version. A pin without a local label is met by any build of that
        version. What is missing counts only in an environment that was read whole.

    Why it matters:
        The lock was resolved and judged as a whole for its targets. What was asked for and is not
        installed is an error; another version may well work, but nobody has tried it.

    How to fix:
        ``envdoctor fix --lock DIR`` shows what to change, and changes it with ``--apply``.

    References:
        https://packaging.python.org/en/latest/specifications/version-specifiers/#version-matching
    """
    pins: Mapping[str, str] = context.facts.value("lock.pins", {})
    missing: List[str] = []
    differing: Dict[str, str] = {}
    for name in sorted(pins):
        installed = context.distributions.get(name)
        if installed is None:
            missing.append(name)
        elif installed.version is not None and not meets_pin(installed.version, pins[name]):
            differing[name] = installed.version
    if context.facts.value("distributions.complete"):
        yield from _missing_pins(context, pins, missing)
    yield from _other_versions(context, pins, differing)


def _missing_pins(
    context: Context, pins: Mapping[str, str], missing: List[str]
) -> Iterator[Finding]:
    """Judge pins of which nothing is installed: what the lock was asked for is an error each."""
    asked = {canonicalize_name(_name(text)) for text in context.facts.value("lock.asked", ())}
    unasked = []
    for name in missing:
        if name not in asked:
            unasked.append(name)
            continue
        message = f"{name} is not installed; the lock was made for it and pins {pins[name]}."
        yield _finding(context, name, "missing", "error", message, packages=(name,))
    if unasked:
        names = _enumerated([f"{name} {pins[name]}" for name in unasked])
        message = f"{names} of the lock {'is' if len(unasked) == 1 else 'are'} not installed."
        yield _finding(context, unasked[0], "missing", "warning", message, packages=tuple(unasked))


def _other_versions(
    context: Context, pins: Mapping[str, str], differing: Mapping[str, str]
) -> Iterator[Finding]:
    """Judge pins of which another version is installed: one finding each, one for all the rest."""
    names = list(differing)
    for name in names[:_MOST]:
        message = f"{name} {differing[name]} is installed, but the lock pins {pins[name]}."
        yield _finding(context, name, "version-mismatch", "warning", message, packages=(name,))
    rest = names[_MOST:]
    if rest:
        shown = _enumerated([f"{name} {differing[name]} (pinned: {pins[name]})" for name in rest])
        message = f"These differ from the lock, too: {shown}."
        yield _finding(
            context, rest[0], "version-mismatch", "warning", message, packages=tuple(rest)
        )


def _enumerated(names: List[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def check_lock_machine(context: Context) -> Iterator[Finding]:
    """The machine does not meet the lock's requirements.

    What it checks:
        With ``--lock DIR`` of check, bake and entrypoint: driver and glibc are not below what the
        pins require, the GPUs are among those that the pins have code for, Python, platform and
        architecture are those of the lock. Where driver or glibc are not known, that is
        undetermined. A machine without a driver and without a sign of a GPU may be one where an
        image is built: a warning.

    Why it matters:
        The pins were chosen for machines that have at least that.

    How to fix:
        Make a lock for this machine: ``envdoctor lock``, with ``--target`` for each kind of machine
        that shares it.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    required: Mapping[str, str] = context.facts.value("lock.requires", {})
    if not required:
        return
    for key, field, component, name in _FLOORS:
        if try_version(required.get(key)) is not None:
            yield from _below_floor(context, field, component, name, required[key])
    yield from _other_python(context, required.get("python"))
    for key, field in (("platform", "os.platform"), ("architecture", "os.architecture")):
        value = context.facts.value(field)
        if value is not None and key in required and value != required[key]:
            yield _finding(
                context,
                "python",
                "unsupported",
                "error",
                f"This machine is {value}, but the lock is for {required[key]}.",
                _ANOTHER_LOCK,
                code="ED307",
                fields=(field,),
                subject=key,
            )
    if "sm" in required:
        yield from _unserved_devices(context, required["sm"].split(","))


def _below_floor(
    context: Context, field: str, component: str, name: str, floor: str
) -> Iterator[Finding]:
    """Judge a version of the machine that is missing, older than the lock requires, or unknown."""
    fact, version = context.facts.get(field), context.fact_version(field)
    severity, missing = "error", ""
    if isinstance(fact, Absent):
        # A machine without a driver and without a sign of a GPU may be meant to run without one.
        if component == "nvidia-driver" and not gpu_sign(context.facts):
            severity = "warning"
        kind = "missing"
        message = f"There is no {name} here, but the lock requires {floor} or newer."
    elif isinstance(fact, Unknown):
        kind, missing = "too-old", field
        message = f"The lock requires {name} {floor} or newer, but the version here is not known."
    elif version is not None and version < parse_version(floor):
        kind = "too-old"
        message = f"{component} {fact.value} is older than the {floor} that the lock requires."
    else:
        return
    yield _finding(
        context,
        component,
        kind,
        severity,
        message,
        _ANOTHER_LOCK,
        code="ED307",
        fields=(field,),
        missing=missing,
    )


def _other_python(context: Context, wanted: Optional[str]) -> Iterator[Finding]:
    version = context.fact_version("python.version")
    if wanted is None or version is None or minor_text(version) == wanted:
        return
    yield _finding(
        context,
        "python",
        "version-mismatch",
        "error",
        f"Python {context.facts.value('python.version')} runs here, but the lock is for Python "
        f"{wanted}.",
        _ANOTHER_LOCK,
        code="ED307",
        fields=("python.version",),
    )


def _unserved_devices(context: Context, served: List[str]) -> Iterator[Finding]:
    """Yield one finding for each compute capability that the pins have no code for."""
    names: Dict[str, str] = {}
    for device in context.target.gpus or ():
        capability = device.attributes.get("sm")
        if capability is not None and capability not in served:
            names.setdefault(capability, device.attributes.get("model", "A GPU"))
    for capability, name in names.items():
        yield _finding(
            context,
            "torch",
            "arch-missing",
            "error",
            f"{name} has compute capability {capability}, but the lock's pins have code only for "
            f"{', '.join(served)}.",
            _ANOTHER_LOCK,
            code="ED307",
            fields=("gpus",),
            subject=capability,
            packages=("torch",),
        )


def _name(root: str) -> str:
    """Return the name at the front of what was asked for, ``vllm[audio]>=0.8``."""
    for position, character in enumerate(root):
        if not character.isalnum() and character not in "._-":
            return root[:position]
    return root


def _finding(
    context: Context,
    component: str,
    kind: str,
    severity: str,
    message: str,
    remedy: Optional[Remedy] = None,
    *,
    code: str = "ED306",
    fields: Tuple[str, ...] = (),
    subject: str = "",
    packages: Tuple[str, ...] = (),
    missing: str = "",
) -> Finding:
    lock = context.facts.evidence("lock.pins")
    installed = context.distributions.get(component)
    evidence = context.evidence(*fields)
    if installed is not None and not fields:
        evidence = (distribution_evidence(context.facts, installed),)
    return Finding(
        code=code,
        component=component,
        kind=kind,
        severity=severity,
        message=message,
        verdict="undetermined" if missing else "violated",
        subject=subject,
        evidence=(*evidence, Evidence(lock.source if lock is not None else "lock")),
        remedies=(
            remedy
            or Remedy(
                "Make the environment match the lock.",
                (OwnCall("fix", ("--lock", _folder(lock))),),
            ),
        ),
        missing=Gap("field", missing) if missing else None,
        packages=packages,
    )


def _folder(lock: Optional[Evidence]) -> str:
    """Return the folder of the lock."""
    return "DIR" if lock is None else os.path.dirname(lock.source) or "."


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED306",
        "lock-pins",
        "version-mismatch",
        "What is installed differs from the lock",
        check_lock_pins,
    ),
    Rule(
        "ED307",
        "lock-machine",
        "too-old",
        "The machine does not meet the lock's requirements",
        check_lock_machine,
    ),
)
