"""The interpreter that is judged, and the directories in which it finds distributions.

Three patients: the interpreter that runs envdoctor, another one (``--python``), and one inside an
unpacked image (``--root``). No code of a foreign environment runs: the interpreter is started with
``-I -S``, so that neither ``.pth`` files nor ``sitecustomize`` are executed, and ``.pth`` files are
read as text. In an image nothing is started at all.
"""

from __future__ import annotations

import os
import re
import sys

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .machine import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Tuple

    from .machine import Machine

__all__ = [
    "FIELDS_HERE",
    "PROBES_HERE",
    "Interpreter",
    "find_executable",
    "interpreter_of",
    "listing",
    "parse_pth",
    "parse_pyvenv",
    "probe_interpreter",
]

FIELDS_HERE = (
    "python.version",
    "python.implementation",
    "python.abi",
    "python.executable",
    "python.prefix",
    "python.search_path",
    "python.environment",
    "python.working_directory",
)

_DEADLINE = 2.0
_TEXT_LIMIT = 1 << 16

# Where images keep their environment, the specific before the general; an entry with torch in it
# wins.
_PREFIXES = (
    "/opt/venv",
    "/venv",
    "/.venv",
    "/app/.venv",
    "/workspace/.venv",
    "/root/.venv",
    "/sgl-workspace/.venv",
    "/opt/conda",
    "/root/miniconda3",
    "/opt/miniconda3",
    "/root/anaconda3",
    "/usr/local",
    "/usr",
)

# Runs in the foreign interpreter under -I -S; site is imported there, which does not run
# site.main() under -S. It repeats what site.venv() and site.main() do, without reading a .pth file.
# Python 3.4 and newer.
_QUESTION = r"""
import os, sys
def tell(key, value):
    out.append(os.fsencode(key + "=" + value))
out = []
directory = os.path.dirname(os.path.abspath(sys.executable or ""))
prefix = ""
for place in (directory, os.path.dirname(directory)):
    if os.path.isfile(os.path.join(place, "pyvenv.cfg")):
        prefix = os.path.dirname(directory)
        break
tell("version", sys.version.split()[0].rstrip("+"))
tell("implementation", sys.implementation.name)
short = {"cpython": "cp", "pypy": "pp"}.get(sys.implementation.name, "py")
tell("abi", short + "%d%d" % sys.version_info[:2])
tell("threads", "t" if "t" in getattr(sys, "abiflags", "") else "")
tell("executable", sys.executable or "")
tell("prefix", prefix or sys.prefix)
tell("base", sys.base_prefix)
tell("os", sys.platform)
try:
    import site
    kept = sys.prefix
    if prefix:
        sys.prefix = sys.exec_prefix = prefix
        for path in site.getsitepackages([prefix]):
            tell("venv", path)
        sys.prefix = sys.exec_prefix = sys.base_prefix
    else:
        sys.prefix = kept
    for path in site.getsitepackages([sys.base_prefix]):
        tell("site", path)
    tell("user", site.getusersitepackages() if site.check_enableusersite() is not None else "")
except Exception as error:
    tell("trouble", repr(error))
sys.stdout.buffer.write(b"\n".join(out))
"""


class Interpreter(NamedTuple):
    """What is known of the judged interpreter.

    Paths are the target's own; an empty text is not known.

    ``search_path`` holds the existing directories in which distributions and modules are found, in
    import order and without the standard library and the working directory.
    """

    executable: str = ""
    version: str = ""
    implementation: str = ""
    abi: str = ""
    prefix: str = ""
    base_prefix: str = ""
    search_path: Tuple[str, ...] = ()
    environment: str = "unknown"
    system_site: bool = False
    user_site: str = ""
    source: str = ""
    unexecuted: int = 0  # .pth lines that would run code
    trouble: str = ""

    @property
    def minor(self) -> str:
        """``3.11`` of ``3.11.7``."""
        return ".".join(self.version.split(".")[:2])


_LAST: List[Tuple[Any, Interpreter]] = []
_LISTED: List[Tuple[Any, Dict[str, Optional[List[str]]]]] = []


def interpreter_of(machine: Machine) -> Interpreter:
    """Return the judged interpreter; several probes ask, it is looked for once."""
    if not _LAST or _LAST[0][0] is not machine:
        _LAST[:] = [(machine, _find(machine))]
    return _LAST[0][1]


def listing(machine: Machine, folder: str) -> Optional[List[str]]:
    """Return the sorted names in a folder of the search path, or None; three probes ask, it is
    listed once.
    """
    if not _LISTED or _LISTED[0][0] is not machine:
        _LISTED[:] = [(machine, {})]
    known = _LISTED[0][1]
    if folder not in known:
        known[folder] = machine.listdir(folder)
    return known[folder]


def probe_interpreter(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read version, ABI, prefix, kind of environment and search path of the judged interpreter."""
    interpreter = interpreter_of(machine)
    if interpreter.trouble and not interpreter.version:
        return dict.fromkeys(FIELDS_HERE, Unknown(interpreter.trouble))
    evidence = Evidence(interpreter.source, interpreter.trouble)
    unknown = Unknown(f"not told by {interpreter.source}")
    facts: Dict[str, Fact[Any]] = {}
    for name, value in (
        ("version", interpreter.version),
        ("implementation", interpreter.implementation),
        ("abi", interpreter.abi),
        ("executable", interpreter.executable),
        ("prefix", interpreter.prefix),
    ):
        facts["python." + name] = Known(value, evidence) if value else unknown
    notes = []
    if interpreter.system_site:
        notes.append("with system site packages")
    if interpreter.user_site in interpreter.search_path:
        notes.append("with user site")
    if interpreter.unexecuted:
        notes.append(f"{interpreter.unexecuted} .pth lines that run code were not executed")
    facts["python.environment"] = Known(
        interpreter.environment, Evidence(interpreter.source, "; ".join(notes))
    )
    facts["python.search_path"] = Known(
        interpreter.search_path, Evidence(interpreter.source, "; ".join(notes))
    )
    facts["python.working_directory"] = _working_directory(machine)
    return facts


def _working_directory(machine: Machine) -> Fact[str]:
    if not _is_here(machine):
        return Unknown("an unpacked image has no working directory")
    try:
        return Known(os.getcwd(), Evidence("getcwd"))
    except OSError as error:
        return Unknown(f"the working directory cannot be read: {error.strerror}")


def _is_here(machine: Machine) -> bool:
    """Whether the target is this machine, not an unpacked image."""
    return not machine.root


# The three patients


def _find(machine: Machine) -> Interpreter:
    if not _is_here(machine):
        return _in_image(machine)
    if machine.python is not None:
        return _foreign(machine, machine.python)
    if sys.flags.no_site:
        # Started with -S to save time: sys.path holds the standard library only, as in a foreign
        # interpreter.
        return _from_layout(machine, sys.executable, "this interpreter")
    return _this(machine)


def _this(machine: Machine) -> Interpreter:
    implementation = sys.implementation.name
    major, minor = sys.version_info[:2]
    # abiflags is missing on Windows only.
    threads = "t" if "t" in getattr(sys, "abiflags", "") else ""
    configuration = (
        parse_pyvenv(machine.read_text(_join(sys.prefix, "pyvenv.cfg"), _TEXT_LIMIT) or "")
        if sys.prefix != sys.base_prefix
        else {}
    )
    user = sys.modules["site"].USER_SITE if "site" in sys.modules else None
    return Interpreter(
        executable=sys.executable or "",
        version=sys.version.split()[0].rstrip("+"),
        implementation=implementation,
        abi=_ABI_PREFIX.get(implementation, "py") + f"{major}{minor}{threads}",
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        search_path=_without_library(sys.path),
        environment=_environment_kind(
            machine, sys.prefix, configuration, sys.prefix != sys.base_prefix
        ),
        system_site=configuration.get("include-system-site-packages", "").lower() == "true",
        user_site=user or "",
        source="this interpreter",
    )


_ABI_PREFIX = {"cpython": "cp", "pypy": "pp"}


def _without_library(path: Sequence[str]) -> Tuple[str, ...]:
    """sys.path without the entry of the running program, the standard library and what does not
    exist.
    """
    entries = list(path)
    if entries and not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        # The program's own entry: its folder, or the working directory under -m. A user's script
        # has another one.
        program = sys.argv[0] if sys.argv else ""
        places = [
            os.path.dirname(path)
            for path in (os.path.abspath(program), os.path.realpath(program))
            if program
        ]
        if entries[0] in ("", _getcwd(), *places):
            entries = entries[1:]
    library = os.path.dirname(os.__file__)
    seen = set()
    kept = []
    for entry in entries:
        absolute = os.path.abspath(entry)
        if (
            absolute in seen
            or absolute == library
            or os.path.basename(absolute) == "lib-dynload"
            or not os.path.isdir(absolute)
        ):
            continue
        seen.add(absolute)
        kept.append(absolute)
    return tuple(kept)


def _getcwd() -> Optional[str]:
    try:
        return os.getcwd()
    except OSError:
        return None


def find_executable(machine: Machine, python: str) -> Optional[str]:
    """Return the path of the interpreter that ``--python`` names: a file, a folder of an
    environment, or a command.
    """
    if "/" not in python:
        for folder in machine.environment.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
            if folder and machine.isfile(_join(folder, python)):
                return _join(folder, python)
        if not _is_here(machine) or not machine.isdir(os.path.abspath(python)):
            return None
    # ".venv" is a folder that is meant, although it has no slash.
    path = os.path.abspath(python) if _is_here(machine) else _join("/", python)
    for candidate in (_join(path, "bin/python3"), _join(path, "bin/python")):
        if machine.exists(candidate):
            return candidate
    return path if machine.isfile(path) else None


def _foreign(machine: Machine, python: str) -> Interpreter:
    """Ask another interpreter; where it does not answer, read its folder."""
    executable = find_executable(machine, python)
    if executable is None:
        return Interpreter(source=python, trouble=f"no interpreter at {python}")
    from .isolation import run_command

    answer = run_command(
        [executable, "-I", "-S", "-c", _QUESTION],
        deadline=_DEADLINE,
        environment=machine.environment,
    )
    told: Dict[str, List[str]] = {}
    for line in answer.output.decode("utf-8", "surrogateescape").split("\n"):
        key, separator, value = line.partition("=")
        if separator:
            told.setdefault(key, []).append(value)
    if answer.status != 0 or "version" not in told:
        reason = answer.reason or f"exit status {answer.status}"
        found = _from_layout(machine, executable, f"layout of {executable}")
        return found._replace(trouble=f"{executable} did not answer ({reason})")
    first = {key: values[0] for key, values in told.items()}
    prefix = first["prefix"]
    configuration = _configuration(machine, first["executable"] or executable)
    system_site = (
        configuration is None
        or configuration.get("include-system-site-packages", "").lower() == "true"
    )
    sites = told.get("venv", [])
    user = first.get("user", "")
    if system_site:
        if user and not machine.environment.get("PYTHONNOUSERSITE"):
            sites = [*sites, user]
        sites = [*sites, *told.get("site", [])]
    search, unexecuted = _search_path(machine, sites)
    return Interpreter(
        executable=executable,
        version=first["version"],
        implementation=first["implementation"],
        abi=first["abi"] + first.get("threads", ""),
        prefix=prefix,
        base_prefix=first["base"],
        search_path=search,
        environment=_environment_kind(
            machine, prefix, configuration or {}, configuration is not None
        ),
        system_site=system_site and configuration is not None,
        user_site=user,
        source=f"{executable} -I -S",
        unexecuted=unexecuted,
        trouble=first.get("trouble", ""),
    )


def _in_image(machine: Machine) -> Interpreter:
    """Find the interpreter of an unpacked image by the folders that images use; nothing is
    started.
    """
    if machine.python is not None:
        executable = find_executable(machine, machine.python)
        if executable is None:
            return Interpreter(
                source=machine.python, trouble=f"no interpreter at {machine.python} in the image"
            )
        return _from_layout(machine, executable, f"layout of {executable}")
    best: Optional[Interpreter] = None
    for prefix in _image_prefixes(machine):
        for version in _versions_below(machine, prefix):
            executable = next(
                (path for path in _executables(prefix, version) if machine.exists(path)), ""
            )
            if not executable and prefix in ("/usr", "/usr/local"):
                continue  # Debian keeps folders of Pythons that are not installed
            candidate = _from_layout(
                machine, executable or _join(prefix, "bin/python3"), f"layout of {prefix}", version
            )
            if any(
                machine.exists(_join(folder, "torch/version.py"))
                for folder in candidate.search_path
            ):
                return candidate
            best = best or candidate
    return best or Interpreter(
        source="layout of the image", trouble="no Python interpreter was found in the image"
    )


def _image_prefixes(machine: Machine) -> List[str]:
    prefixes = [
        machine.environment[name]
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX")
        if machine.environment.get(name)
    ]
    for prefix in _PREFIXES:
        prefixes.append(prefix)
        prefixes += [
            _join(prefix, "envs/" + name) for name in machine.listdir(_join(prefix, "envs")) or ()
        ]
    return [prefix for prefix in dict.fromkeys(prefixes) if machine.exists(_join(prefix, "lib"))]


_VERSION_FOLDER = pattern(r"python(\d+\.\d+)t?\Z")


def _versions_below(machine: Machine, prefix: str) -> List[str]:
    """The Python minors with a library folder below a prefix, newest first."""
    versions = {
        match.group(1)
        for name in machine.listdir(_join(prefix, "lib")) or ()
        for match in [_VERSION_FOLDER.match(name)]
        if match
    }
    return sorted(versions, key=lambda text: tuple(map(int, text.split("."))), reverse=True)


def _executables(prefix: str, version: str) -> Tuple[str, ...]:
    return tuple(_join(prefix, "bin/" + name) for name in (f"python{version}", "python3", "python"))


def _from_layout(machine: Machine, executable: str, source: str, version: str = "") -> Interpreter:
    """Derive an interpreter from its path, its pyvenv.cfg and the folders beside it."""
    configuration = _configuration(machine, executable)
    prefix = os.path.dirname(os.path.dirname(executable)) or "/"
    base = prefix
    if configuration is None:
        # /usr/bin/python3 may be a link; the file that it names tells the prefix where its own
        # folder has no library.
        target = machine.realpath(executable)
        if not _versions_below(machine, prefix) and target:
            base = prefix = os.path.dirname(os.path.dirname(target)) or "/"
        if not version:
            named = re.search(r"python(\d+\.\d+)", os.path.basename(target or executable))
            version = named.group(1) if named else next(iter(_versions_below(machine, prefix)), "")
    else:
        base = (
            configuration.get("base-prefix")
            or os.path.dirname(configuration.get("home", "").rstrip("/"))
            or prefix
        )
        version = version or next(iter(_versions_below(machine, prefix)), "")
    system_site = (
        configuration is None
        or configuration.get("include-system-site-packages", "").lower() == "true"
    )
    sites = _known_sites(prefix, version) if configuration is not None else []
    user = _user_site(machine, version)
    if system_site:
        if user and not machine.environment.get("PYTHONNOUSERSITE"):
            sites.append(user)
        sites += _known_sites(base, version)
    search, unexecuted = _search_path(machine, sites)
    full = _full_version(machine, base, version, configuration or {})
    return Interpreter(
        executable=executable,
        version=full,
        implementation="cpython" if version else "",
        abi="cp" + version.replace(".", "") if version else "",
        prefix=prefix,
        base_prefix=base,
        search_path=search,
        environment=_environment_kind(
            machine, prefix, configuration or {}, configuration is not None
        ),
        system_site=system_site and configuration is not None,
        user_site=user,
        source=source,
        unexecuted=unexecuted,
        trouble="" if full else f"no Python version is told by {source}",
    )


def _user_site(machine: Machine, version: str) -> str:
    base = machine.environment.get("PYTHONUSERBASE")
    home = machine.environment.get("HOME") if _is_here(machine) else "/root"
    if not base and home:
        base = _join(home, ".local")
    return _join(base, f"lib/python{version}/site-packages") if base and version else ""


def _known_sites(prefix: str, version: str) -> List[str]:
    """The folders that CPython, Debian (dist-packages) and Fedora (lib64) use below a prefix."""
    if not version:
        return []
    sites = []
    if prefix == "/usr":
        sites += [
            f"/usr/local/lib/python{version}/dist-packages",
            f"/usr/local/lib/python{version}/site-packages",
        ]
        sites += [f"/usr/local/lib64/python{version}/site-packages"]
    sites += [_join(prefix, f"{lib}/python{version}/site-packages") for lib in ("lib", "lib64")]
    if prefix == "/usr":
        sites += ["/usr/lib/python3/dist-packages", f"/usr/lib/python{version}/dist-packages"]
    return sites


def _full_version(machine: Machine, base: str, minor: str, configuration: Dict[str, str]) -> str:
    """The version with its patch number, from pyvenv.cfg, the C headers, conda's records or the
    program itself.
    """
    for key in ("version_info", "version"):
        match = re.match(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", configuration.get(key, ""))
        if match:
            return match.group()
    if not minor:
        return ""
    header = (
        machine.read_text(_join(base, f"include/python{minor}/patchlevel.h"), _TEXT_LIMIT) or ""
    )
    match = re.search(r'#define\s+PY_VERSION\s+"(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)', header)
    if match:
        return match.group(1)
    for name in machine.listdir(_join(base, "conda-meta")) or ():
        match = re.match(r"python-(\d+\.\d+\.\d+)-", name)
        if match and match.group(1).startswith(minor + "."):
            return match.group(1)
    pattern = re.compile(
        rb"\0(" + re.escape(minor).encode() + rb"\.\d{1,3}(?:(?:a|b|rc)\d+)?)\+?\0"
    )
    for path in (_join(base, f"bin/python{minor}"), _join(base, f"lib/libpython{minor}.so.1.0")):
        data = machine.read_bytes(machine.realpath(path) or path, 64 << 20) or b""
        found = pattern.search(data)
        if found:
            return found.group(1).decode()
    return minor


# Files


def _configuration(machine: Machine, executable: str) -> Optional[Dict[str, str]]:
    """The pyvenv.cfg beside an interpreter or one folder up, where site.venv() looks; None where
    there is none.
    """
    folder = os.path.dirname(executable)
    for place in (folder, os.path.dirname(folder)):
        text = machine.read_text(_join(place, "pyvenv.cfg"), _TEXT_LIMIT)
        if text is not None:
            return parse_pyvenv(text)
    return None


def parse_pyvenv(text: str) -> Dict[str, str]:
    """Parse pyvenv.cfg: ``key = value`` lines, keys in lower case; everything else is passed
    over.
    """
    settings: Dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and key.strip():
            settings[key.strip().lower()] = value.strip()
    return settings


def parse_pth(text: str) -> Tuple[List[str], int]:
    """Return the paths that a ``.pth`` file adds, and how many of its lines would run code (they
    are not run).
    """
    paths = []
    code = 0
    for line in text.splitlines()[:1000]:
        stripped = line.strip()
        if not stripped or line.startswith("#"):
            continue
        if line.startswith(("import ", "import\t")):
            code += 1
        elif "\0" not in stripped:
            paths.append(line.rstrip())
    return paths, code


def _search_path(machine: Machine, sites: Sequence[str]) -> Tuple[Tuple[str, ...], int]:
    """PYTHONPATH, then each site folder with what its .pth files add, as ``site.addsitedir`` orders
    them.
    """
    seen = set()
    folders: List[str] = []
    code = 0

    def add(path: str) -> bool:
        # Debian's lib64 -> lib: one folder under two names is one entry.
        real = machine.realpath(path) or path
        if real in seen or listing(machine, path) is None:
            return False
        seen.add(real)
        folders.append(path)
        return True

    for entry in machine.environment.get("PYTHONPATH", "").split(":"):
        if entry:
            add(os.path.abspath(entry) if _is_here(machine) else _join("/", entry))
    for site in sites:
        if not add(site):
            continue
        for name in listing(machine, site) or ():
            if not name.endswith(".pth") or name.startswith("."):
                continue
            paths, lines = parse_pth(machine.read_text(_join(site, name), _TEXT_LIMIT) or "")
            code += lines
            for path in paths:
                add(os.path.normpath(os.path.join(site, path)))
    return tuple(folders), code


def _environment_kind(
    machine: Machine, prefix: str, configuration: Dict[str, str], virtual: bool
) -> str:
    if virtual:
        return "uv" if "uv" in configuration else "venv"
    if machine.exists(_join(prefix, "conda-meta")):
        return "conda"
    return "system" if prefix in ("/usr", "/usr/local", "/") else "unknown"


def _join(folder: str, name: str) -> str:
    return os.path.join(folder, name)


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("interpreter", probe_interpreter, FIELDS_HERE, isolated=False, deadline=_DEADLINE + 1.0),
)
