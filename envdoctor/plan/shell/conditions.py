"""What the conditions of a script come to: those of ``test``, and those that ask for the tools and
modules of other accelerators, which machines with CUDA do not have: the runs that are planned are
for these.
"""

from __future__ import annotations

import operator
import re
from typing import Callable, Dict, Optional, Sequence

from ...intake.word_lists import words
from .expansion import MARK, NUMBER

__all__ = ["asks_for_others", "decided"]

_COMPARISONS: Dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq, "-ne": operator.ne, "-lt": operator.lt,
    "-le": operator.le, "-gt": operator.gt, "-ge": operator.ge,
}  # fmt: skip

#: Extensions of torch and tools of Ascend (hiascend.com), Cambricon (github.com/Cambricon), Moore
#: Threads (docs.mthreads.com), Gaudi (docs.habana.ai) and AMD (rocm.docs.amd.com).
_MODULES = frozenset(words("torch_npu torch_mlu torch_musa habana_frameworks"))
_TOOLS = frozenset(words("npu-smi cnmon mthreads-gmi hl-smi rocm-smi amd-smi rocminfo"))
_ASKS = (("command", "-v"), ("type", "-p"), ("which",), ("type",), ("hash",))
_PYTHON = re.compile(r"(?:.*/)?python(?:\d(?:\.\d+)?)?\Z")
_IMPORT = re.compile(r"\s*(?:import|from)\s+(\w+)")


def asks_for_others(command: Sequence[str]) -> bool:
    """Tell whether a command fails on any machine with CUDA, since it looks for what only other
    accelerators have: ``python -c 'import torch_npu'``, ``command -v npu-smi``, ``npu-smi info``.
    """
    if not command:
        return False
    if command[0] in _TOOLS:
        return True
    if _PYTHON.match(command[0]) and "-c" in command[1:-1]:
        imported = _IMPORT.match(command[command.index("-c", 1) + 1])
        return imported is not None and imported.group(1) in _MODULES
    return any(
        tuple(command[: len(asks)]) == asks and set(command[len(asks) :]) & _TOOLS != set()
        for asks in _ASKS
    )


def decided(texts: Sequence[str]) -> Optional[bool]:
    """Return the answer of ``test``; None where it is about files, of several parts, or unclear."""
    if MARK in "".join(texts):
        return None
    if len(texts) == 3 and texts[1] in _COMPARISONS:
        numbers = [int(text) for text in texts[::2] if NUMBER.match(text)]
        return _COMPARISONS[texts[1]](*numbers) if len(numbers) == 2 else None
    if len(texts) == 3 and texts[1] in ("=", "==", "!="):
        alike = texts[0] == texts[2]
        return None if re.search(r"[*?\[(\\]", texts[2]) else alike is (texts[1] != "!=")
    if texts[:1] == ["!"] and texts[1:2] != ["!"]:
        answer = decided(texts[1:])
        return answer if answer is None else not answer
    if len(texts) < 2:
        return any(texts)
    return {"-n": texts[1] != "", "-z": texts[1] == ""}.get(texts[0]) if len(texts) == 2 else None
