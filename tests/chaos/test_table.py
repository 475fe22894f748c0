"""Every condition of the chaos table, under each policy and in each way to install: the job runs as
it does without envdoctor, or is refused as the policy says.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import shutil
import subprocess
import time

import pytest

from ..entrypoint.conftest import environment as variables
from ..entrypoint.conftest import write_lock
from ..entrypoint.test_guard import make_environment, shells
from ..fuse import SILENT, mounted
from .condition import BUILDS, POLICIES
from .conditions import CONDITIONS, FAST
from .conftest import PROPERTY, fits

LIMIT_S = 30
SCRIPT = "envdoctor-entrypoint"


def cells():
    for condition in CONDITIONS:
        for build in condition.builds:
            marks = [] if (condition.name, build) in FAST else [pytest.mark.slow]
            yield pytest.param(condition, build, marks=marks, id=f"{condition.name}-{build}")


class Workshop:
    """The environments that conditions damage, one of each build, and where they are copied."""

    def __init__(self, folder, pyz):
        self.folder = folder
        self._pyz = pyz
        self.shells = shells(folder)
        self.good = write_lock(folder / "good", "numpy==1.26.4", roots=["numpy"])
        self.bad = write_lock(folder / "bad", "vllm==0.6.3", roots=["vllm"])

    @functools.cache  # noqa: B019 - as long as the tests
    def template(self, build):
        """Make an environment with three packages; return its folder."""
        place = self.folder / build.replace(" ", "-")
        place.mkdir()
        environment = make_environment(place / "env")
        site = site_of(environment)
        for name, version in (("numpy", "1.26.4"), ("click", "8.1.7"), ("attic", "1.0")):
            info = site / f"{name}-{version}.dist-info"
            info.mkdir()
            text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            (info / "METADATA").write_text(text)
            # A baseline holds whole seconds, as archives of images do: a condition that is set up
            # in the second of the installation would change nothing that it compares.
            os.utime(info, (time.time() - 60,) * 2)
        if build == "baked":
            bake = [str(environment / "bin" / "envdoctor"), "bake"]
            subprocess.run(bake, env=variables(PYTHONPATH=None), check=True, capture_output=True)
        if build == "pyz":
            for path in (site / "envdoctor", site / "packaging", environment / "bin" / SCRIPT):
                path.unlink()
            (environment / "bin" / "envdoctor").unlink()
            tool = place / "tool" / "envdoctor"
            tool.parent.mkdir()
            built = self._pyz()
            shutil.copy(built, tool)
            shutil.copy(built.with_name(SCRIPT), tool.parent)
        return place

    def copy(self, build, place):
        """Copy an environment; what names its folder names the copy."""
        source = self.template(build)
        shutil.copytree(source, place, symlinks=True)
        for path in ("env/bin/envdoctor", "env/share/envdoctor/baseline.json"):
            with contextlib.suppress(FileNotFoundError):
                text = (place / path).read_text()
                (place / path).write_text(text.replace(str(source), str(place)))
        return place


def site_of(environment):
    return next((environment / "lib").glob("python*/site-packages"))


@pytest.fixture(scope="module")
def workshop(tmp_path_factory, prerequisite, request):
    prerequisite(os.geteuid() == 0, "mounts, other users and namespaces need root")
    prerequisite(not os.path.exists("/proc/driver/nvidia"), "a machine without a driver")
    pyz = functools.partial(request.getfixturevalue, "pyz")
    return Workshop(tmp_path_factory.mktemp("chaos"), pyz)


@pytest.fixture
def texts(workshop, tmp_path, request):
    """Return the function that fills in the places of a condition."""
    with contextlib.ExitStack() as stack:

        def fill(condition, build):
            here = tmp_path / "here"
            here.mkdir()
            damaged = condition.setup or "@ENV@" in condition.mounts
            root = workshop.copy(build, tmp_path / "own") if damaged else workshop.template(build)
            places = {
                "ENV": root / "env",
                "SITE": site_of(root / "env"),
                "TOOL": root / ("tool" if build == "pyz" else "env/bin"),
                "HERE": here,
                "GOOD": workshop.good,
                "BAD": workshop.bad,
            }
            for name, enter in (("FULL", full), ("EIO", broken), ("SILENT", silent)):
                if f"@{name}@" in repr(condition):
                    places[name] = stack.enter_context(enter(tmp_path / name.lower()))
            return lambda text: functools.reduce(
                lambda text, name: text.replace(f"@{name}@", str(places[name])), places, text
            )

        yield fill


@contextlib.contextmanager
def full(place):
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"full", os.fsencode(place), b"tmpfs", 0, b"size=4k"):
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        with contextlib.suppress(OSError), open(place / "filler", "wb") as file:
            file.write(bytes(8192))
        yield place
    finally:
        libc.umount2(os.fsencode(place), 2)


def broken(place):
    return mirror(place, errno.EIO)


def silent(place):
    return mirror(place, SILENT)


@contextlib.contextmanager
def mirror(place, fault):
    place.mkdir()
    source = place.with_name(f"{place.name}-source")
    source.mkdir()
    (source / "file").write_text("x")
    # A fault of the top itself would keep the kernel from mounting it.
    with mounted(source, place, {"": fault}):
        yield place


def start(condition, words, variables, fill):
    """Start words as the condition says; return exit code, output and what was said."""
    command = ["/bin/sh", "-c", f'{fill(condition.shell) or ":"}\nexec "$@"', "sh", *words]
    command = [*condition.wrap.split(), *command]
    if condition.mounts:
        prepare = f'set -e; {fill(condition.mounts)}; exec "$@"'
        command = ["unshare", "-m", "/bin/sh", "-c", prepare, "sh", *command]
    process = subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        output, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "hangs", b"", ""
    return process.returncode, output, errors.decode("utf-8", "replace")


def policy_words(condition, policy):
    """Return the options and variables that state a policy."""
    text = condition.spelling[policy != "warn"]
    strict = ["--strict"] if policy == "strict" else []
    if condition.by_variable:
        return strict, {"ENVDOCTOR_POLICY": text}
    return ["--policy", text, *strict], {}


def state_of(done, bare):
    """Return what became of a start: "runs", its exit code, or what is neither."""
    code, output, _ = done
    if bare is not None and (code, output) == bare[:2]:
        return "runs"
    return str(code) if not output else f"{code} with output {output[:40]!r}"


@pytest.mark.parametrize(("condition", "build"), list(cells()))
def test_condition(condition, build, workshop, texts, prerequisite, record_property):
    fill = texts(condition, build)
    if condition.interpreter in ("dash", "bash", "busybox"):
        name = "ash" if condition.interpreter == "busybox" else condition.interpreter
        prerequisite(name in workshop.shells, f"{condition.interpreter}")
        shell = [workshop.shells[name]]
    else:
        shell = [condition.interpreter] if condition.interpreter else []
    if condition.setup:
        subprocess.run(["sh", "-c", fill(condition.setup)], check=True, timeout=60)
    changes = {name: value and fill(value) for name, value in condition.variables.items()}
    search = f"{fill('@ENV@')}/bin:{os.environ['PATH']}" if build == "pyz" else os.environ["PATH"]
    script = [*shell, fill(f"@TOOL@/{SCRIPT}")]
    letters = condition.expected
    if not isinstance(letters, str):
        letters = letters.get(build, letters[""])
    bare = None
    job = condition.words[condition.words[:1] == ("--",) :]
    if job:
        bare = start(
            condition, job, variables(**{"PYTHONPATH": None, "PATH": search, **changes}), fill
        )
        prerequisite(
            not (condition.mounts or condition.wrap.startswith("unshare")) or bare[0] == 7,
            f"{condition.wrap or 'mounts'}: {bare[2][:100]}",
        )
    seen, faults = [], []
    for policy, letter in zip(POLICIES, letters):
        words, stated = policy_words(condition, policy)
        words = [*script, *words, *map(fill, condition.options), *condition.words]
        environment = variables(**{"PYTHONPATH": None, "PATH": search, **stated, **changes})
        done = start(condition, words, environment, fill)
        state = state_of(done, bare)
        is_unjudged = state == "runs" and "no verdict" in done[2]
        is_lost = policy == "warn" and letter == "r" and state != "runs"
        is_waved = policy == "strict" and (
            (letter in "xnu" and state == "runs") or (letter == "e" and is_unjudged)
        )
        seen.append((policy, letter, state, is_lost, is_waved))
        if is_lost or is_waved or not fits(letter, state) or "Traceback" in done[2]:
            faults.append(f"{policy}: {state}, expected {letter}: {done[2][-400:]}")
    record_property(PROPERTY, (condition.name, build, seen))
    assert not faults, "\n".join(faults)


def test_the_table_is_whole():
    """Each condition has a letter for each policy."""
    assert len(CONDITIONS) >= 250
    for condition in CONDITIONS:
        letters = condition.expected
        for text in [letters] if isinstance(letters, str) else letters.values():
            assert len(text) == len(POLICIES), condition.name
            assert set(text) <= set("rxnue"), condition.name
        assert set(condition.builds) <= set(BUILDS)
    assert len({(c.name, b) for c in CONDITIONS for b in c.builds} & FAST) == len(FAST)
