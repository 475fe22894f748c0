"""Texts that somebody pasted, as facts."""

from envdoctor.errors import InputError
from envdoctor.intake import parse_report
from envdoctor.model.facts import Facts


def read(text):
    """Return the facts of a text, none where it states nothing."""
    try:
        return parse_report(text)
    except InputError:
        return Facts()
