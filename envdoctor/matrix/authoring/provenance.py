"""Whether anybody can look up a source, and whether a date is one."""

from __future__ import annotations

import re
from typing import Optional

__all__ = ["date_fault", "source_fault"]

_ADDRESS = re.compile(
    r"https://([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d+)?(?:/[^\s<>\"]*)?(?: "
    r"\([^()]*(?:\([^()]*\)[^()]*)*\))?"
)
_PRIVATE = re.compile(
    r"\b(localhost|127\.0\.0\.1|example\.(com|org|net)|[a-z0-9-]+\.(local|internal|lan))\b"
)
_GITHUB = re.compile(
    r"https://github\.com/[^/\s]+/[^/\s]+"
    r"(/(issues|pull|discussions|commit|blob|tree|releases|wiki|security|compare"
    r"|actions)\b.*)?/?(#.*)?( \(.*)?"
)


def source_fault(address: str) -> Optional[str]:
    """Return what is wrong with the form of a source, or None: an https address, or a document by a
    name of two words or more.
    """
    text = address.strip()
    if text != address or not text:
        return "has spaces around it" if text else "is empty"
    if "://" not in text.split(" ", 1)[0]:
        return (
            None
            if len(text.split()) >= 2
            else f"{text!r} is no address and too short for the name of a document"
        )
    if not text.startswith("https://"):
        return f"{text} is not https"
    if not _ADDRESS.fullmatch(text):
        return f"{text} is no address (a remark goes in parentheses behind it)"
    if _PRIVATE.search(text):
        return f"{text} cannot be read by others"
    if text.startswith("https://github.com/") and not _GITHUB.fullmatch(text):
        return f"{text} names no issue, pull request, commit or file"
    return None


_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def date_fault(text: str, today: str) -> Optional[str]:
    """Return what is wrong with an ISO date, or None: it is no day, or after ``today``."""
    match = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text)
    if (
        match is None
        or not 1 <= int(match.group(2)) <= 12
        or not 1 <= int(match.group(3)) <= _DAYS[int(match.group(2)) - 1]
    ):
        return f"{text} is no day"
    return f"{text} is in the future (today is {today})" if text > today else None
