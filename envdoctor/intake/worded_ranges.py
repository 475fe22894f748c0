"""Ranges of releases as people and programs word them: ``>= 4.36``, ``4.36+``, ``4.36 or newer``,
``below 4.40``, ``between 4.36 and 4.40``, ``4.36 及以上``.

One table says what each form means. Whoever reads a sentence puts ``RANGE`` into its own
expression, or asks where ranges stand; whose releases they are, and whether they are asked for,
found or refused, is that reader's.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Tuple

__all__ = ["LESS", "MORE", "MORE_WORDS", "RANGE", "WordedRange", "specifier_of", "worded_ranges"]

_QUOTE = "[`'\"]?"
#: Behind an operator any number is a release; behind a word it needs a point.
_PART = r"[0-9A-Za-z]{1,12}"
_ANY = rf"{_QUOTE}v?\d{{1,4}}(?:\.(?:{_PART}|\*)){{0,5}}(?:\+{_PART})?"
_POINTED = rf"{_QUOTE}v?\d{{1,4}}(?:\.{_PART}){{1,5}}"
_OF = r"(?:(?:version|release|v\.) )?"
_NEWER = r"(?:newer|later|higher|greater|above|up(?:wards?)?|onwards?|more recent|more)"
_OLDER = r"(?:older|earlier|lower|below|less)"
#: Behind a release: that newer ones, or older ones, are meant as well.
MORE_WORDS = (
    rf"(?:,? ?(?:or|and) {_NEWER}\b|,? ?onwards?\b|"
    r" ?(?:版本)?(?:[及或]?其?(?:以上|更高)|[及或]其?之后))"
)
MORE = rf"(?:\+(?![\w.])| \+(?=$|[,;)])|{MORE_WORDS})"
LESS = rf"(?:,? ?(?:or|and) {_OLDER}\b| ?(?:版本)?(?:[及或]?其?(?:以下|更低)|[及或]其?之前))"
_TO = r" ?(?:and|to|-|–|~|到|至|和) ?"
#: A form, and the operators that it means of its releases. N stands for a release behind a word, A
#: for one behind an operator; of two forms that fit at a place the first one counts.
_FORMS: Tuple[Tuple[str, str], ...] = (
    (rf"(?:\b(?:between|from) |(?:介于|从) ?){_OF}N{_TO}N", ">= <="),
    (r"N ?<= ?version ?< ?N", ">= <"),
    (r"(?<![<>=!~])(?:>=|=>|≥) ?A", ">="),
    (r"(?<![<>=!~])(?:<=|=<|≤) ?A", "<="),
    (r"(?<![<>=!~])~= ?A", "~="),
    (r"(?<![<>=!~])!= ?A", "!="),
    (r"(?<![<>=!~])===? ?A", "=="),
    (r"(?<![<>=!~-])< ?A", "<"),
    (r"(?<![<>=!~-])> ?A", ">"),
    (rf"\b(?:no|not) (?:newer|later|higher|greater) than {_OF}N|(?:不高于|不超过|最高) ?N", "<="),
    (rf"\b(?:no|not) (?:older|earlier|lower|less) than {_OF}N|(?:不低于|至少|最低) ?N", ">="),
    (rf"\b(?:greater|higher|newer)(?: than)? or equal (?:than|to) {_OF}N", ">="),
    (rf"\b(?:less|lower|older)(?: than)? or equal (?:than|to) {_OF}N", "<="),
    (rf"\b(?:at least|minimum(?: required)?(?: version)?(?: is| of)?) {_OF}N", ">="),
    (rf"\b(?:at most|up to|maximum(?: supported)?(?: version)?(?: is| of)?) {_OF}N", "<="),
    (rf"\b(?:{_NEWER} than|above) {_OF}N|(?:高于|大于|晚于) ?N", ">"),
    (rf"\b(?:(?:{_OLDER}|smaller) than|below|prior to) {_OF}N|(?:低于|小于|早于) ?N", "<"),
    (rf"\b(?:exactly|precisely) {_OF}N", "=="),
    (rf"(?<![0-9A-Za-z_.<>=])N{_QUOTE}{MORE}", ">="),
    (rf"(?<![0-9A-Za-z_.<>=])N{_QUOTE}{LESS}", "<="),
)


def _form(words: str) -> str:
    return re.sub(r"\b([NA])\b(?!\])", lambda one: _ANY if one[1] == "A" else _POINTED, words)


_BY_FORM: Tuple[Tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(_form(words), re.IGNORECASE), operators) for words, operators in _FORMS
)
_ONE = "|".join(f"(?:{_form(words)})" for words, _ in _FORMS)
_FOLLOWS = r"(?:, ?|,? (?:and|but) )"
#: A range, of one clause or of several; for expressions that ignore case.
RANGE = rf"(?:{_ONE}){_QUOTE}(?:{_FOLLOWS}(?:{_ONE}){_QUOTE})*"
_RANGE = re.compile(RANGE, re.IGNORECASE)
_CLAUSE = re.compile(_ONE, re.IGNORECASE)
_NUMBER = re.compile(rf"(?<![0-9A-Za-z_.]){_ANY}", re.IGNORECASE)


class WordedRange(NamedTuple):
    """A range in a text: where it stands, and what it says as a specifier."""

    start: int
    end: int
    specifier: str


def worded_ranges(text: str) -> Iterator[WordedRange]:
    """Yield the ranges that a text words, in order."""
    for match in _RANGE.finditer(text):
        yield WordedRange(*match.span(), specifier_of(match.group()))


def specifier_of(words: str) -> str:
    """Return the specifier that the words of a range mean (``RANGE`` matches them)."""
    return ",".join(_clause(match.group()) for match in _CLAUSE.finditer(words))


def _clause(words: str) -> str:
    operators = next(
        operators for form, operators in _BY_FORM if form.match(words) is not None
    ).split()
    numbers = [number.lstrip("`'\"vV") for number in _NUMBER.findall(words)]
    return ",".join(map("".join, zip(operators, numbers)))
