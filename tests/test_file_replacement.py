"""Files are written whole or not at all, and no planted link leads root elsewhere."""

import ast
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from envdoctor import file_replacement
from envdoctor.errors import InputError
from envdoctor.file_replacement import create_file, open_growing, replace_file, stage_file

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_bytes(b"precious")
    path.chmod(0o640)
    return path


@pytest.fixture
def shared(tmp_path):
    """A folder as /tmp is one: everybody writes there."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def plant(link, victim):
    """Leave a link, as another user where this is root."""
    link.symlink_to(victim)
    if os.geteuid() == 0:
        os.lchown(link, 65534, 65534)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_in_the_place_is_replaced_and_not_followed(shared, victim, dangling):
    target = victim.with_name("not-there") if dangling else victim
    plant(shared / "report.json", target)
    replace_file(str(shared / "report.json"), b"new")
    assert not (shared / "report.json").is_symlink()
    assert (shared / "report.json").read_bytes() == b"new"
    assert victim.read_bytes() == b"precious"
    assert not (dangling and target.exists())


def test_a_link_at_a_name_that_was_guessed_is_refused(shared, victim, monkeypatch):
    monkeypatch.setattr(file_replacement.os, "urandom", lambda count: bytes(count))
    (guess,) = {file_replacement.name_beside(str(shared / "report.json")) for _ in range(2)}
    plant(Path(guess), victim)
    for write in (replace_file, stage_file):
        with pytest.raises(FileExistsError):
            write(str(shared / "report.json"), b"new")
    with pytest.raises(FileExistsError):
        create_file(guess)
    assert victim.read_bytes() == b"precious"
    assert names(shared) == [os.path.basename(guess)]


def test_names_are_never_the_same(tmp_path):
    assert len({file_replacement.name_beside(str(tmp_path / "x")) for _ in range(100)}) == 100


def test_mode_and_owner_stay(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o604)
    root = os.geteuid() == 0
    if root:
        os.chown(path, 1234, 4321)
    replace_file(str(path), b"new")
    status = path.stat()
    assert (path.read_bytes(), stat.S_IMODE(status.st_mode)) == (b"new", 0o604)
    assert not root or (status.st_uid, status.st_gid) == (1234, 4321)


def test_a_new_file_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(str(tmp_path / "plain"), b"")
        replace_file(str(tmp_path / "run"), b"", mode=0o777)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o750


@pytest.mark.parametrize("name", ["fsync", "replace", "fchmod"])
def test_a_fault_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_bytes(b"old")

    def fail(*_):
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(file_replacement.os, name, fail)
    with pytest.raises(OSError, match="Input/output error"):
        replace_file(str(tmp_path / "file"), b"new")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    replace_file(str(pipe), b"x" * 100_000)
    reader.join(10)
    assert read == [b"x" * 100_000]
    assert names(tmp_path) == ["pipe"]


def test_standard_output_by_its_name_stays_a_device(tmp_path):
    """With a file behind it, /dev/stdout leads to a regular file; it must not be replaced by
    one.
    """
    done = tmp_path / "out"
    code = "from envdoctor.file_replacement import replace_file as r; r('/dev/stdout', b'new\\n')"
    with open(done, "wb") as file:
        before = os.readlink("/dev/stdout")
        subprocess.run([sys.executable, "-c", code], check=True, stdout=file, cwd=ROOT)
    assert done.read_bytes() == b"new\n"
    assert os.readlink("/dev/stdout") == before


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path), b"")
    assert names(tmp_path) == []


def test_what_grows_is_no_link_either(shared, victim):
    plant(shared / "curve.csv", victim)
    with open_growing(str(shared / "curve.csv")) as file:
        file.write("a\n")
        file.flush()
        assert (shared / "curve.csv").read_bytes() == b"a\n"
    assert victim.read_bytes() == b"precious"
    with open_growing(str(shared / "curve.csv")) as file:
        file.write("b\n")
    assert (shared / "curve.csv").read_bytes() == b"b\n"


def test_each_way_to_name_an_output_goes_through_it(shared, victim):
    """The report of ``-o``, that of the entrypoint, the files of a lock."""
    from envdoctor.cli.lock import _write_all
    from envdoctor.cli.output import write_file
    from envdoctor.entrypoint.verdict import write_report

    for name in ("a.json", "b.json", "uv.toml"):
        plant(shared / name, victim)
    write_file(str(shared / "a.json"), "\ud800")
    assert write_report(str(shared / "b.json"), "{}") == ""
    _write_all(str(shared), {"uv.toml": "x = 1\n"}, set())
    assert victim.read_bytes() == b"precious"
    assert [(shared / name).read_bytes() for name in names(shared)] == [
        b"\\ud800",
        b"{}\n",
        b"x = 1\n",
    ]
    with pytest.raises(InputError, match="cannot be written"):
        write_file(str(shared / "nowhere" / "a.json"), "")


def _writes(tree):
    """Yield what writes files in a module: renames, and ``open`` with a mode that writes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("os.replace", "os.rename", "shutil.move", "shutil.copyfile"):
            yield called
        modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
        if called == "open" and any(
            isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wa+") for mode in modes
        ):
            yield called
        if called.endswith((".write_text", ".write_bytes", ".open")) and called != "os.open":
            yield from (called for mode in node.args[:1] if ast.unparse(mode) in ("'w'", "'wb'"))
            if not called.endswith(".open"):
                yield called


#: Renames of what replace_file made, of links and of folders; a kernel in the folder of its trial,
#: whose process has no envdoctor.
ALLOWED = {
    "cli/lock.py": ["os.replace"],
    "fix/environment_snapshot.py": ["os.replace"],
    "matrix/update/installation.py": ["os.rename", "os.replace"],
    "prove/trials.py": ["open"],
}


def test_nothing_else_writes_files():
    package = ROOT / "envdoctor"
    writes = {
        str(path.relative_to(package)): sorted(_writes(ast.parse(path.read_text())))
        for path in package.rglob("*.py")
        if path.name != "file_replacement.py"
    }
    assert {name: calls for name, calls in writes.items() if calls} == ALLOWED


def test_no_script_moves_files_of_its_own():
    scripts = [path for path in (ROOT / "scripts").rglob("*") if path.is_file()]
    moving = [
        path.name
        for path in scripts
        if b"python" in path.read_bytes()[:64] or path.suffix == ".py"
        for call in _writes(ast.parse(path.read_text()))
        if call.startswith(("os.", "shutil."))
    ]
    assert moving == []
