"""Which layer of a model refused a size, and what it was given: the message is torch's, and the
line that called the layer stands above torch's own places.
"""

from __future__ import annotations

import ast
from typing import Optional

from ..model.log import Frame, Raised
from ..model.pattern import pattern
from .source_line import SourceLine, operand_text

__all__ = ["of_layer"]

_OF_SIZES = pattern(
    r"mat1 and mat2 shapes cannot be multiplied|mat1 dim 1 must match mat2 dim 0"
    r"|must have the same dtype|Given normalized_shape=|^Given groups=|Expected \d+-?D"
    r"|^input\.size\(-1\) must be equal to input_size|(?:running_mean|weight) should contain"
)
_OF_TORCH = pattern(r"/torch/(?:nn|_dynamo|amp|autograd|utils)/")


def of_layer(raised: Raised) -> str:
    """Name the layer that refused what it was given, and that; "" where the line that calls it
    holds more than one call.
    """
    frame = _caller(raised)
    if frame is None or _OF_SIZES.search(raised.message) is None:
        return ""
    calls = SourceLine(frame).all(ast.Call)
    if len(calls) != 1 or not calls[0].args:
        return ""
    layer, given = ast.unparse(calls[0].func), operand_text(calls[0].args[0])
    if not given or layer.rpartition(".")[2] == "forward":
        return ""
    return f"The layer is {layer}, and what it is given is {given}."


def _caller(raised: Raised) -> Optional[Frame]:
    """Return the place that called a layer of torch's; None where none of those raised."""
    caller = None
    for frame in reversed(raised.frames):
        caller = frame
        if _OF_TORCH.search(frame.file) is None:
            break
    return caller if caller is not None and caller is not raised.frames[-1] else None
