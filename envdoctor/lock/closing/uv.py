"""uv as a child process: found, run with a deadline and progress, its output read."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...model.redaction import redact, without_credentials
from ...model.requirement import try_requirement

__all__ = ["Uv", "UvLine", "UvOutcome", "find_uv", "python_platform", "read_lines"]

_GRACE = 1.0  # seconds that a killed uv has to be gone
_TICK = 5.0  # seconds between two words of progress
_GLIBC_MINORS = (17, 28, *range(31, 41))  # what uv's --python-platform has names for


class UvOutcome(NamedTuple):
    """How a run ended. ``kind``: done, refused (nothing fits), failed (no index, no answer in time,
    wrong usage).
    """

    kind: str
    output: str
    message: str


class UvLine(NamedTuple):
    """One line of uv's requirements format."""

    name: str
    version: str
    hashes: Tuple[str, ...]
    via: Tuple[str, ...]
    source: str


def find_uv(environ: Mapping[str, str]) -> Optional[str]:
    """Return the uv of extra ``envdoctor[lock]``, else that on PATH, else None."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv", path=environ.get("PATH"))


def python_platform(platform: str, architecture: str, glibc: Optional[str]) -> Optional[str]:
    """Return uv's name of a platform, the newest glibc that is not above ``glibc``; None where uv
    has no name for it.
    """
    if platform != "linux":
        machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(architecture.lower(), architecture)
        system = {"darwin": "apple-darwin", "win32": "pc-windows-msvc"}.get(platform)
        return f"{machine}-{system}" if system else None
    if architecture not in ("x86_64", "aarch64"):
        return None
    parts = (glibc or "2.28").split(".")
    minor = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 28
    able = [entry for entry in _GLIBC_MINORS if entry <= minor]
    return f"{architecture}-manylinux_2_{max(able)}" if able and parts[0] == "2" else None


class Uv:
    """One uv, run in one folder.

    Everything it is asked until ``deadline`` (seconds of ``time.monotonic``) shares that deadline.
    """

    def __init__(
        self,
        path: str,
        folder: str,
        environment: Mapping[str, str],
        deadline: float,
        progress: Callable[[str], None],
        *,
        no_index: bool = False,
    ) -> None:
        self.path = path
        self.folder = folder
        self._environment = dict(environment)
        self._deadline = deadline
        self._progress = progress
        self._no_index = no_index

    def version(self) -> str:
        """Return "uv 0.13.9", or "uv" where it does not say."""
        ended = self.run(["--version"])
        words = ended.output.split()
        return " ".join(words[:2]) if ended.kind == "done" and words else "uv"

    def compile(self, arguments: Sequence[str], *, offline: bool = False) -> UvOutcome:
        """Run ``uv pip compile``; nothing is built and no Python is fetched unless the arguments
        say so.
        """
        command = ["pip", "compile", *arguments, "--no-header", "--no-progress", "--color", "never"]
        command += ["--no-python-downloads", "--python", sys.executable]
        command += ["--no-index"] if self._no_index else []
        return self.run(command + (["--offline"] if offline else []))

    def run(self, arguments: Sequence[str]) -> UvOutcome:
        """Run uv. A child that is interrupted with us is ended before the interruption goes on."""
        import subprocess

        started = time.monotonic()
        try:
            child = subprocess.Popen(
                [self.path, *arguments],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            return UvOutcome(
                "failed", "", f"{self.path} cannot be started: {error.strerror or error}"
            )
        try:
            while True:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return UvOutcome("failed", "", "no answer in time")
                try:
                    output, errors = child.communicate(timeout=min(_TICK, left))
                    break
                except subprocess.TimeoutExpired:
                    self._progress(f"uv is at work, {time.monotonic() - started:.0f} s")
        finally:
            if child.poll() is None:
                child.kill()
                with suppress(subprocess.TimeoutExpired):  # it waits in the kernel (state D)
                    child.communicate(timeout=_GRACE)
        message = redact(errors.strip())
        if child.returncode == 0:
            return UvOutcome("done", output, message)
        refused = "No solution found" in message and "network was disabled" not in message
        return UvOutcome(
            "refused" if refused else "failed",
            output,
            message or f"uv ended with code {child.returncode}",
        )


def read_lines(text: str) -> List[UvLine]:
    """Read uv's requirements format with hashes and annotations; the files that it was given are
    not shown as requirers.
    """
    lines: List[UvLine] = []
    hashes: List[str] = []
    via: List[str] = []
    index = ""
    pin: Optional[Tuple[str, str]] = None

    def finish() -> None:
        if pin is not None:
            own = tuple(name for name in via if not name.startswith("-") and os.sep not in name)
            lines.append(
                UvLine(pin[0], pin[1], tuple(sorted(hashes)), own, without_credentials(index))
            )

    for line in text.splitlines():
        words = line.strip()
        if words.startswith("--hash="):
            hashes.append(words[len("--hash=") :].rstrip("\\ "))
        elif words.startswith("# from "):
            index = words[len("# from ") :]
        elif words.startswith("#"):
            name = words.lstrip("# ")
            name = name[len("via") :].strip() if name == "via" or name.startswith("via ") else name
            if name:
                via.append(name)
        elif words and not line[0].isspace():
            finish()
            requirement = try_requirement(words.rstrip("\\"))
            exact = requirement.exact if requirement is not None else None
            pin = (requirement.name, exact) if requirement is not None and exact else None
            hashes, via, index = [], [], ""
    finish()
    return lines
