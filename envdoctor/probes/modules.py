"""Modules that are found before the installed ones: in the working directory, and in PYTHONPATH.

Python puts the folder of the script, or the working directory under ``-m`` and ``-c``, in front of
everything else. Only what an import would really take counts: a package with ``__init__.py``, a
``.py`` file or an extension; a plain folder is a namespace portion, and any installed package wins
over it.
"""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Distribution, ShadowedModule
from ..model.versions import canonicalize_name
from .interpreter import interpreter_of, listing
from .machine import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

    from .machine import Machine

__all__ = [
    "DISTRIBUTION_OF",
    "FIELDS_HERE",
    "PROBES_HERE",
    "STANDARD_MODULES",
    "find_module",
    "probe_modules",
]

FIELDS_HERE = ("shadowed_modules", "ray.module_path")

_MOST_ENTRIES = 5000

# Import names that differ from the name of their distribution.
DISTRIBUTION_OF = {
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
STANDARD_MODULES = frozenset(
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
    search_path = interpreter_of(machine).search_path
    if not search_path:
        return dict.fromkeys(
            FIELDS_HERE, Unknown("the folders of the Python environment are not known")
        )
    working = machine.value("python.working_directory")
    order = [*search_path] if working is None else [working, *search_path]
    paths = (find_module(machine, folder, "ray") for folder in order)
    ray = next(filter(None, paths), None)
    evidence = Evidence(", ".join(order))
    return {
        "shadowed_modules": _shadowed(machine, search_path, working),
        "ray.module_path": Known(ray, evidence) if ray is not None else Absent(evidence),
    }


def _shadowed(machine: Machine, search_path: Sequence[str], working: Optional[str]) -> Fact[Any]:
    fronts = []
    if working is not None and not _is_entry(machine, working, search_path):
        fronts.append(working)
    stated = [entry.rstrip("/") for entry in machine.environment.get("PYTHONPATH", "").split(":")]
    fronts += [folder for folder in search_path if folder in stated and folder != working]
    if working is None and not fronts:
        return Unknown("the folder that Python is started from is not known")
    shadowed: List[ShadowedModule] = []
    for front in fronts:
        shadowed += _hidden_by(machine, front, search_path, front == working)
    detail = ", ".join(fronts) or "no folder comes before the installed distributions"
    return Known(tuple(dict.fromkeys(shadowed)), Evidence(detail))


def _is_entry(machine: Machine, folder: str, search_path: Sequence[str]) -> bool:
    real = machine.realpath(folder)
    return any(machine.realpath(entry) == real for entry in search_path)


def _hidden_by(
    machine: Machine, front: str, search_path: Sequence[str], is_working: bool
) -> Iterator[ShadowedModule]:
    """Yield the modules of a folder that hide others.

    Those of the standard library are hidden by the working directory alone.
    """
    others = [folder for folder in search_path if folder != front]
    names = (listing(machine, front) or ())[:_MOST_ENTRIES]
    for module in dict.fromkeys(name.split(".", 1)[0] for name in names):
        is_standard = is_working and module in STANDARD_MODULES
        if not is_standard and not _is_installed_elsewhere(machine, module, front):
            continue
        path = find_module(machine, front, module)
        if path is not None and (is_standard or _hides(machine, module, path, others)):
            yield ShadowedModule(module, path)


def _is_installed_elsewhere(machine: Machine, module: str, front: str) -> bool:
    if not module.isidentifier():
        return False
    distributions: Mapping[str, Distribution] = machine.value("distributions", {})
    name = DISTRIBUTION_OF.get(module, canonicalize_name(module))
    distribution = distributions.get(name)
    return distribution is not None and distribution.location != front


def _hides(machine: Machine, module: str, path: str, others: Sequence[str]) -> bool:
    """Whether the import that would succeed without ``path`` takes another file.

    A link to the installed package, or an editable install from here, hides nothing.
    """
    for folder in others:
        installed = find_module(machine, folder, module)
        if installed is not None:
            return machine.realpath(installed) != machine.realpath(path)
    return False


def find_module(machine: Machine, folder: str, module: str) -> Optional[str]:
    """Return the package, ``.py`` file or extension that an import takes from a folder; or None."""
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
