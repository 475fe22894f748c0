"""What a word is that a shell took for a command and did not find: mostly a program, but also what
was to go on with the command above it (an option, a file of the program, the value that the program
then lacks), or a list of folders.
"""

from __future__ import annotations

from typing import Optional, Sequence

from ..model.finding import hint
from ..model.log import Raised
from ..model.pattern import pattern
from .code_owner import is_own
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, groups_of

__all__ = ["tell_shell_words"]

_OPTION = pattern(r"--?[A-Za-z][\w.-]{0,80}(?:=\S{0,80})?$")
#: What no shell looks for on its path: an assignment, a file of settings, data or source.
_ARGUMENT = pattern(
    r"(?:[\w./-]{1,80}\.(?:py|ya?ml|json|jsonl|toml|cfg|ckpt|pt|pth|bin|safetensors|csv|parquet)"
    r"|[A-Za-z_][\w.]{0,80}=\S{0,80})$"
)
#: What a program says, or asserts, of a value that it was not given.
_LACKS = pattern(
    r"(?i)\bis not None\b|\bthe following arguments are required\b|\bexpected (?:one|at least one) "
    r"argument\b|\bmissing (?:required )?(?:option|argument|parameter)\b|\brequires? an argument\b"
    r"|\b(?:must|has to|have to|needs? to) be (?:set|given|specified|provided)\b"
)
_PROGRAM = pattern(r"^([\w./-]{1,120}): error: ")
_NEAR = 4  # lines between the end of the program and what the shell says of the next line
_OF_LIST = (
    "A path that begins with a colon, or holds one, was put together from a variable (CUDA_HOME, "
    "PATH) that was extended as a list."
)
_BEHIND = "a backslash ends the line above, with nothing behind it, not even a blank"


def tell_shell_words(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of a word that a shell took for a command and did not find what else it is."""
    for draft in drafts:
        if not draft.is_made_by("command-not-found") or not draft.events:
            continue
        word = groups_of(draft.events[0], run.modules).get("command", "")
        lacking = _lacking(draft, run.exception) or _asking(draft, drafts)
        what = _what_it_is(word, lacking)
        if what:
            _tell(draft, word, what)
            failed = _ended(draft, drafts)
            if lacking and failed is not None and not draft.under(failed):
                draft.is_failure = failed.is_failure
                failed.parent = draft
        elif ":" in word:
            draft.meaning = _OF_LIST


def _what_it_is(word: str, lacking: str) -> str:
    if _OPTION.match(word):
        return "an option"
    if _ARGUMENT.match(word):
        return "an argument, and no program"
    if lacking and not word.isalpha() and "/" not in word:
        return f"most likely the value that {lacking} lacks"
    return ""


def _lacking(draft: TraceDraft, raised: Optional[Raised]) -> str:
    """Return the program that ended right above for lack of a value; "" for none."""
    first = draft.first
    if raised is None or first is None or first.source != raised.line.source:
        return ""
    if not 0 < first.number - (raised.line.number + raised.spread) <= _NEAR:
        return ""
    frame = next((frame for frame in reversed(raised.frames) if is_own(frame)), None)
    code = raised.frames[-1].code if raised.frames else ""
    if not _LACKS.search(f"{raised.message}\n{code}"):
        return ""
    return frame.file.rpartition("/")[2] if frame is not None else "the program above"


def _ended(draft: TraceDraft, drafts: Sequence[TraceDraft]) -> Optional[TraceDraft]:
    """Return what says that the program right above ended, as a root."""
    failed = next((other.root for other in drafts if other.is_failure), None)
    return failed or next((other.root for other in drafts if _is_right_above(other, draft)), None)


def _asking(draft: TraceDraft, drafts: Sequence[TraceDraft]) -> str:
    """Return the program that said right above which arguments it asks for; "" for none."""
    asking = [other for other in drafts if _is_right_above(other, draft)]
    texts = [event.last.text for other in asking for event in other.events]
    text = next(filter(_LACKS.search, texts), "")
    program = _PROGRAM.match(text)
    return "" if not text else "the program above" if program is None else program.group(1)


def _is_right_above(other: TraceDraft, draft: TraceDraft) -> bool:
    first = draft.first
    if other is draft or first is None or not other.events or other.role != "cause":
        return False
    last = max((event.last for event in other.events), key=lambda line: line.number)
    return last.source == first.source and 0 < first.number - last.number <= _NEAR


def _tell(draft: TraceDraft, word: str, what: str) -> None:
    draft.meaning = (
        f"{word} stands at the beginning of a line of the script and is {what}: the command above "
        "it ended too early. A line goes on only where a backslash is the last character of it."
    )
    draft.finding = draft.finding._replace(
        message=f"The shell took {word} for a command: it is the rest of the command above it.",
        remedies=(hint(f"Look at that line of the script and the one above: {_BEHIND}"),),
    )
    draft.is_without_steps = True
