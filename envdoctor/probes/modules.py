"""Modules that are found before the installed ones: in the working directory, and in PYTHONPATH.

Python puts the folder of the script, or the working directory under ``-m`` and ``-c``, in front of
everything else. Only what an import would really take counts: a package with ``__init__.py``, a
``.py`` file or an extension; a plain folder is a namespace portion, and any installed package wins
over it.
"""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Distribution
from ..model.versions import canonicalize_name
from .interpreter import interpreter_of, listing
from .machine import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from .machine import Machine

__all__ = ["FIELDS_HERE", "PROBES_HERE", "find_module", "probe_modules"]

FIELDS_HERE = ("shadowed_modules", "ray.module_path")

_MOST_ENTRIES = 5000

# Import names that differ from the name of their distribution.
_DISTRIBUTION_OF = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "flash_attn_interface": "flash-attn-3",
    "flashinfer": "flashinfer-python",
    "google": "protobuf",
    "hydra": "hydra-core",
    "sgl_kernel": "sglang-kernel",
    "sklearn": "scikit-learn",
    "transformer_engine": "transformer-engine",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
# Modules of the standard library that nearly every program imports: a file of that name breaks all
# of them. Built-in and frozen modules (time, os, io) cannot be hidden.
_STANDARD = frozenset(
    (
        "argparse",
        "asyncio",
        "base64",
        "calendar",
        "concurrent",
        "contextlib",
        "copy",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "email",
        "enum",
        "functools",
        "hashlib",
        "heapq",
        "html",
        "http",
        "inspect",
        "json",
        "keyword",
        "linecache",
        "locale",
        "logging",
        "multiprocessing",
        "numbers",
        "operator",
        "pathlib",
        "pickle",
        "platform",
        "queue",
        "random",
        "re",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "statistics",
        "string",
        "struct",
        "subprocess",
        "tempfile",
        "threading",
        "tokenize",
        "traceback",
        "types",
        "typing",
        "unittest",
        "urllib",
        "uuid",
        "warnings",
        "weakref",
        "xml",
        "zipfile",
    )
)


def probe_modules(machine: Machine) -> Dict[str, Fact[Any]]:
    """List the modules of the working directory and of PYTHONPATH that hide installed ones."""
    interpreter = interpreter_of(machine)
    if not interpreter.search_path:
        return dict.fromkeys(
            FIELDS_HERE, Unknown("the folders of the Python environment are not known")
        )
    working = machine.value("python.working_directory")
    distributions: Mapping[str, Distribution] = machine.value("distributions", {})
    shadowed: List[str] = []
    fronts = (
        [] if working is None or _is_entry(machine, working, interpreter.search_path) else [working]
    )
    given = [
        entry.rstrip("/") for entry in machine.environment.get("PYTHONPATH", "").split(":") if entry
    ]
    fronts += [
        folder for folder in interpreter.search_path if folder in given and folder != working
    ]
    for front in fronts:
        shadowed += _hidden_by(
            machine, front, interpreter.search_path, distributions, front == working
        )
    order = (
        [working, *interpreter.search_path]
        if working is not None
        else list(interpreter.search_path)
    )
    ray = next(
        (path for folder in order for path in [find_module(machine, folder, "ray")] if path), None
    )
    evidence = Evidence(", ".join(fronts) or "no folder comes before the installed distributions")
    if working is None and not fronts:
        fact: Fact[Any] = Unknown("the folder from which Python is started is not known")
    else:
        fact = Known(tuple(dict.fromkeys(shadowed)), evidence)
    where = Evidence(", ".join(order))
    return {
        "shadowed_modules": fact,
        "ray.module_path": Known(ray, where) if ray is not None else Absent(where),
    }


def _is_entry(machine: Machine, folder: str, search_path: Sequence[str]) -> bool:
    real = machine.realpath(folder)
    return any(machine.realpath(entry) == real for entry in search_path)


def _hidden_by(
    machine: Machine,
    front: str,
    search_path: Sequence[str],
    distributions: Mapping[str, Distribution],
    standard: bool,
) -> List[str]:
    hidden = []
    for module in dict.fromkeys(
        entry.split(".", 1)[0] for entry in (listing(machine, front) or ())[:_MOST_ENTRIES]
    ):
        if not module.isidentifier():
            continue
        if standard and module in _STANDARD:
            path = find_module(machine, front, module)
            if path is not None:
                hidden.append(f"{module}: {path}")
            continue
        name = _DISTRIBUTION_OF.get(module, canonicalize_name(module))
        distribution = distributions.get(name)
        if distribution is None or distribution.location == front:
            continue
        path = find_module(machine, front, module)
        if path is None:
            continue
        for folder in search_path:
            installed = find_module(machine, folder, module) if folder != front else None
            if installed is not None:
                # A link to the installed package, or an editable install from here, hides nothing.
                if machine.realpath(installed) != machine.realpath(path):
                    hidden.append(f"{module}: {path}")
                break
    return hidden


def find_module(machine: Machine, folder: str, module: str) -> Optional[str]:
    """Return what an import of ``module`` takes from one folder: a package, a ``.py`` file or an
    extension; or None.
    """
    names = listing(machine, folder) or ()
    if module in names and machine.isfile(f"{folder}/{module}/__init__.py"):
        return f"{folder}/{module}"
    for name in names:
        if (
            name.startswith(module + ".")
            and (name in (module + ".py", module + ".pyc") or name.endswith(".so"))
            and machine.isfile(f"{folder}/{name}")
        ):
            return f"{folder}/{name}"
    return None


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("modules", probe_modules, FIELDS_HERE, isolated=False, deadline=2.0),
)
