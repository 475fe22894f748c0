"""Updates with real archives, a real TLS server and real kills: what serves is the old matrix or
the new one, whole.
"""

import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix import compiled, loader, place
from envdoctor.matrix.source import write_compiled
from envdoctor.matrix.update.installation import open_archive, rollback, update
from envdoctor.model.redaction import redact

from ..folders import FAR, row_text, small_matrix
from .conftest import DAYS, OLD, generations, make, refused, serving

pytestmark = pytest.mark.usefixtures("home")

MATRICES = Path(__file__).resolve().parents[3] / "matrices"


# --------------------------------------------------------------------------------------------------
# what works


@pytest.mark.parametrize("form", ["tar", "zip"])
@pytest.mark.parametrize("prefix", ["", "matrices"])
def test_install_and_go_back(tmp_path, home, form, prefix):
    assert serving() == "old-torch"
    done = update(str(make(tmp_path, form=form, prefix=prefix)))
    assert done.changed
    assert (done.before.date, done.now.date) == ("2026-11-01", DAYS[0])
    assert serving() == "new-row"
    assert loader.load_matrix().origin.startswith(str(home))
    assert rollback().changed
    assert serving() == "old-torch"
    with pytest.raises(InputError, match="no update to take back"):
        rollback()


def test_the_previous_one_is_kept_and_only_that(tmp_path, home):
    for number, date in enumerate(DAYS):
        update(str(make(tmp_path, date, row=f"row-{number}")))
    assert len(generations(home)) == 2
    assert serving() == "row-2"
    rollback()
    assert serving() == "row-1"
    rollback()  # row-0 is gone, so it is the built-in one
    assert serving() == "old-torch"


def test_the_same_again_changes_nothing(tmp_path, home):
    path = str(make(tmp_path))
    update(path)
    before = generations(home)
    done = update(path)
    assert (done.changed, done.message) == (False, "This matrix is installed already")
    assert generations(home) == before


def test_after_a_rollback_the_same_archive_installs_again(tmp_path, home):
    path = str(make(tmp_path))
    update(path)
    rollback()
    assert update(path).changed
    assert serving() == "new-row"
    assert len(generations(home)) == 1


def test_file_addresses_and_a_digest_from_elsewhere(tmp_path):
    path = make(tmp_path, beside=False)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert update(path.as_uri(), digest.upper()).changed


def test_an_archive_can_be_looked_at(tmp_path, home):
    with open_archive(str(make(tmp_path))) as matrix:
        assert matrix.row("new-row").title == "Row new-row"
    assert not home.exists()


# --------------------------------------------------------------------------------------------------
# which one serves


def test_a_newer_built_in_matrix_serves(tmp_path, monkeypatch):
    update(str(make(tmp_path)))
    write_compiled(
        str(small_matrix(tmp_path / "next", row_text("built-in-row", OLD, date=DAYS[1]))),
        str(tmp_path / "next-compiled"),
        times=False,
    )
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "next-compiled"))
    assert serving() == "built-in-row"
    monkeypatch.setattr(loader, "_SOURCE", str(tmp_path / "next"))  # a checkout of that date
    assert serving() == "built-in-row"


def test_in_a_checkout_the_newer_one_serves_too(tmp_path, monkeypatch):
    monkeypatch.setattr(loader, "_SOURCE", str(tmp_path / "built-in"))
    assert serving() == "old-torch"
    update(str(make(tmp_path)))
    assert serving() == "new-row"


def test_another_format_is_passed_over(tmp_path, monkeypatch):
    update(str(make(tmp_path)))
    monkeypatch.setattr(compiled, "FORMAT", compiled.FORMAT + 1)
    write_compiled(str(tmp_path / "built-in"), str(tmp_path / "built-in-compiled"), times=False)
    assert serving() == "old-torch"


@pytest.mark.parametrize(
    "damage",
    [
        "empty core",
        "no core",
        "link to nowhere",
        "link to elsewhere",
        "link is a file",
        "other date",
    ],
)
def test_a_damaged_update_is_passed_over(tmp_path, home, damage):
    update(str(make(tmp_path)))
    generation = place.current()
    core = os.path.join(generation.path, "core.json")
    if damage == "empty core":
        open(core, "w").close()
    elif damage == "no core":
        os.unlink(core)
    elif damage == "other date":
        with open(core) as file:
            text = file.read()
        with open(core, "w") as file:
            file.write(text.replace(DAYS[0], DAYS[1]))
    else:
        os.unlink(home / "current")
        if damage == "link is a file":
            (home / "current").write_text(generation.name)
        else:
            os.symlink(
                "2027-01-01.f1.000000000000.0"
                if damage == "link to nowhere"
                else f"../matrix/{generation.name}",
                home / "current",
            )
    assert serving() == "old-torch"
    # and it can be put right
    assert update(str(make(tmp_path, DAYS[1], row="mended"))).changed
    assert serving() == "mended"


def test_looking_costs_one_readlink(home, monkeypatch):
    touched = []
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: (touched.append(path), real(path))[1])
    for name in ("stat", "lstat", "listdir", "scandir", "access"):
        function = getattr(os, name)
        monkeypatch.setattr(
            os,
            name,
            lambda path=".", *rest, _function=function, **more: (
                touched.append(path),
                _function(path, *rest, **more),
            )[1],
        )
    loader.load_matrix()
    assert [path for path in map(str, touched) if str(home) in path] == [str(home / "current")]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"ENVDOCTOR_HOME": "/a", "XDG_DATA_HOME": "/b", "HOME": "/c"}, "/a/matrix"),
        ({"XDG_DATA_HOME": "/b", "HOME": "/c"}, "/b/envdoctor/matrix"),
        ({"XDG_DATA_HOME": "b", "HOME": "/c"}, "/c/.local/share/envdoctor/matrix"),
        ({"HOME": "/c"}, "/c/.local/share/envdoctor/matrix"),
        ({"ENVDOCTOR_HOME": "a", "HOME": "/c"}, None),
        ({"HOME": ""}, None),
        ({}, None),
    ],
)
def test_the_place(environment, expected):
    assert place.folder(environment) == expected


def test_no_place(tmp_path):
    path = str(make(tmp_path))
    with pytest.raises(InputError, match="set ENVDOCTOR_HOME to a folder"):
        update(path, environment={})
    with pytest.raises(InputError, match="ENVDOCTOR_HOME=here: expected an absolute path"):
        update(path, environment={"ENVDOCTOR_HOME": "here"})
    with pytest.raises(InputError, match="cannot be written"):
        update(path, environment={"ENVDOCTOR_HOME": "/proc/nowhere"})


# --------------------------------------------------------------------------------------------------
# what is refused


def test_digests(tmp_path, home):
    path = make(tmp_path)
    update(str(path))  # something that must not be lost
    other = make(tmp_path, DAYS[1], row="other", beside=False)
    refused(home, other, "a digest is needed: give --sha256")
    refused(home, other, "expected 64 hexadecimal digits", "12")
    refused(home, other, "expected sha256 " + "0" * 64, "0" * 64)
    beside = other.with_name(other.name + ".sha256")
    for text in ("", "no digest\n", "0" * 64 + "  another.tar.gz\n", "0" * 63 + "\n", "\x00\xff"):
        beside.write_text(text)
        refused(home, other, "as sha256sum writes it")
    beside.write_text("0" * 64 + "\n")
    refused(home, other, "expected sha256")
    listed = hashlib.sha256(other.read_bytes()).hexdigest()
    with pytest.raises(InputError) as caught:
        update(str(other))
    assert f"found sha256 {listed}" in redact(str(caught.value))  # as the command prints it
    beside.write_text(f"{'0' * 64}  another.tar.gz\n{listed} *{other.name}\n")
    assert update(str(other)).changed


def test_dates(tmp_path, home):
    refused(
        home,
        make(tmp_path, "2026-11-01", row="older"),
        "not newer than the built-in matrix of 2026-11-01",
    )
    refused(home, make(tmp_path, FAR, row="future"), "has not come yet")
    update(str(make(tmp_path, DAYS[1], row="installed")))
    refused(
        home, make(tmp_path, DAYS[0], row="between"), f"older than the installed one of {DAYS[1]}"
    )


def test_rows_that_do_not_load_are_all_named(tmp_path, home):
    folder = small_matrix(
        tmp_path / "matrices",
        row_text("bad", '{ env = "torch", in = "2.x" }', date=DAYS[0], kind="odd"),
    )
    (folder / "packages" / "torch.json").write_text("{")
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.add(folder, "matrices")
    message = refused(
        home,
        tmp_path / "bad.tar.gz",
        "3 faults in the matrix",
        hashlib.sha256((tmp_path / "bad.tar.gz").read_bytes()).hexdigest(),
    )
    assert "errata/x.toml: row 'bad'" in message
    assert "packages/torch.json" in message


@pytest.mark.parametrize(
    "source",
    [
        "http://localhost/x.tar.gz",
        "ftp://localhost/x.tar.gz",
        "data://x",
        "file://elsewhere/x.tar.gz",
    ],
)
def test_other_addresses(home, source):
    refused(home, source, "expected", "0" * 64)


# --------------------------------------------------------------------------------------------------
# online


@pytest.fixture(scope="module")
def authority(tmp_path_factory, prerequisite):
    """A certificate for localhost that vouches for itself."""
    prerequisite(shutil.which("openssl"), "openssl")
    folder = tmp_path_factory.mktemp("tls")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-days",
        "2",
    ]
    subprocess.run(
        [*command, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def server(tmp_path, authority, monkeypatch):
    """An https server of ``tmp_path``; /to/X redirects to X, /cut/X ends before it is whole."""
    requested = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, *_):
            pass

        def do_GET(self):
            requested.append(self.path)
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", self.path[4:])
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif self.path.startswith("/cut/"):
                content = (tmp_path / self.path[5:]).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            else:
                super().do_GET()

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    made.socket = context.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority / "cert.pem"))
    made.requested = requested
    made.address = f"https://localhost:{made.server_port}"
    yield made
    made.shutdown()
    made.server_close()


def test_https(tmp_path, server):
    path = make(tmp_path)
    done = update(f"{server.address}/{path.name}")
    assert "not who made it" in done.note
    assert serving() == "new-row"
    assert server.requested == [f"/{path.name}", f"/{path.name}.sha256"]
    with open(os.path.join(place.current().path, "origin.json")) as file:
        assert json.load(file)["source"] == f"{server.address}/{path.name}"


def test_no_credentials_are_kept(tmp_path, server):
    path = make(tmp_path)
    address = server.address.replace("https://", "https://user:secret@")
    update(f"{address}/{path.name}")
    with open(os.path.join(place.current().path, "origin.json")) as file:
        assert json.load(file)["source"] == f"{server.address.replace('//', '//***@')}/{path.name}"


def test_https_with_a_digest_from_elsewhere_and_a_redirect(tmp_path, server):
    path = make(tmp_path, beside=False)
    done = update(
        f"{server.address}/to//{path.name}", hashlib.sha256(path.read_bytes()).hexdigest()
    )
    assert (done.changed, done.note) == (True, "")


def test_https_refusals(tmp_path, home, server, monkeypatch):
    path = make(tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    refused(home, f"{server.address}/none.tar.gz", "the server says 404", digest)
    refused(home, f"{server.address}/cut/{path.name}", "/cut/", digest)
    refused(
        home,
        f"{server.address}/to/http://localhost/{path.name}",
        "expected https all the way",
        digest,
    )
    refused(home, f"{server.address}/to/file:///etc/passwd", "expected https all the way", digest)
    refused(home, f"{server.address}{'/to/' * 8}{path.name}", "more than 5 redirects", digest)
    refused(home, "https://localhost:1/x.tar.gz", "cannot be read", digest)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    refused(home, f"{server.address}/{path.name}", "CERTIFICATE_VERIFY_FAILED", digest)


def test_a_file_never_goes_online(tmp_path):
    path = make(tmp_path)
    program = (
        "import sys\n"
        "def hook(name, arguments):\n"
        "    if name.startswith('socket.'): raise SystemExit(f'went online: {name}')\n"
        "sys.addaudithook(hook)\n"
        "from envdoctor.matrix.update.installation import update\n"
        "try: update(sys.argv[1])\n"
        "except Exception as error: print(error)\n"
        "print('requests' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout.splitlines()[-1] == "False"


# --------------------------------------------------------------------------------------------------
# killed


def run_until(step, path):
    """Update in a child that kills itself with SIGKILL at the ``step``-th file operation; return
    whether it was killed.
    """
    child = os.fork()
    if child == 0:
        count = [0]

        def hook(name, arguments):
            if name in (
                "open",
                "os.mkdir",
                "os.rename",
                "os.symlink",
                "os.remove",
                "os.rmdir",
                "shutil.rmtree",
            ):
                count[0] += 1
                if count[0] >= step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        code = 1
        try:
            update(path)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.skipif(sys.version_info < (3, 9), reason="audit events of os")
def test_killed_at_any_step_leaves_old_or_new(tmp_path, home):
    update(str(make(tmp_path, DAYS[0], row="old")))
    path = str(make(tmp_path, DAYS[1], row="new"))
    saved = tmp_path / "saved"
    shutil.copytree(home, saved, symlinks=True)
    low, high = 1, 4096  # how many operations an update takes
    while low < high:
        middle = (low + high) // 2
        restore(home, saved)
        if run_until(middle, path):
            low = middle + 1
        else:
            high = middle
    last = low - 1
    assert 20 < last < 4000
    steps = {*range(max(1, last - 9), last + 1), *random.Random(0).sample(range(1, last), 6)}
    outcomes = []
    for step in sorted(steps):
        restore(home, saved)
        assert run_until(step, path)
        outcomes.append(serving())
        assert outcomes[-1] in ("old", "new")
        # what the killed run left is in nobody's way
        update(path)
        assert serving() == "new"
        assert len(generations(home)) == 2
        rollback()
        assert serving() == "old"
    assert outcomes[0] == "old"
    assert outcomes[-1] == "new"
    assert outcomes == sorted(outcomes, reverse=True)


def restore(home, saved):
    shutil.rmtree(home)
    shutil.copytree(saved, home, symlinks=True)


def test_two_at_once(tmp_path, home):
    import fcntl

    path = make(tmp_path)
    home.mkdir(parents=True)
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another update is under way"):
            update(str(path))
    assert update(str(path)).changed


def test_a_full_disk_changes_nothing(tmp_path, prerequisite):
    """On a file system with room for one matrix there is none for two."""
    prerequisite(
        os.geteuid() == 0 and shutil.which("unshare"), "root and unshare, for a small tmpfs"
    )
    folder = tmp_path / "small"
    folder.mkdir()
    first, second = make(tmp_path, DAYS[0], row="old"), make(tmp_path, DAYS[1], row="new")
    update(str(first))
    used = sum(entry.lstat().st_size // 4096 + 1 for entry in (tmp_path / "home").rglob("*")) * 4
    program = (
        "import sys\n"
        "from envdoctor.matrix import loader\n"
        "loader._SOURCE, loader._COMPILED = '/nonexistent', sys.argv[3]\n"
        "import envdoctor.matrix.update.installation as module\n"
        "module.time.gmtime = lambda *_: (2027, 4, 1, 0, 0, 0, 3, 91, 0)\n"
        "from envdoctor.errors import InputError\n"
        "module.update(sys.argv[1])\n"
        "try: module.update(sys.argv[2])\n"
        "except InputError as error: print(error)\n"
        "print([row.id for row in loader.load_matrix().rows() if row.origin != 'derived'])\n"
    )
    command = (
        f'mount -t tmpfs -o size={used * 3 // 2}k none "{folder}" && exec "{sys.executable}" '
        '-c "$0" "$@"'
    )
    environment = {
        **os.environ,
        "ENVDOCTOR_HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    arguments = [str(first), str(second), str(tmp_path / "built-in-compiled")]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, program, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    prerequisite("mount" not in done.stderr, f"a mount namespace: {done.stderr[:200]}")
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stdout
    assert done.stdout.splitlines()[-1] == "['old']"
