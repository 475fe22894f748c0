"""A root file system for ``docker import``, made of this machine's own files: no registry, no
download.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Iterator, Sequence

__all__ = ["PROGRAMS", "make_rootfs"]

PROGRAMS = ("sh", "env", "cat", "echo", "sleep", "true", "false", "id", "head", "ls")
_NOT_NEEDED = (
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "config-*",
    "__pycache__",
)


def make_rootfs(root: Path, programs: Sequence[str] = PROGRAMS) -> Path:
    """Fill a folder with this Python under /usr/local, a few programs, and what they are linked
    with; return its folder of packages.
    """
    for name in ("bin", "etc", "dev", "proc", "sys", "tmp", "usr/local/bin", "usr/bin", "root"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    for name in programs:
        path = shutil.which(name, path="/usr/bin:/bin")
        if path is None:
            raise FileNotFoundError(f"{name} is not on this machine")
        _copy(Path(path), root / "bin" / name, root)
    (root / "usr/bin/env").symlink_to("/bin/env")
    minor = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    python = root / "usr/local/bin/python3"
    _copy(Path(os.path.realpath(sys.executable)), python, root)
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(
        library,
        root / "usr/local/lib" / minor,
        symlinks=True,
        ignore=shutil.ignore_patterns(*_NOT_NEEDED),
    )
    for module in (root / "usr/local/lib" / minor / "lib-dynload").glob("*.so"):
        for needed in _needed(module):
            _place(needed, root)
    shown = subprocess.run(
        [
            shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin") or "chroot",
            str(root),
            "/usr/local/bin/python3",
            "-c",
            "import sysconfig; print(sysconfig.get_path('purelib'))",
        ],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/local/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    packages = root / shown.stdout.strip().lstrip("/")
    packages.mkdir(parents=True, exist_ok=True)
    return packages


def _copy(source: Path, target: Path, root: Path) -> None:
    shutil.copy(source, target)
    for needed in _needed(source):
        _place(needed, root)


def _needed(binary: Path) -> Iterator[Path]:
    done = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"(/\S+) \(0x", done):
        yield Path(path)


def _place(library: Path, root: Path) -> None:
    """Put a library where the loader looks by itself; the loader where binaries name it."""
    loader = library.name.startswith("ld-")
    target = root / str(library).lstrip("/") if loader else root / "usr/lib" / library.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), target)
