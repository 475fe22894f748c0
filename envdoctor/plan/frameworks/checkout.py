"""Which framework a folder is a checkout of, and of which version: files are read, nothing is
run.
"""

from __future__ import annotations

import os
import re
from typing import List, Optional, Sequence, Tuple

from ...model.evidence import Evidence, Known
from ...model.facts import Facts
from ...model.layout import Layout
from ...model.workload import ConfigurationProblem
from .adapter import Adapter, Checkout, read_small

__all__ = ["find_checkout", "installed", "old_checkout"]

_MAX_LEVELS = 8
_VERSION_FILES = (
    "verl/version/version",
    "version.txt",
    "VERSION",
    "trl/__init__.py",
    "setup.py",
    "pyproject.toml",
)
_VERSION = re.compile(
    r"(?:__version__|^version|\bversion)\s*=\s*[\"'](\d+\.\d+[\w.+]*)[\"']", re.MULTILINE
)
_PLAIN = re.compile(r"\s*v?(\d+\.\d+[\w.+]*)\s*\Z")
_REPOSITORIES = {
    "verl": ("verl-project/verl", "volcengine/verl"),
    "easyr1": ("hiyouga/easyr1",),
    "tinyzero": ("jiayi-pan/tinyzero",),
    "simplerl": ("hkust-nlp/simplerl-reason",),
}

#: Text that a file has since a fix of memory faults; a checkout without it is older. (framework,
#: file, text, what the fix was)
_FIXES = (
    (
        "tinyzero",
        "scripts/train_tiny_zero.sh",
        "use_dynamic_bsz",
        (
            "this checkout is older than 96b4d57 of 2025-03-10, which keeps TinyZero's own script "
            "from "
            "running out of memory"
        ),
    ),
    (
        "easyr1",
        "verl/utils/dataset.py",
        "def process_image(",
        (
            "this checkout is older than 436efa2 (#318) of 2025-06-06, from which on workers pass "
            "images instead of what the processor made of them"
        ),
    ),
)


def old_checkout(framework: str, checkout: Checkout) -> List[ConfigurationProblem]:
    """Report the fixes that a checkout does not have."""
    problems = []
    for name, path, text, message in _FIXES:
        source = read_small(os.path.join(checkout.folder, path)) if name == framework else None
        if source is not None and text not in source:
            problems.append(
                ConfigurationProblem(
                    "old-checkout", Evidence(path, f"no {text!r} in it"), "", message, certain=False
                )
            )
    return problems


def find_checkout(folder: str, adapters: Sequence[Adapter]) -> Optional[Tuple[str, Checkout]]:
    """Return the framework whose checkout a folder lies in, and what its files say."""
    here = os.path.abspath(folder)
    for _ in range(_MAX_LEVELS):
        # A fork's layout is verl's with something on top, so that the one that asks for the most
        # files wins.
        fitting = sorted(
            (adapter for adapter in adapters if _is_of(here, adapter.layout)),
            key=lambda adapter: -len(adapter.layout.files),
        )
        if fitting:
            return fitting[0].name, _read(here)
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent
    return None


def _is_of(folder: str, layout: Layout) -> bool:
    """Tell whether a folder is a checkout of the framework that a layout is of."""
    return layout.fits(
        lambda path: os.path.exists(os.path.join(folder, path)),
        lambda path, text: text in (read_small(os.path.join(folder, path)) or ""),
    )


def _read(folder: str) -> Checkout:
    commit = _commit(folder)
    for name in _VERSION_FILES:
        text = read_small(os.path.join(folder, name)) or ""
        if name.endswith(".toml"):
            text = _project(text)
        match = _PLAIN.match(text) if not name.endswith((".py", ".toml")) else _VERSION.search(text)
        if match:
            return Checkout(
                folder, match.group(1), commit, Evidence(name, match.group().strip()[:80])
            )
    return Checkout(folder, "", commit, Evidence(".git/HEAD", commit) if commit else None)


def _project(text: str) -> str:
    """Return the table of a pyproject.toml that tells its own version, none of a dependency."""
    return text.partition("[project]")[2].partition("\n[")[0]


def _commit(folder: str) -> str:
    head = (read_small(os.path.join(folder, ".git", "HEAD"), 4096) or "").strip()
    if head.startswith("ref: ") and ".." not in head:
        head = (read_small(os.path.join(folder, ".git", *head[5:].split("/")), 4096) or "").strip()
    return head if re.fullmatch(r"[0-9a-f]{40}", head) else ""


def installed(facts: Optional[Facts], candidates: Sequence[str]) -> str:
    """Return the candidate that the installed distribution was made from, if that is known."""
    table = facts.get("distributions") if facts is not None else None
    distribution = table.value.get("verl") if isinstance(table, Known) else None
    origin = distribution.direct_url.lower() if distribution is not None else ""
    return (
        next(
            (
                name
                for name in candidates
                if any(repository in origin for repository in _REPOSITORIES.get(name, ()))
            ),
            "",
        )
        if origin
        else ""
    )
