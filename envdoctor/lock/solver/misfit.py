"""In which ways releases do not fit, as it is said of one and of many."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ASK", "BE", "HAVE", "NEED", "WERE", "Misfit", "Verb"]


class Verb(NamedTuple):
    """A verb as it is said of one release and of many."""

    one: str
    many: str

    def of(self, many: bool) -> str:
        """Return the form that fits the number."""
        return self.many if many else self.one


ASK = Verb("asks", "ask")
BE = Verb("is", "are")
HAVE = Verb("has", "have")
NEED = Verb("needs", "need")
WERE = Verb("was", "were")


class Misfit(NamedTuple):
    """Why a candidate cannot be installed on the targets at all, or would not use their GPUs.

    limit: the property of targets, or of the request, that it rests on (driver, cuda, glibc,
    python, platform, date, metadata, constraint). verb, rest: what is said of it.
    """

    limit: str
    verb: Verb
    rest: str

    def words(self, many: bool = False) -> str:
        """Say it of one release, or of many."""
        return f"{self.verb.of(many)} {self.rest}"
