"""Commands name the environment that was judged."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.model.calls import InstallerCall, OwnCall, parse_call, reinstall
from envdoctor.model.evidence import Evidence, Known, Unknown
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.finding import Finding, Remedy
from envdoctor.rules.addressing import addressed, addressed_remedies, judged_interpreter

HERE = Evidence("test")


def environment(python="/opt/my env/bin/python", *names, whole=True):
    return Facts(
        {
            "python.executable": Known(python, HERE),
            "distributions.complete": Known(True, HERE) if whole else Unknown("a file"),
            "distributions": Known({name: Distribution(name, "1") for name in names}, HERE),
        }
    )


def command(call, *nodes):
    finding = Finding("ED302", "x", "missing", "error", "x", remedies=(Remedy("x", (call,)),))
    (found,) = addressed([finding], nodes)
    return str(found.remedies[0].commands[0])


WITH_PIP = environment("/opt/my env/bin/python", "pip")
WITHOUT = environment("/opt/my env/bin/python")
INSTALL, FIX = InstallerCall("install", ("a",)), OwnCall("fix", ("--lock", "lk"))


@pytest.mark.parametrize(
    ("call", "with_pip", "without"),
    [
        (
            InstallerCall("install", ("a>=1",)),
            "'/opt/my env/bin/python' -m pip install 'a>=1'",
            "uv pip install --python '/opt/my env/bin/python' 'a>=1'",
        ),
        (
            reinstall("a")._replace(variables=(("X", "1"),)),
            "X=1 '/opt/my env/bin/python' -m pip install --force-reinstall --no-deps a",
            "X=1 uv pip install --python '/opt/my env/bin/python' --force-reinstall --no-deps a",
        ),
        (
            InstallerCall("uninstall", ("a",)),
            "'/opt/my env/bin/python' -m pip uninstall --yes a",
            "uv pip uninstall --python '/opt/my env/bin/python' a",
        ),
        (
            parse_call("pip check"),
            "'/opt/my env/bin/python' -m pip check",
            "uv pip check --python '/opt/my env/bin/python'",
        ),
        (
            FIX,
            "envdoctor fix --python '/opt/my env/bin/python' --lock lk",
            "envdoctor fix --python '/opt/my env/bin/python' --lock lk",
        ),
        ("export PIP=pip", "export PIP=pip", "export PIP=pip"),
        ("/usr/bin/pip list", "/usr/bin/pip list", "/usr/bin/pip list"),
    ],
)
def test_known_environment(call, with_pip, without):
    assert command(call, WITH_PIP) == with_pip
    assert command(call, WITHOUT) == without


@pytest.mark.parametrize(
    "nodes",
    [
        (Facts(),),
        (environment(whole=False),),
        (WITH_PIP, environment("/other/bin/python", "pip")),
    ],
)
def test_unknown_or_differing_environments_get_no_name(nodes):
    assert command(INSTALL, *nodes) == "python -m pip install a"
    assert command(FIX, *nodes) == "envdoctor fix --lock lk"


def test_nodes_that_agree_have_one():
    assert command(INSTALL, WITH_PIP, WITH_PIP).startswith("'/opt/my env/bin/python' -m")


def test_a_file_is_no_environment():
    assert judged_interpreter(environment(whole=False)) is None
    assert judged_interpreter(WITH_PIP) == "/opt/my env/bin/python"


def test_pip_itself_takes_the_command_for_its_own_environment():
    pytest.importorskip("pip")
    printed = command(
        InstallerCall("install", ("pip",), ("--dry-run", "--no-index")),
        environment(sys.executable, "pip"),
    )
    done = subprocess.run(shlex.split(printed), capture_output=True, text=True, check=False)
    prefix = subprocess.run(
        [*shlex.split(printed)[:3], "--version"], capture_output=True, text=True, check=False
    ).stdout
    assert done.returncode == 0, done.stderr
    assert str(Path(sys.prefix)) in prefix


@pytest.mark.parametrize(
    ("platform", "name"), [("win32", "triton-windows>=3.2,<3.3"), ("linux", "triton>=3.2,<3.3")]
)
def test_what_an_index_has_under_another_name_for_a_platform(platform, name):
    facts = Facts({"os.platform": Known(platform, Evidence("report"))})
    call = InstallerCall("install", ("triton>=3.2,<3.3",))
    (remedy,) = addressed_remedies((Remedy("Install it.", (call,)),), [facts])
    assert remedy.commands[0].packages == (name,)


@pytest.mark.parametrize("requirement", ["triton==3.2.0", "triton>=2.0,<3.1", "triton<=2.3.1"])
def test_no_release_is_named_that_the_other_package_never_had(requirement):
    """The releases of triton-windows are 3.1.0.post17 and later post-releases."""
    facts = Facts({"os.platform": Known("win32", Evidence("report"))})
    call = InstallerCall("install", (requirement,))
    assert addressed_remedies((Remedy("Install it.", (call,)),), [facts]) == ()


def test_only_the_whole_name_is_another():
    facts = Facts({"os.platform": Known("win32", Evidence("report"))})
    call = InstallerCall("install", ("triton-kernels", "tritonclient"))
    (remedy,) = addressed_remedies((Remedy("Install it.", (call,)),), [facts])
    assert remedy.commands[0].packages == ("triton-kernels", "tritonclient")
