"""``NamedTuple`` without what ``typing`` checks of every field at every start.

``typing.NamedTuple`` compiles each annotation to look at it, which more than doubles the cost of a record at each start.
Type checkers see the original.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any, Dict, Tuple

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    _NOT_COPIED = frozenset(["__annotations__", "__dict__", "__module__", "__weakref__"])

    class _Maker(type):
        def __new__(cls, name: str, bases: Tuple[type, ...], body: Dict[str, Any]) -> type:  # noqa: ARG004 - the signature of type.__new__
            """Turn the body of a class statement into a named tuple with the methods of that body."""
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            made.__annotations__ = fields
            for key, value in body.items():
                if key not in fields and key not in _NOT_COPIED:
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
