"""What is known of one fact: a value, its absence, or nothing, and where that was read."""

from __future__ import annotations

from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, Optional, TypeVar, Union

    T = TypeVar("T")
    Fact = Union["Known[T]", "Absent", "Unknown"]
else:
    # Importing typing costs 5 to 10 ms of each start.
    T = Fact = None

    class Generic:
        """Generic to type checkers alone."""

        __slots__ = ()
        __class_getitem__ = classmethod(lambda cls, _: cls)


__all__ = ["Absent", "Evidence", "Fact", "Known", "Unknown"]


class Evidence(NamedTuple):
    """Where a value was read: a path, a command, a section of a pasted report, or ``--assume``."""

    source: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.source} ({self.detail})" if self.detail else self.source


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
