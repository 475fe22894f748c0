"""What the operators of torch refuse, in words of the program: their messages name shapes, indices
and types, and not which part of a run these are.

The messages are those of torch 1.13 to 2.13, raised by code in C++, which ``matrices/messages``
does not hold.
"""

from __future__ import annotations

import re
from math import prod
from typing import Callable, Mapping, Tuple, Union

from ..model.pattern import pattern

__all__ = ["of_tensors"]

#: Names of types in C++, as ``c10/core/ScalarType.h`` of torch gives them.
_TYPES: Mapping[str, str] = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Half": "float16", "Float": "float32", "Double": "float64", "Bool": "bool",
    "BFloat16": "bfloat16", "ComplexHalf": "complex32", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip


def of_tensors(message: str) -> str:
    """Say what the message of an operator means; "" for one that no words are known for."""
    for form, words in _FORMS:
        match = form.search(message)
        if match is not None:
            return words if isinstance(words, str) else words(match)
    return ""


def _of_kernel(match: re.Match[str]) -> str:
    """Say of which type a tensor is that torch has no code for."""
    kernel, kind = match.group("kernel"), _TYPES.get(match.group("type"))
    if kind is None:
        return ""
    where = "on the CPU " if "cpu" in kernel else "on a GPU " if "cuda" in kernel else ""
    return (
        f"torch has no {kernel} {where}for tensors of torch.{kind}: the tensor has to be of "
        f"another type there{', or on a GPU' if 'cpu' in kernel else ''}."
    )


def _of_indices(match: re.Match[str]) -> str:
    kind = _TYPES.get(match.group("type"), match.group("type"))
    return (
        f"The token ids themselves are {kind} there: the program put the whole output of the "
        "tokenizer, or the whole batch, into another type; only what holds values (pixels, sound) "
        "may be cast."
    )


def _of_sizes(match: re.Match[str]) -> str:
    return (
        f"{match.group('function')} takes its sizes as whole numbers, and the {match.group('got')} "
        "that it got holds something else (a float as / makes it, None, a tensor or another tuple)."
    )


def _of_widths(match: re.Match[str]) -> str:
    has, takes = match.group("has"), match.group("takes")
    return (
        f"What comes in is {has} wide, and the weights take {takes}: the layer was made for "
        "another size than that of what stands before it."
    )


def _of_label(match: re.Match[str]) -> str:
    label = int(match.group("label"))
    if label < 0:
        return (
            f"The label {label} is none that the loss leaves out (ignore_index, by default -100)."
        )
    return (
        f"The model has at most {label} classes, and a label is {label}: it takes {label + 1} of "
        "them or more (num_labels, or a vocabulary of that size), or the label is wrong."
    )


def _of_rows(match: re.Match[str]) -> str:
    rows, labels = int(match.group("rows")), int(match.group("labels"))
    times = f", {rows // labels} for each label" if labels and rows % labels == 0 else ""
    return (
        f"The model gives {rows} rows{times}, and there are {labels} labels: one of the two was "
        "cut, repeated or flattened in another way."
    )


def _of_unequal(match: re.Match[str]) -> str:
    return (
        f"Samples of one batch differ in size ([{match.group('one')}] and "
        f"[{match.group('other')}]): they were neither padded nor cut to one, as a collate_fn or "
        "the tokenizer's padding does."
    )


def _of_shape(match: re.Match[str]) -> str:
    sizes, has = [int(size) for size in match.group("sizes").split(",")], match.group("has")
    product = prod(size for size in sizes if size >= 0)
    if -1 in sizes:
        return f"{has} values are no multiple of {product}, which the shape asks for."
    return f"The shape takes {product} values, and the tensor has {has}."


_FORMS: Tuple[Tuple[re.Pattern[str], Union[str, Callable[[re.Match[str]], str]]], ...] = (
    (
        pattern(r'^"(?P<kernel>\w{1,80})" not implemented for \'(?P<type>\w{1,30})\''),
        _of_kernel,
    ),
    (
        pattern(r"is not on the expected device meta\b|at least two devices.{0,60}\bmeta\b"),
        (
            "A tensor on the device meta has no values: a part of the model was never loaded, "
            "or is offloaded and the code reaches past the hooks that fetch it."
        ),
    ),
    (
        pattern(r"^\w{1,40} only supports boolean masks, but got .{0,20}?dtype Byte"),
        (
            "Masks of torch.uint8 were taken, with a warning, by torch 1.2 and later 1.x; "
            "this one takes torch.bool alone: .bool() in place of .byte()."
        ),
    ),
    (
        pattern(
            r"^mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<has>\d+) and "
            r"(?P<takes>\d+)x\d+\)"
        ),
        _of_widths,
    ),
    (
        pattern(r"^index out of range in self$"),
        (
            "An embedding was asked for a row behind its last: a token beyond the model's "
            "vocabulary (a tokenizer of another model, tokens that were added without "
            "resizing), or a position beyond its longest sequence."
        ),
    ),
    (
        pattern(
            r"^Expected tensor for argument #1 'indices' to have one of the following scalar "
            r"types: Long, Int; but got (?:torch\.)?(?:CUDA|CPU|cuda\.)?(?P<type>\w+?)"
            r"(?:Type|Tensor)? "
        ),
        _of_indices,
    ),
    (
        pattern(r"^chunk expects at least a 1-dimensional tensor"),
        (
            "What is to be split has no dimension: a single number, as a tensor, was handed on "
            "with the batch."
        ),
    ),
    (
        pattern(r"^Attempting to deserialize object on a CUDA device"),
        "What is loaded was saved from a GPU: map_location, where it is loaded, puts it elsewhere.",
    ),
    (
        pattern(
            r"^(?P<function>\w{1,60})\(\) received an invalid combination of arguments - got "
            r"\((?P<got>tuple|list)\b"
        ),
        _of_sizes,
    ),
    (pattern(r"^Target (?P<label>-?\d{1,12}) is out of bounds"), _of_label),
    (
        pattern(
            r"^Expected input batch_size \((?P<rows>\d+)\) to match target batch_size "
            r"\((?P<labels>\d+)\)"
        ),
        _of_rows,
    ),
    (
        pattern(
            r"^stack expects each tensor to be equal size, but got \[(?P<one>[\d, ]*)\] at entry "
            r"\d+ and \[(?P<other>[\d, ]*)\] at entry"
        ),
        _of_unequal,
    ),
    (
        pattern(r"^default_collate: batch must contain .{0,80}found <class 'NoneType'>"),
        "The data set gave None for a sample: one that it could not read, or that it leaves out.",
    ),
    (
        pattern(r"^element 0 of tensors does not require grad"),
        (
            "Nothing that the loss was made of is trained: all parameters are frozen, the "
            "forward pass ran under no_grad or inference_mode, or gradient checkpointing "
            "begins behind a frozen part, as with LoRA without enable_input_require_grads() "
            "or use_reentrant=False."
        ),
    ),
    (
        pattern(
            r"^shape '\[(?P<sizes>-?\d+(?:, -?\d+){0,9})\]' is invalid for input of size "
            r"(?P<has>\d+)"
        ),
        _of_shape,
    ),
    (
        pattern(r"^num_samples should be a positive integer value, but got num_samples=0"),
        (
            "The data set is empty there: its files hold nothing, the path matches none, or a "
            "filter left nothing."
        ),
    ),
    (
        pattern(r"^optimizer got an empty parameter list"),
        (
            "No parameter is to be trained: all are frozen, or the names by which they are "
            "chosen fit none."
        ),
    ),
    (
        pattern(r"^Expected more than 1 value per channel when training"),
        (
            "The last batch has a single sample, which batch normalization cannot train with: "
            "drop_last=True leaves it out."
        ),
    ),
    (
        pattern(r"^(?:mat2 must be a matrix, got 1-D tensor|'weight' must be 2-D)"),
        (
            "A weight has lost its shape: with FSDP or ZeRO 3 it is a flat shard outside of "
            "the module that gathers it, as where a layer is called past its wrapper."
        ),
    ),
)
