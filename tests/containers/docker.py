"""A real docker daemon and its client, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Optional

__all__ = ["Docker"]


class Docker:
    """The client of a daemon that has no network."""

    def __init__(self, program: str, host: str) -> None:
        self.program = program
        self.environment = {
            "PATH": os.environ["PATH"],
            "DOCKER_HOST": host,
            "DOCKER_BUILDKIT": "0",
            "HOME": "/nonexistent",
        }

    def __call__(
        self, *arguments: object, check: bool = False, timeout: float = 120, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run ``docker ARGUMENT…``."""
        command = [self.program, *map(str, arguments)]
        options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **options,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def run(
        self, image: str, *command: object, options: tuple[object, ...] = (), **others: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a container that is removed afterwards."""
        return self("run", "--rm", "--network=none", *options, image, *command, **others)

    def load(self, root: Path, name: str, *changes: str) -> None:
        """Make an image of a folder."""
        with subprocess.Popen(
            ["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE
        ) as archive:
            options = [word for change in changes for word in ("--change", change)]
            self("import", *options, "-", name, check=True, stdin=archive.stdout)

    def inspect(self, name: str, field: Optional[str] = None) -> Any:
        """Return what the daemon knows of a container or an image."""
        document = json.loads(self("inspect", name, check=True).stdout)[0]
        for part in (field or "").split("."):
            document = document[part] if part else document
        return document
