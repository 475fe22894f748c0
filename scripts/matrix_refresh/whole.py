"""All steps that bring the matrix up to what the index has: ``scripts/refresh_matrix --whole``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Collection, Iterator, List, Sequence, Set, Tuple

__all__ = ["importers_of", "run_whole"]

_SCRIPTS = Path(__file__).resolve().parent.parent
_MATRICES = _SCRIPTS.parent / "matrices"


def run_whole(
    arguments: Sequence[str],
    measured: Sequence[str],
    compiled: Collection[str],
    linked: Collection[str],
) -> int:
    """Run every step, say how long it took, and return the worst exit code.

    A step that fails (2 or more) ends the run: what it was to write is as before.

    Args:
        arguments: Of ``refresh_matrix`` without ``--whole``: ``--only NAME …`` or nothing.
        measured: Packages whose sources are read.
        compiled: Packages whose wheels are.
        linked: torch, CUDA's libraries, and packages whose libraries are linked to these.
    """
    parser = argparse.ArgumentParser(
        "refresh_matrix --whole", description="Run every step: what is new on the index, measured."
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="of these packages")
    names = parser.parse_args(arguments).only
    worst = 0
    for name, *commands in _steps(names, measured, compiled, linked):
        start = time.monotonic()
        with ThreadPoolExecutor(len(commands)) as threads:
            code = max(threads.map(_run, commands), key=abs)
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        worst = max(worst, code)
        if code > 1 or code < 0:
            return worst
    return worst


def _steps(
    names: List[str],
    measured: Sequence[str],
    compiled: Collection[str],
    linked: Collection[str],
) -> Iterator[Tuple[Any, ...]]:
    """Yield the name of each step, and the commands that run at once in it."""
    wheels = _only(names, compiled)
    symbols = _only(names, linked)
    read = [name for name in names if name in measured]
    only = ["--only", *read] if names else []
    yield "metadata", [_script("refresh_matrix"), *(["--only", *names] if names else [])]
    if wheels or not names:
        yield "wheels", [_script("scan_wheels"), "--newest", "1", *wheels]
        yield "builds", [_script("scan_wheels"), "--merge"]
    if symbols or not names:  # what cannot be loaded is among the statements
        yield "symbols", [_script("measure_symbols"), *symbols]
    if read or not names:
        yield "sources", [_script("measure_surfaces"), "--collect", *only]
        yield "statements", [_script("measure_surfaces"), "--measure", *only]
        others = [
            [_script("measure_surfaces"), "--measure", "--only", *some, "--about", *read]
            for some in _shares(importers_of(read) - set(read), os.cpu_count() or 1)
        ]
        if others:
            yield ("what others say of them", *others)
        for kind, *options in (("names",), ("messages", "--steps")):
            held = _with_file(kind, read or measured)
            if held:
                yield kind, [_script("measure_surfaces"), f"--{kind}", *options, "--only", *held]
        yield "relations", [_script("measure_surfaces"), "--relations"]
    yield "compiled form", [_script("compile_matrix")]


def _run(command: Sequence[str]) -> int:
    return subprocess.run([sys.executable, *command], check=False).returncode


def _shares(names: Collection[str], count: int, matrices: Path = _MATRICES) -> List[List[str]]:
    """Deal packages out, those with the most statements first, so that each share takes about as
    long; there are as many shares as processors, or as packages.
    """
    sizes = {name: (matrices / "surfaces" / f"{name}.json").stat().st_size for name in names}
    dealt = sorted(names, key=lambda name: (-sizes[name], name))
    return [dealt[place::count] for place in range(min(count, len(dealt)))]


def _with_file(kind: str, names: Sequence[str], matrices: Path = _MATRICES) -> List[str]:
    """Return the packages of which the matrix has names, or messages, by release: those of all
    would take more than all else, so who adds a package measures them once.
    """
    return [name for name in names if (matrices / kind / f"{name}.json").exists()]


def _only(names: Sequence[str], known: Collection[str]) -> List[str]:
    return [word for name in names if name in known for word in ("--only", name)]


def _script(name: str) -> str:
    return str(_SCRIPTS / name)


def importers_of(names: Sequence[str], matrices: Path = _MATRICES) -> Set[str]:
    """Return the packages of which a statement speaks of one of these: a release of the one may
    have what the others import, or lack it.
    """
    found = set()
    for path in (matrices / "surfaces").glob("*.json"):
        document: Any = json.loads(path.read_text("utf-8"))
        if any(entry["provider"] in names for entry in document["statements"]):
            found.add(document["name"])
    return found
