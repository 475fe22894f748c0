"""Reading below a root: every path and every link stays inside; nothing blocks; sizes are
limited.
"""

import errno
import os
import shutil
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.probes.isolation import run_isolated
from envdoctor.probes.machine import Machine


@pytest.fixture
def root(tmp_path):
    (tmp_path / "outside").write_text("outside")
    root = tmp_path / "root"
    (root / "etc" / "deep").mkdir(parents=True)
    (root / "etc" / "file").write_text("inside")
    return root


@pytest.mark.parametrize(
    "target",
    [
        "/etc/file",
        "../etc/file",
        "../../../../../etc/file",
        "/etc/deep/../file",
        "deep/../file",
        "/../../etc/file",
        "./file",
        "//etc///file",
    ],
)
def test_links_stay_inside(root, target):
    (root / "etc" / "link").symlink_to(target)
    machine = Machine(str(root))
    assert machine.read_text("/etc/link") == "inside"
    assert machine.realpath("/etc/link") == "/etc/file"
    assert machine.path("/etc/link") == str(root / "etc" / "file")


@pytest.mark.parametrize(
    "path", ["/../outside", "/etc/../../outside", "/etc/deep/../../../outside", "../outside"]
)
def test_no_path_leaves_the_root(root, path):
    machine = Machine(str(root))
    assert machine.read_text(path) is None
    assert not machine.exists(path)


def test_linked_folders_and_absolute_links_to_the_host(root):
    (root / "lib").symlink_to("usr/lib")
    (root / "usr" / "lib").mkdir(parents=True)
    (root / "usr" / "lib" / "x").write_text("x")
    (root / "shadow").symlink_to(root.parent / "outside")
    machine = Machine(str(root))
    assert machine.read_text("/lib/x") == "x"
    assert machine.listdir("/lib") == ["x"]
    assert machine.read_text("/shadow") is None
    assert machine.readlink("/lib") == "usr/lib"


def test_loops_of_links_end(root):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "self").symlink_to("self/self")
    machine = Machine(str(root))
    for path in ("/a", "/self", "/a/x"):
        assert machine.read_text(path) is None
        assert not machine.exists(path)
        assert machine.listdir(path) is None


def test_only_regular_files_are_read(root):
    os.mkfifo(root / "fifo")
    machine = Machine(str(root))
    start = time.monotonic()
    assert machine.try_read("/fifo") == (None, "not a regular file")
    assert machine.try_read("/etc") == (None, f"EISDIR: {os.strerror(errno.EISDIR)}")
    assert Machine().try_read("/dev/zero") == (None, "not a regular file")
    assert machine.try_read("/nothing") == (None, "ENOENT: No such file or directory")
    assert machine.read_text("/with\0null") is None
    assert time.monotonic() - start < 1


def test_limits(root):
    (root / "big").write_bytes(b"x" * 5000)
    assert Machine(str(root)).read_bytes("/big", 100) == b"x" * 100
    assert Machine(str(root)).read_bytes("/big", 0) == b""


def test_environment_of_a_folder_is_empty(root, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/x")
    assert Machine(str(root)).environment == {}
    assert Machine().environment["LD_LIBRARY_PATH"] == "/x"


def test_permission_denied(prerequisite):
    prerequisite(os.geteuid() == 0, "root, to become another user")
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)

    def body():
        os.setuid(65534)
        return repr(Machine().try_read(path)).encode()

    try:
        assert run_isolated(body, 5).text == "(None, 'EACCES: Permission denied')"
    finally:
        os.unlink(path)


_PARTS = st.sampled_from(["a", "b", "c", "..", ".", "", "/a", "/b/c", "../..", "c/../a"])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(_PARTS, st.lists(_PARTS, max_size=4)), max_size=5),
    st.lists(_PARTS, min_size=1, max_size=5),
)
def test_resolution_agrees_with_the_kernel(tmp_path_factory, links, wanted):
    """The oracle is chroot: the kernel resolves the same path inside the root."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    root = tmp_path_factory.mktemp("root")
    for folder in ("a", "b", "b/c", "c"):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "file").write_text(folder)
    for number, (place, target) in enumerate(links):
        host = root / "abc"[number % 3] / f"l{number}"
        text = "/".join([place, *target]) or "."
        os.symlink(text, host)
    names = [f"/{'abc'[number % 3]}/l{number}" for number in range(len(links))]
    paths = [
        "/" + "/".join(wanted) + "/file",
        *(f"{name}/{'/'.join(wanted)}/file" for name in names),
    ]
    machine = Machine(str(root))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.chroot(root)
            os.chdir("/")
            for path in paths:
                try:
                    with open(path) as file:
                        os.write(writer, file.read().encode() + b"\n")
                except OSError:  # noqa: PERF203
                    os.write(writer, b"-\n")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        expected = file.read().split("\n")[:-1]
    os.waitpid(pid, 0)
    assert [machine.read_text(path) or "-" for path in paths] == expected
    shutil.rmtree(root)
