"""Names of hosts as lists: ``gpu[01-16,18]`` stands for seventeen of them.

The form is Slurm's (https://slurm.schedmd.com/scontrol.html, "hostlist").
"""

from __future__ import annotations

from ..errors import InputError
from .pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

__all__ = ["expand", "fold_names", "unfold", "unfold_all"]

_MOST = 200_000  # nodes that one list may name
_NAME = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.:@%-]{0,511}")
_RANGE = pattern(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_DIGITS = "0123456789"
_WIDEST = 12  # digits that a number has: what has more is part of a name
_BRACKET = pattern(r"([^\[\],]*)\[([0-9,\-]+)\]([^\[\],]*)")


def expand(text: str, where: str) -> List[str]:
    """Return the names that a list stands for, each once, in its order.

    Raises:
        InputError: what is no name of a host: it would be taken for an option of ssh or srun.
    """
    names: Dict[str, None] = {}
    for count, name in enumerate(_names(text)):
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{where}: expected names of hosts such as gpu[01-16],head, found {name[:80]!r}"
            )
        if count == _MOST:
            raise InputError(f"{where}: names more than {_MOST} hosts")
        names[name] = None
    return list(names)


def _names(text: str) -> Iterator[str]:
    for part in _parts(text):
        match = _BRACKET.fullmatch(part)
        if match:
            yield from _numbers(*match.groups())
        else:
            yield part


def _parts(text: str) -> List[str]:
    """Return what commas and spaces outside of brackets part."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth == 0 and sign in ", \t\n":
            parts.append(text[start:place])
            start = place + 1
    return [part for part in (*parts, text[start:]) if part]


def _numbers(before: str, ranges: str, after: str) -> Iterator[str]:
    for entry in ranges.split(","):
        match = _RANGE.fullmatch(entry)
        low, high = match.groups() if match else ("1", "0")
        numbers = range(int(low), int(high or low) + 1)
        if not 0 < len(numbers) <= _MOST + 1:
            raise InputError(
                f"{before[:80]}[{entry[:80]}]{after[:80]}: expected ranges such as [01-16,18]"
            )
        for number in numbers:
            yield f"{before}{number:0{len(low)}d}{after}"


def unfold(text: str) -> List[str]:
    """Return the names of a list that :func:`fold_names` wrote; what is none is a name itself."""
    try:
        return expand(text, "")
    except InputError:
        return [text]


def unfold_all(lists: Iterable[str]) -> List[str]:
    """Return the names of several lists, see :func:`unfold`."""
    return [name for text in lists for name in unfold(text)]


def fold_names(names: Iterable[str]) -> str:
    """Return names as the shortest list of this form, in the order of their numbers."""
    parted = [_number_behind(name) for name in dict.fromkeys(names)]
    numbered = [(before, digits) for before, digits in parted if digits]
    # 09 and 10 are of one list by their width, 9 and 10 by having none.
    padded = {(before, len(digits)) for before, digits in numbered if digits[0] == "0"}
    lists: Dict[Tuple[str, int], List[int]] = {}
    for before, digits in numbered:
        width = len(digits) if (before, len(digits)) in padded else 0
        lists.setdefault((before, width), []).append(int(digits))
    plain = [name for name, digits in parted if not digits]
    return ",".join([*(_folded(*key, sorted(lists[key])) for key in lists), *plain])


def _number_behind(name: str) -> Tuple[str, str]:
    """Part a name from the digits at its end; "" where it has none, or more than a number has."""
    before = name.rstrip(_DIGITS)
    digits = name[len(before) :]
    return (before, digits) if len(digits) <= _WIDEST else (name, "")


def _folded(before: str, width: int, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{before}{numbers[0]:0{width}d}"
    ranges: List[List[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    words = [
        f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}"
        for low, high in ranges
    ]
    return f"{before}[{','.join(words)}]"
