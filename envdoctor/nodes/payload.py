"""The probes, or a trial, as one text that ``python3 -I -`` reads from standard input: nothing is
installed on a node, and the probes write nothing there.
"""

from __future__ import annotations

import base64
import json
import pkgutil
import zlib
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any, Iterator, Mapping, Optional, Sequence, Tuple

__all__ = ["LAUNCH", "MARK", "program_text", "trial_text"]

#: Before the answer, on the line that holds it: what a login prints around it does not matter.
MARK = "\x1eenvdoctor-answer:"

#: Finds a Python on the node that can run the program, and becomes it: the one that is named ($1),
#: else python3, else any that PATH has. Every engine but Ray runs it, by ``sh -c``; what stands
#: behind the name goes to the program.
LAUNCH = (
    'for p in "$1" python3 python python3.13 python3.12 python3.11 python3.10 python3.9; do '
    '[ -n "$p" ] && "$p" -c "import sys; sys.exit(sys.version_info < (3, 9))" '
    '</dev/null >/dev/null 2>&1 && shift && exec "$p" -I - "$@"; done; '
    'echo "no Python 3.9 or newer was found on this node" >&2; exit 127'
)

_ROOMS = ("model", "probes")
_ROOMS_OF_TRIALS = ("model", "probes", "prove")
#: Not of envdoctor: what the probes import where it is there.
_VENDORED = ("packaging", "pynvml")

_PROGRAM = """\
import sys
if sys.version_info < (3, 9):
    sys.exit("expected Python 3.9 or newer, found " + sys.version.split()[0])
import base64, importlib.abc, importlib.machinery, json, time, zlib
asked = time.time()
sources = json.loads(zlib.decompress(base64.b85decode({sources!r})))


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        whole = name in sources
        package = name + ".__init__" in sources
        if whole or package:
            return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def exec_module(self, module):
        name = module.__name__
        source = sources[name + ".__init__"] if name + ".__init__" in sources else sources[name]
        exec(compile(source, "<envdoctor: " + name + ">", "exec"), module.__dict__)

    def get_source(self, name):
        return sources[name]


sys.meta_path.insert(0, Finder())
answer = {{"clock": asked, "facts": {{"facts": {{}}}}}}
python = {python!r} or sys.executable
{work}
text = base64.b85encode(zlib.compress(json.dumps(answer).encode("utf-8", "surrogatepass"), 6))
sys.stdout.write("\\n" + {mark!r} + text.decode("ascii") + "\\n")
sys.stdout.flush()
import os
os._exit(0)
"""

_PROBES = """\
from envdoctor.model.serde import dump_facts
from envdoctor.probes import probe_machine

facts = probe_machine(python=python, deadline={deadline!r}, in_cluster=True)
answer["facts"] = dump_facts(facts)
"""

#: Where others reach this node: the address from which it would speak to the outside (connecting a
#: datagram socket sends nothing), and a port that is free now.
_MEETING = """\
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside:
    try:
        outside.connect(("192.0.2.1", 9))
        answer["address"] = outside.getsockname()[0]
    except OSError:
        answer["address"] = "127.0.0.1"
with socket.socket() as free:
    free.bind(("", 0))
    answer["port"] = free.getsockname()[1]
"""

_TRIAL = """\
import os, select, signal, threading
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, lambda *_: sys.exit(1))  # so that nothing is left of what was started


def end_with_the_reader():
    poll = select.poll()
    poll.register(1, 0)
    poll.poll()  # until nobody reads the answer any more: sshd sends no signal then
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=end_with_the_reader, daemon=True).start()
from envdoctor.prove.running import run_together

parameters, (first, count, world) = json.loads({parameters!r}), json.loads(sys.argv[1])
steps = run_together(
    python, {trial!r}, parameters, {deadline!r}, count, {subject!r}, first=first, world=world
)
answer["steps"] = [step._asdict() for step in steps]
"""


def program_text(
    python: Optional[str] = None, deadline: float = 5.0, *, meeting: bool = False
) -> str:
    """Return the program that reads a node.

    Args:
        python: The interpreter on the node whose environment is read; by default the one that runs
            the program.
        deadline: Seconds that the probes have together on the node.
        meeting: Also say where other nodes reach this one: "address" and "port".
    """
    work = _PROBES.format(deadline=deadline) + (_MEETING if meeting else "")
    return _program(python, work, _ROOMS)


def trial_text(
    python: Optional[str], trial: str, parameters: Mapping[str, Any], deadline: float, subject: str
) -> str:
    """Return the program that runs a trial in several processes of a node, of which its argument
    says how many ranks come before them, how many they are, and how many there are on all nodes:
    ``[4, 2, 8]``.
    """
    work = _TRIAL.format(
        parameters=json.dumps(parameters), trial=trial, deadline=deadline, subject=subject
    )
    return _program(python, work, _ROOMS_OF_TRIALS)


def _program(python: Optional[str], work: str, rooms: Sequence[str]) -> str:
    sources = dict(_sources(rooms))
    packed = base64.b85encode(zlib.compress(json.dumps(sources).encode("utf-8"), 9))
    return _PROGRAM.format(
        sources=packed.decode("ascii"), python=python or "", work=work, mark=MARK
    )


def _sources(rooms: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Yield (module, source) of what the program imports beside the standard library; envdoctor may
    lie in a folder or in an archive.
    """
    for package in ("envdoctor", *(f"envdoctor.{room}" for room in rooms)):
        yield from _package(package)
    for name in _VENDORED:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            yield from _package(name)
        elif spec is not None and isinstance(spec.loader, InspectLoader):
            yield name, spec.loader.get_source(name) or ""


def _package(package: str) -> Iterator[Tuple[str, str]]:
    yield _module(package, "__init__")
    for _, name, is_package in pkgutil.iter_modules(import_module(package).__path__):
        if not is_package:
            yield _module(package, name)


def _module(package: str, name: str) -> Tuple[str, str]:
    source = pkgutil.get_data(package, f"{name}.py") or b""
    return f"{package}.{name}", source.decode("utf-8")
