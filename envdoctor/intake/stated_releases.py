"""Releases that people tell in a roundabout way: ``after upgrading torch to 2.6``, ``works with
peft 0.13 but breaks with 0.14``, ``downgrading numpy to 1.26 solved it``.

Each form says which release is there, or in which range it is; what it said is read, and taken out
of the text before its other words are. The words before it decide whether it is the writer's.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Callable, NamedTuple, Optional, Tuple

from .clean_text import Line
from .distribution_names import COMMON_WORDS, known_distribution
from .draft import PROSE, Draft
from .marked import Marked
from .presence import is_here
from .stated_verdicts import read_verdicts, topic_of
from .values import Claim, state

__all__ = ["plain_names", "read_compared"]

#: What each version below has in it.
_RELEASE = re.compile(r"\d[\w.]")
_NAME = r"[A-Za-z][\w-]{1,40}"
_DIGITS = r"\d+\.\d[\w.]*\w|\d+\.\d"
_VERSION = rf"(?:versions?\s+)?v?(?:{_DIGITS})"
_NUMBER = rf"(?:versions?\s+)?v?({_DIGITS})"
_MADE = (
    r"(?:(?:updat|upgrad|downgrad|switch|mov|bump|migrat|revert)(?:ed|ing)|"
    r"(?:rolled|rolling|going) back|went(?: back)?)"
)
_TIME = r"(?:after|since|when|until|once)"
_CHANGE = r"(?:upgrade|update|downgrade|switch|move|migration|bump)"
#: ``we went from torch 2.5 to 2.6``: 2.6 is there.
_CHANGED = (
    rf"\b(?:{_TIME}\s+)?(?:(?:I|we)\s+)?(?:just\s+|recently\s+)?{_MADE}\s+(?:the\s+|my\s+)?"
    rf"(?:({_NAME})\s+from\s+(?:version\s+)?v?(?P<old>\d[\w.]*)|from\s+({_NAME})\s+"
    rf"v?(?P<old2>\d[\w.]*))\s+to\s+(?:the\s+)?(?:{_NAME}\s+)?{_NUMBER}"
)
_BREAKS_BEHIND = re.compile(
    r"^[^;!?]{0,90}?\b(?:fail\w*|crash\w*|br(?:eaks|oke)|broken|cannot|can't|errors?|hangs?|"
    r"no longer|does ?n[o']t|stopped|unable|stuck|OOM|slower)\b",
    re.IGNORECASE,
)
#: ``after upgrading torch to 2.6``, ``we moved to torch 2.6``; ``fixed by upgrading …`` is none.
_CHANGED_TO = (
    rf"\b(?:{_TIME}\s+(?:(?:I|we)\s+)?|(?:I|we|I've|we've|have|has|had|just|recently)\s+)"
    rf"(?:just\s+|recently\s+)?{_MADE}\s+(?:the\s+|my\s+)?"
    rf"(?:({_NAME})\s+(?:version\s+)?(?:back\s+)?to|to\s+(?:the\s+)?(?:latest\s+)?({_NAME}))"
    rf"\s+{_NUMBER}"
)
#: ``after the upgrade of torch to 2.6``, ``the upgrade to torch 2.6 broke it``.
_CHANGE_TO = (
    rf"\b(?:(?:{_TIME}|with)\s+(?:the|an?|my|our)\s+{_CHANGE}"
    rf"|the\s+{_CHANGE}(?=.{{1,70}}\b(?:broke|breaks|caused)))"
    rf"\s+(?:of\s+({_NAME})\s+to|from\s+{_NAME}\s+{_VERSION}\s+to\s+(?!v?\d)({_NAME})"
    rf"|to\s+({_NAME}))\s+{_NUMBER}"
)
#: ``torch was upgraded to 2.6``.
_WAS_CHANGED = (
    rf"(?<![\w./-])({_NAME})\s+(?:version\s+)?"
    r"(?:(?:is(?:\s+now)?|was|got|has been|had been|were)\s+)?"
    rf"(?:\w+ly\s+)?{_MADE}\s+"
    rf"(?:from\s+{_VERSION}\s+)?to\s+{_NUMBER}"
)
#: What each of them has.
_OF_CHANGES = "updat, grad, switch, mov, migrat, bump, revert, roll, going, went"
_CHANGES = tuple(
    Marked(_OF_CHANGES, form) for form in (_CHANGED, _CHANGED_TO, _CHANGE_TO, _WAS_CHANGED)
)
#: ``we have torch pinned to 2.6``, ``our torch is pinned at 2.6``.
_PINNED = Marked(
    "pinned",
    rf"\b(?:(?:I|we)\s+(?:have|keep|had|run)|(?:my|our))\s+({_NAME})\s+(?:version\s+)?(?:is\s+)?"
    rf"pinned\s+(?:to|at)\s+{_NUMBER}"
    rf"|\b(?:I|we)(?:'ve| have)? pinned\s+({_NAME})\s+(?:to|at)\s+{_NUMBER}",
)
#: ``CUDA 12.6, 2.4.1+cu124``: a build of torch without its name.
_NAMELESS_BUILD = re.compile(r"(^|[,;:(]\s*)(?=\d\.\d{1,2}\.\d\+cu\d{2,3}\b)")
#: ``py3.12``.
_SHORT_PYTHON = re.compile(r"(?<![\w./-])py(?=3\.\d{1,2}\b)")
#: ``version 2.6 of torch``.
_VERSION_OF = re.compile(
    rf"(?:\bversion\s+v?(?P<one>\d+\.\d[\w.]*\w|\d+\.\d)|"
    rf"(?<![\w.])v?(?P<two>\d+\.\d[\w.]*\w|\d+\.\d)\s+version)\s+of\s+(?:the\s+)?({_NAME})",
    re.IGNORECASE,
)
#: ``the current version of my accelerate library is 1.2.1``.
_VERSION_IS = re.compile(
    rf"\b(?:version|release) of (?:my|our|the) ({_NAME})(?: library| package| module)?"
    r"(?: (?:here|installed|I use|we use|I have|we have))? (?:is|was|:|=) (?=v?\d+\.\d)",
    re.IGNORECASE,
)
#: ``since torch 2.6 it hangs``, ``it crashes since torch 2.6``: that release or a newer one.
_FAILS = r"\b(?:hangs?|fails?|failing|crash(?:es|ing)?|breaks?|broken)\b"
_SINCE = Marked(
    "since, starting",
    rf"\b(?:since|starting (?:with|from|in))\s+"
    rf"(?:({_NAME})\s+{_NUMBER}|{_NUMBER},?\s+({_NAME}))(?=[^.;]{{0,60}}{_FAILS})"
    rf"|(?P<failing>{_FAILS}[^.;]{{0,30}}?)\bsince\s+({_NAME})\s+{_NUMBER}",
)
#: ``if I use torch 2.5 it works``, ``when I set torch=2.5, it runs``: that one is not there.
_WOULD_WORK = Marked(
    "if , when , once , after , by ",
    r"\b(?:(?:if|when|once|after)\s+(?:I|we|you|one)\s+(?:use|run|install|take|pin|tr(?:y|ied)|"
    rf"set|switch(?:ed)?\s+to|chang\w+\s+to|go\s+back\s+to|went\s+back\s+to)(?:ed|d)?|"
    rf"(?:by|after)\s+(?:using|installing|setting|pinning))\s+(?P<name>{_NAME})"
    rf"(?:\s*={{1,2}}\s*|\s+(?:to\s+)?)(?:versions?\s+)?v?(?P<new>{_DIGITS})(?P<rest>[^.;]{{0,60}}?"
    r"\b(?:works?|worked|fine|gone|goes away|disappears?|runs?|ran|succe\w+|passe[sd]|trains?)\b)",
)
#: In what such a release does: that nobody has seen it.
_HOPED = re.compile(r"\b(?:should|would|might|may|could|must|maybe|\?)\b", re.IGNORECASE)
#: ``cmake 3.31 breaks the build``: that one is there.
_BREAKS_ALONE = Marked(
    "breaks, broke, breaking",
    rf"(?<![\w./-])(?:the )?(?:recent |new |latest )?({_NAME})(?: version)? "
    rf"v?(\d+\.\d[\w.]*\w|\d+\.\d)(?: release)? (?:breaks|broke|(?:has |is )?breaking)\b",
)
#: ``changing back to 0.17.0 made the error disappear``: of what was named last.
_CURED_ALONE = Marked(
    "to",
    r"\b(?:chang|switch|roll|go|went|revert|downgrad|mov)(?:ing|ed|e)? ?(?:it )?(?:back )?to "
    r"(?:the |version |v)*(?P<good>\d+\.\d[\w.]*\w|\d+\.\d)(?: version)?(?P<rest>[^.;]{0,70}?"
    r"\b(?:fix(?:es|ed)?|solv(?:es|ed)|resolv(?:es|ed)|works?|worked|disappear\w*|gone|went "
    r"away|goes away)\b)",
)
#: ``To fix, downgrade to 331.20``, ``Workaround: pin torch==2.5.1``: what is there is another one.
_WAY_OUT = Marked(
    "fix, solve, workaround, work-around, solution",
    r"\b(?:to (?:fix|solve|resolve)(?: (?:it|this|that|the \w+))?|"
    r"(?:(?:current|temporary|my|quick) )?"
    r"(?:workaround|work-around|solution|fix)(?: right now| for now| is| was)*)\s*[,:：]?\s*"
    r"(?:to |by |I |we |just ){0,2}(?:upgrad|downgrad|revert|roll|pin|install)\w*(?: back)? "
    rf"(?:the |my )?(?:to (?=v?\d|version)|(?P<name>{_NAME}?)(?: version)?(?: back)?"
    r"(?: to | at |\s*==\s*| )|)(?:version )?v?(?P<good>\d+\.\d[\w.]*\w|\d+\.\d)(?!\w|\.\d)",
)
#: ``it automatically installs torch 2.5.1+cu124``: that one is there now.
_PULLED_IN = Marked(
    "install, pull, download, bring, upgrad",
    r"\b(?:automatically|ends? up|ended up|silently|by default|always|forcibly|but)\s+(?:re)?"
    r"(?:install|pull|download|bring|upgrad)(?:s|ed|es|ing)?(?:\s+(?:in|to|me|the|latest|newest|"
    rf"version|of|a|an)){{0,5}}\s+(?P<name>{_NAME}?)(?:\s*==\s*|\s+|(?=\d))v?"
    r"(?P<here>\d+\.\d[\w.]*\w(?:\+\w+)?|\d+\.\d)",
)
#: ``No CUDA GPUs are available in transformers v4.48.0 or above``: an older one works.
_FROM_ON = Marked(
    """
    or above, or later, or newer, or higher, or greater, or up, and above, and later, and newer,
    and higher, and greater, and up, +, 以上
    """,
    rf"(?<![\w./-])(?P<name>{_NAME})\s+(?:versions?\s+)?v?(?P<first>\d+\.\d[\w.]*\w|\d+\.\d)\s*"
    r"(?:\+(?!\w)|(?:or|and) (?:above|later|newer|higher|greater|up|upwards)\b|及?以上)",
)
#: What such a text says to happen, before or behind.
_GOES_WRONG = re.compile(
    r"\b(?:fail\w*|crash\w*|br(?:eaks|oken|oke)|errors?|hangs?|stuck|cannot|can't|unable|not "
    r"work\w*|segfault\w*|no longer \w+|(?-i:[A-Z])\w+(?:Error|Exception)|OOM|"
    r"no \w+ (?:GPUs )?(?:are|is) (?:available|found))\b|报错|失败|无法",
    re.IGNORECASE,
)
#: Before it: that such a release is asked for, or is the cure.
_ASKED_FOR = re.compile(
    r"\b(?:requir\w+|needs?|needed|support\w*|fix\w*|work(?:s|ed|ing)|recommend\w*|should|must|"
    r"install\w*|upgrad\w*|updat\w*|use|introduced|added|at least|tested|compatible|only)\b"
    r"[^,.;]{0,40}$|需要|要求|建议|推荐",
    re.IGNORECASE,
)
_NAMED_BEFORE = re.compile(r"(?<![\w./-])([A-Za-z][\w-]{1,40})")
#: ``downgrading numpy to 1.26.4 solved it``: what was there before is newer; ``from 2.1`` tells it.
_CURED = Marked(
    "grad, updat, revert, roll, go, went",
    r"\b(?:after |by |when |if )?(?:I |we )?(?:(?P<up>(?:upgrad|updat)(?:ed|ing|e))|"
    r"downgrad(?:ed|ing|e)|revert(?:ed|ing)?|(?:roll(?:ed|ing)?|go(?:ing)?) back|went back)"
    r"\s+(?:the |my )?"
    rf"(?:(?P<name>{_NAME}?)(?:\s+version)?(?:\s+from\s+v?(?P<old>\d[\w.]*\w))?"
    rf"\s+(?:back )?to|to\s+(?P<other>{_NAME})"
    rf"|from\s+(?P<whose>{_NAME})\s+v?(?P<was>\d[\w.]*\w)\s+to)"
    r"\s+(?:version\s+)?v?(?P<new>\d+\.\d[\w.]*\w|\d+\.\d)(?P<rest>[^.;]{0,60}?"
    r"\b(?:fix(?:es|ed)?|solv(?:es|ed)|resolv(?:es|ed)|works?|worked|help(?:s|ed)|cure[sd]|"
    r"(?:error|issue|problem) (?:is |was )?(?:gone|disappears?)|go(?:es)? away|went away)\b)"
    r"(?![^.;]{0,30}\bbut\b)",
)
#: Before a change: that it is what cured.
_CURE = re.compile(
    r"\b(?:fix(?:ed|es)|solv(?:ed|es)|resolv(?:ed|es)|works?|worked|gone|disappear(?:ed|s)|"
    r"went away)\b(?:(?!\bbut\b)[^.;!?,]){0,60}$",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|no|never|didn|doesn|nothing|neither)\b|n't", re.IGNORECASE)


class _Telling(NamedTuple):
    """What a match says: of which name, which version or range, what of its words stays, and the
    release with which it works.
    """

    name: str
    version: str
    rest: str = "; "
    works: str = ""


def _in_order(match: re.Match[str]) -> Optional[_Telling]:
    name, version = filter(None, match.groups())
    return _Telling(name, version)


def _changed(match: re.Match[str]) -> Optional[_Telling]:
    """What is there after a change; one that cured is not there."""
    before = match.string[max(0, match.start() - 100) : match.start()]
    until = match.group().lower().startswith("until")
    if not until and _CURE.search(before) and not _NOT.search(before):
        return None
    groups = match.groupdict()
    old = groups.get("old") or groups.get("old2") or ""
    name, version = [group for group in match.groups() if group and group != old][:2]
    breaks = old and _BREAKS_BEHIND.match(match.string[match.end() :])
    return _Telling(name, version, works=old.rstrip(".") if breaks else "")


def _before_cure(match: re.Match[str]) -> Optional[_Telling]:
    """What was there before a change that cured it; a change that did not is there now."""
    if _NOT.search(match.group("rest")):
        return None
    name = match.group("name") or match.group("other") or match.group("whose")
    old = match.group("old") or match.group("was")
    new = match.group("new")
    return _Telling(name, old or f"{'<' if match.group('up') else '>'}{new}", works=new)


def _cured_alone(match: re.Match[str]) -> Optional[_Telling]:
    """What was cured by a release of what the text named last."""
    if _NOT.search(match.group("rest")):
        return None
    name = _named_last(match.string[: match.start()])
    return _Telling(name, "", match.group(), match.group("good")) if name else None


def _named_last(text: str) -> str:
    """Return the last name of a text that has releases, "" for none."""
    for match in reversed(list(_NAMED_BEFORE.finditer(text))):
        name: str = match.group(1)
        if topic_of(name) is not None and known_distribution(name) not in _INSTALLERS:
            return name
    return ""


def _way_out(match: re.Match[str]) -> Optional[_Telling]:
    """What works by somebody's way out, of its name or of what the text named last."""
    name = match.group("name") or _named_last(match.string[: match.start()])
    return _Telling(name, "", works=match.group("good")) if name else None


def _since(match: re.Match[str]) -> Optional[_Telling]:
    """That a release, or a newer one, is there."""
    first, second = filter(None, match.group(1, 2, 3, 4, 6, 7))
    name, version = (second, first) if first[0].isdigit() else (first, second)
    return _Telling(name, f">={version}", f"{match.group('failing') or ''}; ")


_Reader = Callable[["re.Match[str]"], Optional[_Telling]]
#: The forms, in the order in which they are looked for, and what a match of each tells.
_FORMS: Tuple[Tuple[Marked, _Reader], ...] = (
    (_CURED, _before_cure),
    (_CURED_ALONE, _cured_alone),
    (_WAY_OUT, _way_out),
    *((form, _changed) for form in _CHANGES),
    (_PINNED, _in_order),
)
#: What a release that works beside it says more plainly.
_ALONE: Tuple[Tuple[Marked, _Reader], ...] = (
    (_BREAKS_ALONE, _in_order),
    (_SINCE, _since),
)


def read_compared(text: str, line: Line, draft: Draft) -> Tuple[str, bool]:
    """Claim the releases that a text tells in these forms; return it without them, and whether
    there were any.
    """
    if _RELEASE.search(text) is None:
        return text, False
    text = _WOULD_WORK.sub(partial(_would_work, line, draft), text)
    text = _PULLED_IN.sub(partial(_pulled_in, line, draft), text)
    text = _FROM_ON.sub(partial(_from_on, line, draft), text)
    claims = draft.claims

    for form, read_match in _FORMS:
        text = form.sub(partial(_claimed, read_match, line, draft), text)
    text = read_verdicts(text, line, draft)
    for form, read_match in _ALONE:
        text = form.sub(partial(_claimed, read_match, line, draft), text)
    return text, draft.claims != claims


def _claimed(read_match: _Reader, line: Line, draft: Draft, match: re.Match[str]) -> str:
    """Claim what a match tells; return what of its words stays."""
    statement = read_match(match)
    subject = topic_of(statement.name) if statement is not None else None
    before = _SENTENCE.split(match.string[: match.start()])[-1]
    if statement is None or subject is None or not is_here(before, ""):
        return match.group()
    if statement.works:
        draft.works_with(subject.name, statement.works, line)
    if statement.version and (subject.kind == "distribution" or statement.version[0].isdigit()):
        state(Claim(subject, "said", statement.version, line), draft)
    return statement.rest


_INSTALLERS = ("pip", "uv", "conda")
_SENTENCE = re.compile(r"[.;!?]\s+")


def _pulled_in(line: Line, draft: Draft, match: re.Match[str]) -> str:
    """Claim what an installer brought, over what was there before."""
    name = known_distribution(match.group("name"))
    if name in (None, *COMMON_WORDS) or _NOT.search(match.string[: match.start()][-30:]):
        return match.group()
    draft.distribution(str(name), match.group("here"), line, PROSE - 1)
    return "; "


def _from_on(line: Line, draft: Draft, match: re.Match[str]) -> str:
    """Claim that what goes wrong does so from a release on."""
    before, behind = match.string[: match.start()][-120:], match.string[match.end() :]
    subject = topic_of(match.group("name"))
    if subject is None or subject.kind != "distribution" or _ASKED_FOR.search(before):
        return match.group()
    if not (_GOES_WRONG.search(before) or _GOES_WRONG.match(behind.lstrip())):
        return match.group()
    draft.works_with(subject.name, f"<{match.group('first')}", line)
    state(Claim(subject, "said", f">={match.group('first')}", line), draft)
    return "; "


def _would_work(line: Line, draft: Draft, match: re.Match[str]) -> str:
    """Keep the release of a match that somebody saw work; return what of its words stays."""
    if _NOT.search(match.group("rest")):
        return match.group()
    subject = topic_of(match.group("name"))
    seen = _HOPED.search(f"{match.group('rest')}{match.string[match.end() :][:1]}") is None
    if subject is not None and seen and not match.group().lower().startswith("if you"):
        draft.works_with(subject.name, match.group("new"), line)
    return ""


#: ``ray, version 2.9.3``, as programs built with click say it.
_OF_CLICK = re.compile(rf"(?<![\w./-])({_NAME}), version (?=v?\d)")
_DIGIT_AHEAD = re.compile(r"(?:^|[,;] )v?\d")
#: ``4.55.4 transformers``, at the beginning or behind a comma.
_AHEAD = re.compile(
    rf"(^|[,;] )v?(\d+\.\d+\.\d[\w.+]*) ({_NAME})(?=$|[,;]| (?!v?\d|version|release))"
)


def _swapped(match: re.Match[str]) -> str:
    """Return a release behind its name, where that is a distribution's."""
    before, version, name = match.groups()
    is_known = known_distribution(name) not in (None, *COMMON_WORDS)
    return f"{before}{name} {version}," if is_known else match.group()


def _behind_name(match: re.Match[str]) -> str:
    return f"{match.group(3)} {match.group('one') or match.group('two')}"


def plain_names(text: str) -> str:
    """Return a text with each version behind its name: ``version 2.6 of torch``, ``py3.12``."""
    if _RELEASE.search(text) is None:
        return text
    if "ersion" in text:
        text = _VERSION_OF.sub(_behind_name, text)
        text = _VERSION_IS.sub(r"\1 ", text)
        text = _OF_CLICK.sub(r"\1 ", text)
    if _DIGIT_AHEAD.search(text):
        text = _AHEAD.sub(_swapped, text)
    if "+cu" in text:
        text = _NAMELESS_BUILD.sub(r"\1torch ", text)
    return _SHORT_PYTHON.sub("python ", text) if "py3." in text else text
