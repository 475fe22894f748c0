"""What the matrix knows of one thing: a release, a package, a GPU, a compute capability, a driver
branch, a CUDA version, a row.

Each answer is a JSON object with ``kind``; ``envdoctor.report.matrix_text`` writes it for people,
``--json`` as it is.
"""

from __future__ import annotations

from ...model.pattern import pattern
from ...model.requirement import requirement_fault, try_requirement
from ..loader import Matrix
from .hardware_answers import (
    architecture_answer,
    capability_answer,
    cuda_answer,
    driver_answer,
    gpu_answer,
)
from .package_answers import named_package, specified_answer
from .row_answers import NotKnown, row_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, Mapping

__all__ = ["NotKnown", "find"]

_WORDED = pattern(r"(?i)(driver|cuda|toolkit|gpu|row|profile|package)\s+(\S.*)")


def find(matrix: Matrix, query: str) -> Dict[str, Any]:
    """Return what the matrix knows of ``query``.

    ``vllm==0.8.5``, ``vllm``, ``vllm>=0.8,<0.9``, ``H20``, ``10de:2329``, ``sm_90``, ``Hopper``,
    ``driver 550``, ``cuda 12.8``, a row's id or a profile's name. The words driver, cuda, gpu, row,
    profile and package before a name say which kind is meant.

    Raises:
        NotKnown: nothing goes by that name.
    """
    text = " ".join(query.split())
    worded = _WORDED.fullmatch(text)
    if worded is not None:
        return _WORDS[worded.group(1).lower()](matrix, worded.group(2))
    requirement = try_requirement(text)
    if requirement is not None and requirement.specifier:
        return specified_answer(matrix, requirement)
    if any(sign in text for sign in "<>="):
        raise NotKnown(requirement_fault(text))
    for attempt in (
        _row,
        named_package,
        _profile,
        gpu_answer,
        capability_answer,
        architecture_answer,
    ):
        try:
            return attempt(matrix, text)
        except NotKnown:  # noqa: PERF203 - each reading of the text may fail on its own
            continue
    raise NotKnown(
        f"{text}: no such package, GPU, compute capability, profile or row", _names(matrix)
    )


def _names(matrix: Matrix) -> Iterator[str]:
    yield from matrix.package_names
    yield from {name for row in matrix.rows() for name in row.packages}
    yield from (model.name for model in matrix.gpus)
    yield from _row_ids(matrix)
    yield from (f"sm_{name.replace('.', '')}" for name in matrix.capabilities)
    yield from (f"driver {name}" for name in matrix.driver_branches)


def _row_ids(matrix: Matrix) -> Iterator[str]:
    """Yield the ids of all rows; they are made only where somebody asks what is like a name."""
    for row in matrix.rows():
        yield row.id


def _row(matrix: Matrix, text: str) -> Dict[str, Any]:
    row = matrix.row(text) or matrix.row(text.lower())
    if row is None:
        raise NotKnown(f"{text}: no such row", _row_ids(matrix))
    return {"kind": "row", "row": row_entry(row)}


def _profile(matrix: Matrix, text: str) -> Dict[str, Any]:
    name = text.lower()
    profile = {key.lower(): value for key, value in matrix.profiles.items()}.get(name)
    if profile is None:
        raise NotKnown(f"{text}: no such profile", matrix.profiles)
    return {"kind": "profile", "name": name, "profile": profile}


_WORDS: Mapping[str, Callable[[Matrix, str], Dict[str, Any]]] = {
    "driver": driver_answer,
    "cuda": cuda_answer,
    "toolkit": cuda_answer,
    "gpu": gpu_answer,
    "row": _row,
    "profile": _profile,
    "package": named_package,
}
