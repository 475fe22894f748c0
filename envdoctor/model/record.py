"""``NamedTuple`` without :mod:`typing`, which compiles each annotation, and without
:func:`collections.namedtuple`, which compiles a constructor: of the 80 classes of a start that is
7 ms. Here all classes share one constructor.
"""

from __future__ import annotations

from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

__all__ = ["NamedTuple"]

_new_tuple = tuple.__new__


def _new(cls: Any, /, *values: Any, **named: Any) -> Any:
    """Make a record of values by position and by name; raises TypeError as any function does."""
    fields, defaults = cls._fields, cls._field_defaults
    missing = len(fields) - len(values)
    if named:
        try:
            values += tuple(
                [
                    named.pop(field) if field in named else defaults[field]
                    for field in fields[len(values) :]
                ]
            )
        except KeyError as error:
            raise TypeError(f"{cls.__name__}: no value for {error.args[0]!r}") from None
    elif missing > 0:  # fields that have a default are the last ones
        values += tuple(defaults.values())[-missing:]
    if named or len(values) != len(fields):
        raise TypeError(f"{cls.__name__}: expected {', '.join(fields)}")
    return _new_tuple(cls, values)


def _make(cls: Any, values: Iterable[Any]) -> Any:
    """Make a record of as many values as it has fields."""
    record = _new_tuple(cls, values)
    if len(record) != len(cls._fields):
        raise TypeError(f"{cls.__name__}: expected {len(cls._fields)} values, found {len(record)}")
    return record


def _replace(self: Any, /, **changes: Any) -> Any:
    """Return a copy with some fields changed."""
    values = [changes.pop(field, value) for field, value in zip(self._fields, self)]
    if changes:
        raise ValueError(f"{type(self).__name__}: no such fields: {', '.join(changes)}")
    return _new_tuple(type(self), values)


def _asdict(self: Any) -> Dict[str, Any]:
    """Return the values by field."""
    return dict(zip(self._fields, self))


def _repr(self: Any) -> str:
    values = [f"{field}={value!r}" for field, value in zip(self._fields, self)]
    return f"{type(self).__name__}({', '.join(values)})"


def _getnewargs(self: Any) -> Tuple[Any, ...]:
    """What pickle and copy make a record of."""
    return tuple(self)


_SHARED: Dict[str, Any] = {
    "__slots__": (),
    "__new__": _new,
    "__repr__": _repr,
    "__getnewargs__": _getnewargs,
    "_make": classmethod(_make),
    "_replace": _replace,
    "_asdict": _asdict,
}
_GETTERS: List[Any] = []


class _Maker(type):
    def __new__(  # the signature is that of type.__new__
        cls,
        name: str,
        bases: Tuple[type, ...],  # noqa: ARG004
        body: Dict[str, Any],
    ) -> type:
        """Turn the body of a class statement into a named tuple with the methods of that body."""
        # From Python 3.14 on only modules that import annotations from __future__ have them.
        fields = tuple(body["__annotations__"])
        defaults = {field: body[field] for field in fields if field in body}
        while len(_GETTERS) < len(fields):
            _GETTERS.append(property(itemgetter(len(_GETTERS))))
        members = {**_SHARED, **body, **dict(zip(fields, _GETTERS))}
        members.update(_fields=fields, _field_defaults=defaults, __match_args__=fields)
        return type(name, (tuple,), members)


if not TYPE_CHECKING:
    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
