"""ED306, ED307: what is, compared with what a lock meant."""

from __future__ import annotations

import os

from ..model.evidence import Absent, Evidence
from ..model.finding import Finding, Remedy
from ..model.pattern import pattern
from ..model.versions import canonicalize_name, try_version
from .driver import gpu_sign
from .rule import Context, Rule, distribution_evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Mapping, Optional, Tuple

__all__ = ["RULES_HERE"]

_NAME = pattern(r"[A-Za-z0-9._-]+")
_MOST = 10


def check_lock_pins(context: Context) -> Iterator[Finding]:
    """What is installed differs from the lock.

    What it checks:
        With ``--lock DIR``: every pin of ``envdoctor.lock.json`` against the installed version. A
        pin without a local label is met by any build of that version. What is missing counts only
        in an environment that was read whole.

    Why it matters:
        The lock was resolved and judged as a whole for its targets. What was asked for and is not
        there is an error; another version may well work, but nobody has said so.

    How to fix:
        ``envdoctor fix --lock DIR`` shows what to change, and changes it with ``--apply``.

    References:
        https://packaging.python.org/en/latest/specifications/version-specifiers/#version-matching
    """
    pins: Mapping[str, str] = context.facts.value("lock.pins", {})
    if not pins:
        return
    from ..model.lock_file import meets_pin

    asked = {
        canonicalize_name(match.group())
        for text in context.facts.value("lock.asked", ())
        for match in [_NAME.match(text)]
        if match
    }
    complete = bool(context.facts.value("distributions.complete"))
    missing: List[str] = []
    others: List[Tuple[str, str]] = []
    for name in sorted(pins):
        installed = context.distributions.get(name)
        if installed is None:
            if complete:
                missing.append(name)
        elif installed.version is not None and not meets_pin(installed.version, pins[name]):
            others.append((name, installed.version))
    for name in missing:
        if name in asked:
            message = (
                f"{name} is not installed; the lock, which was asked for it, pins {pins[name]}."
            )
            yield _finding(context, name, "missing", "error", message, packages=(name,))
    unasked = [name for name in missing if name not in asked]
    if unasked:
        message = (
            f"{_listed(f'{name} {pins[name]}' for name in unasked)} of the lock "
            f"{'is' if len(unasked) == 1 else 'are'} not installed."
        )
        yield _finding(context, unasked[0], "missing", "warning", message, packages=tuple(unasked))
    for name, version in others[:_MOST]:
        yield _finding(
            context,
            name,
            "version-mismatch",
            "warning",
            f"{name} {version} is installed, but the lock pins {pins[name]}.",
            packages=(name,),
        )
    if len(others) > _MOST:
        rest = _listed(
            f"{name} {version} (pinned: {pins[name]})" for name, version in others[_MOST:]
        )
        yield _finding(
            context,
            others[_MOST][0],
            "version-mismatch",
            "warning",
            f"These differ from the lock, too: {rest}.",
            packages=tuple(name for name, _ in others[_MOST:]),
        )


def check_lock_machine(context: Context) -> Iterator[Finding]:
    """The machine is less than what the lock requires.

    What it checks:
        With ``--lock DIR``: driver and glibc are not below what the pins require, the GPUs are
        among those that the pins have code for, Python, platform and architecture are those of the
        lock. What is not known of the machine is not judged. A machine without a driver and without
        a sign of a GPU may be one where an image is built: a warning.

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
    remedy = Remedy(
        "Make a lock that serves this machine, too: envdoctor lock with --target for each kind of "
        "machine."
    )
    for key, component, field in (
        ("driver", "nvidia-driver", "driver.release"),
        ("glibc", "glibc", "glibc.version"),
    ):
        floor, mine = try_version(required.get(key)), context.fact_version(field)
        if floor is not None and isinstance(context.facts.get(field), Absent):
            severity = "error" if key != "driver" or gpu_sign(context.facts) else "warning"
            message = (
                f"There is no {component.replace('nvidia-', 'NVIDIA ')} here, and the lock "
                f"requires {required[key]} or newer."
            )
            yield _finding(
                context,
                component,
                "missing",
                severity,
                message,
                remedy,
                code="ED307",
                fields=(field,),
            )
        if floor is not None and mine is not None and mine < floor:
            message = (
                f"{component} {context.facts.value(field)} is older than the {required[key]} "
                "that the lock requires."
            )
            yield _finding(
                context,
                component,
                "too-old",
                "error",
                message,
                remedy,
                code="ED307",
                fields=(field,),
            )
    python = context.fact_version("python.version")
    if (
        python is not None
        and "python" in required
        and ".".join(map(str, python.release[:2])) != required["python"]
    ):
        message = (
            f"Python {context.facts.value('python.version')} runs here, but the lock is for "
            f"Python {required['python']}."
        )
        yield _finding(
            context,
            "python",
            "version-mismatch",
            "error",
            message,
            remedy,
            code="ED307",
            fields=("python.version",),
        )
    for key, field in (("platform", "os.platform"), ("architecture", "os.architecture")):
        value = context.facts.value(field)
        if value is not None and key in required and value != required[key]:
            message = f"This machine is {value}, but the lock is for {required[key]}."
            yield _finding(
                context,
                "python",
                "unsupported",
                "error",
                message,
                remedy,
                code="ED307",
                fields=(field,),
                subject=key,
            )
    served = required.get("sm", "").split(",")
    for device in context.target.gpus or ():
        capability = device.attributes.get("sm")
        if capability is not None and "sm" in required and capability not in served:
            name = device.attributes.get("model", "A GPU")
            message = (
                f"{name} has compute capability {capability}, and the pins of the lock have "
                f"code for {', '.join(served)}."
            )
            yield _finding(
                context,
                "torch",
                "arch-missing",
                "error",
                message,
                remedy,
                code="ED307",
                fields=("gpus",),
                subject=capability,
                packages=("torch",),
            )


def _listed(names: Iterator[str]) -> str:
    found = list(names)
    return ", ".join(found[:_MOST]) + (
        f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    )


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
) -> Finding:
    lock = context.facts.evidence("lock.pins")
    installed = context.distributions.get(component)
    evidence = [
        *context.evidence(*fields),
        *(
            (distribution_evidence(context.facts, installed),)
            if installed is not None and not fields
            else ()
        ),
    ]
    return Finding(
        code=code,
        component=component,
        kind=kind,
        severity=severity,
        message=message,
        subject=subject,
        evidence=(*evidence, Evidence(lock.source if lock is not None else "lock")),
        remedies=(
            remedy
            or Remedy(
                "Make the environment like the lock.", (f"envdoctor fix --lock {_folder(lock)}",)
            ),
        ),
        packages=packages,
    )


def _folder(lock: Optional[Evidence]) -> str:
    """Return the folder of the lock as a shell word."""
    if lock is None:
        return "DIR"
    from shlex import quote

    return quote(os.path.dirname(lock.source) or ".")


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
        "The machine is less than what the lock requires",
        check_lock_machine,
    ),
)
