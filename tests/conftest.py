"""Which tests run: the fast ones; with --slow all; with --slow-sample a seeded share of the slow
ones too.
"""

import fcntl
import gc
import importlib.util
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from envdoctor.matrix import loader
from envdoctor.matrix.compiled_files import CompiledFiles, read_core
from envdoctor.matrix.folder import EXTRAS
from envdoctor.matrix.source import write_compiled

from .cli.forked import ROOT, ForkServer

#: So many tests of a file go to a process of pytest-xdist at once.
_HANDFUL = 8


def pytest_addoption(parser):
    group = parser.getgroup("envdoctor")
    group.addoption("--slow", action="store_true", help="run the slow tests too")
    group.addoption(
        "--slow-sample",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="run this share of the slow tests, 0..1",
    )
    group.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden outputs anew; read the difference before you commit it",
    )
    group.addoption("--seed", default="0", help="which slow tests --slow-sample takes")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # once, not in each process of pytest-xdist
        _compile_matrix()
    # A machine with other work on it takes longer than the 200 ms that an example may take.
    settings.register_profile("envdoctor", deadline=None)
    settings.load_profile("envdoctor")
    # As the command itself does: nearly nothing that is made here is garbage in a cycle.
    gc.set_threshold(100_000)
    # What a developer has installed with 'envdoctor matrix update' is not what is tested.
    os.environ["ENVDOCTOR_HOME"] = "/nonexistent"
    # What crashes in a test leaves nothing in the checkout; see the fixture folder_for_cores.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # A shell starts what it puts into the background with these ignored, and children would inherit
    # that.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def _compile_matrix():
    """Compile ``matrices/`` where it has changed: a new row is tested as an install has it."""
    core = read_core(loader._COMPILED)
    source = loader.builtin_folder()
    files = CompiledFiles(loader._COMPILED, (), source)
    if source and (
        core is None
        or not loader._is_fresh(source)
        or any(files._changed_source(name) for name in EXTRAS.values())
    ):
        write_compiled(source, loader._COMPILED, times=True)


def pytest_report_header(config):
    share = config.getoption("--slow-sample")
    if config.getoption("--slow"):
        return "slow tests: all"
    return (
        f"slow tests: a sample of {share:.0%}, seed {config.getoption('--seed')}"
        if share
        else "slow tests: none (--slow)"
    )


def pytest_collection_finish(session):
    """Thousands of tests stay to the end: no collection looks through them again."""
    gc.collect()
    gc.freeze()


#: What is sampled by itself, and how much of the share. The rows of the chaos table are three times
#: as many as all the rest; of the storm each commit has its part, so that its starts add up.
_SHARES = {"chaos/test_table": 0.1, "entrypoint/test_storm": 1}


def pytest_collection_modifyitems(config, items):
    for item in items if config.pluginmanager.hasplugin("xdist") else ():
        group = _group_of(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    if config.getoption("--slow"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    share, generator = config.getoption("--slow-sample"), random.Random(config.getoption("--seed"))
    pools = {place: [item for item in slow if place in item.nodeid] for place in _SHARES}
    pools[""] = [item for item in slow if not any(place in item.nodeid for place in _SHARES)]
    taken = {
        item
        for place, pool in pools.items()
        # The seed alone decides, not the order of collection.
        for item in generator.sample(
            sorted(pool, key=lambda item: item.nodeid),
            round(len(pool) * share * _SHARES.get(place, 1)),
        )
    }
    left = [item for item in slow if item not in taken]
    if left:
        config.hook.pytest_deselected(items=left)
        dropped = set(left)
        items[:] = [item for item in items if item not in dropped]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Hand out tests of a file by the handful: pytest-xdist looks through all that it handed out
    each time that a test ends, and for ten thousand tests that is 3 s in which the others wait.
    """
    from xdist.scheduler import LoadGroupScheduling

    class Handfuls(LoadGroupScheduling):
        def __init__(self):
            super().__init__(config, log)
            self._handful_of = {}
            self._tests_of = Counter()

        def _split_scope(self, nodeid):
            """Return the name of the unit of work that a test is in."""
            scope = super()._split_scope(nodeid)
            if scope != nodeid:  # tests that share a process: _group_of
                return scope
            if nodeid not in self._handful_of:
                path = nodeid.partition("::")[0]
                self._handful_of[nodeid] = f"{path} {self._tests_of[path] // _HANDFUL}"
                self._tests_of[path] += 1
            return self._handful_of[nodeid]

    return Handfuls() if config.getvalue("dist") == "loadgroup" else None


def _group_of(item):
    """Return the name under which a test shares a process with others (``--dist loadgroup``).

    Daemons, images and installed environments that a module makes are made once.
    """
    path = item.nodeid.partition("::")[0]
    if path.startswith("tests/containers/"):
        return "containers"
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    return path if any(definitions[-1].scope == "module" for definitions in fixtures) else None


@pytest.fixture
def folder_for_cores(tmp_path, monkeypatch):
    """The working directory of a test, where a process that crashes would write a core file."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    folder = tmp_path / "cores"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield folder
    resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.fixture(scope="session")
def prerequisite():
    """Return a function that ends a test whose prerequisite is missing: failed in CI, skipped
    elsewhere.
    """

    def require(present, reason):
        if not present:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(
                f"prerequisite missing: {reason}"
            )

    return require


@pytest.fixture(scope="session")
def torch_python(prerequisite):
    """An interpreter with a torch for CPUs: $ENVDOCTOR_TORCH_PYTHON, or the system's own.

    No wheel on the default index will do: those for x86_64 are CUDA's, 3 GB with what they need.
    """
    python = os.environ.get("ENVDOCTOR_TORCH_PYTHON", "/usr/bin/python3")
    search = "import sys, importlib.util as u; sys.exit(not u.find_spec('torch'))"
    is_there = os.path.exists(python) and subprocess.run([python, "-c", search]).returncode == 0
    prerequisite(is_there, f"torch of {python} (apt install python3-torch)")
    return python


@pytest.fixture(scope="session")
def environment_with_pip():
    """Return a function that makes a virtual environment with pip in a folder.

    ``venv`` unpacks and compiles pip, which costs seconds: the one of the tests is copied.
    """
    packages, scripts = (Path(sysconfig.get_path(name)) for name in ("purelib", "scripts"))

    def make(folder):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        for part in (packages / "pip", *packages.glob("pip-*.dist-info")):
            shutil.copytree(part, site / part.name)
        for script in scripts.glob("pip*"):  # each begins with the path of its interpreter
            copy = folder / "bin" / script.name
            first, _, rest = script.read_text().partition("\n")
            assert first.startswith("#!")
            copy.write_text(f"#!{folder}/bin/python\n{rest}")
            copy.chmod(0o755)

    return make


@pytest.fixture(scope="session")
def pyz(tmp_path_factory):
    """Return an envdoctor.pyz, which is built once for all processes of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / "pyz" / "envdoctor.pyz"
    path.parent.mkdir(exist_ok=True)
    with open(folder / "pyz.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            build = [sys.executable, str(ROOT / "scripts" / "build_pyz"), "--output", str(path)]
            subprocess.run(build, check=True, capture_output=True, timeout=300)
    return path


@pytest.fixture(scope="session")
def run_pip():
    """Return a function that runs pip as ``subprocess.run`` would, in a fork of a process that has
    imported it: to start and import costs more than most answers.
    """
    server = ForkServer("tests.forked_pip")

    def run(*arguments, env=None, cwd="/"):
        done = server.run([*map(str, arguments)], env or dict(os.environ), cwd, None, 120)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    yield run
    server.close()


@pytest.fixture(scope="session")
def nvcc(prerequisite):
    """Return the path of a real nvcc: the one on PATH, else that of NVIDIA's wheel."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    found = shutil.which("nvcc") or next(
        (str(path) for folder in folders for path in sorted(Path(folder).glob("cu*/bin/nvcc"))),
        None,
    )
    prerequisite(found, "nvcc (pip install nvidia-cuda-nvcc)")
    return found
