"""Installs a trial, imports its modules in a sandbox, and asks ``envdoctor check`` about it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from scripts.trial_environment import Environment, Fault, call

from .draw import PYTHON, Trial

__all__ = ["Place", "try_one"]

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALL_S = 600
#: For all modules of a trial together.
IMPORT_S = 400
MEMORY = 48 << 30
#: What comes in the build that goes with torch, whatever others ask for.
_OF_TORCH = ("torchvision", "torchaudio", "xformers", "triton")
_UNBUILT = ("flash-attn", "mamba-ssm", "causal-conv1d", "apex", "auto-gptq", "autoawq", "vllm")

_CHILD = r"""
import importlib, json, os, signal, sys, traceback
results, modules = open(sys.argv[1], "w"), sys.argv[2:]
if len(modules) > 1:
    try:
        import torch
    except BaseException:
        pass  # whoever needs it says so
for module in modules:
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        signal.alarm(200)
        try:
            importlib.import_module(module)
            lines = []
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [f"{type(error).__name__}: {error}"]
            lines += [f"{f.filename.rpartition('site-packages/')[2]}:{f.lineno} {f.line}"
                      for f in frames if "importlib" not in f.filename][-4:]
            cause = error.__cause__ or error.__context__
            while cause is not None:
                lines.append(f"after {type(cause).__name__}: {cause}")
                cause = cause.__cause__ or cause.__context__
        os.write(writer, json.dumps(lines)[:60000].encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    status = os.waitpid(pid, 0)[1]
    try:
        lines = json.loads(text)
    except ValueError:
        lines = [f"killed by signal {status & 127}"]
    results.write(json.dumps([module, lines]) + "\n")
    results.flush()
"""
_INSTALLED = r"""
import importlib.metadata as metadata, json, sys
answer = {}
for distribution in metadata.distributions():
    name = (distribution.metadata["Name"] or "").lower().replace("_", "-").replace(".", "-")
    answer[name] = distribution.version
print(json.dumps(answer))
"""


class Place(NamedTuple):
    """Where trials run, one after the other: paths stay the same, so that compiled modules do."""

    folder: str
    #: The interpreter of the environment, as uv takes it: a path or a version.
    python: str = PYTHON

    @property
    def environment(self) -> str:
        """The virtual environment."""
        return os.path.join(self.folder, "env")

    @property
    def cache(self) -> str:
        """What uv downloaded: nobody else's, so that its size is ours to bound."""
        return os.path.join(self.folder, "cache")

    @property
    def compiled(self) -> str:
        """What Python compiled of it."""
        return os.path.join(self.folder, "compiled")


def try_one(
    trial: Trial,
    place: Place,
    entries: Mapping[str, Sequence[str]],
    torch_names: Sequence[str] = (),
) -> Dict[str, Any]:
    """Return the record of a trial: what was installed, what imports said, what check said.

    Args:
        trial: What is tried.
        place: Where; what the last trial left there is replaced.
        entries: Modules to import by distribution, for stacks.
        torch_names: torch and what it pins, which may be newer than the day of the trial.
    """
    start = time.monotonic()
    record: Dict[str, Any] = {"key": trial.key, **trial._asdict()}
    try:
        installed = _install(trial, place, torch_names)
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
        record["errors"] = _imported(place, modules)
        record["findings"] = _found(place)
        record["state"] = "tried"
    except (Fault, ValueError, OSError) as fault:
        record.update(state="untried", fault=str(fault)[-1500:])
    record["seconds"] = round(time.monotonic() - start)
    return record


def _install(trial: Trial, place: Place, torch_names: Sequence[str]) -> Dict[str, str]:
    """Install a trial over the one before it; return what is there. Raises Fault."""
    python = os.path.join(place.environment, "bin", "python")
    if not os.path.exists(python):
        Environment(place.python, place.environment)
    pinned = [word for word in trial.requirements if "==" in word]
    names = {word.partition("==")[0] for word in pinned}
    of_torch = [name for name in _OF_TORCH if name not in names]
    of_torch += [f"torch=={trial.torch}"] if trial.torch else []
    path = os.path.join(place.folder, "overrides.txt")
    command = ["uv", "pip", "install", "--quiet", "--exact", "--python", python]
    command += [*trial.requirements, "--exclude-newer", f"{trial.before}T23:59:59Z"]
    for name in torch_names:  # torch may be newer than the rest
        command += ["--exclude-newer-package", f"{name}=false"]
    for name in _UNBUILT:
        command += ["--only-binary", name]
    variables = {"UV_CACHE_DIR": place.cache, "UV_CONCURRENT_BUILDS": "1", "DS_BUILD_OPS": "0"}
    if trial.kind == "stack":
        Path(path).write_text(f"torch=={trial.torch}\n", "utf-8")
        call([*command, "--constraint", path], variables, limit=INSTALL_S)
    else:
        Path(path).write_text("\n".join(of_torch) + "\n", "utf-8")
        # What nobody's metadata forbid is what people have; else the two stand whatever others ask.
        code, _ = call([*command, "--override", path], variables, expected=False, limit=INSTALL_S)
        if code:
            Path(path).write_text("\n".join([*of_torch, *pinned]) + "\n", "utf-8")
            call([*command, "--override", path], variables, limit=INSTALL_S)
    _, output = call([python, "-I", "-c", _INSTALLED], {}, limit=60)
    installed: Dict[str, str] = json.loads(output)
    return installed


def sandbox() -> List[str]:
    """Return the beginning of a command that runs without network and with bounded memory, and
    whose children end with it; with the network where namespaces are not allowed.
    """
    limits = ["prlimit", f"--as={MEMORY}", "--core=0", "--"]
    alone = ["unshare", "--net", "--pid", "--fork", "--kill-child"]
    try:
        done = subprocess.run([*alone, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return limits
    return [*alone, *limits] if done.returncode == 0 else limits


def _imported(place: Place, modules: Sequence[str]) -> Dict[str, List[str]]:
    """Import modules, each in a process of its own; return what each said. Raises Fault."""
    python = os.path.join(place.environment, "bin", "python")
    home = os.path.join(place.folder, "home")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    results = os.path.join(place.folder, "results.jsonl")
    variables = {
        "HOME": home,
        "TMPDIR": home,
        "XDG_CACHE_HOME": home,
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "offline",
        "PYTHONPYCACHEPREFIX": place.compiled,
        "PYTHONNOUSERSITE": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [*sandbox(), python, "-c", _CHILD, results, *modules]
    call(command, variables, expected=False, limit=IMPORT_S)
    said: Dict[str, List[str]] = {}
    for line in Path(results).read_text("utf-8").splitlines():
        module, lines = json.loads(line)
        said[module] = [text[:1200] for text in lines]
    return said


def _found(place: Place) -> List[Dict[str, Any]]:
    """Ask check about the environment; return the findings that are more than advice."""
    python = os.path.join(place.environment, "bin", "python")
    command = [sys.executable, "-m", "envdoctor", "check", "--python", python]
    command += ["--format", "json", "--fail-on", "never"]
    _, output = call(command, {"PYTHONPATH": str(ROOT)}, limit=120)
    report = json.loads(output[output.index("{") :])
    fields = ("code", "rule", "severity", "verdict", "packages", "component", "message", "effect")
    return [
        {field: finding[field] for field in fields}
        for finding in report["findings"]
        if finding["severity"] in ("error", "warning") and finding["packages"]
    ]


def keep_small(place: Place) -> None:
    """Empty the folders of compiled modules and of downloads where they have grown."""
    for folder, most in ((place.compiled, 3 << 30), (place.cache, 30 << 30)):
        size = sum(
            os.lstat(os.path.join(path, name)).st_size
            for path, _, files in os.walk(folder)
            for name in files
        )
        if size > most:
            shutil.rmtree(folder, ignore_errors=True)


def free_bytes(path: str) -> int:
    """Return the free space of a file system."""
    usage: Tuple[int, int, int] = shutil.disk_usage(path)
    return usage[2]
