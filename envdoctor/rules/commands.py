"""Commands of remedies, addressed to the interpreter that was judged.

Rules write ``pip install …`` and ``envdoctor fix …``: which pip and which environment that is only
shows in the facts. Whatever prints or writes findings gets them from here.
"""

from __future__ import annotations

from ..model.evidence import Known
from ..model.finding import Finding, Remedy
from ..model.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Sequence, Tuple

    from ..model.facts import Facts

__all__ = ["addressed", "addressed_remedies", "judged_interpreter"]

_PIP = pattern(r"(?<![\w./-])(?:python3? -m )?pip (install|uninstall)\b")
_FIX = pattern(r"\Aenvdoctor fix\b")


def addressed(findings: Iterable[Finding], nodes: Sequence[Facts]) -> List[Finding]:
    """Return findings whose commands name the environment of ``nodes``."""
    return [
        finding._replace(remedies=addressed_remedies(finding.remedies, nodes))
        for finding in findings
    ]


def addressed_remedies(remedies: Tuple[Remedy, ...], nodes: Sequence[Facts]) -> Tuple[Remedy, ...]:
    """Return remedies whose commands name the environment of ``nodes``.

    Where that is not known or differs between them, pip is that of ``python``.
    """
    if not any(remedy.commands for remedy in remedies):
        return remedies
    installers = {_installer(facts) for facts in nodes}
    installer = installers.pop() if len(installers) == 1 else _installer(None)
    pythons = {judged_interpreter(facts) for facts in nodes}
    python = pythons.pop() if len(pythons) == 1 else None
    fix = "envdoctor fix" + (f" --python {_quoted(python)}" if python is not None else "")

    def readdressed(command: str) -> str:
        pip = _PIP.sub(lambda match: installer.replace("ACTION", match.group(1)), command)
        return _FIX.sub(lambda _: fix, pip)

    return tuple(
        remedy._replace(commands=tuple(map(readdressed, remedy.commands))) for remedy in remedies
    )


def judged_interpreter(facts: Facts) -> Optional[str]:
    """Return the interpreter whose packages were judged; None where a file or report named them."""
    if not isinstance(facts.get("distributions.complete"), Known):
        return None
    path = facts.value("python.executable")
    return path if isinstance(path, str) else None


def _installer(facts: Optional[Facts]) -> str:
    """Return how an installer of these facts is called, with ACTION for "install"."""
    python = judged_interpreter(facts) if facts is not None else None
    if facts is None or python is None:
        return "python -m pip ACTION"
    # Environments that uv makes have no pip of their own.
    if "pip" in facts.value("distributions", {}):
        return f"{_quoted(python)} -m pip ACTION"
    return f"uv pip ACTION --python {_quoted(python)}"


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)
