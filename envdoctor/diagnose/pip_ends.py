"""What pip's end says: which package stopped it, and what is missing later since pip had ended
before all that it was given was installed.
"""

from __future__ import annotations

import re
from typing import List, Optional, Sequence

from ..matrix.signatures import distribution_of
from ..model.log import Event
from ..model.pattern import pattern
from .logged_run import LoggedRun
from .raised import NEXT_STEP
from .trace_draft import TraceDraft, groups_of

__all__ = ["join_refused_installs", "name_what_stopped_pip"]

#: Signatures of lines below or above which pip names the package that it is about.
_ENDS = ("pip-stopped", "pip-no-record", "pip-build-requirements")
_BELOW = 16  # lines, which a window may have broken
_BARE = pattern(r"\s+(?:[╰└]─>\s+)?")
#: pip's errors, broken or not (``_internal/exceptions.py`` of pip 23 to 25).
_NAMES = (
    # Of what has no name yet pip prints where it is from, or that all stands above: no names.
    pattern(
        r"Encountered error while generating package metadata\. (?P<name>[A-Za-z][\w.-]*)"
        r"(?:\[[\w.,-]{1,80}\])?\s*(?:$|(?:note|hint):)"
    ),
    pattern(r"\bCannot uninstall (?P<name>[A-Za-z][\w.-]*) "),
    pattern(
        r"Failed to build installable wheels for some pyproject\.toml based projects "
        r"\(?(?P<name>[A-Za-z][\w.-]*(?:, [A-Za-z][\w.-]*){0,9})"
    ),
)
#: What refuses a whole set of packages.
_REFUSALS = frozenset(
    ("index-not-reached", "meson-problem", "msvc-missing", "pip-cache-refused", "pip-file-held",
     "pip-may-not-write", "pip-no-matching", "pip-no-record", "pip-other-python",
     "pip-resolution-impossible", "rust-missing", "uv-no-solution", "wheel-build-failed",
     "wheel-no-platform", "wheel-no-python", "wheel-unsupported")
)  # fmt: skip
#: What pip prints last, whatever stopped it.
_STOPPED = "pip-stopped"
_MISSING = ("module-missing",)
_INSTALLED = "installed-as-asked"


def name_what_stopped_pip(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of what pip was ended by which package it is about, and that its sources were taken."""
    lines: List[str] = []
    for draft in drafts:
        root = draft.root
        if not draft.is_made_by(*_ENDS) or root.signature is None:
            continue
        lines = lines or run.report.split("\n")
        name = next(filter(None, (_named(event, lines) for event in draft.events)), "")
        sources = _sources(name, lines, draft.events[0].first.number) if name else ""
        is_named = re.search(rf"(?i)\b{re.escape(name)}\b", root.finding.message) is not None
        if not sources and is_named:
            continue
        words = f"The packages are {name}" if ", " in name else f"The package is {name}"
        words += f", of which pip took the sources ({sources}) for lack of a wheel" * bool(sources)
        message = f"{root.finding.message.rstrip('.')}. {words}."
        root.finding = root.finding._replace(message=message)


def _named(event: Event, lines: Sequence[str]) -> str:
    """Return the package that pip names below a line, "" where it names none."""
    at = event.last.number - 1
    text = _BARE.sub(" ", "\n".join(lines[at : at + _BELOW]))
    matches = (form.search(text) for form in _NAMES)
    return next((match.group("name") for match in matches if match is not None), "")


def _sources(name: str, lines: Sequence[str], number: int) -> str:
    """Return the file of sources that pip had fetched last above a line, "" where it was none of a
    package.
    """
    file = rf"{_spelt(name)}-\d\S*\.(?:tar\.gz|zip)"
    form = re.compile(rf"(?i)^\s*(?:Downloading|Using cached) (?:\S*/)?(?P<file>{file})")
    matches = map(form.match, reversed(lines[: number - 1]))
    return next((match.group("file") for match in matches if match is not None), "")


def _spelt(name: str) -> str:
    return "[-_.]+".join(map(re.escape, re.split(r"[-_.]+", name)))


def join_refused_installs(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Put a module that Python did not find under what had kept pip from installing all that it was
    given, where that stands right above, and nothing was installed since.
    """
    refusals = [
        draft
        for draft in drafts
        if (draft.is_made_by(*_REFUSALS) and draft.is_sure)
        or (draft.is_made_by(_STOPPED) and draft.root.is_sure)
    ]
    for draft in drafts:
        if not (draft.is_made_by(*_MISSING) and draft.parent is None):
            continue
        module = groups_of(draft.events[0], run.modules).get("module", "")
        name = distribution_of(module, run.modules)
        if name not in run.context.matrix.packages_known or name in run.context.distributions:
            continue
        refusal = _refusal_before(draft, refusals, run.events)
        if refusal is not None and not refusal.under(draft):
            draft.parent = refusal
            draft.finding = draft.finding._replace(remedies=())
            root = refusal.root
            words = f"pip ended there before all was installed: likely {module} is missing for it."
            root.meaning = f"{root.meaning} {words}".strip()


def _refusal_before(
    draft: TraceDraft, refusals: Sequence[TraceDraft], events: Sequence[Event]
) -> Optional[TraceDraft]:
    """Return the last refusal above a draft, None where pip installed something since."""
    first = draft.first
    before = [
        refusal
        for refusal in refusals
        if refusal.first is not None
        and first is not None
        and refusal.first.source == first.source
        and 0 < first.number - max(event.last.number for event in refusal.events) <= NEXT_STEP
    ]
    last = max(before, key=lambda refusal: refusal.order, default=None)
    if last is None or first is None or last.first is None:
        return None
    since = (
        event.pattern == _INSTALLED
        and event.last.source == first.source
        and last.first.number < event.last.number < first.number
        for event in events
    )
    return None if any(since) else last
