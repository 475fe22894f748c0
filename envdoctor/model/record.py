"""``NamedTuple`` at a tenth of the cost of ``typing.NamedTuple`` at each start.

``typing`` compiles each annotation to look at it, ``collections.namedtuple`` compiles a constructor
for each class, and both modules cost more to import than all records of a start. Here the
constructor of a class is compiled when many records of it are made. Type checkers see the original.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found,unused-ignore]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, NamedTuple, Tuple

__all__ = ["NamedTuple"]


def _make(cls: type, values: Iterable[Any]) -> Any:
    """Make a record of as many values as it has fields."""
    made: Any = tuple.__new__(cls, values)
    if len(made) != len(made._fields):
        raise TypeError(f"expected {len(made._fields)} values, found {len(made)}")
    return made


def _replace(self: Any, **changes: Any) -> Any:
    """Return a copy with some fields changed."""
    values = [changes.pop(field, value) for field, value in zip(self._fields, self)]
    if changes:
        raise ValueError(f"got unexpected field names: {list(changes)!r}")
    return tuple.__new__(type(self), values)


def _asdict(self: Any) -> Dict[str, Any]:
    """Return the fields and their values."""
    return dict(zip(self._fields, self))


def _repr(self: Any) -> str:
    fields = ", ".join([f"{field}={value!r}" for field, value in zip(self._fields, self)])
    return f"{type(self).__name__}({fields})"


def _getnewargs(self: Any) -> Tuple[Any, ...]:
    return tuple(self)


def _compile_constructor(name: str, fields: Tuple[str, ...], defaults: Dict[str, Any]) -> Any:
    """Return a ``__new__`` that takes the fields by position or by name."""
    listed = ", ".join(fields)
    words = ", ".join(
        [f"{field}=_defaults[{field!r}]" if field in defaults else field for field in fields]
    )
    space = {
        "_defaults": defaults,
        "_new": tuple.__new__,
        "__builtins__": {},
        "__name__": f"record_{name}",
    }
    return eval(f"lambda _cls, {words}: _new(_cls, ({listed}{',' if fields else ''}))", space)  # noqa: S307 - names of our own fields


_METHODS = {
    "__slots__": (),
    "_make": classmethod(_make),
    "_replace": _replace,
    "__replace__": _replace,
    "_asdict": _asdict,
    "__repr__": _repr,
    "__getnewargs__": _getnewargs,
}
# a compiled constructor costs as much as thirty records without it, and most classes of a start
# have fewer
_UNCOMPILED = 30
_NOT_COPIED = frozenset(["__annotations__", "__dict__", "__weakref__"])


class _Maker(type):
    def __new__(cls, name: str, bases: Tuple[type, ...], body: Dict[str, Any]) -> type:  # noqa: ARG004 - the signature of type.__new__
        """Turn the body of a class statement into a named tuple with the methods of that body."""
        annotations = body.get("__annotations__", {})
        fields = tuple(annotations)
        defaults = {field: body[field] for field in fields if field in body}

        left = _UNCOMPILED

        def construct(
            *values: Any, **named: Any
        ) -> Any:  # the class among the values: a field may have any name
            nonlocal left
            left -= 1
            if left > 0:
                rest = fields[len(values) - 1 :]
                try:
                    whole = values[1:] + tuple(
                        [named[field] if field in named else defaults[field] for field in rest]
                    )
                except (
                    KeyError
                ):  # a field has no value: the compiled one says it as any function does
                    whole = ()
                if len(whole) == len(fields) and named.keys() <= frozenset(rest):
                    return tuple.__new__(values[0], whole)
            constructor = _compile_constructor(name, fields, defaults)
            made.__new__ = staticmethod(constructor)  # type: ignore[method-assign]
            return constructor(*values, **named)

        space = dict(_METHODS)
        space.update(
            _fields=fields,
            _field_defaults=defaults,
            __match_args__=fields,
            __annotations__=annotations,
            __new__=construct,
        )
        space.update([(field, _tuplegetter(number, "")) for number, field in enumerate(fields)])
        space.update(
            [
                (key, value)
                for key, value in body.items()
                if key not in annotations and key not in _NOT_COPIED
            ]
        )
        made = type.__new__(type, name, (tuple,), space)
        return made


if not TYPE_CHECKING:
    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
