"""What an expression, or a function, of Python code says on a machine with one NVIDIA GPU, as far
as it hangs on the compute capability.

An answer is a value, or ``UNKNOWN`` where anything else has a say in it. torch is built for CUDA
there and finds the GPU; accelerators of others are not there.
"""

from __future__ import annotations

import ast
import operator
import re
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from .module import Function
from .parsing import dotted_name, last_name

__all__ = [
    "CAPABILITIES",
    "UNKNOWN",
    "Device",
    "answer_of",
    "capability_of",
    "is_true",
    "known_answer",
    "refused_spans",
    "value_of",
]

#: Compute capabilities of which code is asked, in order.
CAPABILITIES = (
    *("6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3"),
    *("11.0", "12.0", "12.1"),
)


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


def _no_answer(_: str) -> Any:
    return UNKNOWN


class Device(NamedTuple):
    """A GPU, with what is known where the code stands.

    capability: (major, minor). names: values of names, in dots, such as ``self.bf16``. answer:
    gives the value of a call of a function without arguments that matter, by its name in dots.
    """

    capability: Tuple[int, int]
    names: Mapping[str, Any] = {}
    answer: Callable[[str], Any] = _no_answer


def capability_of(text: str) -> Tuple[int, int]:
    """Return ``(7, 5)`` of "7.5"."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def refused_spans(refused: Collection[str]) -> List[List[str]]:
    """Return [first, last] of each run of refused capabilities; the first known stands for all
    before it.
    """
    spans: List[List[str]] = []
    before = ""
    for text in CAPABILITIES:
        if text in refused and before and spans and spans[-1][1] == before:
            spans[-1][1] = text
        elif text in refused:
            spans.append([text, text])
        before = text
    return spans


# expressions

_COMPARED: Dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_OF_TORCH = {"torch.version.hip": None}
_ASKS = frozenset(("get_device_capability", "get_device_properties"))
_AVAILABLE = re.compile(r"(?:.*\.)?is_(?:torch_)?(torch|cuda)_available|torch\.cuda\.is_available")
_OTHER_AVAILABLE = re.compile(
    r"(?:.*\.)?is_(?:torch_)?(?:hpu|mlu|mps|musa|neuron|neuroncore|npu|sdaa|supa|tpu|xla|xpu)"
    r"_available"
)


def is_true(value: Any) -> Optional[bool]:
    """Return what an ``if`` makes of a value, None of one that is not known."""
    return None if value is UNKNOWN else bool(value)


def value_of(node: ast.expr, device: Device) -> Any:
    """Return what an expression is on a machine with this GPU."""
    if isinstance(node, ast.BoolOp):
        return _joined(node, device)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        truth = is_true(value_of(node.operand, device))
        return UNKNOWN if truth is None else not truth
    if isinstance(node, ast.Compare):
        return _compared(node, device)
    if isinstance(node, ast.Call):
        return _called(node, device)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        values = [value_of(part, device) for part in node.elts]
        made = tuple(values) if isinstance(node, ast.Tuple) else values
        return UNKNOWN if UNKNOWN in values else made
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        whole, number = value_of(node.value, device), node.slice.value
        return whole[number] if isinstance(whole, tuple) and number in (0, 1) else UNKNOWN
    return _named(node, device)


def _joined(node: ast.BoolOp, device: Device) -> Any:
    answers = [is_true(value_of(part, device)) for part in node.values]
    decides = isinstance(node.op, ast.Or)  # one answer that settles it
    if decides in answers:
        return decides
    return UNKNOWN if None in answers else not decides


def _compared(node: ast.Compare, device: Device) -> Any:
    if _is_cuda_of_torch(node.left) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return isinstance(node.ops[0], ast.IsNot)  # its builds for CUDA have a text there
    values = [value_of(part, device) for part in (node.left, *node.comparators)]
    if UNKNOWN in values:
        return UNKNOWN
    answer = True
    for kind, left, right in zip(node.ops, values, values[1:]):
        if isinstance(kind, ast.In) and isinstance(right, (list, tuple)):
            answer = answer and left in right
        elif isinstance(kind, ast.NotIn) and isinstance(right, (list, tuple)):
            answer = answer and left not in right
        elif type(kind) in _COMPARED and (type(left) is type(right) or None in (left, right)):
            if None in (left, right) and not isinstance(kind, (ast.Is, ast.IsNot)):
                return UNKNOWN
            answer = answer and _COMPARED[type(kind)](left, right)
        else:
            return UNKNOWN
    return answer


def _is_cuda_of_torch(node: ast.expr) -> bool:
    return dotted_name(node) == "torch.version.cuda"


def _called(node: ast.Call, device: Device) -> Any:
    last = last_name(node.func)
    if last in _ASKS:
        return device.capability
    if last == "has_device_capability":
        least = _least(node)
        return UNKNOWN if least is None else device.capability >= least
    if last == "DeviceCapability":
        numbers = tuple(value_of(part, device) for part in node.args)
        return numbers if len(numbers) == 2 and UNKNOWN not in numbers else UNKNOWN
    name = dotted_name(node.func)
    known = known_answer(name)
    return device.answer(name) if known is UNKNOWN else known


def known_answer(name: str) -> Any:
    """Return what a function answers by its name: whether there is torch, its GPU, or another
    accelerator.
    """
    if _AVAILABLE.fullmatch(name):
        return True
    return False if _OTHER_AVAILABLE.fullmatch(name) else UNKNOWN


def _least(node: ast.Call) -> Optional[Tuple[int, int]]:
    """``has_device_capability(80)``, ``has_device_capability((8, 0))``."""
    numbers = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    if len(numbers) == 1 and isinstance(numbers[0], int):
        return divmod(numbers[0], 10)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _named(node: ast.expr, device: Device) -> Any:
    name = dotted_name(node)
    if name in device.names:
        return device.names[name]
    if name in _OF_TORCH:
        return _OF_TORCH[name]
    if isinstance(node, ast.Attribute) and node.attr in ("major", "minor"):
        whole = value_of(node.value, device)
        if isinstance(whole, tuple) and len(whole) == 2:
            return whole[node.attr == "minor"]
    return UNKNOWN


# functions


def answer_of(function: Function, device: Device) -> Any:
    """Return what a function returns on a machine with this GPU, whatever else may have a say in
    it.
    """
    values, ends = _run(function.body, device, _defaults(function))
    if not ends or any(value is UNKNOWN for value in values) or not values:
        return UNKNOWN
    return values[0] if all(value == values[0] for value in values) else UNKNOWN


def _defaults(function: Function) -> Dict[str, Any]:
    """Parameters that nobody need give, where that is yes or no."""
    arguments = function.args.args
    pairs = zip(arguments[len(arguments) - len(function.args.defaults) :], function.args.defaults)
    return {
        argument.arg: node.value
        for argument, node in pairs
        if isinstance(node, ast.Constant) and isinstance(node.value, bool)
    }


def _run(body: Sequence[ast.stmt], device: Device, names: Dict[str, Any]) -> Tuple[List[Any], bool]:
    """Return the values that a body may return, and whether it never goes on behind itself; the
    names are changed by what it assigns.
    """
    values: List[Any] = []
    for node in body:
        here = device._replace(names={**device.names, **names})
        if isinstance(node, ast.Return):
            value = None if node.value is None else value_of(node.value, here)
            return [*values, value], True
        if isinstance(node, ast.Raise):
            return values, True
        if isinstance(node, ast.If):
            more, ends = _branch(node, here, names)
            values += more
            if ends:
                return values, True
        elif isinstance(node, ast.Assign):
            value = value_of(node.value, here)
            for name in _assigned([node]):
                names[name] = value if len(node.targets) == 1 else UNKNOWN
        elif not isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.Pass)):
            return [*values, UNKNOWN], True
    return values, False


def _branch(node: ast.If, device: Device, names: Dict[str, Any]) -> Tuple[List[Any], bool]:
    truth = is_true(value_of(node.test, device))
    if truth is not None:
        return _run(node.body if truth else node.orelse, device, names)
    first, ends = _run(node.body, device, dict(names))
    second, also = _run(node.orelse, device, dict(names))
    names.update(dict.fromkeys(_assigned([*node.body, *node.orelse]), UNKNOWN))
    return [*first, *second], ends and also


def _assigned(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id
