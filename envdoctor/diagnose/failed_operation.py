"""Which operand of a line of source is what an exception of Python says of one: the line is parsed,
never run, and where Python marked a part of it, that part alone counts.

Where several operands may be meant none is named.
"""

from __future__ import annotations

import ast
import re
from typing import Callable, List, Mapping, Sequence, Tuple, Type

from ..model.log import Frame, Raised
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .code_owner import is_own, is_standard
from .source_line import SourceLine, asking_frames, operand_text

__all__ = ["exhausted", "fills_text", "made_in_line", "of_operation"]

_LONGEST = 80  # characters of an operand
_FEW_PAIRS = 3  # operations of a line, one of which failed
_FAR = 8  # innermost frames in which a key may have been written out
_OPERATORS: Mapping[str, Type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "** or pow()": ast.Pow, "@": ast.MatMult, "|": ast.BitOr, "&": ast.BitAnd,
}  # fmt: skip
_COMPARISONS: Mapping[str, Type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip
#: What it means that an expression is None.
_MEANINGS: Mapping[str, str] = {
    # torch/version.py is written when torch is built.
    "torch.version.cuda": "the torch that runs here is not built for CUDA, but for the CPU or for "
    "other GPUs",
    "torch.version.hip": "the torch that runs here is not built for ROCm",
}
#: Of torch 1.6 and 1.7 (torch/nn/modules/module.py).
_SAME: Mapping[str, str] = {"ModuleAttributeError": "AttributeError"}
_MEMBERSHIP = (ast.In, ast.NotIn)
#: What asks each element of its one argument for its place among the others.
_ORDERING = ("argmax", "argmin", "argsort", "max", "min", "sort", "sorted")
_OF_TOKENIZER = pattern(r"Tokenizer(?:Fast)?$")
#: What a processor has and a tokenizer has not.
_OF_PROCESSOR = ("tokenizer", "image_processor", "feature_extractor", "video_processor")
_LACKS = pattern(r"^'(?P<type>\w{1,20})' object has no attribute '(?P<name>\w{1,80})'")


class _Said(NamedTuple):
    """An exception as its readers take it."""

    raised: Raised
    frame: Frame
    source: SourceLine


_Reader = Callable[["Mapping[str, str]", _Said], str]


def of_operation(raised: Raised) -> str:
    """Say which operand of the line that raised is what the message says of one; "" where that is
    not sure.
    """
    frames = asking_frames(raised)
    if not frames:
        return ""
    message = raised.message.partition("\n")[0].strip()
    said = _Said(raised, frames[-1], SourceLine(frames[-1]))
    kind = raised.kind.rpartition(".")[2]
    kind = _SAME.get(kind, kind)
    if kind == "KeyError":
        return _of_key(message, said)
    if not said.source.is_read:
        return ""
    for form, reader in _FORMS.get(kind, ()):
        match = form.search(message)
        if match is not None:
            return reader(match.groupdict(), said)
    return ""


def made_in_line(raised: Raised) -> str:
    """Return the call of a built-in type that makes, in the line that raised, what lacks the
    attribute that the line asks it for; "" where nothing is made there.
    """
    match, frames = _LACKS.match(raised.message), asking_frames(raised)
    if match is None or not frames:
        return ""
    source = SourceLine(frames[-1])
    makes = [
        node.value
        for node in source.all(ast.Attribute)
        if node.attr == match.group("name")
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == match.group("type")
    ]
    return source.the_one(makes)


def exhausted(raised: Raised) -> str:
    """Return the iterator that a call of next() found at its end; "" where none is seen."""
    frames = asking_frames(raised)
    if raised.kind != "StopIteration" or not frames:
        return ""
    source = SourceLine(frames[-1])
    nodes = [
        node.args[0]
        for node in source.all(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "next" and len(node.args) == 1
    ]
    return source.the_one(nodes)


def _is(text: str, kind: str) -> str:
    return f"{text} is {'None' if kind == 'NoneType' else f'of type {kind}'}"


def _sentence(text: str, kind: str) -> str:
    if not text or text in ("self", "cls"):
        return ""
    meaning = _MEANINGS.get(text, "") if kind == "NoneType" else ""
    return f"{_is(text, kind)} there{f': {meaning}' if meaning else ''}."


# --------------------------------------------------------------------------------------------------
# one reader for each kind of operation


def _of_attribute(groups: Mapping[str, str], said: _Said) -> str:
    name = groups["name"]
    nodes = [
        node.value
        for node in said.source.all(ast.Attribute)
        if node.attr == name and not isinstance(node.ctx, ast.Store)
    ]
    owner, kind = said.source.the_one(nodes), groups["type"]
    if owner == "self":
        is_early = said.frame.function == "__init__"
        began = ": it is in __init__ itself, above what would set it" if is_early else ""
        return f"Nothing has set self.{name} of {kind} when that line asks for it{began}."
    made = made_in_line(said.raised)
    if made:
        return f"{made} makes a {kind} in that line itself, and a {kind} has no .{name}."
    words = _sentence(owner, kind)
    is_class = kind[:1].isupper() and kind not in ("NoneType", "Namespace")
    if words and is_class and is_own(said.frame):
        words = f"{words[:-1]}, and neither its class nor what ran before gives it {name}."
    if words and kind == "Namespace":
        words += f" Such a one holds what a parser of arguments read: it defines no --{name}."
    if words and name in _OF_PROCESSOR and _OF_TOKENIZER.search(kind):
        words += (
            " A processor, which has a tokenizer, was expected: a folder of a model without the "
            "file of its processor (preprocessor_config.json) gives the tokenizer in its place."
        )
    return words


def _of_subscript(groups: Mapping[str, str], said: _Said) -> str:
    nodes: List[ast.AST] = [node.value for node in said.source.all(ast.Subscript)]
    if groups["type"] != "builtin_function_or_method":
        return _sentence(said.source.the_one(nodes), groups["type"])
    text = said.source.the_one([node for node in nodes if isinstance(node, ast.Attribute)])
    owner, _, name = text.rpartition(".")
    if name != "size":
        return _sentence(text, groups["type"])
    return (
        f"{owner} is a tensor there, whose size is a method (.shape can be indexed), and the line "
        "takes it for an image of PIL, whose size is a pair."
    )


def _of_slice(_: Mapping[str, str], said: _Said) -> str:
    nodes = [
        node.value for node in said.source.all(ast.Subscript) if isinstance(node.slice, ast.Slice)
    ]
    owner = said.source.the_one(nodes)
    return f"{owner} is a dict there: nothing is taken from one by place." if owner else ""


def _of_name(groups: Mapping[str, str], said: _Said) -> str:
    owner = said.source.the_one([node.value for node in said.source.all(ast.Subscript)])
    return (
        f"{owner or 'What is indexed'} is a {groups['type']} there: the line takes a value of it "
        "by name, as of a dict."
    )


def _of_call(groups: Mapping[str, str], said: _Said) -> str:
    nodes = [node.func for node in said.source.all(ast.Call)]
    return _sentence(said.source.the_one(nodes), groups["type"])


def _of_iteration(groups: Mapping[str, str], said: _Said) -> str:
    nodes: List[ast.AST] = []
    for node in said.source.all(ast.For, ast.comprehension, ast.Call, ast.Starred):
        if isinstance(node, (ast.For, ast.comprehension)):
            nodes.append(node.iter)
        elif isinstance(node, ast.Starred):
            nodes.append(node.value)
        elif isinstance(node, ast.Call) and len(node.args) == 1:
            nodes += node.args
    return _sentence(said.source.the_one(nodes), groups["type"])


def _of_membership(groups: Mapping[str, str], said: _Said) -> str:
    nodes = [
        right
        for node in said.source.all(ast.Compare)
        for operator, right in zip(node.ops, node.comparators)
        if isinstance(operator, (ast.In, ast.NotIn))
    ]
    return _sentence(said.source.the_one(nodes), groups["type"])


def _of_length(groups: Mapping[str, str], said: _Said) -> str:
    nodes = [
        node.args[0]
        for node in said.source.all(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1
    ]
    return _sentence(said.source.the_one(nodes), groups["type"])


def _of_operator(groups: Mapping[str, str], said: _Said) -> str:
    operator = _OPERATORS.get((groups.get("operator") or "+").rstrip("="))
    pairs: List[Tuple[ast.AST, ast.AST]] = []
    for node in said.source.all(ast.BinOp, ast.AugAssign):
        if isinstance(node, ast.BinOp) and operator and isinstance(node.op, operator):
            pairs.append((node.left, node.right))
        elif isinstance(node, ast.AugAssign) and operator and isinstance(node.op, operator):
            pairs.append((node.target, node.value))
    return _of_sides(pairs, groups)


def _of_comparison(groups: Mapping[str, str], said: _Said) -> str:
    operator = _COMPARISONS.get(groups["operator"])
    pairs = [
        (left, right)
        for node in said.source.all(ast.Compare)
        for left, right, compared in zip((node.left, *node.comparators), node.comparators, node.ops)
        if operator and isinstance(compared, operator)
    ]
    return _of_sides(pairs, groups) or _of_elements(groups, said)


def _of_elements(groups: Mapping[str, str], said: _Said) -> str:
    """Say what holds elements that cannot be compared, where a call puts all of them in order."""
    own = [frame for frame in asking_frames(said.raised) if is_own(frame)]
    if not own:
        return ""
    source = SourceLine(own[-1])
    nodes = [
        node.args[0]
        for node in source.all(ast.Call)
        if isinstance(node, ast.Call)
        and len(node.args) == 1
        and ast.unparse(node.func).rpartition(".")[2] in _ORDERING
    ]
    owner = source.the_one(nodes)
    kinds = dict.fromkeys(groups[side] for side in ("left", "right"))
    if not owner:
        return ""
    words = " and ".join("None" if kind == "NoneType" else f"values of {kind}" for kind in kinds)
    return f"{owner} holds {words} there, which no order is defined for."


def _of_sides(pairs: Sequence[Tuple[ast.AST, ast.AST]], groups: Mapping[str, str]) -> str:
    """Say of which type each side of the one operation is; of several, on which side None is."""
    kinds = (groups.get("left") or "", groups.get("right") or "")
    if len(pairs) != 1:
        return _of_none(pairs, kinds)
    sides = [
        _is(operand_text(node), kind)
        for node, kind in zip(pairs[0], kinds)
        if kind and operand_text(node)
    ]
    return f"{' and '.join(sides)} there." if sides else ""


def _of_none(pairs: Sequence[Tuple[ast.AST, ast.AST]], kinds: Tuple[str, str]) -> str:
    """Say which of a few operands is None, where only one side of an operation is."""
    if kinds.count("NoneType") != 1 or len(pairs) > _FEW_PAIRS:
        return ""
    side = kinds.index("NoneType")
    nodes = [pair[side] for pair in pairs if not isinstance(pair[side], ast.Constant)]
    names = list(dict.fromkeys(map(operand_text, nodes)))
    return f"{' or '.join(names)} is None there." if names and all(names) else ""


def _of_index(_: Mapping[str, str], said: _Said) -> str:
    nodes = [
        node for node in said.source.all(ast.Subscript) if not isinstance(node.slice, ast.Slice)
    ]
    if len({ast.unparse(node) for node in nodes}) != 1:
        return ""
    owner, index = operand_text(nodes[0].value), ast.unparse(nodes[0].slice)
    if not owner or len(index) > _LONGEST:
        return ""
    if index in ("0", "-1"):
        return f"{owner} is empty there."
    if isinstance(nodes[0].slice, ast.Constant):
        return f"{owner} has no element {index} there: it is shorter."
    return f"{index} is no index of {owner} there: it lies behind its end."


def _of_hash(groups: Mapping[str, str], said: _Said) -> str:
    """Say what is to be an element of a set or a key, and is of a type that may change."""
    kind, source = groups["type"], said.source
    made = [
        node.args[0]
        for node in source.all(ast.Call)
        if ast.unparse(node.func) in ("set", "frozenset") and len(node.args) == 1
    ]
    # Keys of a dict can be elements of a set: they are.
    made = [node for node in made if not ast.unparse(node).endswith(".keys()")]
    owner = source.the_one(made)
    end = ", and what may change is no element of a set"
    if owner:
        return f"An element of {owner} is of type {kind} there{end}."
    keys = [node.slice for node in source.all(ast.Subscript)]
    keys += [node.left for node in source.all(ast.Compare) if isinstance(node.ops[0], _MEMBERSHIP)]
    owner = source.the_one([key for key in keys if not isinstance(key, ast.Slice)])
    return f"{_is(owner, kind)} there{end} and no key of a dict." if owner else ""


def _of_block(groups: Mapping[str, str], said: _Said) -> str:
    nodes = [item.context_expr for node in said.source.all(ast.With) for item in node.items]
    return _sentence(said.source.the_one(nodes), groups["type"])


def _of_factor(groups: Mapping[str, str], said: _Said) -> str:
    """Say what a list or text is to be repeated by."""
    nodes = [
        side
        for node in said.source.all(ast.BinOp)
        if isinstance(node.op, ast.Mult)
        for side in (node.left, node.right)
        if operand_text(side)
    ]
    return _sentence(said.source.the_one(nodes), groups["type"])


def _of_given(groups: Mapping[str, str], said: _Said) -> str:
    """Say what a call is given, by the program where Python's own library takes it."""
    own = [frame for frame in asking_frames(said.raised) if is_own(frame)]
    source = SourceLine(own[-1]) if own and is_standard(said.frame) else said.source
    given = [
        value
        for node in source.all(ast.Call)
        for value in (*node.args, *(keyword.value for keyword in node.keywords))
    ]
    return _sentence(source.the_one(given), groups["type"])


def _of_place(_: Mapping[str, str], said: _Said) -> str:
    """Say what was looked for in vain, and where."""
    calls = [
        node
        for node in said.source.all(ast.Call)
        if isinstance(node.func, ast.Attribute)
        and node.func.attr in ("index", "remove")
        and node.args
    ]
    owner = said.source.the_one([node.func.value for node in calls])  # type: ignore[attr-defined]
    value = said.source.the_one([node.args[0] for node in calls])
    return f"{owner} does not hold {value} there." if owner and value else ""


def _of_empty(_: Mapping[str, str], said: _Said) -> str:
    nodes = [
        node.func.value
        for node in said.source.all(ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pop"
    ]
    owner = said.source.the_one(nodes)
    return f"{owner} is empty there." if owner else ""


def _of_parts(groups: Mapping[str, str], said: _Said) -> str:
    """Say what has fewer or more parts than the line takes."""
    nodes: List[ast.AST] = []
    for node in said.source.all(ast.Assign, ast.For, ast.comprehension):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            nodes.append(node.value)
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Tuple):
            nodes.append(node.iter)
    owner, has = said.source.the_one(nodes), groups.get("has")
    if not owner:
        return ""
    each = "Each element of " if "for " in said.frame.code else ""
    parts = (
        f"{has} part{'' if has == '1' else 's'}" if has else f"more than {groups['wants']} parts"
    )
    return f"{each}{owner} has {parts} there, and the line takes {groups['wants']}."


def _of_divisor(_: Mapping[str, str], said: _Said) -> str:
    nodes = [
        node.right if isinstance(node, ast.BinOp) else node.value
        for node in said.source.all(ast.BinOp, ast.AugAssign)
        if isinstance(node, (ast.BinOp, ast.AugAssign))
        and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod))
    ]
    divisor = operand_text(nodes[0]) if len(nodes) == 1 else ""
    return f"{divisor} is 0 there." if divisor else ""


def _of_exhausted(_: Mapping[str, str], said: _Said) -> str:
    """Say what was asked for more than it holds."""
    owner = exhausted(said.raised)
    if not owner:
        return ""
    return (
        f"{owner} has given all that it holds, and the line asks it for more: an iterator does not "
        "begin anew by itself, as a loader's is at its end after one pass over the data."
    )


def _of_number(groups: Mapping[str, str], said: _Said) -> str:
    """Say what was to be made a number."""
    nodes = [
        node.args[0]
        for node in said.source.all(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float") and node.args
    ]
    owner, value = said.source.the_one(nodes), groups["value"]
    return f"{owner} is {value} there, which is no number." if owner else ""


def _of_key(message: str, said: _Said) -> str:
    """Say of what a key is missing, where the line writes it out, or what it came from."""
    try:
        key = ast.literal_eval(message)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    for frame in asking_frames(said.raised)[: -_FAR - 1 : -1]:
        source = said.source if frame is said.frame else SourceLine(frame)
        subscripts = source.all(ast.Subscript)
        owners = [node.value for node in subscripts if _value(node.slice) == key]
        if owners:
            return _without(source.the_one(owners), message)
    if fills_text(said.source):
        return (
            f"The text that is filled has a place for {message}, and the call gives nothing of "
            "that name: braces that stand for themselves, as of JSON in it, are written twice."
        )
    subscripts = said.source.all(ast.Subscript)
    asked = [node for node in subscripts if not isinstance(node.slice, (ast.Constant, ast.Slice))]
    if len({ast.unparse(node) for node in asked}) != 1:
        return ""
    owner, name = operand_text(asked[0].value), operand_text(asked[0].slice)
    if not owner or not name or owner in ("self", "cls"):
        return ""
    return f"{name} is {message} there, and {owner} has no such key."


def fills_text(source: SourceLine) -> bool:
    """Tell whether a line fills the places of a text with values (``str.format``)."""
    calls = [node.func for node in source.all(ast.Call)]
    names = [node.attr for node in calls if isinstance(node, ast.Attribute)]
    return any(name in ("format", "format_map") for name in names)


def _without(owner: str, key: str) -> str:
    if not owner:
        return ""
    if owner.endswith("environ"):
        return f"The environment variable {key[1:-1]} is not set, and the line takes it to be."
    return f"{owner} has no {key} there."


def _value(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) else None


_TYPE = r"'(?P<type>[\w.]{1,80})'"
_FORMS: Mapping[str, Tuple[Tuple[re.Pattern[str], _Reader], ...]] = {
    "AttributeError": (
        (pattern(rf"^{_TYPE} object has no attribute '(?P<name>\w{{1,80}})'"), _of_attribute),
    ),
    "TypeError": (
        (pattern(rf"^{_TYPE} object is not subscriptable"), _of_subscript),
        (pattern(rf"^{_TYPE} object does not support item assignment"), _of_subscript),
        (pattern(r"^unhashable type: 'slice'"), _of_slice),
        # CPython 3.14 says of what before: "cannot use 'list' as a dict key (unhashable …)".
        (pattern(r"(?:^|\()unhashable type: '(?P<type>[\w.]{1,80})'"), _of_hash),
        # Something that holds values by place was asked for one by name.
        (
            pattern(r"^(?P<type>string|list|tuple|byte)(?: or slices)? indices must be integers"),
            _of_name,
        ),
        (pattern(rf"^{_TYPE} object is not callable"), _of_call),
        (pattern(rf"^{_TYPE} object is not iterable"), _of_iteration),
        (pattern(rf"^argument of type {_TYPE} is not iterable"), _of_membership),
        (pattern(rf"^object of type {_TYPE} has no len\(\)"), _of_length),
        (
            pattern(
                r"^unsupported operand type\(s\) for (?P<operator>[^:]{1,14}): '(?P<left>[\w.]+)' "
                r"and '(?P<right>[\w.]+)'"
            ),
            _of_operator,
        ),
        (pattern(rf"^{_TYPE} object does not support the \w* ?context manager"), _of_block),
        (pattern(rf"^can't multiply sequence by non-int of type {_TYPE}"), _of_factor),
        (pattern(rf"^{_TYPE} object cannot be interpreted as an integer"), _of_given),
        (pattern(r"^(?:int|float)\(\) argument must be .{0,80}? not '(?P<type>\w+)'"), _of_given),
        (
            pattern(
                r"^(?:expected str, bytes or os\.PathLike object"
                r"|argument should be a str or an os\.PathLike object.{0,80}?), not '?(?P<type>\w+)"
            ),
            _of_given,
        ),
        (pattern(r"^can only concatenate \w+ \(not \"(?P<right>[\w.]+)\"\) to"), _of_operator),
        (
            pattern(
                r"^'(?P<operator>[<>]=?)' not supported between instances of '(?P<left>[\w.]+)' "
                r"and '(?P<right>[\w.]+)'"
            ),
            _of_comparison,
        ),
    ),
    "IndexError": (
        (pattern(r"^(?:list|tuple|string|deque) index out of range"), _of_index),
        (pattern(r"^pop from (?:an )?empty"), _of_empty),
    ),
    "ValueError": (
        (pattern(r" is not in (?:list|tuple|deque)$|: x not in (?:list|tuple)$"), _of_place),
        (
            pattern(
                r"^not enough values to unpack \(expected (?:at least )?(?P<wants>\d+), got "
                r"(?P<has>\d+)\)"
            ),
            _of_parts,
        ),
        (
            pattern(
                r"^too many values to unpack \(expected (?P<wants>\d+)(?:, got (?P<has>\d+))?\)"
            ),
            _of_parts,
        ),
        (
            pattern(
                r"^(?:invalid literal for int\(\) with base \d+|could not convert string to float):"
                r" (?P<value>'.{0,80}')$"
            ),
            _of_number,
        ),
    ),
    "ZeroDivisionError": ((pattern(r"zero"), _of_divisor),),
    "StopIteration": ((pattern(r"^$"), _of_exhausted),),
}
