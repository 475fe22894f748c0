"""Tiny wheels and environments: what installers take for real, made in milliseconds and without the
network.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Callable, Mapping, Optional, Sequence, Tuple


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    requires: Sequence[str] = (),
    files: Optional[Mapping[str, str]] = None,
) -> Path:
    """Write a pure wheel; its module holds its version."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {line}\n" for line in requires
    )
    members = {
        f"{module}/__init__.py": f"__version__ = {version!r}\n" + "#" * 70_000,
        f"{module}/data.bin": version * 1000,
        **(files or {}),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
    }
    lines = []
    for path, text in members.items():
        digest = (
            base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        )
        lines.append(f"{path},sha256={digest},{len(text.encode())}")
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in members.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,"]) + "\n")
    return wheel


def make_plain_environment(folder: Path) -> None:
    """Make a virtual environment with nothing in it."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def make_environment(
    folder: Path,
    wheels: Sequence[Path],
    make: Callable[[Path], None] = make_plain_environment,
) -> Path:
    """Make a virtual environment with these wheels; returns its interpreter."""
    make(folder)
    python = folder / "bin" / "python"
    if wheels:
        uv = [
            find_uv(),
            "pip",
            "install",
            "--offline",
            "--no-index",
            "--no-deps",
            "--python",
            str(python),
            *map(str, wheels),
        ]
        subprocess.run(uv, check=True, capture_output=True)
    return python


def find_uv() -> str:
    from uv import find_uv_bin

    return str(find_uv_bin())


def offline(wheels: Path) -> Mapping[str, str]:
    """The variables with which uv and pip look in one folder only; uv takes no-index from a file
    alone.
    """
    settings = wheels.with_suffix(".uv.toml")
    settings.write_text(f'no-index = true\noffline = true\nfind-links = ["{wheels}"]\n')
    cache = str(wheels.with_suffix(".uv-cache"))  # the home folder of a test is none
    return {
        "UV_CONFIG_FILE": str(settings),
        "UV_CACHE_DIR": cache,
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
    }


def tree(folder: Path) -> Mapping[str, Tuple[object, ...]]:
    """Everything in a folder: kind, mode and content, and of files the time of the last change."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            about = os.lstat(path)
            entry: Tuple[object, ...] = (stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode))
            if stat.S_ISLNK(about.st_mode):
                entry += (os.readlink(path),)
            elif stat.S_ISREG(about.st_mode):
                entry += (about.st_mtime_ns, hashlib.sha256(Path(path).read_bytes()).hexdigest())
            found[os.path.relpath(path, folder)] = entry
    return found
