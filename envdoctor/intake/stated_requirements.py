"""What a text says that one distribution asks of another: ``vllm 0.6.5 requires torch==2.5.1``,
``autoawq pins transformers: <=4.47.1``, ``X>=2 is required by Y``.

It counts where no metadata of the release are known; where they are, it is quoted beside them.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Iterator, NamedTuple, Optional

from ..model.requirement import Requirement, try_requirement
from .claimed_version import ClaimedVersion, claimed_version
from .clean_text import Line, parted_scripts
from .distribution_names import COMMON_WORDS, known_distribution
from .draft import PROSE, Draft
from .worded_ranges import RANGE, specifier_of

__all__ = ["read_requirements"]

_NAME = r"[A-Za-z0-9](?:[\w.-]{0,80}[A-Za-z0-9])?"
_ASKS = (
    r"\b(?P<takes>accepts?(?: only)?|takes only|allows(?: only)?|works only with|(?:is |are )?"
    r"(?:only )?compatible(?: only)? with|(?:is |are )?(?:limited|restricted|capped) to)\b"
    r"|\brequires?\b|\bdepends? on\b|\bhas requirement\b|\b(?:hard[- ])?pin(?:s|ned)?\b|\bneeds?\b"
    r"|\bwants?\b|\bexpects?\b|\basks? for\b|\bonly (?:supports?|works? with)|\bsupports? only\b"
    r"|要求|需要|依赖|[只仅]支持"
)
#: Words between a verb and the name of what is asked for, and between that and its range.
_BEFORE_NAME = (
    r"(?: ?(?:the|an?|HF|Hugging ?Face|its|package|library|dependency|to|on)\b)*[:,]? *的? *"
)
_BEHIND_NAME = (
    r"(?: (?:package|library|dependency|module|versions?|release|is|to|at|be|of|be|thus|as|"
    r"strictly|\([^()]{1,40}\)))*(?P<is> ?版本(?: ?[是为])?)?[:,]? ?"
)
#: A release without a range is at least asked for.
_ASKED = (
    rf"(?P<asked>{_NAME})(?P<extras>\[[\w,-]+\])?{_BEHIND_NAME}(?:(?P=asked) ?)?"
    rf"(?:(?P<range>{RANGE})|(?P<number>v?\d+(?:\.\d+)+[\w+]*))"
)
_RELEASED = r"(?P<name>NAME)(?: *={0,2} ?v?(?P<version>\d[\w.]{0,40}))?".replace("NAME", _NAME)
_REQUIRER = re.compile(rf"(?<![\w./-]){_RELEASED}(?![\w./-])")
#: ``A 1.2 requires B>=3``, ``gradio==5.50.0 (… needs starlette<1.0)``: who asks stands before it.
_ACTIVE = re.compile(rf"(?P<verb>{_ASKS}){_BEFORE_NAME}{_ASKED}", re.IGNORECASE)
#: ``B>=3 is required by A 1.2``.
_PASSIVE = re.compile(
    rf"(?<![\w./-]){_ASKED}(?: (?:is|was|are|being|gets?))? (?P<verb>required|needed|pinned|wanted|"
    rf"asked for) (?:by|for) (?:the )?{_RELEASED}",
    re.IGNORECASE,
)
#: ``A supports CUDA 11.7 to 12.5 only``, ``A needs Python >= 3.10``.
_OF_MACHINE = re.compile(
    rf"(?P<verb>{_ASKS}|\bsupports?\b|\b(?:ha(?:s|ve)|with|ships?) (?:\w+ )?(?:libraries|binaries|"
    r"wheels|builds|kernels) for)(?: (?:the|an?|NVIDIA))*(?: only)? ?(?P<what>CUDA|Python|drivers?)"
    r"(?: (?:toolkits?|versions?|releases?|runtimes?|driver|is|to|be)){0,3} ?"
    rf"(?:(?P<low>\d{{1,3}}\.\d{{1,2}}) ?(?:-|–|~|to|through|到|至) ?(?P<high>\d{{1,3}}\.\d{{1,2}})"
    rf"(?![\d.])|(?P<range>{RANGE}))",
    re.IGNORECASE,
)
_MACHINE = {"cuda": "CUDA", "python": "Python", "driver": "driver", "drivers": "driver"}
_CLAUSE_END = re.compile(r"[.;!?]\s|\s(?:but|while|whereas|and|because|since|so)\s|\([^()]*\)")
#: ``A needs B>=2 and C 1.5``: what else the same verb asks for.
_ALSO = re.compile(
    rf",? (?:and|as well as|plus) {_BEFORE_NAME}{_ASKED}(?! (?:or|is|are)\b)", re.IGNORECASE
)
#: Who asks where nobody's distribution does: what the writer makes.
_OWN = re.compile(
    r"\b(?:my|our|this) (?:\w+ )?(?:project|code|repo(?:sitory)?|app(?:lication)?|package|model|"
    r"program|script)s?(?: (?:itself|also))?\s*$",
    re.IGNORECASE,
)
_VERBS = (
    *("libraries", "binaries", "wheels", "builds", "kernels"),
    *(
        "accept",
        "takes only",
        "allows",
        "works only",
        "compatible",
        "limited",
        "restrict",
        "capped",
    ),
    *("require", "depend", "need", "pin", "want", "expect", "ask", "support", "Support", "only"),
    *("要求", "需要", "依赖", "支持"),
)
_WIDE = str.maketrans("：，（）", ":,()")
#: Before the verb: that it is somebody's wish, or denied.
_NOT_ASKED = re.compile(
    r"\b(?:should|could|would|might|may|must|please|not|no longer|n't|don't|if|whether|why)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|whether|unless|in case)\b|如果|是否", re.IGNORECASE)
_FAR = 60  # characters from who asks to the verb
_MOST = 20  # of one line
_WHOLE_LINE = 200  # characters of a line that says nothing else


class _Demand(NamedTuple):
    """Who asks, in which release, and for what."""

    name: str
    version: Optional[str]
    asked: Requirement
    is_bare: bool  # a release without a range: it says little of who asks


def read_requirements(line: Line, draft: Draft) -> bool:
    """Claim what distributions ask of each other, and that they are installed, no more surely than
    they are; tell whether the line says nothing else.
    """
    if not any(map(line.text.__contains__, _VERBS)) or line.text.endswith("?"):
        return False
    text = parted_scripts(line.text).translate(_WIDE)
    _read_of_machine(text, line, draft)
    taken = False
    for demand in _demands(text):
        if not demand.name:
            draft.keep("report.wanted", demand.asked.name, demand.asked.specifier, line)
            continue
        draft.requirement(demand.name, demand.asked.line)
        if not demand.is_bare:
            release = claimed_version(demand.version or "") or ClaimedVersion()
            draft.distribution(
                demand.name, release.version, line, PROSE, constraint=release.constraint
            )
            taken = True
    return taken and len(text) < _WHOLE_LINE and " but " not in text


def _read_of_machine(text: str, line: Line, draft: Draft) -> None:
    """Keep which releases of CUDA, Python or the driver a text says that a distribution takes."""
    for match in islice(_OF_MACHINE.finditer(text), _MOST):
        before = _CLAUSE_END.sub(_blank, text[: match.start()])[-_FAR:]
        requirer = _named_last(before)
        if requirer is None or _SUPPOSED.search(before) or _NOT_ASKED.search(before):
            continue
        name = known_distribution(requirer.group("name"))
        if match.group("range"):
            specifier = specifier_of(match.group("range"))
        else:
            specifier = f">={match.group('low')},<={match.group('high')}"
        if name and name not in COMMON_WORDS:
            what = _MACHINE[match.group("what").lower()]
            draft.keep("report.takes", f"{name} {what}", specifier, line)


def _demands(text: str) -> Iterator[_Demand]:
    for match in islice(_ACTIVE.finditer(text), _MOST):
        before = _CLAUSE_END.sub(_blank, text[: match.start()])[-_FAR:]
        requirer = _named_last(before)
        if _OWN.search(before.rpartition("\n")[2]):
            yield from _own_demand(match)
            continue
        if requirer is None or _SUPPOSED.search(before, 0, requirer.start()):
            continue
        if _NOT_ASKED.search(before, requirer.end()) is None:
            yield from _demand(requirer, match)
            also = _ALSO.match(text, match.end())
            if also is not None:
                yield from _demand(requirer, also, match.group("verb"))
    for match in islice(_PASSIVE.finditer(text), _MOST) if "ed " in text else ():
        yield from _demand(match, match)


def _blank(match: re.Match[str]) -> str:
    """What stands in a bracket is passed over; before another clause nobody asks for anything."""
    return " " * len(match.group()) if match.group().startswith("(") else "\n" * len(match.group())


def _named_last(text: str) -> Optional[re.Match[str]]:
    """Return the last distribution that a text names: a known one, or one with its release."""
    named = None
    for match in _REQUIRER.finditer(text.rpartition("\n")[2]):
        known = known_distribution(match.group("name"))
        if known not in (None, *COMMON_WORDS) or "." in (match.group("version") or ""):
            named = match
    return named


def _own_demand(match: re.Match[str]) -> Iterator[_Demand]:
    """Yield what the writer's own program asks for, by a range."""
    asked = known_distribution(match.group("asked"))
    requirement = try_requirement(f"{asked}{_specifier(match, match.group('verb'))}")
    if asked and requirement is not None and match.group("range"):
        yield _Demand("", None, requirement, False)


def _demand(requirer: re.Match[str], match: re.Match[str], verb: str = "") -> Iterator[_Demand]:
    verb = verb or match.group("verb")
    if match.groupdict().get("takes") and not match.group("range"):
        return  # the releases that are named need not be all
    name, version = requirer.group("name", "version")
    known = known_distribution(name) or (version and "." in version and name)
    asked, words = match.group("asked", "range")
    asked = known_distribution(asked) or (words and words[0] in "<>=!~" and asked)
    specifier = _specifier(match, verb)
    if (
        not known
        or known in COMMON_WORDS
        or not asked
        or asked.lower() in _MACHINE
        or asked == known
        or not specifier
    ):
        return
    requirement = try_requirement(f"{asked}{match.group('extras') or ''}{specifier}")
    if requirement is not None:
        is_bare = not any(match.group("range", "is"))
        yield _Demand(known, version, requirement, is_bare)


def _specifier(match: re.Match[str], verb: str) -> str:
    """Return the range that a demand names. A release alone is at least asked for: whether a newer
    one would do it does not say; a pin takes no other.
    """
    if match.group("range"):
        return specifier_of(match.group("range"))
    number = match.group("number").lstrip("v").rstrip(".+")
    is_exact = "pin" in verb.lower() or (match.group("is") or "")[-1:] in (
        "是",
        "为",
    )
    return f"=={number}" if is_exact else f">={number}"
