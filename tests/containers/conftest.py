"""Real control groups, namespaces and containers for the tests of this folder.

A missing prerequisite skips on a developer's machine, with the reason, and fails in CI.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from ..probes.conftest import fakes  # noqa: F401 - a fixture of this folder's tests too

REPOSITORY = Path(__file__).resolve().parents[2]
MEMORY = Path("/sys/fs/cgroup/memory")

#: Runs inside the container or group: prints every fact of the two probes, and what was read to get
#: there.
DESCRIBE = """
import json, sys
sys.path.insert(0, {repository!r})
from envdoctor.probes.container import PROBES_HERE as first
from envdoctor.probes.process_limits import PROBES_HERE as second
from envdoctor.probes.machine import Machine
files = {{}}
class Recorder(Machine):
    def read_text(self, path, limit=1 << 20):
        text = super().read_text(path, limit)
        files[path] = text
        return text
    def exists(self, path):
        found = super().exists(path)
        files.setdefault(path, "" if found else None)
        return found
machine = Recorder()
facts = {{}}
for probe in (*first, *second):
    for name, fact in probe.function(machine).items():
        kind = type(fact).__name__
        facts[name] = [kind, getattr(fact, "value", None), str(getattr(fact, "evidence", None) or fact.reason)]
print(json.dumps({{"facts": facts, "files": files}}), flush=True)
"""


@pytest.fixture(scope="session")
def describe() -> str:
    """The source of a program that prints the facts of the machine that it runs on, as JSON."""
    return DESCRIBE.format(repository=str(REPOSITORY))


@pytest.fixture
def memory_group(prerequisite: Any) -> Iterator[Path]:
    """A fresh v1 memory group; it and all below are removed afterwards."""
    prerequisite(os.geteuid() == 0, "control groups need root")
    prerequisite(
        (MEMORY / "memory.limit_in_bytes").exists(), "this host has no cgroup v1 memory controller"
    )
    group = MEMORY / f"envdoctor-test-{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
    except OSError as error:
        prerequisite(False, f"no control group can be made: {error}")
    try:
        yield group
    finally:
        # A container runtime makes the path in every hierarchy and removes only its own last part.
        for below in Path("/sys/fs/cgroup").glob(f"*/{group.name}"):
            for folder, _, _ in os.walk(below, topdown=False):
                os.rmdir(folder)


class Runc:
    """Runs a Python program in a real container that has the host's /usr and this repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, program: str, change: Optional[Callable[[Dict[str, Any]], None]] = None
    ) -> subprocess.CompletedProcess[str]:
        name = f"envdoctor-test-{uuid.uuid4().hex[:12]}"
        bundle = self.folder / name
        (bundle / "rootfs").mkdir(parents=True)
        subprocess.run(["runc", "spec"], cwd=bundle, check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"].update(terminal=False, args=[sys.executable, "-c", program])
        spec["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 2048}]
        spec["process"]["env"].append("PYTHONDONTWRITEBYTECODE=1")
        folders = {
            "/usr",
            "/lib",
            "/lib64",
            "/bin",
            "/sbin",
            "/etc",
            sys.base_prefix,
            sys.prefix,
            str(REPOSITORY),
        }
        for source in sorted(folders):
            if os.path.isdir(source) and not any(
                source != other and source.startswith(other + "/") for other in folders
            ):
                target = bundle / "rootfs" / source.lstrip("/")
                target.mkdir(parents=True, exist_ok=True)
                spec["mounts"].append(
                    {
                        "destination": source,
                        "type": "none",
                        "source": os.path.realpath(source),
                        "options": ["rbind", "ro"],
                    }
                )
        spec["linux"]["cgroupsPath"] = f"/{name}"
        spec["linux"].setdefault("resources", {})
        if change is not None:
            change(spec)
        (bundle / "config.json").write_text(json.dumps(spec))
        try:
            return subprocess.run(
                [
                    "runc",
                    "--root",
                    str(self.folder / "state"),
                    "run",
                    "--bundle",
                    str(bundle),
                    name,
                ],
                capture_output=True,
                text=True,
                timeout=120,
                stdin=subprocess.DEVNULL,
            )
        finally:
            subprocess.run(
                ["runc", "--root", str(self.folder / "state"), "delete", "--force", name],
                capture_output=True,
            )


@pytest.fixture
def runc(tmp_path: Path, prerequisite: Any) -> Runc:
    """Real containers without an image."""
    prerequisite(shutil.which("runc"), "runc is not installed")
    prerequisite(os.geteuid() == 0, "containers with limits need root")
    prerequisite(
        (MEMORY / "memory.limit_in_bytes").exists(), "this host has no cgroup v1 memory controller"
    )
    return Runc(tmp_path.resolve())


@pytest.fixture
def in_group() -> Callable[[Path, List[str]], List[str]]:
    """Return the command that joins a group and then runs another command."""

    def command(group: Path, arguments: List[str]) -> List[str]:
        return ["sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh", *arguments]

    return command


def environment_with_ray(python, folder, prerequisite, *options):
    """Make an environment with Ray, with these options of venv; return its interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", *options, str(folder)], check=True)
    made = str(folder / "bin/python")
    done = subprocess.run(
        [
            *[sys.executable, "-m", "pip", "--python", made],
            *["install", "-q", "ray", "psutil", "nvidia-ml-py"],
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    prerequisite(done.returncode == 0, f"ray cannot be installed: {done.stderr[-300:]}")
    return made


@pytest.fixture(scope="session")
def ray_python(tmp_path_factory, prerequisite):
    """An interpreter that has Ray: ENVDOCTOR_RAY_PYTHON, or a fresh environment (about 30 s)."""
    given = os.environ.get("ENVDOCTOR_RAY_PYTHON")
    if given:
        return given
    return environment_with_ray(sys.executable, tmp_path_factory.mktemp("ray"), prerequisite)
