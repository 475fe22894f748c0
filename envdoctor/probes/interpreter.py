"""The interpreter that is judged, and the directories in which it finds distributions.

Three patients: the interpreter that runs envdoctor, another one (``--python``), and one inside an
unpacked image (``--root``). No code of a foreign environment runs: the interpreter is started with
``-I -S``, so that neither ``.pth`` files nor ``sitecustomize`` are executed, and ``.pth`` files are
read as text. In an image nothing is started at all.
"""

from __future__ import annotations

import errno
import os
import re
import sys

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .machine import Machine, Probe, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

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
    "search_path_without_site",
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
    """Return the sorted names in a folder, or None; several probes ask, it is listed once."""
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
    unknown = Unknown(f"{interpreter.source} does not say")
    facts: Dict[str, Fact[Any]] = {}
    for name in ("version", "implementation", "abi", "executable", "prefix"):
        value = getattr(interpreter, name)
        facts["python." + name] = Known(value, evidence) if value else unknown
    evidence = Evidence(interpreter.source, "; ".join(_notes(interpreter)))
    facts["python.environment"] = Known(interpreter.environment, evidence)
    facts["python.search_path"] = Known(interpreter.search_path, evidence)
    facts["python.working_directory"] = _working_directory(machine)
    return facts


def _notes(interpreter: Interpreter) -> Iterator[str]:
    if interpreter.system_site:
        yield "with system site packages"
    if interpreter.user_site in interpreter.search_path:
        yield "with user site"
    if interpreter.unexecuted:
        yield f"{interpreter.unexecuted} .pth lines that run code were not executed"


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
        return _this_without_site(machine)
    return _this(machine)


def _this(machine: Machine) -> Interpreter:
    implementation = sys.implementation.name
    major, minor = sys.version_info[:2]
    # abiflags is missing on Windows only.
    threads = "t" if "t" in getattr(sys, "abiflags", "") else ""
    virtual = sys.prefix != sys.base_prefix
    settings = _join(sys.prefix, "pyvenv.cfg")
    machine.packages += (settings,)
    text = machine.read_text(settings, _TEXT_LIMIT) if virtual else ""
    configuration = parse_pyvenv(text or "")
    user = sys.modules["site"].USER_SITE if "site" in sys.modules else None
    return Interpreter(
        executable=sys.executable or "",
        version=sys.version.split()[0].rstrip("+"),
        implementation=implementation,
        abi=_ABI_PREFIX.get(implementation, "py") + f"{major}{minor}{threads}",
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        search_path=_without_library(machine, _search_path_of_start()),
        environment=_environment_kind(machine, sys.prefix, configuration if virtual else None),
        system_site=virtual and _sees_system(configuration),
        user_site=user or "",
        source="this interpreter",
    )


def _search_path_of_start() -> List[str]:
    import envdoctor

    return envdoctor.search_path or sys.path


def _this_without_site(machine: Machine) -> Interpreter:
    """Started with -S, as by the script envdoctor-entrypoint: sys.path holds the standard library,
    and what site would add to it is read.
    """
    executable = sys.executable or ""
    configuration = _configuration(machine, executable)
    prefix = sys.prefix if configuration is None else _two_up(executable)
    minor = ".".join(map(str, sys.version_info[:2]))
    own = [] if configuration is None else _known_sites(prefix, minor)
    user = _user_site(machine, minor)
    sites = _site_folders(machine, configuration, own, user, _known_sites(sys.base_prefix, minor))
    search, unexecuted = _search_path(machine, sites)
    return _this(machine)._replace(
        prefix=prefix,
        search_path=search,
        environment=_environment_kind(machine, prefix, configuration),
        system_site=configuration is not None and _sees_system(configuration),
        user_site=user,
        unexecuted=unexecuted,
    )


def search_path_without_site(machine: Machine) -> Tuple[str, ...]:
    """Return the directories in which this interpreter finds distributions, as files tell, whether
    it ran site or not.
    """
    return _this_without_site(machine).search_path


_ABI_PREFIX = {"cpython": "cp", "pypy": "pp"}


def _without_library(machine: Machine, path: Sequence[str]) -> Tuple[str, ...]:
    """Leave out the running program's entry, the standard library and what does not exist.

    Python itself leaves a folder of distributions out that it cannot look up: site names it.
    """
    entries = list(path)
    # Isolated, or with -P, there is no entry of the program.
    has_program = not sys.flags.isolated and not getattr(sys.flags, "safe_path", False)
    if has_program and entries and entries[0] in _program_folders():
        entries = entries[1:]
    library = os.path.dirname(os.__file__)
    absolute = dict.fromkeys(map(os.path.abspath, entries))
    absolute.pop(library, None)
    sites = sys.modules["site"].getsitepackages() if "site" in sys.modules else []
    machine.packages += (*absolute, *sites)
    for site in sites:
        if site not in absolute:
            _is_site(machine, site)
    return tuple(
        [
            entry
            for entry in absolute
            if os.path.basename(entry) != "lib-dynload" and machine.isdir(entry)
        ]
    )


def _is_site(machine: Machine, path: str) -> bool:
    """Tell whether a folder of distributions is there; something else in its place is kept as
    unread.
    """
    if machine.isdir(path):
        return True
    if machine.exists(path):
        machine.unread[path] = reason_of(NotADirectoryError(errno.ENOTDIR, ""))
    return False


def _program_folders() -> List[Optional[str]]:
    """The program's own entry: its folder, or the working directory under -m.

    A user's script has another one.
    """
    program = sys.argv[0] if sys.argv else ""
    folders: List[Optional[str]] = ["", _getcwd()]
    if program:
        folders.append(os.path.dirname(os.path.abspath(program)))
        folders.append(os.path.dirname(os.path.realpath(program)))
    return folders


def _getcwd() -> Optional[str]:
    try:
        return os.getcwd()
    except OSError:
        return None


def find_executable(machine: Machine, python: str) -> Optional[str]:
    """Return the interpreter that ``--python`` names: a file, an environment, or a command."""
    if "/" not in python:
        for folder in machine.environment.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
            if folder and machine.isfile(_join(folder, python)):
                return _join(folder, python)
        # ".venv" is a folder that is meant, although it has no slash.
        if not _is_here(machine) or not machine.isdir(os.path.abspath(python)):
            return None
    path = os.path.abspath(python) if _is_here(machine) else _join("/", python)
    pythons = filter(machine.exists, (_join(path, "bin/python3"), _join(path, "bin/python")))
    return next(pythons, path if machine.isfile(path) else None)


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
    values = _parse_answer(answer.output.decode("utf-8", "surrogateescape"))
    if answer.status != 0 or "version" not in values:
        reason = answer.reason or f"exit status {answer.status}"
        candidate = _from_layout(machine, executable, f"layout of {executable}")
        return candidate._replace(trouble=f"{executable} did not answer ({reason})")
    first = {key: several[0] for key, several in values.items()}
    configuration = _configuration(machine, first["executable"] or executable)
    user = first.get("user", "")
    sites = _site_folders(
        machine, configuration, values.get("venv", []), user, values.get("site", [])
    )
    search, unexecuted = _search_path(machine, sites)
    return Interpreter(
        executable=executable,
        version=first["version"],
        implementation=first["implementation"],
        abi=first["abi"] + first.get("threads", ""),
        prefix=first["prefix"],
        base_prefix=first["base"],
        search_path=search,
        environment=_environment_kind(machine, first["prefix"], configuration),
        system_site=configuration is not None and _sees_system(configuration),
        user_site=user,
        source=f"{executable} -I -S",
        unexecuted=unexecuted,
        trouble=first.get("trouble", ""),
    )


def _parse_answer(text: str) -> Dict[str, List[str]]:
    """The values that the foreign interpreter printed, by key."""
    values: Dict[str, List[str]] = {}
    for line in text.split("\n"):
        key, separator, value = line.partition("=")
        if separator:
            values.setdefault(key, []).append(value)
    return values


def _sees_system(configuration: Optional[Dict[str, str]]) -> bool:
    """Whether the system's packages are seen: outside of a venv (None), or if it says so."""
    if configuration is None:
        return True
    return configuration.get("include-system-site-packages", "").lower() == "true"


def _site_folders(
    machine: Machine,
    configuration: Optional[Dict[str, str]],
    own: Sequence[str],
    user: str,
    system: Sequence[str],
) -> List[str]:
    """Join the site folders of a venv, of the user and of the system, as ``site.main`` does."""
    if not _sees_system(configuration):
        return list(own)
    with_user = user and not machine.environment.get("PYTHONNOUSERSITE")
    return [*own, *([user] if with_user else []), *system]


def _in_image(machine: Machine) -> Interpreter:
    """Find the interpreter of an unpacked image by the folders that images use.

    Nothing is started. One that has torch is taken before the others.
    """
    if machine.python is not None:
        executable = find_executable(machine, machine.python)
        if executable is None:
            return Interpreter(
                source=machine.python, trouble=f"no interpreter at {machine.python} in the image"
            )
        return _from_layout(machine, executable, f"layout of {executable}")
    best: Optional[Interpreter] = None
    for candidate in _image_interpreters(machine):
        if any(
            machine.exists(_join(folder, "torch/version.py")) for folder in candidate.search_path
        ):
            return candidate
        best = best or candidate
    return best or Interpreter(
        source="layout of the image", trouble="no Python interpreter was found in the image"
    )


def _image_interpreters(machine: Machine) -> Iterator[Interpreter]:
    for prefix in _image_prefixes(machine):
        for version in _versions_below(machine, prefix):
            executables = filter(machine.exists, _executables(prefix, version))
            executable = next(executables, "")
            if not executable and prefix in ("/usr", "/usr/local"):
                continue  # Debian keeps folders of Pythons that are not installed
            executable = executable or _join(prefix, "bin/python3")
            yield _from_layout(machine, executable, f"layout of {prefix}", version)


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
    own: List[str] = []
    if configuration is None:
        prefix, named = _prefix_and_version(machine, executable)
        version = version or named
        base = prefix
    else:
        prefix = _two_up(executable)
        base = _base_of(configuration) or prefix
        version = version or _newest_below(machine, prefix)
        own = _known_sites(prefix, version)
    user = _user_site(machine, version)
    sites = _site_folders(machine, configuration, own, user, _known_sites(base, version))
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
        environment=_environment_kind(machine, prefix, configuration),
        system_site=configuration is not None and _sees_system(configuration),
        user_site=user,
        source=source,
        unexecuted=unexecuted,
        trouble="" if full else f"{source} does not show which Python it is",
    )


def _base_of(configuration: Dict[str, str]) -> str:
    """The prefix of the interpreter from which a venv was made."""
    home = configuration.get("home", "").rstrip("/")
    return configuration.get("base-prefix") or os.path.dirname(home)


def _two_up(executable: str) -> str:
    return os.path.dirname(os.path.dirname(executable)) or "/"


def _prefix_and_version(machine: Machine, executable: str) -> Tuple[str, str]:
    """Where an interpreter outside of a venv has its library, and its minor version."""
    prefix = _two_up(executable)
    # /usr/bin/python3 may be a link; the file that it names tells the prefix where its own folder
    # has no library.
    target = machine.realpath(executable)
    if target and not _versions_below(machine, prefix):
        prefix = _two_up(target)
    match = re.search(r"python(\d+\.\d+)", os.path.basename(target or executable))
    return prefix, match.group(1) if match else _newest_below(machine, prefix)


def _newest_below(machine: Machine, prefix: str) -> str:
    return next(iter(_versions_below(machine, prefix)), "")


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
    sites = [_join(prefix, f"{lib}/python{version}/site-packages") for lib in ("lib", "lib64")]
    if prefix != "/usr":
        return sites
    return [
        f"/usr/local/lib/python{version}/dist-packages",
        f"/usr/local/lib/python{version}/site-packages",
        f"/usr/local/lib64/python{version}/site-packages",
        *sites,
        "/usr/lib/python3/dist-packages",
        f"/usr/lib/python{version}/dist-packages",
    ]


def _full_version(machine: Machine, base: str, minor: str, configuration: Dict[str, str]) -> str:
    """The version with its patch number where a file tells it, else the minor."""
    for key in ("version_info", "version"):
        match = re.match(_PATCH, configuration.get(key, ""))
        if match:
            return match.group()
    if not minor:
        return ""
    return (
        _version_of_headers(machine, base, minor)
        or _version_of_conda(machine, base, minor)
        or _version_of_program(machine, base, minor)
        or minor
    )


_PATCH = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"


def _version_of_headers(machine: Machine, base: str, minor: str) -> str:
    path = _join(base, f"include/python{minor}/patchlevel.h")
    text = machine.read_text(path, _TEXT_LIMIT) or ""
    match = re.search(rf'#define\s+PY_VERSION\s+"({_PATCH})', text)
    return match.group(1) if match else ""


def _version_of_conda(machine: Machine, base: str, minor: str) -> str:
    for name in machine.listdir(_join(base, "conda-meta")) or ():
        match = re.match(r"python-(\d+\.\d+\.\d+)-", name)
        if match and match.group(1).startswith(minor + "."):
            return match.group(1)
    return ""


def _version_of_program(machine: Machine, base: str, minor: str) -> str:
    """The version among the strings of the program or of its library."""
    text = re.escape(minor).encode() + rb"\.\d{1,3}(?:(?:a|b|rc)\d+)?"
    for name in (f"bin/python{minor}", f"lib/libpython{minor}.so.1.0"):
        path = _join(base, name)
        data = machine.read_bytes(machine.realpath(path) or path, 64 << 20) or b""
        match = re.search(rb"\0(" + text + rb")\+?\0", data)
        if match:
            return match.group(1).decode()
    return ""


# Files


def _configuration(machine: Machine, executable: str) -> Optional[Dict[str, str]]:
    """The pyvenv.cfg beside an interpreter or one folder up, as site.venv() looks; or None."""
    folder = os.path.dirname(executable)
    for place in (folder, os.path.dirname(folder)):
        path = _join(place, "pyvenv.cfg")
        machine.packages += (path,)
        text = machine.read_text(path, _TEXT_LIMIT)
        if text is not None:
            return parse_pyvenv(text)
    return None


def parse_pyvenv(text: str) -> Dict[str, str]:
    """Parse the ``key = value`` lines of pyvenv.cfg, keys in lower case; pass over the rest."""
    settings: Dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and key.strip():
            settings[key.strip().lower()] = value.strip()
    return settings


def parse_pth(text: str) -> Tuple[List[str], int]:
    """Return the paths that a ``.pth`` file adds, and how many lines would run code.

    Those are not run.
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
    """PYTHONPATH, then each site folder with what its .pth files add, as site.addsitedir orders.

    The number is that of the .pth lines that would run code.
    """
    seen = set()
    folders: List[str] = []
    code = 0

    def add(path: str, is_folder: Callable[[Machine, str], bool] = Machine.isdir) -> bool:
        # Debian's lib64 -> lib: one folder under two names is one entry.
        real = machine.realpath(path) or path
        machine.packages += (path,)
        if real in seen or not is_folder(machine, path):
            return False
        seen.add(real)
        folders.append(path)
        return True

    for entry in filter(None, machine.environment.get("PYTHONPATH", "").split(":")):
        add(os.path.abspath(entry) if _is_here(machine) else _join("/", entry))
    for site in sites:
        if add(site, _is_site):
            for text in _pth_files(machine, site):
                paths, lines = parse_pth(text)
                code += lines
                for path in paths:
                    add(os.path.normpath(os.path.join(site, path)))
    return tuple(folders), code


def _pth_files(machine: Machine, site: str) -> Iterator[str]:
    for name in listing(machine, site) or ():
        if name.endswith(".pth") and not name.startswith("."):
            yield machine.read_text(_join(site, name), _TEXT_LIMIT) or ""


def _environment_kind(
    machine: Machine, prefix: str, configuration: Optional[Dict[str, str]]
) -> str:
    """Name the kind of environment; ``configuration`` is None outside of a venv."""
    if configuration is not None:
        return "uv" if "uv" in configuration else "venv"
    if machine.exists(_join(prefix, "conda-meta")):
        return "conda"
    return "system" if prefix in ("/usr", "/usr/local", "/") else "unknown"


def _join(folder: str, name: str) -> str:
    return os.path.join(folder, name)


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("interpreter", probe_interpreter, FIELDS_HERE, isolated=False, deadline=_DEADLINE + 1.0),
)
