"""``NamedTuple`` without :mod:`typing`, which compiles each annotation and costs twice as much of a
start.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, NamedTuple, Tuple

__all__ = ["NamedTuple"]


class _Maker(type):
    def __new__(cls, name: str, bases: Tuple[type, ...], body: Dict[str, Any]) -> type:  # noqa: ARG004 - the signature of type.__new__
        """Turn the body of a class statement into a named tuple with the methods of that body."""
        # From Python 3.14 on only modules that import annotations from __future__ have them.
        fields = body["__annotations__"]
        defaults = [body.pop(field) for field in fields if field in body]
        made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # type: ignore[misc]
        for key, value in body.items():
            setattr(made, key, value)
        return made


if not TYPE_CHECKING:
    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
