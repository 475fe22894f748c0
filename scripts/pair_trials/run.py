"""Installs a trial, imports its modules in a sandbox, and asks ``envdoctor check`` about it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from scripts.trial_environment import Environment, Fault, call

from .draw import PYTHON, Trial
from .importing import Importer

__all__ = ["BESIDE", "Place", "free_bytes", "keep_room", "resolves_torch", "try_one"]

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALL_S = 300
_UNBUILT = ("flash-attn", "mamba-ssm", "causal-conv1d", "apex", "auto-gptq", "autoawq", "vllm")

#: What a fresh environment of this Python holds.
BESIDE = frozenset(("setuptools",))
#: Stays in the cache when it is emptied.
_LARGE = ("torch", "triton")
_emptying = threading.Lock()


class Place(NamedTuple):
    """Where trials run, one after the other: paths stay the same, so that compiled modules do."""

    #: What workers share.
    folder: str
    #: The interpreter of the environment, as uv takes it: a path or a version.
    python: str = PYTHON
    worker: int = 0

    @property
    def own(self) -> str:
        """What no other worker touches."""
        return os.path.join(self.folder, f"worker-{self.worker}")

    def environment(self, torch: str) -> str:
        """The virtual environment for a release of torch, which stays in it."""
        return os.path.join(self.own, f"env-{torch or 'none'}")

    @property
    def cache(self) -> str:
        """What uv downloaded: nobody else's, so that its size is ours to bound."""
        return os.path.join(self.folder, "cache")

    @property
    def compiled(self) -> str:
        """What Python compiled of it."""
        return os.path.join(self.own, "compiled")


def try_one(
    trial: Trial,
    place: Place,
    importer: Importer,
    entries: Mapping[str, Sequence[str]],
    floors: Sequence[str] = (),
    torch_names: Sequence[str] = (),
    torch: str = "",
    of_torch: Sequence[str] = (),
) -> Dict[str, Any]:
    """Return the record of a trial: what was installed, what imports said, what check said.

    Args:
        trial: What is tried.
        place: Where; what the last trial left there is replaced.
        importer: Imports there.
        entries: Modules to import by distribution, for stacks.
        floors: What pairs are resolved under besides.
        torch_names: torch and what it pins, which may be newer than the day of the trial.
        torch: The release of torch whose environment it gets, "" for the one without.
        of_torch: What is installed of what is built for it, whatever others ask for.
    """
    start = time.monotonic()
    record: Dict[str, Any] = {"key": trial.key, **trial._asdict()}
    os.makedirs(place.own, exist_ok=True)
    environment = place.environment(torch)
    try:
        record["forced"] = _install(
            trial, place, environment, floors, torch_names, bool(torch), of_torch
        )
        installed = _installed(environment)
    except Fault as fault:
        return {**record, "state": "uninstallable", "fault": str(fault)[-1500:]}
    record["installed"] = {
        name: version
        for name, version in sorted(installed.items())
        if not name.startswith("nvidia-")
    }
    modules = list(trial.imports)
    if trial.kind == "stack":
        modules = [
            module
            for requirement in trial.requirements
            for module in entries.get(requirement.partition("==")[0], ())
        ]
    record["imports"] = modules
    try:
        python = os.path.join(environment, "bin", "python")
        record["errors"] = importer.imported(python, installed, modules)
        record["findings"] = _found(environment)
        record["state"] = "tried"
    except (Fault, ValueError, OSError) as fault:
        record.update(state="untried", fault=str(fault)[-1500:])
    record["seconds"] = round(time.monotonic() - start)
    return record


def resolves_torch(trial: Trial, place: Place) -> bool:
    """Tell whether uv takes torch along with what a trial asks for: the metadata of packages
    outside the matrix stand in the index alone. True where uv refuses: nothing is known then.
    """
    command = ["uv", "pip", "compile", "-", "--quiet", "--python-version", PYTHON]
    command += ["--no-header", "--no-annotate", "--exclude-newer", f"{trial.before}T23:59:59Z"]
    command += ["--exclude-newer-package", "torch=false"]
    command += ["--only-binary", ":all:"]  # to build for metadata takes longer than a trial
    # The two stand whatever others ask, as where they are installed.
    pinned = "\n".join(word for word in trial.requirements if "==" in word)
    os.makedirs(place.own, exist_ok=True)
    path = Path(place.own, "resolved-overrides.txt")
    path.write_text(pinned + "\n", "utf-8")
    command += ["--override", str(path)]
    code, output = call(
        command,
        {"UV_CACHE_DIR": place.cache},
        expected=False,
        limit=INSTALL_S,
        text="\n".join(trial.requirements),
    )
    return bool(code) or bool(re.search("^torch==", output, re.MULTILINE))


def _install(
    trial: Trial,
    place: Place,
    environment: str,
    floors: Sequence[str],
    torch_names: Sequence[str],
    with_torch: bool,
    of_torch: Sequence[str],
) -> bool:
    """Install a trial over the one before it; return whether metadata had to be overridden for
    that. Raises Fault.
    """
    python = os.path.join(environment, "bin", "python")
    if not os.path.exists(python):
        Environment(place.python, environment)
    pinned = [word for word in trial.requirements if "==" in word]
    names = {word.partition("==")[0] for word in trial.requirements}
    built = [re.split("[=~<>! ]", line)[0] for line in of_torch]
    overrides = [f"torch=={trial.torch}"] if trial.torch else []
    overrides += [line for line, name in zip(of_torch, built) if name not in names]
    path = os.path.join(place.own, "overrides.txt")
    # Without --upgrade what is there stays, also where it is newer than the day.
    command = ["uv", "pip", "install", "--quiet", "--exact", "--upgrade", "--python", python]
    beside = BESIDE | {"torch"} if with_torch and trial.kind != "stack" else BESIDE
    command += [*trial.requirements, *sorted(beside - names)]
    command += ["--exclude-newer", f"{trial.before}T23:59:59Z"]
    for name in dict.fromkeys((*torch_names, *built)):  # torch may be newer than the rest
        command += ["--exclude-newer-package", f"{name}=false"]
    for name in _UNBUILT:
        command += ["--only-binary", name]
    variables = {"UV_CACHE_DIR": place.cache, "UV_CONCURRENT_BUILDS": "1", "DS_BUILD_OPS": "0"}
    # Where a file system cannot clone, uv copies: of torch 5 GB for each worker.
    variables["UV_LINK_MODE"] = "hardlink"
    if trial.kind == "stack":
        Path(path).write_text(f"torch=={trial.torch}\n", "utf-8")
        call([*command, "--constraint", path], variables, limit=INSTALL_S)
        return False
    of_pairs = os.path.join(place.own, "constraints.txt")
    Path(of_pairs).write_text("\n".join(floors) + "\n", "utf-8")
    under = ["--constraint", of_pairs]
    # What nobody's metadata forbid is what people have; else the two stand whatever others ask.
    for constraints, forced in ((under, []), (under, pinned), ([], []), ([], pinned)):
        Path(path).write_text("\n".join([*overrides, *forced]) + "\n", "utf-8")
        code, output = call(
            [*command, *constraints, "--override", path],
            variables,
            expected=False,
            limit=INSTALL_S,
        )
        if not code:
            return bool(forced)
    raise Fault(output)


def _installed(environment: str) -> Dict[str, str]:
    python = os.path.join(environment, "bin", "python")
    _, output = call(["uv", "pip", "list", "--format", "json", "--python", python], {}, limit=60)
    return {entry["name"]: entry["version"] for entry in json.loads(output[output.index("[") :])}


def _found(environment: str) -> List[Dict[str, Any]]:
    """Ask check about the environment; return the findings that are more than advice."""
    python = os.path.join(environment, "bin", "python")
    command = [sys.executable, "-m", "envdoctor", "check", "--python", python]
    command += ["--format", "json", "--fail-on", "never"]
    variables = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    _, output = call(command, variables, limit=120)
    report = json.loads(output[output.index("{") :])
    fields = ("code", "rule", "severity", "verdict", "packages", "component", "message", "effect")
    return [
        {field: finding[field] for field in fields}
        for finding in report["findings"]
        if finding["severity"] in ("error", "warning") and finding["packages"]
    ]


def keep_room(place: Place, free: float) -> bool:
    """Take out of the cache what nothing in it points to, then all but torch, and what was
    compiled, where fewer bytes than these are free; return whether so many are.
    """
    with _emptying:
        if free_bytes(place.folder) >= free:
            return True
        # Each worker that fetches what another does at the time leaves its own copy there.
        call(["uv", "cache", "prune", "--quiet"], {"UV_CACHE_DIR": place.cache}, expected=False)
        if free_bytes(place.folder) >= free:
            return True
        wheels = Path(place.cache, "wheels-v8", "pypi")
        names = [path.name for path in wheels.iterdir()] if wheels.exists() else []
        names = [name for name in names if not name.startswith("nvidia-") and name not in _LARGE]
        if names:  # without a name uv empties all of it
            # uv gives up after minutes where another trial holds the cache: next time.
            command = ["uv", "cache", "clean", "--quiet", *names]
            call(command, {"UV_CACHE_DIR": place.cache}, expected=False)
        for compiled in Path(place.folder).glob("worker-*/compiled"):
            shutil.rmtree(compiled, ignore_errors=True)
        return free_bytes(place.folder) >= free


def free_bytes(path: str) -> int:
    """Return the free space of a file system."""
    usage: Tuple[int, int, int] = shutil.disk_usage(path)
    return usage[2]
