"""Changes of real environments by the real uv and pip: all or nothing, whatever comes in
between.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, NamedTuple, Optional

import pytest

from envdoctor.errors import InputError
from envdoctor.fix import environment_snapshot
from envdoctor.fix.environment_change import (
    ChangeFailed,
    Environment,
    apply_plan,
    inspect,
    roll_back,
    unfinished,
)
from envdoctor.model.change import Change, Plan
from envdoctor.model.resolution import Reason

from ..lock.closing.wheels import (
    find_uv,
    make_environment,
    make_plain_environment,
    make_wheel,
    offline,
    tree,
)

BEFORE = (("alpha", "1.0"), ("beta", "1.0"), ("gamma", "1.0"))
DEADLINE = 60.0


class Bench(NamedTuple):
    """An environment, the folder of wheels, and how everything lay before."""

    environment: Environment
    wheels: Path
    before: Mapping[str, object]

    @property
    def prefix(self) -> Path:
        return Path(self.environment.prefix)

    def versions(self) -> Mapping[str, str]:
        """The installed versions, as the file system has them."""
        (site,) = self.prefix.glob("lib/python*/site-packages")
        return dict(
            path.name[: -len(".dist-info")].split("-")
            for path in site.glob("*.dist-info")
            if not path.name.startswith(("pip-", "setuptools-"))
        )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return _bench(tmp_path, monkeypatch)


def _bench(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None] = make_plain_environment,
) -> Bench:
    wheels = folder / "wheels"
    first = [make_wheel(wheels, name, version) for name, version in BEFORE]
    make_wheel(wheels, "alpha", "2.0", files={"alpha/new.py": "x = 1\n"})
    make_wheel(wheels, "beta", "2.0", ["delta>=1"])
    make_wheel(wheels, "delta", "1.0")
    python = make_environment(folder / "environment", first, make)
    for name, value in offline(wheels).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_NO_COMPILE", "1")
    environment = inspect(str(python))
    return Bench(environment, wheels, tree(Path(environment.prefix)))


def _change(
    name: str, before: Optional[str], after: Optional[str], kind: str = "upgrade", **more: object
) -> Change:
    return Change(name, before, after, kind, Reason("row", "because"), **more)  # type: ignore[arg-type]


GOOD = Plan(
    (
        _change("alpha", "1.0", "2.0"),
        _change("beta", "1.0", "2.0"),
        _change("gamma", "1.0", None, "remove"),
    ),
    (),
)
#: The first two steps go well, the last cannot.
BAD = Plan((*GOOD.changes, _change("missing", None, "9.9", "install", from_source=True)), ())


def test_uv_makes_the_changes(bench: Bench) -> None:
    apply_plan(GOOD, bench.environment, lambda: (), {}, installer=find_uv())
    assert bench.versions() == {"alpha": "2.0", "beta": "2.0", "delta": "1.0"}
    assert not (bench.prefix / environment_snapshot.FOLDER).exists()
    assert unfinished(bench.environment) is None


def test_pip_makes_the_changes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment_with_pip: Callable[[Path], None],
) -> None:
    bench = _bench(tmp_path, monkeypatch, environment_with_pip)
    assert bench.environment.pip
    apply_plan(GOOD, bench.environment, lambda: (), {}, installer="")
    assert bench.versions() == {"alpha": "2.0", "beta": "2.0", "delta": "1.0"}
    with pytest.raises(ChangeFailed, match=r"missing==9\.9"):
        apply_plan(
            Plan((_change("delta", "1.0", None, "remove"), BAD.changes[-1]), ()),
            bench.environment,
            lambda: (),
            {},
            installer="",
        )
    assert bench.versions() == {"alpha": "2.0", "beta": "2.0", "delta": "1.0"}


def test_a_step_that_fails_changes_nothing(bench: Bench) -> None:
    with pytest.raises(ChangeFailed, match="is as it was") as failed:
        apply_plan(BAD, bench.environment, lambda: (), {}, installer=find_uv())
    assert failed.value.exit_code == 1
    assert tree(bench.prefix) == bench.before


def test_a_verification_that_fails_changes_nothing(bench: Bench) -> None:
    def verify() -> List[str]:
        assert bench.versions()["alpha"] == "2.0"
        return ["ED304 torch is not what it should be"]

    with pytest.raises(ChangeFailed, match="ED304"):
        apply_plan(GOOD, bench.environment, verify, {}, installer=find_uv())
    assert tree(bench.prefix) == bench.before


def test_a_fault_of_ours_changes_nothing(bench: Bench) -> None:
    def verify() -> List[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        apply_plan(GOOD, bench.environment, verify, {}, installer=find_uv())
    assert tree(bench.prefix) == bench.before


# --------------------------------------------------------------------------------------------------
# signals

CHILD = """
import os, sys, time
from envdoctor.fix.environment_change import ChangeFailed, apply_plan, inspect
from tests.fix.test_environment_change import GOOD

def verify():
    open(os.environ["MARKS"] + "/verify", "w").close()
    time.sleep(float(os.environ.get("SLEEP_VERIFY", "0")))
    return ()

try:
    apply_plan(GOOD, inspect(sys.argv[1]), verify, {"freeze": ["alpha==1.0"]}, installer=sys.argv[2])
except ChangeFailed as error:
    print(error)
    sys.exit(1)
"""

#: Runs the real uv, says how far it is, and takes its time before or after.
INSTALLER = """\
#!/bin/sh
: > "$MARKS/before-$2"
[ "$STOP" != "before-$2" ] || sleep 30
"$UV" "$@"
: > "$MARKS/after-$2"
[ "$STOP" != "after-$2" ] || sleep 30
"""

POINTS = ("before-uninstall", "after-uninstall", "before-install", "after-install", "verify")


class Running(NamedTuple):
    process: subprocess.Popen[str]
    marks: Path


@pytest.fixture
def started(bench: Bench, tmp_path: Path) -> Iterator[List[Running]]:
    running: List[Running] = []
    yield running
    for entry in running:
        entry.process.kill()
        entry.process.wait()


def _start(bench: Bench, tmp_path: Path, stop: str) -> Running:
    """Apply the plan in a process of its own that stops at a point for long enough to be hit
    there.
    """
    marks = tmp_path / "marks"
    marks.mkdir()
    installer = tmp_path / "slow-uv"
    installer.write_text(INSTALLER)
    installer.chmod(0o755)
    environment = {
        **os.environ,
        "MARKS": str(marks),
        "STOP": stop,
        "UV": find_uv(),
        "SLEEP_VERIFY": "30" if stop == "verify" else "0",
    }
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(CHILD),
        bench.environment.python,
        str(installer),
    ]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    end = time.monotonic() + DEADLINE
    while not (marks / stop).exists():
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        assert time.monotonic() < end, f"never came to {stop}"
        time.sleep(0.02)
    return Running(process, marks)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_interrupted_anywhere(
    bench: Bench, tmp_path: Path, started: List[Running], point: str, number: signal.Signals
) -> None:
    running = _start(bench, tmp_path, point)
    started.append(running)
    running.process.send_signal(number)
    out, _ = running.process.communicate(timeout=DEADLINE)
    assert running.process.returncode == 1
    assert f"interrupted by {number.name}" in out
    assert tree(bench.prefix) == bench.before
    assert unfinished(bench.environment) is None


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere(bench: Bench, tmp_path: Path, started: List[Running], point: str) -> None:
    """What kill -9 leaves is told, refuses further changes, and is rolled back; an installer that
    outlives us holds the lock.
    """
    running = _start(bench, tmp_path, point)
    started.append(running)
    running.process.kill()
    running.process.communicate(timeout=DEADLINE) if point == "verify" else running.process.wait()
    left = unfinished(bench.environment)
    assert left is not None
    assert left["freeze"] == ["alpha==1.0"]
    if point != "verify":
        with pytest.raises(InputError, match="under way"):
            roll_back(bench.environment)
        _end_orphans(tmp_path / "slow-uv")
    with pytest.raises(InputError, match="cut off"):
        apply_plan(GOOD, bench.environment, lambda: (), {}, installer=find_uv())
    assert "is as it was" in roll_back(bench.environment)
    assert tree(bench.prefix) == bench.before
    with pytest.raises(InputError, match="no unfinished change"):
        roll_back(bench.environment)


def _end_orphans(script: Path) -> None:
    """End the installer that this test started, with its sleep: they are one session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(script).encode() in command:
                os.killpg(int(entry.name), signal.SIGKILL)
    time.sleep(0.2)


def test_restore_that_is_cut_off_can_be_run_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop after every possible number of steps of the restore: the next one comes to the same
    end.
    """
    prefix = str(bench.prefix)
    for stop in (0, 1, 2, 5, 9):
        environment_snapshot.take_snapshot(prefix, [prefix], {})
        subprocess.run(
            [
                find_uv(),
                "pip",
                "install",
                "--python",
                bench.environment.python,
                "alpha==2.0",
                "beta==2.0",
            ],
            check=True,
            capture_output=True,
        )
        assert tree(bench.prefix) != bench.before
        calls = 0
        real = os.replace

        def cut(source: str, target: str, *, stop: int = stop, real: object = real) -> None:
            nonlocal calls
            calls += 1
            if calls > stop:
                raise KeyboardInterrupt
            real(source, target)  # type: ignore[operator]

        with monkeypatch.context() as patched:
            patched.setattr(environment_snapshot.os, "replace", cut)
            with pytest.raises(KeyboardInterrupt):
                environment_snapshot.restore_snapshot(prefix)
        environment_snapshot.restore_snapshot(prefix)
        environment_snapshot.discard_snapshot(prefix)
        assert tree(bench.prefix) == bench.before


@pytest.mark.parametrize("name", ["state.json", "files.json"])
@pytest.mark.parametrize("text", ["{", "[[]]", "5", '{"folders": 3}', "[" * 3000])
def test_a_damaged_snapshot_is_an_unfinished_change(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "file").write_text("x")
    environment_snapshot.take_snapshot(str(tmp_path), [str(tmp_path)], {})
    (tmp_path / environment_snapshot.FOLDER / name).write_text(text)
    assert environment_snapshot.read_state(str(tmp_path)) is not None
    with pytest.raises(OSError, match="damaged"):
        environment_snapshot.restore_snapshot(str(tmp_path))
    assert (tmp_path / "file").read_text() == "x"


def test_half_a_snapshot_is_none(bench: Bench) -> None:
    folder = bench.prefix / environment_snapshot.FOLDER
    (folder / "0" / "lib").mkdir(parents=True)
    assert unfinished(bench.environment) is None
    apply_plan(GOOD, bench.environment, lambda: (), {}, installer=find_uv())
    assert not folder.exists()


def test_a_file_that_was_written_in_place_is_named(bench: Bench) -> None:
    prefix = str(bench.prefix)
    (data,) = bench.prefix.glob("lib/python*/site-packages/alpha/data.bin")
    environment_snapshot.take_snapshot(prefix, [prefix], {})
    with open(data, "a") as file:
        file.write("more")
    assert environment_snapshot.restore_snapshot(prefix).lost == (str(data),)


# --------------------------------------------------------------------------------------------------
# refusals


def test_conda_is_refused(bench: Bench) -> None:
    (bench.prefix / "conda-meta").mkdir()
    with pytest.raises(InputError, match="conda"):
        inspect(bench.environment.python)


def test_the_system_is_refused(prerequisite: object) -> None:
    prerequisite(os.path.exists("/usr/bin/python3"), "a Python of the operating system")  # type: ignore[operator]
    with pytest.raises(InputError, match="externally managed"):
        inspect("/usr/bin/python3")


def test_what_cannot_be_written_is_refused(bench: Bench, prerequisite: object) -> None:
    """Root may write everywhere unless it lacks the capability to."""
    code = (
        "import sys\n"
        "from envdoctor.fix.environment_change import inspect\n"
        "from envdoctor.errors import InputError\n"
        "try: inspect(sys.argv[1])\n"
        "except InputError as error: print(error)\n"
    )
    bound = ["setpriv", "--bounding-set", "-dac_override"] if os.getuid() == 0 else []
    prerequisite(not bound or shutil.which("setpriv"), "setpriv of util-linux")  # type: ignore[operator]
    root = Path(__file__).resolve().parents[2]
    (site,) = bench.prefix.glob("lib/python*/site-packages")
    site.chmod(0o555)
    done = subprocess.run(
        [*bound, sys.executable, "-c", code, bench.environment.python],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    site.chmod(0o755)
    assert f"{site}: cannot be written" in done.stdout


def test_no_interpreter(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a Python interpreter"):
        inspect(str(tmp_path / "python"))
