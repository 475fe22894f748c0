"""The resolver: a request, targets and the matrix give a resolution, or an explanation of why there
is none.
"""

from __future__ import annotations

from .resolve import resolve

__all__ = ["resolve"]
