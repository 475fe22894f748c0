"""Errors that Python and torch raise themselves, and what their words and the line of source tell
together: which expression is None, of which type a tensor is.
"""

from __future__ import annotations

import re
from typing import Callable, Mapping

from ..model.log import Raised
from ..model.pattern import pattern

__all__ = ["of_native"]

_KEY = pattern(r"""^(?P<key>(?P<quote>['"])[^'"]{1,80}(?P=quote))$""")
_NO_JSON = pattern(r"^Expecting value: line 1 column 1 \(char 0\)")
_PLAIN = pattern(r"'(dict|str|list|tuple|set)' object has no attribute '(\w{1,80})'$")
#: What each model with an embedding has, by the names of transformers' PretrainedConfig
#: (``attribute_map``), and only the parts of a composed one.
_OF_PART = pattern(
    r"'(?P<config>\w{1,80}Config)' object has no attribute "
    r"'(?P<name>hidden_size|num_attention_heads|num_key_value_heads|num_hidden_layers|vocab_size"
    r"|intermediate_size|max_position_embeddings|rope_theta)'$"
)
_NONE_LACKS = pattern(r"'NoneType' object has no attribute '(\w{1,80})'$")
_IS_NOT = pattern(r"'(\w{1,80})' object is not (subscriptable|callable)\b")
#: Something that holds values by place was asked for one by name.
_BY_NAME = pattern(r"(string|list|tuple|byte)(?: or slices)? indices must be integers")
_NOT_COMPILED = pattern(r"^<function .{1,200}> is not a code object$")
_CALLS = r"(?:\([^()\[\]]*\)|\[[^()\[\]]*\])*"
#: A name with what is taken from it, called or indexed without a bracket inside.
_EXPRESSION = rf"(?<![\w.)\]])([A-Za-z_]\w*{_CALLS}(?:\.\w+{_CALLS})*?)"
#: What it means that an expression is None.
_MEANINGS: Mapping[str, str] = {
    # torch/version.py is written when torch is built.
    "torch.version.cuda": "the torch that runs here is not built for CUDA, but for the CPU or for "
    "other GPUs",
    "torch.version.hip": "the torch that runs here is not built for ROCm",
}
#: Names of types in C++, as ``c10/core/ScalarType.h`` of torch gives them.
_TYPES: Mapping[str, str] = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Half": "float16", "Float": "float32", "Double": "float64", "Bool": "bool",
    "BFloat16": "bfloat16", "ComplexHalf": "complex32", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip
#: Digests of no data, in MD5, SHA-1 and SHA-256 (``hashlib.sha256(b"").hexdigest()``).
_OF_NOTHING = pattern(
    r"d41d8cd98f00b204e9800998ecf8427e|da39a3ee5e6b4b0d3255bfef95601890afd80709"
    r"|e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)
_NO_KERNEL = pattern(r'^"(?P<kernel>\w{1,80})" not implemented for \'(?P<type>\w{1,30})\'')
_ON_META = pattern(r"is not on the expected device meta\b|at least two devices.{0,60}\bmeta\b")
_MASKS = pattern(
    r"^(?P<what>\w{1,40}) only supports boolean masks, but got .{0,20}?dtype (?P<type>\w+)"
)


def of_native(raised: Raised) -> str:
    """Say what the words of an exception of Python or torch mean; "" where nothing is added."""
    message = raised.message.partition("\n")[0].strip()
    code = raised.frames[-1].code if raised.frames else ""
    kind = raised.kind.rpartition(".")[2]
    digest = _OF_NOTHING.search(raised.message)
    if digest is not None:
        return (
            f"{digest.group()[:8]}… is the digest of no data: the file is empty, its download or "
            "copy was cut off; remove it, so that it is fetched again."
        )
    if kind in ("AttributeError", "TypeError"):
        return _of_none(message, code) or _OF_TYPES[kind](message, code)
    return _BY_KIND[kind](message, code) if kind in _BY_KIND else ""


def _of_plain(message: str, _: str) -> str:
    """Say what stands where an object with attributes was expected."""
    part = _OF_PART.match(message)
    if part is not None:
        return (
            f"A model of several parts (text, image, audio) keeps {part.group('name')} in the "
            f"configuration of one of them: what asks {part.group('config')} itself for it mostly "
            "does not know this model, or an older release of it."
        )
    match = _PLAIN.match(message)
    if match is None:
        return ""
    return (
        f"The code expects an object with {match.group(2)} and got a plain {match.group(1)}: a "
        "setting or a result was handed on as it was written, without being made into that object, "
        "or by a release that hands on another type."
    )


def _of_none(message: str, code: str) -> str:
    """Say which expression of the line is None, where there is only one that may be."""
    lacks = _NONE_LACKS.match(message)
    if lacks is None:
        return ""
    expression = _the_one(rf"{_EXPRESSION}\.{re.escape(lacks.group(1))}\b", code)
    meaning = _MEANINGS.get(expression, "")
    return f"{expression} is None there{f': {meaning}' if meaning else ''}." if expression else ""


def _of_use(message: str, code: str) -> str:
    """Say which expression of the line is of another type than the line takes it for."""
    is_not, by_name = _IS_NOT.match(message), _BY_NAME.match(message)
    if _NOT_COMPILED.match(message):
        return (
            "inspect.getargs takes a code object and no function: inspect.getfullargspec is what "
            "stands in the place of getargspec."
        )
    if by_name is not None:
        owner = _the_one(rf"{_EXPRESSION}\[", code)
        what = f"{owner} is a" if owner else "What is indexed is a"
        return (
            f"{what} {by_name.group(1)} there: the line takes a value of it by name, as of a dict."
        )
    if is_not is None:
        return ""
    expression = _the_one(
        _EXPRESSION + (r"\[" if is_not.group(2) == "subscriptable" else r"\("), code
    )
    if not expression:
        return ""
    what = "None" if is_not.group(1) == "NoneType" else f"of type {is_not.group(1)}"
    return f"{expression} is {what} there."


def _the_one(expression: str, code: str) -> str:
    """Return the one expression of a line that matches; "" where none or several do."""
    matches = {match.group(1) for match in re.finditer(expression, code)}
    return matches.pop() if len(matches) == 1 else ""


def _of_key(message: str, code: str) -> str:
    """Say of what a key is missing."""
    match = _KEY.match(message)
    if match is None:
        return ""
    key = re.escape(match.group("key")[1:-1])
    owner = _the_one(rf"{_EXPRESSION}\[['\"]{key}['\"]\]", code)
    return f"{owner} has no {match.group('key')} there." if owner else ""


def _of_zero(message: str, code: str) -> str:
    """Say what is zero where a line divides once."""
    divisor = _the_one(rf"(?://?|%) *(?:\( *)?{_EXPRESSION}(?![\w.(\[])", code)
    alone = len(re.findall(r"//|/|%|divmod", code)) == 1
    return f"{divisor} is 0 there." if divisor and alone and "zero" in message else ""


def _of_json(message: str, _: str) -> str:
    if not _NO_JSON.match(message):
        return ""
    return (
        "What was read is empty, or no JSON at all: a file that was not written to its end, a page "
        "of HTML or a message of a server in its place."
    )


def _of_type(message: str, _: str = "") -> str:
    """Say of which type a tensor is that torch has no code for."""
    match = _NO_KERNEL.match(message)
    if match is not None and match.group("type") in _TYPES:
        kernel = match.group("kernel")
        where = "on the CPU " if "cpu" in kernel else "on a GPU " if "cuda" in kernel else ""
        return (
            f"torch has no {kernel} {where}for tensors of torch.{_TYPES[match.group('type')]}: "
            "the tensor has to be of another type there"
            f"{', or on a GPU' if 'cpu' in kernel else ''}."
        )
    if _ON_META.search(message):
        return (
            "A tensor on the device meta has no values: a part of the model was never loaded, or "
            "is offloaded and the code reaches past the hooks that fetch it."
        )
    match = _MASKS.match(message)
    if match is not None and match.group("type") == "Byte":
        return (
            "Masks of torch.uint8 were taken, with a warning, by torch 1.2 and later 1.x; this one "
            "takes torch.bool alone: .bool() in place of .byte()."
        )
    return ""


_OF_TYPES: Mapping[str, Callable[[str, str], str]] = {
    "AttributeError": _of_plain,
    "TypeError": _of_use,
}
_BY_KIND: Mapping[str, Callable[[str, str], str]] = {
    "RuntimeError": _of_type,
    "KeyError": _of_key,
    "ZeroDivisionError": _of_zero,
    "JSONDecodeError": _of_json,
}
