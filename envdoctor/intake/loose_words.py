"""What people say in a roundabout way, in the words that the grammar of statements reads:
``after upgrading torch to 2.6`` is ``Now torch 2.6``, ``a 5090`` is ``a RTX 5090``.
"""

from __future__ import annotations

import re

__all__ = ["plain_words", "said_to_fail"]

#: What each number of a device, and each version, below has in it.
_GEFORCE = re.compile(r"[2345]0[6789]0")
_RELEASE = re.compile(r"\d[\w.]")
#: ``3*4090``, ``8卡3090``: a count and the number of a GeForce, without its name.
_BARE_NUMBER = re.compile(
    r"(?<![\w.*/-])(\d{1,2})\s?[x×*卡张块]\s?([2345]0[6789]0)(?!\.?\d|\*)\s?(Ti|SUPER|D)?(?![a-z])",
    re.IGNORECASE,
)
#: A GeForce by its bare number: ``with a 5090``, ``on my 4090``.
_ONE_BARE_NUMBER = re.compile(
    r"\b(an?|my|our|the|this|new|bought|single|one|two|dual|four) {1,2}([2345]0[6789]0)"
    r"(?![\w.,-]?\d)"
    r" ?(Ti|SUPER|D)?(?=s?(?: (?!tokens?|steps?|samples?|lines?|files?|images?|examples?|words?|"
    r"ms\b|[KMG]i?B|requests?|iterations?|characters?|seconds?|x\b)[a-zA-Z]| ?[,;:)?!]|\.?$|\. ))",
)
_NAME = r"[A-Za-z][\w-]{1,40}"
_VERSION = r"(?:versions?\s+)?v?(?:\d+\.\d[\w.]*\w|\d+\.\d)"
_NUMBER = r"(?:versions?\s+)?v?(\d+\.\d[\w.]*\w|\d+\.\d)"
_MADE = (
    r"(?:(?:updat|upgrad|downgrad|switch|mov|bump|migrat|revert)(?:ed|ing)|"
    r"(?:rolled|rolling|going) back|went(?: back)?)"
)
_TIME = r"(?:after|since|when|until|once)"
_CHANGE = r"(?:upgrade|update|downgrade|switch|move|migration|bump)"
#: What a text has in it that says a change.
_MAY_CHANGE = re.compile(
    r"grad|updat|switch|mov(?:e|ing)|bump|migrat|revert|back|went", re.IGNORECASE
)
#: ``we went from torch 2.5 to 2.6``: 2.6 is there.
_CHANGED = (
    rf"\b(?:{_TIME}\s+)?(?:(?:I|we)\s+)?(?:just\s+|recently\s+)?{_MADE}\s+(?:the\s+|my\s+)?"
    rf"(?:({_NAME})\s+from\s+(?:version\s+)?v?\d[\w.]*|from\s+({_NAME})\s+{_VERSION})\s+to\s+"
    rf"(?:{_NAME}\s+)?{_NUMBER}"
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
_CHANGES = tuple(
    re.compile(form, re.IGNORECASE) for form in (_CHANGED, _CHANGED_TO, _CHANGE_TO, _WAS_CHANGED)
)
#: ``we have torch pinned to 2.6``, ``our torch is pinned at 2.6``.
_PINNED = re.compile(
    rf"\b(?:(?:I|we)\s+(?:have|keep|had|run)|(?:my|our))\s+({_NAME})\s+(?:version\s+)?(?:is\s+)?"
    rf"pinned\s+(?:to|at)\s+{_NUMBER}"
    rf"|\b(?:I|we)(?:'ve| have)? pinned\s+({_NAME})\s+(?:to|at)\s+{_NUMBER}",
    re.IGNORECASE,
)
#: ``in my python 3.11 version``, ``a project which uses python 3.12``, ``Colab runs on Python
#: 3.10``: somebody's own.
_OWN = re.compile(
    rf"\b(?:(?:my|our)(?:\s+(?:local|current|own))?|(?:project|which|that|environment|env|"
    rf"machine|server|cluster|image|container|colab|kaggle)\s+(?:uses?|has|runs?(?:\s+on)?))\s+"
    rf"({_NAME})\s+(?:version\s+)?(?:is\s+)?{_NUMBER}(?!\+?\s+or\b|\.x)(?: version)?",
    re.IGNORECASE,
)
#: ``it does not install with Python 3.13``, ``crashes on driver 550``: the one that fails is there.
_BREAKING = (
    r"(?:fails?|failed|failing|crash(?:es|ed|ing)?|breaks?|broken|hangs?|segfaults?|errors? out|"
    r"(?:does not|doesn't|do not|don't|did not|didn't|can't|cannot|won't|can not|unable to|not)"
    r" (?:\w+ )?(?:work|run|load|import|compile|build|start|install|launch)(?:s|ing|ed)?)"
)
_FAILS_WITH = re.compile(
    rf"(?P<failing>\b{_BREAKING}\b(?:(?!\b(?:if|unless)\b)[^.;,]){{0,40}}?)"
    rf" (?:with|on|in|under|using)"
    rf" (?:the )?(?:latest )?({_NAME})(?:\s+version)?\s+{_NUMBER}(?![\w+])"
    rf"(?!\s*(?:and|or)\s+(?:newer|above|later|below|older|earlier))",
    re.IGNORECASE,
)
#: Before a failure: that it is only feared, or one of others.
_FEARED = re.compile(
    r"\b(?:if|whether|when|might|may|could|would|should|will|to|in case|other|known|README|docs?|"
    r"says?|said|expected|used to)\b[^.;,]{0,60}$",
    re.IGNORECASE,
)
#: ``CUDA 12.6, 2.4.1+cu124``: a build of torch without its name.
_NAMELESS_BUILD = re.compile(r"(^|[,;:(]\s*)(?=\d\.\d{1,2}\.\d\+cu\d{2,3}\b)")
#: ``py3.12``.
_SHORT_PYTHON = re.compile(r"(?<![\w./-])py(?=3\.\d{1,2}\b)")
#: ``version 2.6 of torch``.
_VERSION_OF = re.compile(
    rf"\bversion\s+v?(\d+\.\d[\w.]*\w|\d+\.\d)\s+of\s+(?:the\s+)?({_NAME})", re.IGNORECASE
)
#: ``since torch 2.6 it hangs``, ``it crashes since torch 2.6``: that release or a newer one.
_FAILS = r"\b(?:hangs?|fails?|failing|crash(?:es|ing)?|breaks?|broken)\b"
_SINCE = re.compile(
    rf"\b(?:since|starting (?:with|from|in))\s+"
    rf"(?:({_NAME})\s+{_NUMBER}|{_NUMBER},?\s+({_NAME}))(?=[^.;]{{0,60}}{_FAILS})"
    rf"|(?P<failing>{_FAILS}[^.;]{{0,30}}?)\bsince\s+({_NAME})\s+{_NUMBER}",
    re.IGNORECASE,
)
_MAY_SAY_SINCE = re.compile(r"since|starting", re.IGNORECASE)
#: ``if I use torch 2.5 it works``: that one is not there.
_WOULD_WORK = re.compile(
    rf"\b(?:if|when|once)\s+(?:I|we|you|one)\s+(?:use|run|install|take|pin|try)(?:ed|d)?\s+{_NAME}"
    rf"(?:\s*==\s*|\s+){_VERSION}(?P<rest>[^.;]{{0,50}}?"
    r"\b(?:works?|worked|fine|gone|goes away|disappears?)\b)",
    re.IGNORECASE,
)
#: ``works with X 2.5.2 but breaks with 2.6.5``: the one that breaks is there.
_WORKED = re.compile(
    r"\b(?:works?|worked|runs?|ran|fine|ok)\b(?: \w+){0,2} (?:with|on|in|under|using) "
    r"([A-Za-z][\w-]{1,40})(?: version)? v?\d+\.\d[\w.]*.{0,40}?"
    r"\b(?:breaks?|broke|broken|fails?|failed|crash(?:es|ed)?|not|errors?)\b(?: \w+){0,3}? "
    r"(?:with|on|in|since|from|under|using)(?: \1)?(?: version)? v?(\d+\.\d[\w.]*\w|\d+\.\d)",
    re.IGNORECASE,
)
#: ``torch 2.5 works fine, 2.6 fails``.
_BREAKS = re.compile(
    r"(?<![\w./-])([A-Za-z][\w-]{1,40})(?: version)? v?\d+\.\d[\w.]*"
    r"(?: (?:works?|worked|is|was|runs|ran)(?: \w+){0,2})?(?:,|;| but| while| and)(?: but)?"
    r"(?: with| on| version| \1)? v?(\d+\.\d[\w.]*\w|\d+\.\d) "
    r"(?:breaks?|broke|fails?|failed|crash(?:es|ed)?|raises?|throws?|gives?|hangs?|errors?|"
    r"doesn't|does not|didn't|no longer|is broken)\b",
    re.IGNORECASE,
)
#: ``downgrading numpy to 1.26.4 solved it``: what was there before is newer; ``from 2.1`` tells it.
_CURED = re.compile(
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
    re.IGNORECASE,
)
#: Before a change: that it is what cured.
_CURE = re.compile(
    r"\b(?:fix(?:ed|es)|solv(?:ed|es)|resolv(?:ed|es)|works?|worked|gone|disappear(?:ed|s)|"
    r"went away)\b(?:(?!\bbut\b)[^.;!?,]){0,60}$",
    re.IGNORECASE,
)
#: Before a change: that it is only thought of. What is read of it stays in that clause.
_THOUGHT_OF = re.compile(r"\b(?:if|whether|should|would|could)\s+(?:\w+\s+)?$", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|no|never|didn|doesn|nothing|neither)\b|n't", re.IGNORECASE)


def _before_cure(match: re.Match[str]) -> str:
    """Return what was there before a change that cured it; a change that did not is there now."""
    if _NOT.search(match.group("rest")):
        return match.group()
    name = match.group("name") or match.group("other") or match.group("whose")
    old = match.group("old") or match.group("was")
    if old:
        return f"Now {name} {old}, "
    return f"{name}{'<' if match.group('up') else '>'}{match.group('new')} "


def _now(match: re.Match[str]) -> str:
    """Return what is there after a change; one that cured is not there."""
    before = match.string[max(0, match.start() - 100) : match.start()]
    until = match.group().lower().startswith("until")
    if not until and _CURE.search(before) and not _NOT.search(before):
        return match.group()
    name, version = filter(None, match.groups())
    apart = before and not _THOUGHT_OF.search(before)
    return f"{'; ' if apart else ''}Now {name} {version}, "


def _stated(match: re.Match[str]) -> str:
    name, version = filter(None, match.groups())
    return f"Now {name} {version}, "


def _since(match: re.Match[str]) -> str:
    """Return that a release, or a newer one, is there."""
    failing = match.group("failing") or ""
    first, second = filter(None, match.group(1, 2, 3, 4, 6, 7))
    name, version = (second, first) if first[0].isdigit() else (first, second)
    return f"{failing}{name}>={version} "


def _unless_failing(match: re.Match[str]) -> str:
    return match.group() if _NOT.search(match.group("rest")) else ""


def _fails_with(match: re.Match[str]) -> str:
    """Return what fails, and that the release with which it does is there."""
    before = match.string[max(0, match.start() - 80) : match.start()]
    if _FEARED.search(before):
        return match.group()
    return f"{match.group('failing')}; currently {match.group(2)} {match.group(3)}, "


def said_to_fail(text: str) -> str:
    """Return a text that says of what fails with a release that this one is there."""
    return _FAILS_WITH.sub(_fails_with, text) if _RELEASE.search(text) else text


def _own(match: re.Match[str]) -> str:
    name, version = match.groups()
    return f"; currently {name} {version}, "


def plain_words(text: str) -> str:
    """Return a text with the versions that are there now and the full names of devices."""
    if _GEFORCE.search(text):
        text = _BARE_NUMBER.sub(r"\1x RTX \2 \3 ", text)
        text = _ONE_BARE_NUMBER.sub(r"\1 RTX \2 \3", text)
    if _RELEASE.search(text) is None:
        return text
    if "ersion" in text:
        text = _VERSION_OF.sub(r"\2 \1", text)
    if "+cu" in text:
        text = _NAMELESS_BUILD.sub(r"\1torch ", text)
    if "py3." in text:
        text = _SHORT_PYTHON.sub("python ", text)
    text = _OWN.sub(_own, _WOULD_WORK.sub(_unless_failing, text))
    if _MAY_CHANGE.search(text):
        text = _CURED.sub(_before_cure, text)
        for changed in _CHANGES:
            text = changed.sub(_now, text)
    for stated in (_PINNED, _WORKED, _BREAKS):
        text = stated.sub(_stated, text)
    return _SINCE.sub(_since, text) if _MAY_SAY_SINCE.search(text) else text
