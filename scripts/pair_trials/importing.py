"""Imports modules of an environment in a sandbox, each in a process of its own that begins with
what is slow to import already there.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Sequence

from scripts.trial_environment import Fault

__all__ = ["MEMORY", "Importer", "sandbox"]

#: For all modules of a trial together, in seconds.
IMPORT_S = 400
MEMORY = 48 << 30
#: Seconds of every import in which they are met, and no provider of what is tried.
_SLOW = ("torch", "pandas", "matplotlib.pyplot", "scipy.stats")

_SERVER = r"""
import importlib, importlib.metadata, json, os, signal, sys, traceback
answers = os.fdopen(os.dup(1), "w")
nothing = os.open(os.devnull, os.O_RDWR)
for number in (1, 2):
    os.dup2(nothing, number)
for module in sys.argv[1:]:
    importlib.import_module(module)
tops = {name.partition(".")[0] for name in list(sys.modules)}
of_top = importlib.metadata.packages_distributions() if sys.argv[1:] else {}
loaded = {name for top in tops for name in of_top.get(top, ())}
print(json.dumps({name: importlib.metadata.version(name) for name in loaded}), file=answers)
answers.flush()
for request in sys.stdin:
    said = {}
    for module in json.loads(request):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            signal.alarm(200)
            importlib.invalidate_caches()
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
            os.write(writer, json.dumps([line[:1200] for line in lines])[:60000].encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            text = file.read()
        status = os.waitpid(pid, 0)[1]
        try:
            said[module] = json.loads(text)
        except ValueError:
            said[module] = [f"killed by signal {status & 127}"]
    print(json.dumps(said), file=answers)
    answers.flush()
"""


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


class Importer:
    """A process in an environment that forks for each module. What it has loaded before it forks
    are modules that are slow to import; where one of their distributions is replaced, another
    process takes its place.
    """

    def __init__(self, folder: str, compiled: str) -> None:
        """folder: holds a home that is new for each trial. compiled: where .pyc files lie."""
        self._home = os.path.join(folder, "home")
        self._compiled = compiled
        self._python = ""
        self._process: Optional[subprocess.Popen[str]] = None
        self._loaded: Dict[str, str] = {}

    def imported(
        self, python: str, installed: Mapping[str, str], modules: Sequence[str]
    ) -> Dict[str, List[str]]:
        """Import modules; return what each said, nothing where it went well. Raises Fault."""
        shutil.rmtree(self._home, ignore_errors=True)
        os.makedirs(self._home)
        current = all(installed.get(name) == self._loaded[name] for name in self._loaded)
        if self._process is None or python != self._python or not current:
            self._start(python, [name for name in _SLOW if name.split(".")[0] in installed])
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(list(modules)) + "\n")
            process.stdin.flush()
        except OSError:
            self.close()
            raise Fault(f"{python}: the process that imports has ended") from None
        said: Dict[str, List[str]] = self._answer(IMPORT_S)
        return said

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        self._process = None

    def _start(self, python: str, slow: Sequence[str]) -> None:
        """Begin a process with these modules, without them where one cannot be imported."""
        for preloaded in [slow, ()] if slow else [()]:
            self.close()
            self._python = python
            self._process = subprocess.Popen(
                [*sandbox(), python, "-c", _SERVER, *preloaded],
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            try:
                loaded = self._answer(IMPORT_S)
            except Fault:
                continue
            self._loaded = {_canonical(name): version for name, version in loaded.items()}
            return
        raise Fault(f"{python} cannot be started")

    def _environment(self) -> Dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
        }
        return {
            **kept,
            "HOME": self._home,
            "TMPDIR": self._home,
            "XDG_CACHE_HOME": self._home,
            "HF_HUB_OFFLINE": "1",
            "WANDB_MODE": "offline",
            "PYTHONPYCACHEPREFIX": self._compiled,
            "PYTHONNOUSERSITE": "1",
            "OMP_NUM_THREADS": "1",
        }

    def _answer(self, limit: float) -> Any:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], limit)
        line = process.stdout.readline() if ready else ""
        try:
            return json.loads(line)
        except ValueError:
            self.close()
            raise Fault(f"{self._python}: expected JSON, found {line[:200]!r}") from None


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
