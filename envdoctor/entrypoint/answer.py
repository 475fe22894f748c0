"""What the check of a start answers: made by ``verdict`` in the child, said by ``handoff``."""

from __future__ import annotations

__all__ = ["Answer", "words_of"]


class Answer:
    """What the check says.

    kind: "ok", "errors", "undetermined" (nothing found, but not all could be decided), "usage" (an
        option names a lock or an ignore file that cannot be read), or "fault" (envdoctor itself
        failed).
    line: the verdict, at most 80 characters. details: further lines. document: the same as JSON.
    """

    __slots__ = ("details", "document", "kind", "line")

    def __init__(self, kind: str, line: str, details: str = "", document: str = "") -> None:
        self.kind = kind
        self.line = line
        self.details = details
        self.document = document

    def pack(self) -> bytes:
        """Return the answer as bytes for a pipe."""
        return f"{self.kind}\0{self.line}\0{self.details}\0{self.document}".encode(
            "utf-8", "replace"
        )

    @classmethod
    def unpack(cls, content: bytes) -> Answer:
        """Return the answer that ``pack`` wrote; raises ValueError."""
        kind, line, details, document = content.decode("utf-8", "replace").split("\0", 3)
        return cls(kind, line, details, document)


def words_of(error: Exception) -> str:
    """Return what an exception says, without secrets; its type alone where that cannot be told."""
    name = type(error).__name__
    try:
        from ..model.redaction import redact
    except (ImportError, SyntaxError):  # a broken installation is what failed
        return name
    return redact(f"{name}: {error}")
