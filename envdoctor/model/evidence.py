"""What is known of one fact: a value, its absence, or nothing, and where that was read."""

from __future__ import annotations

from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        ClassVar,
        Dict,
        Generic,
        Iterator,
        Mapping,
        Optional,
        Tuple,
        TypeVar,
        Union,
    )

    T = TypeVar("T")
    Fact = Union["Known[T]", "Absent", "Unknown"]
else:
    # Importing typing costs 5 to 10 ms of each start.
    T = Fact = None

    class Generic:
        """Generic to type checkers alone."""

        __slots__ = ()
        __class_getitem__ = classmethod(lambda cls, _: cls)


__all__ = [
    "ASSUMED",
    "NAMED",
    "ROOT",
    "UNCOUNTED",
    "Absent",
    "Evidence",
    "Fact",
    "FactTable",
    "Known",
    "Unknown",
]

#: Sources that are options: what somebody states, and a folder read in place of this machine.
ASSUMED, ROOT = "--assume", "--root"
#: The detail of devices that no tool listed: there may be others.
NAMED = "named in a sentence"
#: Detail of a device of which only the kind is stated: how many there are, nobody says.
UNCOUNTED = "named without a number"


class Evidence(NamedTuple):
    """Where a value was read: a path, a command, a section of a pasted report, or ``--assume``."""

    source: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.source} ({self.detail})" if self.detail else self.source

    @property
    def is_line(self) -> bool:
        """Tell whether this is a line of a log, which ``detail`` quotes: ``train.log:12``."""
        return bool(self.detail) and self.source.rpartition(":")[2].isdigit()


class Known(Generic[T]):
    """The value was read."""

    __slots__ = ("evidence", "value")

    def __init__(self, value: T, evidence: Evidence) -> None:
        self.value = value
        self.evidence = evidence

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and (self.value, self.evidence) == (
            other.value,
            other.evidence,
        )

    def __hash__(self) -> int:
        return hash((Known, self.evidence))

    def __repr__(self) -> str:
        return f"Known({self.value!r}, {self.evidence.source!r})"


class Absent(NamedTuple):
    """The place where the value would be was read whole, and it is not there."""

    evidence: Evidence


class Unknown(NamedTuple):
    """Nothing was learned: not looked at, not readable, or the probe failed."""

    reason: str
    probe: Optional[str] = None  # the probe that failed; None where none did

    def __str__(self) -> str:
        return self.reason if self.probe is None else f"probe {self.probe}: {self.reason}"


class FactTable:
    """An immutable table of facts by field. Fields that are missing are ``Unknown``."""

    __slots__ = ("_table",)

    #: Every field that there is, in the order in which they are told.
    declared: ClassVar[Mapping[str, Any]] = {}
    missing: ClassVar[Unknown] = Unknown("not read")

    def __init__(self, table: Optional[Mapping[str, Fact[Any]]] = None) -> None:
        self._table: Dict[str, Fact[Any]] = dict(table or {})
        for field in self._table:
            if field not in self.declared:
                raise KeyError(f"no such field: {field}")

    def get(self, field: str) -> Fact[Any]:
        """Return the fact of a declared field."""
        fact = self._table.get(field)
        if fact is None:
            if field not in self.declared:
                raise KeyError(f"no such field: {field}")
            return self.missing
        return fact

    def value(self, field: str, default: Any = None) -> Any:
        """Return the value where it is known, else ``default``."""
        fact = self.get(field)
        return fact.value if isinstance(fact, Known) else default

    def evidence(self, field: str) -> Optional[Evidence]:
        """Return where a field was read or set; None where nothing was learned of it."""
        fact = self.get(field)
        return None if isinstance(fact, Unknown) else fact.evidence

    def __iter__(self) -> Iterator[Tuple[str, Fact[Any]]]:
        """Yield the fields that are set, as they are declared."""
        return ((name, self._table[name]) for name in self.declared if name in self._table)
