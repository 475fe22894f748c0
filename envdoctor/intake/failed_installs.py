"""Packages of which a text says in its own words that to install or to build them fails:
``Failed to install flash-attn``, ``when installing deepspeed I get``, ``apex build error``.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Set

from .distribution_names import COMMON_WORDS, known_distribution

__all__ = ["failing_to_install"]

_LONGEST = 20_000  # characters that are gone through
_LINE = 500  # characters of a line that somebody writes
_DOING = r"(?:re)?(?:install|build|compil)(?:ing|ation)?"
_DO = r"(?:re)?(?:install|build|compile)"
_FAULT = r"(?:fail\w*|error\w*|problem\w*|issue\w*|trouble)"
#: What says so, with what is installed behind it or before it.
_NAME = r"[`'\"*]{0,3}(?P<name>[A-Za-z][\w-]{1,40})"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        (
            rf"\b(?:fail\w* to|unable to|can(?:not|['’]t| not)|could(?: not|n['’]t)|not able to|"
            rf"(?:when|while|after|as) (?:I|we) (?:try|tried|am trying|was trying) to|"
            rf"(?:try|trying|tried|attempt\w*) to) (?:pip )?{_DO} (?:the |package )?{_NAME}"
        ),
        (
            rf"\b(?:when|while|during|{_FAULT}(?: (?:when|while|with|on|in|during|of))?) (?:pip )?"
            rf"(?:{_DOING}|the {_DOING})(?: of)? (?:the |package )?{_NAME}"
        ),
        rf"{_NAME}[`'\"*]{{0,3}}(?:[=<>~]{{1,2}}[\w.]+)? (?:{_DOING}|{_DO}) (?:is |was )?{_FAULT}",
        rf"\b{_DOING}(?: of)? {_NAME}\S* (?:\w+ ){{0,3}}?{_FAULT}",
        (
            rf"\b(?:pip3? install|uv add|uv pip install) (?:-\S+ )*{_NAME}\S*[`'\"]* "
            rf"(?:\w+ ){{0,2}}?(?:{_FAULT}|does(?: not|n['’]t) work)"
        ),
        rf"安装 ?{_NAME}.{{0,20}}(?:失败|报错|错误|出错)",
        rf"{_NAME} ?安装(?:失败|报错|错误|出错)",
    )
)
#: What nobody tried, or what went well.
_NOT_SO = re.compile(
    r"\?\s*$|\b(?:after|once) (?:\w+ )?(?:re)?(?:install|build)"
    r"|\b(?:(?<!even )if|unless|should|would|might|without|no longer|does(?: not|n['’]t) fail)\b"
    r"|如果|是否",
    re.IGNORECASE,
)
_SIGNS = ("nstall", "uild", "ompil", "安装", "uv add")
_SENTENCES = re.compile(r"(?<=[.;!])\s+|[。；]|,\s+(?=but\b)")


def failing_to_install(text: str) -> FrozenSet[str]:
    """Return the distributions that a text says to fail while they are installed or built."""
    names: Set[str] = set()
    for line in text[:_LONGEST].split("\n"):
        if len(line) > _LINE or not any(map(line.__contains__, _SIGNS)):
            continue
        for sentence in _SENTENCES.split(line):
            if _NOT_SO.search(sentence):
                continue
            for form in _FORMS:
                for match in form.finditer(sentence):
                    names.add(known_distribution(match.group("name")) or "")
    return frozenset(names - COMMON_WORDS - {""})
