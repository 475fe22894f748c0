"""One entry of a file of ``matrices/`` under reading, and what is wrong with it."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional, Tuple

from ..model.row import TRUSTS
from ..model.versions import try_version

__all__ = ["DATE", "Entry", "Faults"]

#: The form of a date.
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Faults:
    """Collects what is wrong, each with its file and key."""

    def __init__(self) -> None:
        self.found: List[str] = []

    def add(self, where: str, key: str, text: str) -> None:
        """Add one fault: ``where`` names file and entry."""
        self.found.append(f"{where}: {key}: {text}" if key else f"{where}: {text}")


class Entry:
    """One table entry under reading: hands out typed values and remembers which keys were asked
    for.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        where: str,
        faults: Faults,
        defaults: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.values = {**(defaults or {}), **values}
        self.where = where
        self.faults = faults
        self.asked: List[str] = []

    def fault(self, key: str, text: str) -> None:
        """Add a fault of this entry."""
        self.faults.add(self.where, key, text)

    def text(
        self,
        key: str,
        required: bool = True,
        pattern: Optional[re.Pattern[str]] = None,
        words: Tuple[str, ...] = (),
    ) -> str:
        """Return a string; empty where it is missing or wrong."""
        self.asked.append(key)
        value = self.values.get(key)
        if value is None or value == "":
            if required:
                self.fault(key, "is missing")
            return ""
        if not isinstance(value, str):
            self.fault(key, f"expected a string, found {value!r}")
            return ""
        if pattern is not None and not pattern.fullmatch(value):
            self.fault(key, f"found {value!r}, expected the form {pattern.pattern}")
        if words and value not in words:
            self.fault(key, f"expected one of {', '.join(words)}, found {value!r}")
        return value

    def maybe(self, key: str) -> Optional[str]:
        """Return a string, or None where the key is left out."""
        return self.text(key, required=False) or None

    def version(self, key: str, required: bool = True) -> str:
        """Return the text of a PEP 440 version."""
        value = self.text(key, required)
        if value and try_version(value) is None:
            self.fault(key, f"expected a version, found {value!r}")
        return value

    def integer(self, key: str, required: bool = True) -> Optional[int]:
        """Return an integer."""
        self.asked.append(key)
        value = self.values.get(key)
        if value is None and not required:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self.fault(key, f"expected an integer, found {value!r}")
            return None
        return value

    def strings(self, key: str) -> Tuple[str, ...]:
        """Return a list of strings; empty where it is left out."""
        self.asked.append(key)
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.fault(key, f"expected a list of strings, found {value!r}")
            return ()
        return tuple(value)

    def tables(self, key: str, required: bool = False) -> List[Mapping[str, Any]]:
        """Return a list of tables."""
        self.asked.append(key)
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fault(key, f"expected a list of tables, found {value!r}")
            return []
        if required and not value:
            self.fault(key, "is missing or empty")
        return value

    def provenance(self) -> Tuple[str, str, str]:
        """Return source, date and trust, which every entry must have."""
        return (
            self.text("source"),
            self.text("date", pattern=DATE),
            self.text("trust", words=TRUSTS),
        )

    def finish(self) -> None:
        """Report the keys that nobody asked for."""
        for key in self.values:
            if key not in self.asked:
                self.fault(key, f"no such key (known: {', '.join(sorted(set(self.asked)))})")
