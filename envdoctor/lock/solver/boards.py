"""Boards that take CUDA builds for Arm servers, as PyPI has them, only from some system on."""

from __future__ import annotations

from typing import Iterable, List, Optional

from ...matrix.bind import Target
from ...matrix.loader import Matrix
from ...matrix.tables import Board
from ...model.facts import Facts
from ...model.resolution import Statement
from ...model.versions import Version, parse_version

__all__ = ["board_statements", "boards_of", "outdated_board"]


def boards_of(facts: Iterable[Facts], matrix: Matrix) -> List[Board]:
    """Return the boards among the GPUs of some machines, each once."""
    models = (
        matrix.gpu(device.name, device.pci_id)
        for entry in facts
        for device in entry.value("gpus") or ()
    )
    named = dict.fromkeys(model.name for model in models if model is not None)
    return [matrix.boards[name] for name in named if name in matrix.boards]


def board_statements(facts: Iterable[Facts], matrix: Matrix) -> List[Statement]:
    """Say which CUDA builds the boards among some machines take."""
    return [
        Statement(
            "hardware",
            f"wheels with CUDA for aarch64 are for Arm servers, and {board.gpu} takes these from "
            f"{board.system} (CUDA {board.cuda}) on; builds for older systems: {board.builds}",
            sources=(board.source,),
        )
        for board in boards_of(facts, matrix)
    ]


def outdated_board(target: Target, matrix: Matrix) -> Optional[Board]:
    """Return the board of a target whose driver is older than any of the system from which on it
    takes builds for Arm servers.
    """
    driver = target.host.attributes.get("driver")
    for device in target.gpus or ():
        board = matrix.boards.get(str(device.attributes.get("model")))
        if board is not None and isinstance(driver, Version):
            major = matrix.cuda_majors[parse_version(board.cuda).major]
            if driver < parse_version(major.min_driver):
                return board
    return None
