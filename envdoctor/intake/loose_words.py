"""What people say in a roundabout way, in the words that the grammar of statements reads:
``after upgrading torch to 2.6`` is ``Now torch 2.6``, ``a 5090`` is ``a RTX 5090``.
"""

from __future__ import annotations

import re

__all__ = ["plain_words"]

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
    r"\b(an?|my|our|the|this|single|one|two|dual|four) ([2345]0[6789]0)(?![\w.,-]?\d)"
    r" ?(Ti|SUPER|D)?(?=s?(?: ?(?:GPUs?|cards?|and|with|it|I|on|in|to|running|laptop)\b| ?[,;:)?!]|"
    r"\.?$|\. ))",
)
#: ``after upgrading torch to 2.6``: that is what is there; ``fixed by upgrading …`` is none.
_CHANGED_TO = re.compile(
    r"\b(?:after|since|when|I|we|I've|we've|have|has|had|just|recently)\s+(?:just\s+|recently\s+)?"
    r"(?:updat|upgrad|downgrad|switch|mov|bump)(?:ed|ing)\s+(?:the\s+|my\s+)?"
    r"([A-Za-z][\w-]{1,40})\s+(?:version\s+)?to\s+(?:version\s+)?v?(\d+\.\d[\w.]*\w|\d+\.\d)",
    re.IGNORECASE,
)
#: ``works with X 2.5.2 but breaks with 2.6.5``: the one that breaks is there.
_WORKED = re.compile(
    r"\b(?:works?|worked|runs?|ran|fine|ok)\b(?: \w+){0,2} (?:with|on|in|under|using) "
    r"([A-Za-z][\w-]{1,40})(?: version)? v?\d+\.\d[\w.]*.{0,40}?"
    r"\b(?:breaks?|broke|broken|fails?|failed|crash(?:es|ed)?|not|errors?)\b(?: \w+){0,3}? "
    r"(?:with|on|in|since|from|under|using)(?: version)? v?(\d+\.\d[\w.]*\w|\d+\.\d)",
    re.IGNORECASE,
)
#: ``torch 2.5 works fine, 2.6 fails``.
_BREAKS = re.compile(
    r"(?<![\w./-])([A-Za-z][\w-]{1,40})(?: version)? v?\d+\.\d[\w.]*"
    r"(?: (?:works?|worked|is|was|runs|ran)(?: \w+){0,2})?(?:,|;| but| while| and)(?: but)?"
    r"(?: with| on| version)? v?(\d+\.\d[\w.]*\w|\d+\.\d) "
    r"(?:breaks?|broke|fails?|failed|crash(?:es|ed)?|doesn't|does not|didn't|no longer|"
    r"is broken)\b",
    re.IGNORECASE,
)
#: ``from version 4.57.0 to version 5.5.0`` behind a name: the second is what is there.
_CHANGED = re.compile(
    r"\b(?:after\s+|since\s+)?(?:I\s+|we\s+)?(?:(?:updat|upgrad|downgrad|switch|mov)(?:ed|ing)|"
    r"went)\s+"
    r"(?:the\s+)?([A-Za-z][\w-]{1,40})\s+"
    r"from\s+(?:version\s+)?v?\d[\w.]*\s+to\s+(?:version\s+)?v?(\d[\w.]*\w)",
    re.IGNORECASE,
)
#: ``downgrading numpy to 1.26.4 solved it``: what was there before is newer; ``from 2.1`` tells it.
_CURED = re.compile(
    r"\b(?:after |by |when |if )?(?:I |we )?(?P<way>down|up)grad(?:ed|ing|e)\s+(?:the |my )?"
    r"(?P<name>[A-Za-z][\w-]{1,40}?)(?:\s+version)?(?:\s+from\s+v?(?P<old>\d[\w.]*\w))?"
    r"\s+(?:back )?to\s+(?:version\s+)?v?(?P<new>\d+\.\d[\w.]*\w|\d+\.\d)(?P<rest>[^.;]{0,60}?"
    r"\b(?:fix(?:es|ed)?|solv(?:es|ed)|resolv(?:es|ed)|works?|worked|help(?:s|ed)|cure[sd]|"
    r"(?:error|issue|problem) (?:is |was )?(?:gone|disappears?))\b)",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|no|never|didn|doesn|nothing|neither)\b|n't", re.IGNORECASE)


def _before_cure(match: re.Match[str]) -> str:
    """Return what was there before a change that cured it; a change that did not is there now."""
    if _NOT.search(match.group("rest")):
        return match.group()
    if match.group("old"):
        return f"Now {match.group('name')} {match.group('old')}, "
    side = ">" if match.group("way").lower() == "down" else "<"
    return f"{match.group('name')}{side}{match.group('new')}"


def plain_words(text: str) -> str:
    """Return a text with the versions that are there now and the full names of devices."""
    if _GEFORCE.search(text):
        text = _BARE_NUMBER.sub(r"\1x RTX \2 \3 ", text)
        text = _ONE_BARE_NUMBER.sub(r"\1 RTX \2 \3", text)
    if _RELEASE.search(text) is None:
        return text
    text = _CURED.sub(_before_cure, text) if "grad" in text else text
    for changed in (_CHANGED, _CHANGED_TO, _WORKED, _BREAKS):
        text = changed.sub(r"Now \1 \2, ", text)
    return text
