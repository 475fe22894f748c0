"""Small real libraries for the tests of the loader's rules and of compiled extensions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

from envdoctor.probes.isolation import run_command


def build(
    target: Path,
    source: str = "",
    *options: str,
    soname: Optional[str] = None,
    needs: Sequence[Path] = (),
    compiler: str = "gcc",
) -> Path:
    """Compile a shared library; ``needs`` are linked by path, so that their sonames become
    DT_NEEDED.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    text = target.parent / (target.name + (".cpp" if compiler == "g++" else ".c"))
    text.write_text(
        source or f"int value_of_{abs(hash(str(target))) % 10**8}(void) {{ return 1; }}\n"
    )
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O0",
        "-w",
        str(text),
        "-o",
        str(target),
        f"-Wl,-soname,{soname or target.name}",
        "-Wl,--no-as-needed",
    ]
    command += ["-Wl,--unresolved-symbols=ignore-all", *map(str, needs), *options]
    outcome = run_command(command, 60, stderr=True)
    text.unlink()
    assert outcome.status == 0, outcome.text
    return target


def output(
    *command: Any, environment: Optional[Mapping[str, str]] = None, folder: Optional[Path] = None
) -> str:
    """Return what a command prints; its failure fails the test."""
    outcome = run_command(
        [str(part) for part in command],
        60,
        environment,
        stderr=False,
        folder=str(folder) if folder else None,
    )
    assert outcome.status == 0, (command, outcome)
    return outcome.text


def plain_environment(**more: str) -> Mapping[str, str]:
    """The variables that a child needs, without those that change what it loads."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LD_", "PYTHON")) and name not in ("VIRTUAL_ENV", "CONDA_PREFIX")
    }
    return {**kept, **more}
