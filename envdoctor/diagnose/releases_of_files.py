"""Of which releases the files are that a traceback goes through: a file, or a function in it, that
only some releases of its package have bounds the one that ran, where nobody states it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from ..model.log import Frame
from .code_owner import package_of

if TYPE_CHECKING:
    from ..matrix.names import Releases

__all__ = ["releases_of_files"]

_MOST_FRAMES = 200


def releases_of_files(
    package: str, frames: Sequence[Frame], modules: Mapping[str, str], matrix: Any
) -> Optional[Releases]:
    """Return the releases of an installed package that have all of its files that a traceback goes
    through, with the functions that ran; None where that bounds nothing. matrix: a ``Matrix``.

    Sources of a checkout are of no release, and say nothing.
    """
    places = []
    for frame in frames[-_MOST_FRAMES:]:
        if frame.within.endswith(".py") and package_of(frame, modules) == package:
            module = frame.within[: -len(".py")].replace("/", ".")
            places.append(
                (
                    module[: -len(".__init__")] if module.endswith(".__init__") else module,
                    frame.function,
                )
            )
    names = matrix.names_of(package) if places else None
    return names.with_places(places) if names is not None else None
