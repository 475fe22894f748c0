"""Inputs as files, and what most targets need, made once."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Tuple

DATA = Path(__file__).resolve().parent.parent / "data"


@lru_cache(maxsize=1)
def built_in_matrix() -> Any:
    from envdoctor.matrix.loader import load_matrix

    return load_matrix()


@lru_cache(maxsize=1)
def scratch_folder() -> str:
    """Return a folder for files; scripts/fuzz removes it with TMPDIR, since libFuzzer just ends."""
    folder = tempfile.mkdtemp(prefix="envdoctor-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def input_file(data: bytes, name: str) -> str:
    path = os.path.join(scratch_folder(), name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def chosen(data: bytes, names: Tuple[str, ...]) -> Tuple[str, bytes]:
    """Let the first byte of an input choose among names; seeds begin with a digit."""
    return names[data[0] % len(names)] if data else names[0], data[1:]
