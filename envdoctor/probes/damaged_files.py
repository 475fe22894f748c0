"""Files of distributions that are gone or have another size than their RECORD says: --deep."""

from __future__ import annotations

import os

from ..model.facts import Oddity
from ..model.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, List, Mapping, Optional, Tuple

    from ..model.facts import Distribution
    from .machine import Machine

__all__ = ["damage"]

# Distributions of which every file is compared with RECORD under --deep: what a broken file of
# breaks a whole stack. Of the others only code that is missing counts.
_WEIGHED = pattern(
    r"(torch|nvidia-.*|vllm|ray|triton|flash-attn|xformers|sglang|sgl-kernel|transformers"
    r"|torchvision|torchaudio)\Z"
)


#: Folders that whoever makes an image small takes out.
_LEFT_OUT = frozenset(("test", "tests", "testing", "doc", "docs", "examples", "benchmarks"))


def damage(
    machine: Machine,
    distributions: Mapping[str, Distribution],
    paths: Mapping[str, str],
    record: Callable[[str], Iterable[Tuple[str, Optional[int]]]],
) -> List[Oddity]:
    """Compare the files of the distributions that carry a stack with the sizes in their RECORD, and
    look for the code of all others.

    ``paths``: the folder of metadata of each; ``record`` reads the RECORD in one.
    """
    oddities = []
    for name, distribution in sorted(distributions.items()):
        path = paths[name]
        if distribution.editable or not path.endswith(".dist-info"):
            continue
        missing, altered, total = _differences(machine, distribution.location, record(path))
        if not _WEIGHED.match(name):
            missing, altered = [file for file in missing if _is_code(file)], []
        for kind, files in (("missing-files", missing), ("altered-files", altered)):
            if files:
                # Libraries first: their absence is what fails.
                files.sort(key=lambda file: (".so" not in file, file))
                detail = f"{len(files)} of {total} files: {', '.join(files[:3])}"
                oddities.append(Oddity(kind, name, path, detail, ".so" in files[0]))
    return oddities


def _is_code(file: str) -> bool:
    """Tell whether a file is a module or a library that no slim image leaves out."""
    folders = file.split("/")[:-1]
    return file.endswith((".py", ".so")) and not _LEFT_OUT.intersection(folders)


def _differences(
    machine: Machine, location: str, record: Iterable[Tuple[str, Optional[int]]]
) -> Tuple[List[str], List[str], int]:
    """The files that are not there, those of another size, and how many were looked at."""
    missing, altered, total = [], [], 0
    for file, size in record:
        # Scripts outside the folder are rewritten by whoever moves an environment.
        if file.endswith((".pyc", ".pyo")) or size is None or file.startswith(("../", "/")):
            continue
        total += 1
        path = os.path.normpath(f"{location}/{file}")
        actual = _size_of(machine, path)
        if actual is None:
            if path not in machine.unread:
                missing.append(file)
        elif actual != size:
            altered.append(file)
    return missing, altered, total


def _size_of(machine: Machine, path: str) -> Optional[int]:
    try:
        return machine.use(os.stat, path).st_size
    except (OSError, ValueError):
        return None
