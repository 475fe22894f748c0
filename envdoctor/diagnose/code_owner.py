"""Whose code a place of a traceback is: an installed package's, Python's own, or the program's."""

from __future__ import annotations

from ..model.log import Frame
from ..model.pattern import pattern

__all__ = ["INSTALLED", "STANDARD", "is_own", "is_standard"]

#: The place inside an installed package, and that of Python's own library.
INSTALLED = pattern(r"(?:site|dist)-packages/(.+)$")
STANDARD = pattern(
    r"/lib(?:64)?/python3\.\d+t?/(?!site-packages|dist-packages)(.+)$"
    r"|^[A-Z]:/(?i:.{0,300}(?:python|conda|forge)[^/]{0,40}(?:/envs/[^/]{1,80})?)"
    r"/Lib/(?!site-packages)(.+)$|^<(frozen .+)>$"
)


def is_own(frame: Frame) -> bool:
    """Tell whether a place is neither of an installed package nor of Python itself."""
    return not (is_standard(frame) or INSTALLED.search(frame.file))


def is_standard(frame: Frame) -> bool:
    """Tell whether a place is of Python's own library, or of a text that it runs."""
    return frame.file == "<string>" or STANDARD.search(frame.file) is not None
