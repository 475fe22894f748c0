"""Sources of other people, to syntax trees."""

from __future__ import annotations

import ast
import warnings
from typing import Union

__all__ = ["UNPARSABLE", "parse_quietly"]

#: What a source may raise that Python of today does not read, or not within its bounds.
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def parse_quietly(source: Union[str, bytes]) -> ast.Module:
    """Return the tree of a source without what Python warns of in it; raises ``UNPARSABLE``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
