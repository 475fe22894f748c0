"""What the words of errors mean that Python and torch raise themselves: of which type a tensor is,
what was read that is no JSON and no text, and which operand of the line is at fault.
"""

from __future__ import annotations

from typing import Callable, Mapping, Tuple

from ..model.log import Raised
from ..model.pattern import pattern
from .failed_operation import of_operation

__all__ = ["of_native"]

#: What Python's json says (``json.decoder`` and ``json.scanner`` of 3.9 to 3.13), and when.
_OF_JSON = (
    (
        pattern(r"^Expecting value: line 1 column 1 \(char 0\)"),
        (
            "What was read is empty, or no JSON at all: a file that was not written to its end, a "
            "page of HTML, a pointer of Git LFS or a message of a server in its place."
        ),
    ),
    (
        pattern(r"^Extra data: line 2 column 1 "),
        (
            "What was read holds one JSON value in each line (JSON Lines), and the line takes it "
            "for a single one: it has to be read line by line."
        ),
    ),
    (
        pattern(r"^Unterminated string starting at"),
        "What was read ends within a string: it was not written, copied or downloaded to its end.",
    ),
)
_NO_TEXT = pattern(
    r"^'\S{1,20}' codec can't decode byte 0x(?P<byte>[0-9a-f]{2}) in position (?P<place>[01]): "
)
#: The first byte that is not of ASCII, by its place (file(1), "magic").
_BEGINNINGS: Mapping[Tuple[str, str], str] = {
    ("8b", "1"): "a file that gzip packed",
    ("b5", "1"): "a file that Zstandard packed",
    ("80", "0"): "a pickle, as torch.save of old wrote",
    ("93", "0"): "an array of NumPy",
    ("89", "0"): "an image of PNG, or a file of HDF5",
    ("ff", "0"): "a text of UTF-16, or an image of JPEG",
    ("fe", "0"): "a text of UTF-16",
}
_UNASSIGNED = pattern(
    r"^(?:cannot access local variable|local variable) '(?P<name>\w{1,80})' "
    r"(?:where it is not associated|referenced before assignment)"
)
_PLAIN = pattern(r"'(dict|str|list|tuple|set)' object has no attribute '(\w{1,80})'$")
#: What each model with an embedding has, by the names of transformers' PretrainedConfig
#: (``attribute_map``), and only the parts of a composed one.
_OF_PART = pattern(
    r"'(?P<config>\w{1,80}Config)' object has no attribute "
    r"'(?P<name>hidden_size|num_attention_heads|num_key_value_heads|num_hidden_layers|vocab_size"
    r"|intermediate_size|max_position_embeddings|rope_theta)'$"
)
_NOT_COMPILED = pattern(r"^<function .{1,200}> is not a code object$")
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
    kind = raised.kind.rpartition(".")[2]
    digest = _OF_NOTHING.search(raised.message)
    if digest is not None:
        return (
            f"{digest.group()[:8]}… is the digest of no data: the file is empty, its download or "
            "copy was cut off; remove it, so that it is fetched again."
        )
    means = _BY_KIND[kind](message) if kind in _BY_KIND else ""
    return " ".join(filter(None, (of_operation(raised), means)))


def _of_plain(message: str) -> str:
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


def _of_compiled(message: str) -> str:
    if not _NOT_COMPILED.match(message):
        return ""
    return (
        "inspect.getargs takes a code object and no function: inspect.getfullargspec is what "
        "stands in the place of getargspec."
    )


def _of_json(message: str) -> str:
    return next((meaning for form, meaning in _OF_JSON if form.match(message)), "")


def _of_bytes(message: str) -> str:
    """Say what a file is that begins with bytes no text begins with."""
    match = _NO_TEXT.match(message)
    what = _BEGINNINGS.get((match.group("byte"), match.group("place")), "") if match else ""
    return f"So begins {what}, which is no text: it has to be read as that." if what else ""


def _of_variable(message: str) -> str:
    match = _UNASSIGNED.match(message)
    if match is None:
        return ""
    return (
        f"The function gives {match.group('name')} a value, and only further down or under a "
        "condition that was not met in this run."
    )


def _of_type(message: str) -> str:
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


_BY_KIND: Mapping[str, Callable[[str], str]] = {
    "AttributeError": _of_plain,
    "TypeError": _of_compiled,
    "RuntimeError": _of_type,
    "JSONDecodeError": _of_json,
    "UnicodeDecodeError": _of_bytes,
    "UnboundLocalError": _of_variable,
}
