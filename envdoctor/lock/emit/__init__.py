"""A resolution as files that other tools install: one module per file, each with ``render``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Mapping, Optional

from ...model.resolution import Resolution
from . import (
    conda,
    constraints,
    dockerfile,
    install_script,
    lock_json,
    overrides,
    pylock,
    requirements_txt,
)
from .summary import explanation_lines, summary_lines
from .words import left_out_words, state_words

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = [
    "NAMES",
    "explanation_lines",
    "left_out_words",
    "render",
    "state_words",
    "summary_lines",
]

#: File name -> what writes it of a resolution. It returns None where a resolution has no such file
#: (no closure, no ``pylock.toml``).
_FILES: Mapping[str, Callable[[Resolution, str], Optional[str]]] = {
    "requirements.txt": requirements_txt.render,
    "constraints.txt": constraints.render,
    "overrides.txt": overrides.render,
    "pylock.toml": pylock.render,
    "install.sh": install_script.render,
    "envdoctor.lock.json": lock_json.render,
}

#: File name -> what writes it of a resolution, with the matrix, for the names that another
#: ecosystem has.
_FOREIGN_FILES: Mapping[str, Callable[[Resolution, str, Matrix], str]] = {
    "Dockerfile": dockerfile.render,
    "environment.yml": conda.render_environment,
    "recipe.yaml": conda.render_recipe,
}

NAMES = (*_FILES, *_FOREIGN_FILES)
"""Names of all files that a lock may have."""


def render(resolution: Resolution, version: str, matrix: Matrix) -> Dict[str, str]:
    """Return the text of every file by name.

    Args:
        resolution: the resolution.
        version: version of envdoctor, for the headers.
        matrix: what conda calls a distribution, and the CUDA that a driver reports.
    """
    texts = {name: write(resolution, version) for name, write in _FILES.items()}
    texts.update(
        {name: write(resolution, version, matrix) for name, write in _FOREIGN_FILES.items()}
    )
    return {name: text for name, text in texts.items() if text is not None}
