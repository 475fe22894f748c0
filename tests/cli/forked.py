"""A process that has imported a program, envdoctor or a script, and runs each command line in a
fork of itself.

What hundreds of tests ask of a command is its answer: output, exit code, files. To start an
interpreter and import for each costs more than most answers do. A fork has descriptors, variables,
a working directory and an end (``os._exit``) of its own, as a process that was started has. What is
true only of one that was started (imports, signals, terminals, closed streams, what the interpreter
reads of its variables) is tested with ``python -m envdoctor``.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class ForkServer:
    """The process as tests see it; it starts with the first command line.

    ``program`` is the module that calls :func:`serve`.
    """

    def __init__(self, program=__name__):
        self._program = program
        self._process = None

    def run(self, arguments, env, cwd, data, timeout):
        """Run a command line as ``subprocess.run`` would, with ``data`` as standard input."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._program],
                cwd=ROOT,
                env={**env, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        with tempfile.TemporaryDirectory(prefix="forked-") as folder:
            streams = [os.devnull, os.path.join(folder, "out"), os.path.join(folder, "err")]
            if data is not None:
                streams[0] = os.path.join(folder, "in")
                Path(streams[0]).write_bytes(data)
            order = {"arguments": arguments, "env": env, "cwd": str(cwd), "streams": streams}
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                self.close()
                raise subprocess.TimeoutExpired(arguments, timeout)
            code = int(self._process.stdout.readline())
            output, errors = (Path(path).read_bytes() for path in streams[1:])
        return subprocess.CompletedProcess(arguments, code, output, errors)

    def close(self):
        """End the process and what it runs."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()
            process.stdout.close()


def serve(load):
    """Run command lines, each in a fork; ``load`` imports a program and returns its path and what
    runs it.
    """
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    del sys.path[0]  # the folder of this program; envdoctor itself comes from PYTHONPATH
    path, main = load()
    # No collection in a fork looks through what was imported, and so copies its pages.
    gc.collect()
    gc.freeze()
    for line in orders:
        child = os.fork()
        if child == 0:
            orders.close()
            answers.close()
            _prepare(path, **json.loads(line))
            main()
            sys.exit()
        _, status = os.waitpid(child, 0)
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        answers.write(b"%d\n" % code)
        answers.flush()


def _prepare(program, arguments, env, cwd, streams):
    for number, path in enumerate(streams):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [program, *arguments]


def _load():
    import envdoctor

    for module in pkgutil.walk_packages(envdoctor.__path__, "envdoctor."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    from envdoctor.cli.main import main

    return str(ROOT / "envdoctor" / "__main__.py"), main


if __name__ == "__main__":
    serve(_load)
