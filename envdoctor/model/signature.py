"""What a line of a log means: the signature, and the causes that may stand behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Tuple

from .record import NamedTuple
from .row import Source, Term

if TYPE_CHECKING:
    from .calls import Call

__all__ = [
    "CERTAINTIES",
    "CONFIDENCES",
    "LAYERS",
    "ROLES",
    "SIGNATURE_ROLES",
    "TONES",
    "Condition",
    "Hypothesis",
    "Signature",
]

LAYERS = (
    "kernel",
    "cuda",
    "nccl",
    "torch",
    "loader",
    "python",
    "pip",
    "ray",
    "vllm",
    "sglang",
    "deepspeed",
    "slurm",
    "container",
    "shell",
    "hydra",
)

#: ``cause``: the line itself says what is wrong. ``effect``: something died or was lost, and why
#: stands elsewhere.
ROLES = ("cause", "effect")
#: ``well``: a program says that it ended as it should; no trace is made of it.
SIGNATURE_ROLES = (*ROLES, "well")

#: What a line is to its program, where the mark of the line ("WARNING") does not tell it:
#: ``warning``, it goes on without; ``failure``, it has given up.
TONES = ("warning", "failure")

#: How sure a line alone makes its cause; ``established`` and ``likely`` are said as findings,
#: candidates are listed.
CERTAINTIES = ("established", "likely", "candidate")

CONFIDENCES = ("high", "medium", "low")


class Condition(NamedTuple):
    """A comparison of one field of the facts with a number, a truth value or a word:
    ``memory.oom_kills > 0``.
    """

    field: str
    operator: str  # < <= == >= > !=
    value: object

    def __str__(self) -> str:
        return f"{self.field} {self.operator} {self.value}"


class Hypothesis(NamedTuple):
    """One cause that may stand behind a line, and what decides.

    It is confirmed where a row of ``rows`` is violated, a finding of ``codes`` was made, or all of
    ``when`` and ``facts`` hold; it is refuted where all its ``rows`` are satisfied, or one of
    ``when`` and ``facts`` does not hold. Else it stays open.
    """

    text: str
    component: str
    kind: str
    confidence: str
    rows: Tuple[str, ...] = ()
    codes: Tuple[str, ...] = ()
    when: Tuple[Term, ...] = ()
    facts: Tuple[Condition, ...] = ()
    fix: str = ""
    commands: Tuple[Call, ...] = ()
    collect: Tuple[str, ...] = ()


class Signature(NamedTuple):
    """One text of a log with its meaning.

    Texts in braces are filled with what the expression's groups hold.
    """

    id: str
    layer: str
    role: str
    title: str
    anchors: Tuple[str, ...]
    source: Source
    date: str
    trust: str
    expression: str = ""
    meaning: str = ""
    component: str = ""
    kind: str = ""
    certainty: str = ""
    codes: Tuple[str, ...] = ()  # findings of a check that say the same of the environment
    after: Tuple[
        str, ...
    ] = ()  # signatures, or layers as "kernel:*", that this one may be a consequence of
    causes: Tuple[Hypothesis, ...] = ()
    fix: str = ""
    hint: str = ""  # where to look, in the place of a fix
    commands: Tuple[Call, ...] = ()
    collect: Tuple[str, ...] = ()
    tone: str = ""
    origin: str = ""
