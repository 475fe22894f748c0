"""Values that a program was to be given, and got the name of a variable in their place: no shell
replaced it.
"""

from __future__ import annotations

from typing import Sequence

from ..model.finding import Remedy
from ..model.pattern import pattern
from .logged_run import LoggedRun
from .trace_draft import TraceDraft

__all__ = ["tell_unexpanded"]

#: A quoted word that holds one, or one at the beginning of a sentence about it; ``~`` in front.
_VARIABLE = (
    r"\$\{[A-Za-z_]\w{0,60}(?::?[-=?+][^}'\"\s]{0,60})?\}|\$[A-Z_][A-Z0-9_]{1,60}\b|%[A-Z_]{2,60}%"
)
_IN_QUOTES = pattern(
    rf"(?P<quote>['\"`])(?P<value>[^'\"`\s]{{0,200}}?(?P<name>{_VARIABLE})[^'\"`\s]{{0,200}})"
    r"(?P=quote)"
)
_IN_FRONT = pattern(
    rf"(?:^|Error: )(?P<value>(?P<name>{_VARIABLE})[^\s'\"]{{0,200}})(?= (?:is|does|was|not)\b)"
)
_HOME = pattern(r"(?P<quote>['\"`])(?P<value>(?P<name>~)/[^'\"`\s]{1,200})(?P=quote)")
#: What tells that a value was looked up or taken: a message about the shell's own syntax is not.
_OF_VALUE = pattern(
    r"(?i)no such file|not found|does not exist|is not a local folder|repo id|repository|invalid|"
    r"\bnot a (?:valid|file|directory|folder)|cannot find|can't find|couldn't find|unable to "
)


def tell_unexpanded(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of the value that a failure is about that the name of a variable stands in it."""
    for draft in drafts:
        raised = draft.exception(run.exception)
        if draft.parent is not None or not (raised is not None or draft.is_sure):
            continue
        texts = [event.last.text for event in draft.events[:1]]
        text = raised.message if raised is not None else "\n".join(texts)
        if not _OF_VALUE.search(text):
            continue
        match = _IN_QUOTES.search(text) or _IN_FRONT.search(text)
        if match is not None:
            _tell_variable(draft, match.group("name"))
        elif _HOME.search(text) is not None and draft.is_made_by("file-missing"):
            _tell_home(draft)


def _tell_variable(draft: TraceDraft, name: str) -> None:
    draft.meaning = (
        f"{name} stands there as it was written: nothing put the variable's value in its place. A "
        "shell does so in its own commands, and not within single quotes; what reads YAML, JSON, "
        "a .env file, a Dockerfile's CMD in brackets or a line of #SBATCH mostly does not."
    )
    draft.finding = draft.finding._replace(
        remedies=(
            Remedy(
                f"Write the value itself there, or let a shell replace {name}: in double quotes, "
                "in a here-document whose mark is not quoted, through envsubst, or with "
                "os.path.expandvars in the program."
            ),
        )
    )


def _tell_home(draft: TraceDraft) -> None:
    draft.meaning = (
        "Only a shell replaces ~ by the home directory, and only at the beginning of a word that "
        "is not quoted: Python takes it for a folder of that name."
    )
    draft.finding = draft.finding._replace(
        remedies=(
            Remedy(
                "Write the path in full, or $HOME in double quotes in a shell, or have the program "
                "call os.path.expanduser."
            ),
        )
    )
