"""ED9xx: what envdoctor itself could not do, or does not judge."""

from __future__ import annotations

import os

from ..model.evidence import ROOT, Evidence, Unknown
from ..model.facts import Oddity
from ..model.finding import Finding, Gap, Remedy
from .rule import STATED_VENDORS, Context, Rule, vendor_of_builds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Optional, Tuple

__all__ = ["RULES_HERE", "fault_finding"]

_STALE_DAYS = 90
_MOST_NAMED = 4
_MOST_PLACES = 8  # that could not be read, for different reasons


def fault_finding(name: str, error: Exception) -> Finding:
    """Return the finding for a rule that raised; the other rules still run."""
    from ..model.redaction import redact

    text = redact(" ".join(str(error).split()))[:200]
    return Finding(
        code="ED906",
        component="envdoctor",
        kind="probe-failed",
        severity="warning",
        subject=name,
        message=f"The check {name} failed ({type(error).__name__}{f': {text}' if text else ''}), "
        "so it gives no verdict.",
        remedies=(
            Remedy(
                "Report this with the facts (envdoctor probe --format json).",
                ("envdoctor probe --json",),
                "safe",
            ),
        ),
    )


def check_probes(context: Context) -> Iterator[Finding]:
    """A probe failed.

    What it checks:
        Facts whose probe raised, crashed or ran past its deadline.

    Why it matters:
        What it would have read is not known, and no verdict rests on it; a hanging driver call is
        itself a sign.

    How to fix:
        Look at the reason; run envdoctor probe to see what was read.

    References:
        envdoctor probe --help
    """
    reasons: Dict[Tuple[str, str], List[str]] = {}
    for field, fact in context.facts:
        if isinstance(fact, Unknown) and fact.probe is not None:
            reasons.setdefault((fact.probe, fact.reason), []).append(field)
    for (name, reason), fields in reasons.items():
        shown = ", ".join(fields[:4]) + (f" and {len(fields) - 4} more" if len(fields) > 4 else "")
        yield Finding(
            code="ED901",
            component=f"probe-{name}",
            kind="probe-failed",
            severity="warning",
            message=f"The probe {name} failed ({reason}), so these are not known: {shown}.",
            remedies=(Remedy("See what was read.", ("envdoctor probe --json",), "safe"),),
        )


def _is_date(text: str) -> bool:
    """Tell whether a text has the form of an ISO date."""
    return [len(part) for part in text.split("-") if part.isdecimal()] == [4, 2, 2] and len(
        text
    ) == 10


def _days(date: str) -> int:
    """Return the days since an epoch (Howard Hinnant's algorithm): datetime is slow to import."""
    year, month, day = (int(part) for part in date.split("-"))
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year


def check_matrix_age(context: Context) -> Iterator[Finding]:
    """The matrix is old.

    What it checks:
        The date of the newest entry of the matrix against today.

    Why it matters:
        Releases and faults that are newer than the matrix are not in it.

    How to fix:
        Update envdoctor, or the matrix alone (envdoctor matrix update --from URL).

    References:
        envdoctor matrix update --help
    """
    date = str(context.matrix.date)
    if not _is_date(date) or not _is_date(context.today):
        return
    age = _days(context.today) - _days(date)
    if age <= _STALE_DAYS:
        return
    yield Finding(
        code="ED902",
        component="matrix",
        kind="stale-matrix",
        severity="advice",
        message=f"The matrix is {age} days old ({date}): newer releases and faults are not in it.",
        remedies=(
            Remedy(
                "Update envdoctor, or the matrix alone (envdoctor matrix update --from URL).",
                (),
                "safe",
            ),
        ),
    )


def check_judged(context: Context) -> Iterator[Finding]:
    """A platform that envdoctor does not judge.

    What it checks:
        ROCm and XPU builds of torch, macOS and Windows.

    Why it matters:
        The matrix covers NVIDIA on Linux; silence about another platform is no sign of health.

    How to fix:
        Nothing; what does not depend on the GPU is still judged.

    References:
        README
    """
    platform = _unjudged_platform(context)
    if platform is None:
        return
    subject, what = platform
    unjudged = "GPU, driver and CUDA libraries"
    if subject == "win32":  # the code of a build is for the same GPUs there
        unjudged = "the limits of its drivers and its CUDA libraries"
    yield Finding(
        code="ED903",
        component="platform",
        kind="not-judged",
        severity="advice",
        subject=subject,
        message=f"{what}: {unjudged} are not judged.",
        evidence=context.evidence(
            "torch.hip", "torch.version", *STATED_VENDORS.values(), "os.platform", "gpus.other"
        ),
    )


#: By vendor a short name, and the devices that its name does not tell.
_VENDORS = {
    "ROCm": ("amd", ", for AMD GPUs"),
    "Intel GPUs": ("intel", ""),
    "Ascend NPUs": ("ascend", ""),
    "TPUs": ("tpu", ""),
}
_UNJUDGED_SYSTEMS = {"darwin": "This is macOS", "win32": "This is Windows outside WSL"}


def _unjudged_platform(context: Context) -> Optional[Tuple[str, str]]:
    """Return a short name of what the matrix does not speak of, and what it is in words."""
    vendor = vendor_of_builds(context.facts)
    if vendor in _VENDORS:
        subject, devices = _VENDORS[vendor]
        torch = context.facts.value("torch.version") or context.facts.version_of("torch") or ""
        words = context.facts.value(STATED_VENDORS[vendor])
        if any(label in torch for label in ("rocm", "xpu")):
            return subject, f"torch {torch} is a build for {vendor}{devices}"
        if words:
            return subject, f"The report is of {vendor} ({words!r}){devices}"
        return subject, f"What is installed is for {vendor}{devices}"
    platform = context.facts.value("os.platform")
    if platform in _UNJUDGED_SYSTEMS:
        return platform, _UNJUDGED_SYSTEMS[platform]
    others = context.facts.value("gpus.other")
    if others and not context.facts.value("gpus"):
        return "accelerator", f"This machine has other makers' accelerators ({', '.join(others)})"
    return None


def check_pinned(context: Context) -> Iterator[Finding]:
    """Requirements that leave versions open.

    What it checks:
        With ``--requirements FILE``: the distributions of the matrix that the file asks for without
        one version, which --assume does not give either.

    Why it matters:
        An installer takes what is newest on that day. Errors come from pins only, so silence about
        the others is no sign that they fit.

    How to fix:
        Pin them: ``envdoctor lock`` chooses versions that fit, or name one with ``--assume
        NAME==VERSION``.

    References:
        https://pip.pypa.io/en/stable/topics/repeatable-installs/
    """
    known = context.matrix.packages_known
    named = (
        context.distributions[name]
        for name in context.facts.value("requirements.unpinned", ())
        if name in known and name in context.distributions
    )
    unpinned = [distribution for distribution in named if distribution.version is None]
    if not unpinned:
        return
    names = ", ".join(
        f"{distribution.name} ({distribution.constraint})"
        if distribution.constraint
        else distribution.name
        for distribution in unpinned
    )
    yield Finding(
        code="ED904",
        component="requirements",
        kind="not-judged",
        severity="advice",
        message=f"These are not pinned to one version, so they are not fully judged: {names}.",
        verdict="undetermined",
        evidence=context.evidence("requirements.unpinned"),
        remedies=(
            Remedy(
                "Pin them: envdoctor lock chooses versions that fit together and this machine.",
                (),
                "safe",
            ),
        ),
        missing=Gap("pins", names),
        packages=tuple(distribution.name for distribution in unpinned),
    )


def check_environment_found(context: Context) -> Iterator[Finding]:
    """No Python environment below a root.

    What it checks:
        With ``--root DIR``: whether an interpreter and its packages were found there.

    Why it matters:
        Where no package was read, none can be wrong: silence is no sign of health.

    How to fix:
        Name the interpreter with ``--python``, as its path within the root.

    References:
        README
    """
    root = context.facts.evidence("node.name")
    distributions = context.facts.get("distributions")
    if root is None or root.source != ROOT or not isinstance(distributions, Unknown):
        return
    yield Finding(
        code="ED905",
        component="python",
        kind="not-judged",
        severity="advice",
        message=f"No package was judged: {distributions}.",
        verdict="undetermined",
        evidence=context.evidence("node.name"),
        missing=Gap("environment"),
    )


def check_unread(context: Context) -> Iterator[Finding]:
    """Something that is there, or may be, could not be read.

    What it checks:
        Folders of distributions, their metadata and ``.pth`` files, pyvenv.cfg that the system
        refuses to this user; any file with an I/O error, on a mount whose server is gone, or on
        one that did not answer.

    Why it matters:
        What was not read was not judged: silence about it is no sign of health. The program that is
        to run may meet the same error, or hang.

    How to fix:
        Run the check as the user who runs the program, mount the file system again, or repair the
        disk.

    References:
        https://man7.org/linux/man-pages/man3/errno.3.html
    """
    groups: Dict[Tuple[str, str], List[Oddity]] = {}
    for oddity in context.facts.value("files.unread", ()):
        folder, name = os.path.split(oddity.path)
        if folder.endswith((".dist-info", ".egg-info")):
            folder, name = os.path.split(folder)
        alone = oddity.path if name.endswith(("-packages", ".pth", ".cfg")) else folder
        groups.setdefault((alone, oddity.detail), []).append(oddity)
    for (folder, reason), members in list(groups.items())[:_MOST_PLACES]:
        path = members[0].path
        what = f"{len(members)} files in {folder}, of which {path} is the first,"
        what = path if len(members) == 1 else what
        yield Finding(
            code="ED907",
            component="files",
            kind="probe-failed",
            severity="warning",
            verdict="undetermined",
            subject=path,
            message=f"{what} cannot be read ({reason}), so what it holds is not judged.",
            evidence=tuple([Evidence(member.path, reason) for member in members[:_MOST_PLACES]]),
            remedies=(
                Remedy(
                    "Run the check as a user who may read it; after an I/O error look at the mount "
                    "(findmnt -T PATH) and at the kernel's log.",
                    (),
                    "safe",
                ),
            ),
            missing=Gap("field", path),
        )


def check_stated_reasons(context: Context) -> Iterator[Finding]:
    """What a report itself gives as the reason.

    What it checks:
        Nothing: it repeats the sentences by which the writer of a report names a cause, or says
        what a package does not have or support.

    Why it matters:
        Who was there often knows, and what stands in a sentence alone is judged by no rule.

    How to fix:
        Hold it against the log and the versions: it is the writer's word, or guess.

    References:
        README
    """
    for field, verb in (("report.reasons", "says"), ("report.guesses", "supposes")):
        for number, sentence in context.facts.value(field, {}).items():
            words = sentence.rstrip(".")
            # What stands in the first line is the title, which rather says what than why.
            who = "The report's title says" if number == "1" else f"The report itself {verb} why"
            yield Finding(
                code="ED908",
                component="report",
                kind="not-judged",
                severity="advice",
                subject=number,
                message=f"{who}: “{words}”. It was not verified.",
                evidence=(Evidence(f"report, line {number}"),),
            )


#: By vendor what shows its devices and their driver.
_TOOLS = {
    "ROCm": "'rocminfo'",
    "Intel GPUs": "'xpu-smi discovery'",
    "Ascend NPUs": "'npu-smi info'",
    "TPUs": "'tpu-info'",
}


def check_stated(context: Context) -> Iterator[Finding]:
    """A report that states nothing of an environment.

    What it checks:
        Whether a report of a failure names packages and gives no version, no GPU, driver or CUDA,
        no setting and no limit.

    Why it matters:
        Nothing was judged then: silence is no sign of health.

    How to fix:
        Add what the finding lists, and the log from its first line on.

    References:
        README
    """
    named = context.facts.value("report.named")
    if named is None:
        return
    names = (
        f"it names {', '.join(named[:_MOST_NAMED])}, and no release as installed"
        if named
        else "no package"
    )
    tool = _TOOLS.get(vendor_of_builds(context.facts), "'nvidia-smi'")
    asked = f"'python -m torch.utils.collect_env', 'pip list' and {tool}"
    yield Finding(
        code="ED909",
        component="report",
        kind="not-judged",
        severity="advice",
        message=f"The environment was not judged: the report states nothing of it ({names}, and "
        f"no GPU, driver, CUDA, setting or limit). What would tell: the output of {asked}, the "
        "command or the configuration of the run, and its log.",
        evidence=context.evidence("report.lines"),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule("ED901", "probe-failed", "probe-failed", "A probe failed", check_probes),
    Rule("ED902", "matrix-age", "stale-matrix", "The matrix is old", check_matrix_age),
    Rule(
        "ED903",
        "not-judged",
        "not-judged",
        "AMD, Intel, macOS and Windows are not judged",
        check_judged,
    ),
    Rule(
        "ED904",
        "not-pinned",
        "not-judged",
        "Requirements that leave versions open are not fully judged",
        check_pinned,
    ),
    Rule(
        "ED905",
        "no-environment",
        "not-judged",
        "No Python environment below a root",
        check_environment_found,
    ),
    Rule(
        "ED907",
        "unread-files",
        "probe-failed",
        "Something that is there could not be read",
        check_unread,
    ),
    Rule(
        "ED908",
        "stated-reasons",
        "not-judged",
        "What a report itself says of the reason",
        check_stated_reasons,
    ),
    Rule(
        "ED909",
        "nothing-stated",
        "not-judged",
        "A report states nothing of an environment",
        check_stated,
    ),
)
