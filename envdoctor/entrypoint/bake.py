"""``envdoctor bake``: judge the software half of an image for its target, and write the baseline
that its starts rest on.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from .. import __version__
from ..model.evidence import Evidence, Fact, Known
from ..model.facts import Facts
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.serde import dump_facts
from ..model.versions import canonicalize_name, try_version
from .baseline import HOST_PROBES, SCHEMA_VERSION, take_stamp
from .requirement import find_unmet, nvidia_require, read_lock, required_of, with_findings

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.report import Report

__all__ = ["Baked", "bake", "compile_start"]

# What other probes read of an image.
_IMAGE_FIELDS = (
    "os.platform",
    "os.architecture",
    "os.name",
    "glibc.version",
    "compat.path",
    "compat.release",
    "compat.cuda_version",
)
_LOCK_FILE = "envdoctor.lock.json"


class Baked(NamedTuple):
    """What was found, and the baseline as JSON text.

    ``require``: the value of NVIDIA_REQUIRE_CUDA, or "".
    """

    report: Report
    baseline: str
    require: str


def compile_start() -> int:
    """Write the compiled code that is missing of what this process has loaded; return how many
    files that were.

    uv leaves it out unless asked, Docker's Python images delete that of the standard library, and
    without it a start compiles for 200 ms.
    """
    import os
    import py_compile

    from . import handoff, verdict  # noqa: F401 - what a start loads beside what was loaded to judge

    written = 0
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        source, target = getattr(spec, "origin", None), getattr(spec, "cached", None)
        if not source or not target or not source.endswith(".py") or os.path.exists(target):
            continue
        try:
            written += py_compile.compile(source, target, doraise=True) is not None
        except (
            OSError,
            py_compile.PyCompileError,
        ):  # a read-only standard library, say: its start is slower, not wrong
            continue
    return written


def bake(
    facts: Facts,
    assumed: Dict[str, Fact[Any]],
    matrix: Matrix,
    lock: Optional[str],
    target: Sequence[str],
) -> Baked:
    """Judge an image that is being built, and make its baseline.

    Args:
        facts: What was read of this machine; of its host half nothing counts, the image will run
            elsewhere.
        assumed: What is known of the machines it will run on.
        matrix: What is known of versions and hardware.
        lock: Folder of the lock that the image was made from.
        target: ``assumed`` in the user's words.
    """
    from ..app import Options, check
    from ..intake.assumptions import with_assumptions

    judged = with_assumptions(_image(facts), assumed)
    report = check(judged, matrix, Options())
    locked: Dict[str, Any] = {}
    if lock is not None:
        document = read_lock(lock)
        locked = document["requires"]
        report = with_findings(
            report, [*_not_as_locked(document, facts), *find_unmet(locked, judged, lock)]
        )
    requires = {
        **required_of(facts, matrix),
        **{name: value for name, value in locked.items() if value},
    }
    require = nvidia_require(requires, facts.value("compat.cuda_version"), matrix)
    installed = facts.value("distributions", {})
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "envdoctor", "version": __version__, "matrix_date": matrix.date},
        "target": list(target),
        "requires": requires,
        "locked": locked,
        "nvidia_require_cuda": require,
        "packages": {name: installed[name].version for name in sorted(installed)},
        "libraries": {
            entry.soname: entry.version for entry in facts.value("libraries", ()) if entry.loaded
        },
        "known": sorted(finding.key for finding in report.findings),
        "stamp": take_stamp(),
        "facts": dump_facts(_of_probes(facts, matrix)),
    }
    return Baked(report, json.dumps(document, separators=(",", ":")) + "\n", require)


def _fields() -> Tuple[str, ...]:
    from ..probes import MODULES, load_probes

    return tuple(
        field
        for probe in load_probes([name for name in MODULES if name not in HOST_PROBES])
        for field in probe.fields
    )


def _of_probes(facts: Facts, matrix: Matrix) -> Facts:
    """Return the facts that a start does not read again.

    What no row speaks of is among the packages alone: the rest was judged here.
    """
    fields = frozenset(_fields())
    table = {name: fact for name, fact in facts if name in fields}
    listed = table.get("distributions")
    if isinstance(listed, Known):
        spoken_of = matrix.spoken_of
        table["distributions"] = Known(
            {name: entry for name, entry in listed.value.items() if name in spoken_of},
            listed.evidence,
        )
    return Facts(table)


def _image(facts: Facts) -> Facts:
    """Return what is true of the image wherever it runs."""
    fields = frozenset(
        (
            *_fields(),
            "os.platform",
            "os.architecture",
            "os.name",
            "glibc.version",
            "compat.path",
            "compat.release",
            "compat.cuda_version",
        )
    )
    return Facts({name: fact for name, fact in facts if name in fields})


def _not_as_locked(document: Dict[str, Any], facts: Facts) -> List[Finding]:
    """Return one finding for each pin that is not what is installed."""
    found: List[Finding] = []
    installed = facts.value("distributions", {})
    for pin in document.get("pins", ()):
        name, wanted = canonicalize_name(str(pin.get("name"))), str(pin.get("version"))
        present = installed.get(name)
        version = present.version if present is not None else None
        if version is not None and try_version(version) == try_version(wanted):
            continue
        what = (
            f"{name} {version} is installed" if version is not None else f"{name} is not installed"
        )
        found.append(
            Finding(
                code="ED301",
                component=name,
                kind="missing" if version is None else "version-mismatch",
                severity="error",
                message=f"The lock pins {name} {wanted}, {what}.",
                subject="lock",
                evidence=(Evidence(_LOCK_FILE),),
                remedies=(
                    Remedy("Install what the lock pins.", (f"pip install '{name}=={wanted}'",)),
                ),
            )
        )
    return found
