"""Names of hosts as lists: ``gpu[01-16,18]`` stands for seventeen of them.

The form is Slurm's (https://slurm.schedmd.com/scontrol.html, "hostlist").
"""

from __future__ import annotations

from ..errors import InputError
from .pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Sequence, Tuple

__all__ = ["expand", "fold_names", "unfold"]

_MOST = 200_000  # nodes that one list may name
_NAME = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.:@%-]*")
_NUMBERED = pattern(r"(.*?)(\d+)")
_BRACKET = pattern(r"([^\[\],]*)\[([0-9,\-]+)\]([^\[\],]*)")


def expand(text: str, where: str) -> List[str]:
    """Return the names that a list stands for, each once, in its order.

    Raises:
        InputError: what is no name of a host: it would be taken for an option of ssh or srun.
    """
    names: Dict[str, None] = {}
    for part in _parts(text):
        match = _BRACKET.fullmatch(part)
        for name in _numbers(*match.groups()) if match else [part]:
            if not _NAME.fullmatch(name):
                raise InputError(
                    f"{where}: expected names of hosts such as gpu[01-16],head, found {name!r}"
                )
            names[name] = None
            if len(names) > _MOST:
                raise InputError(f"{where}: names more than {_MOST} hosts")
    return list(names)


def _parts(text: str) -> List[str]:
    """Return what commas and spaces outside of brackets part."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if depth == 0 and sign in ", \t\n":
            parts.append("")
        else:
            parts[-1] += sign
    return [part for part in parts if part]


def _numbers(before: str, ranges: str, after: str) -> List[str]:
    names = []
    for entry in ranges.split(","):
        low, _, high = entry.partition("-")
        high = high or low
        if not (low.isdigit() and high.isdigit() and int(low) <= int(high) <= int(low) + _MOST):
            raise InputError(f"{before}[{ranges}]{after}: expected ranges such as [01-16,18]")
        names += [
            f"{before}{number:0{len(low)}d}{after}" for number in range(int(low), int(high) + 1)
        ]
    return names


def unfold(text: str) -> List[str]:
    """Return the names of a list that :func:`fold_names` wrote; what is none is a name itself."""
    try:
        return expand(text, "")
    except InputError:
        return [text]


def fold_names(names: Iterable[str]) -> str:
    """Return names as the shortest list of this form, in the order of their numbers."""
    matches = [(name, _NUMBERED.fullmatch(name)) for name in dict.fromkeys(names)]
    numbered = [match.groups() for _, match in matches if match]
    # 09 and 10 are of one list by their width, 9 and 10 by having none.
    padded = {(before, len(digits)) for before, digits in numbered if digits[0] == "0"}
    lists: Dict[Tuple[str, int], List[int]] = {}
    for before, digits in numbered:
        width = len(digits) if (before, len(digits)) in padded else 0
        lists.setdefault((before, width), []).append(int(digits))
    plain = [name for name, match in matches if match is None]
    return ",".join([*(_folded(*key, sorted(lists[key])) for key in lists), *plain])


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
