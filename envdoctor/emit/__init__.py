"""A resolution as files that other tools install: one module per file, each with ``render``."""

from __future__ import annotations

from typing import Callable, Dict, Mapping, Optional

from ..model.resolution import Resolution
from . import constraints, lock_file, overrides, pylock, requirements
from .summary import explanation_text, summary_text
from .words import state_words

__all__ = ["FILES", "explanation_text", "render", "state_words", "summary_text"]

#: File name -> what writes it. It returns None where a resolution has no such file (no closure, no ``pylock.toml``).
FILES: Mapping[str, Callable[[Resolution, str], Optional[str]]] = {
    "requirements.txt": requirements.render,
    "constraints.txt": constraints.render,
    "overrides.txt": overrides.render,
    "pylock.toml": pylock.render,
    "envdoctor.lock.json": lock_file.render,
}


def render(found: Resolution, version: str) -> Dict[str, str]:
    """Return the text of every file by name.

    Args:
        found: the resolution.
        version: version of envdoctor, for the headers.
    """
    texts = {name: write(found, version) for name, write in FILES.items()}
    return {name: text for name, text in texts.items() if text is not None}
