"""Records are named tuples: ``typing.NamedTuple`` is the oracle."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from envdoctor.model import record


def _build(base):
    namespace = {"NamedTuple": base, "__name__": __name__}
    exec(
        "from __future__ import annotations\n"
        "from typing import Optional, Tuple\n"
        "class Thing(NamedTuple):\n"
        '    """A thing."""\n'
        "    name: str\n"
        "    size: Optional[int] = None\n"
        "    parts: Tuple[str, ...] = ()\n"
        "    @property\n"
        "    def double(self) -> str:\n"
        "        return self.name * 2\n"
        "    @classmethod\n"
        "    def empty(cls) -> Thing:\n"
        "        return cls('')\n"
        "    def __str__(self) -> str:\n"
        "        return f'<{self.name}>'\n",
        namespace,
    )
    return namespace["Thing"]


class Kept(record.NamedTuple):
    """At module level, for pickle."""

    name: str
    size: int = 1


@pytest.mark.parametrize(
    "look",
    [
        lambda kind: kind._fields,
        lambda kind: kind._field_defaults,
        lambda kind: {
            name: str(getattr(text, "__forward_arg__", text))
            for name, text in kind.__annotations__.items()
        },
        lambda kind: (
            kind.__name__,
            kind.__qualname__,
            kind.__module__,
            kind.__doc__,
        ),
        lambda kind: repr(kind("a", 1)),
        lambda kind: (str(kind("a")), kind("a").double, tuple(kind.empty())),
        lambda kind: tuple(kind("a")._replace(size=3)),
        lambda kind: kind("a", parts=("x",))._asdict(),
        lambda kind: kind("a") == ("a", None, ()) and hash(kind("a")) == hash(("a", None, ())),
    ],
)
def test_like_the_original(look):
    assert look(_build(record.NamedTuple)) == look(_build(typing.NamedTuple))


WRONG = [
    ((), {}),
    (("a", 1, (), 2), {}),
    (("a",), {"name": "b"}),
    (("a",), {"weight": 1}),
    ((), {"size": 1}),
]


def test_wrong_calls_are_refused():
    thing = _build(record.NamedTuple)
    for arguments, named in WRONG:
        with pytest.raises(TypeError):
            thing(*arguments, **named)
        with pytest.raises(TypeError):
            _build(typing.NamedTuple)(*arguments, **named)


def test_nothing_of_a_record_is_changed():
    for kind in (_build(record.NamedTuple), _build(typing.NamedTuple)):
        for name in ("name", "weight"):
            with pytest.raises(AttributeError):
                setattr(kind("a"), name, "b")


def test_copies():
    assert pickle.loads(pickle.dumps(Kept("a"))) == copy.deepcopy(Kept("a")) == Kept("a", 1)


def test_a_record_by_name_whatever_the_names():
    class Odd(record.NamedTuple):
        kind: str
        values: int = 1
        name: str = ""

    assert Odd(kind="a", name="b") == ("a", 1, "b") == Odd("a", name="b")
    with pytest.raises(TypeError):
        Odd()
    with pytest.raises(TypeError):
        Odd._make(["a"])


def test_a_declaration_compiles_nothing(monkeypatch):
    """As ``collections.namedtuple`` does: of 80 classes that is 5 ms of each start."""

    def refuse(*_, **__):
        raise AssertionError("something was compiled")

    with monkeypatch.context() as patch:
        for name in ("eval", "exec", "compile"):
            patch.setattr(f"builtins.{name}", refuse)

        class Plain(record.NamedTuple):
            name: str
            size: int = 1
            parts: tuple = ()

        made = (Plain("a", parts=(2,)), Plain("a", 3))
    assert made == (("a", 1, (2,)), ("a", 3, ()))
