"""Updates with real archives, a real TLS server and real kills: what serves is the old matrix or the new one, whole."""

import hashlib
import http.server
import io
import json
import os
import random
import shutil
import signal
import ssl
import stat
import struct
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest

from envdoctor.actions import matrix_archive
from envdoctor.actions.matrix_update import open_archive, rollback, update
from envdoctor.errors import InputError
from envdoctor.matrix import compiled, loader, place
from envdoctor.matrix.source import write_compiled

from ..matrix.folders import FAR, row_text, small_matrix

DAYS = ["2027-01-01", "2027-02-01", "2027-03-01"]
OLD = '{ env = "torch", in = "<2.6" }'


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own, a built-in matrix of November 2026, and a clock that stands in April 2027."""
    for name in (
        "XDG_DATA_HOME",
        "HOME",
        "ENVDOCTOR_MATRIX",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENVDOCTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    write_compiled(str(small_matrix(tmp_path / "built-in")), str(tmp_path / "built-in-compiled"), times=False)
    monkeypatch.setattr(loader, "_SOURCE", str(tmp_path / "nowhere"))
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "built-in-compiled"))
    import envdoctor.actions.matrix_update as module

    class Clock:
        monotonic = staticmethod(module.time.monotonic)
        strftime = staticmethod(module.time.strftime)
        gmtime = staticmethod(lambda *_: (2027, 4, 1, 0, 0, 0, 3, 91, 0))
        time = staticmethod(lambda: 0.0)

    monkeypatch.setattr(module, "time", Clock)
    return tmp_path / "home" / "matrix"


def make(tmp_path, date=DAYS[0], row="new-row", form="tar", beside=True, prefix="", **options):
    """Make an archive of a small matrix, with its digest beside it as sha256sum writes it."""
    folder = small_matrix(tmp_path / f"{row}-{date}-{form}", row_text(row, OLD, date=date), **options)
    path = tmp_path / f"{row}-{date}.{'tar.gz' if form == 'tar' else 'zip'}"
    if form == "tar":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, prefix or ".")
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in sorted(folder.rglob("*")):
                archive.write(entry, os.path.join(prefix, entry.relative_to(folder)))
    if beside:
        subprocess.run(f"sha256sum {path.name} > {path.name}.sha256", cwd=tmp_path, shell=True, check=True)
    return path


def serving():
    """The row that the matrix that serves now was made with."""
    matrix = loader.load_matrix()
    rows = [row for row in matrix.rows() if row.origin != "derived"]
    assert len(rows) == 1
    assert [matrix.package(name).versions for name in matrix.package_names]
    return rows[0].id


def generations(home):
    return sorted(entry.name for entry in home.iterdir() if entry.name not in ("lock", "current"))


# ---------------------------------------------------------------------------------------------------------------- what works


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


def test_an_archive_as_the_documentation_makes_it(tmp_path):
    small_matrix(tmp_path / "matrices", row_text("new-row", OLD, date=DAYS[0]))
    subprocess.run("tar czf matrix.tar.gz matrices && sha256sum matrix.tar.gz > matrix.tar.gz.sha256", cwd=tmp_path, shell=True, check=True)
    assert update(str(tmp_path / "matrix.tar.gz")).changed
    assert serving() == "new-row"


def test_an_archive_can_be_looked_at(tmp_path, home):
    with open_archive(str(make(tmp_path))) as matrix:
        assert matrix.row("new-row").title == "Row new-row"
    assert not home.exists()


# ---------------------------------------------------------------------------------------------------------------- which one serves


def test_a_newer_built_in_matrix_serves(tmp_path, monkeypatch):
    update(str(make(tmp_path)))
    write_compiled(str(small_matrix(tmp_path / "next", row_text("built-in-row", OLD, date=DAYS[1]))), str(tmp_path / "next-compiled"), times=False)
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


@pytest.mark.parametrize("damage", ["empty core", "no core", "link to nowhere", "link to elsewhere", "link is a file", "other date"])
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
            os.symlink("2027-01-01.f1.000000000000.0" if damage == "link to nowhere" else f"../matrix/{generation.name}", home / "current")
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
        monkeypatch.setattr(os, name, lambda path=".", *rest, _function=function, **more: (touched.append(path), _function(path, *rest, **more))[1])
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


# ---------------------------------------------------------------------------------------------------------------- what is refused


def refused(home, source, words, sha256=None):
    """Expect a refusal that says these words, and that everything is as it was."""
    before = (serving(), generations(home) if home.exists() else [])
    with pytest.raises(InputError) as caught:
        update(str(source), sha256)
    assert words in str(caught.value)
    assert (serving(), generations(home) if home.exists() else []) == before
    return str(caught.value)


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
    beside.write_text(f"{'0' * 64}  another.tar.gz\n{listed} *{other.name}\n")
    assert update(str(other)).changed


def test_dates(tmp_path, home):
    refused(home, make(tmp_path, "2026-11-01", row="older"), "not newer than the built-in matrix of 2026-11-01")
    refused(home, make(tmp_path, FAR, row="future"), "has not come yet")
    update(str(make(tmp_path, DAYS[1], row="installed")))
    refused(home, make(tmp_path, DAYS[0], row="between"), f"older than the installed one of {DAYS[1]}")


def test_rows_that_do_not_load_are_all_named(tmp_path, home):
    folder = small_matrix(tmp_path / "matrices", row_text("bad", '{ env = "torch", in = "2.x" }', date=DAYS[0], kind="odd"))
    (folder / "packages" / "torch.json").write_text("{")
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.add(folder, "matrices")
    message = refused(home, tmp_path / "bad.tar.gz", "3 faults in the matrix", hashlib.sha256((tmp_path / "bad.tar.gz").read_bytes()).hexdigest())
    assert "errata/x.toml: row 'bad'" in message
    assert "packages/torch.json" in message


@pytest.mark.parametrize("source", ["http://localhost/x.tar.gz", "ftp://localhost/x.tar.gz", "data://x", "file://elsewhere/x.tar.gz"])
def test_other_addresses(home, source):
    refused(home, source, "expected", "0" * 64)


def test_what_is_no_archive(tmp_path, home):
    refused(home, tmp_path / "none.tar.gz", "cannot be read: No such file", "0" * 64)
    refused(home, tmp_path, "expected a .tar.gz or .zip, found a folder", "0" * 64)
    good = make(tmp_path).read_bytes()
    zipped = make(tmp_path, form="zip").read_bytes()
    stray = b"".join([good[:400], bytes([good[400] ^ 255]), good[401:]])
    for name, content in {
        "empty": b"",
        "text": b"hello",
        "cut": good[: len(good) // 2],
        "tail": good[:-6],
        "flipped": stray,
        "cut.zip": zipped[: len(zipped) // 2],
        "head.zip": zipped[:4],
        "gzip of nothing": __import__("gzip").compress(b""),
        "gzip of text": __import__("gzip").compress(b"x" * 5000),
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        refused(home, path, path.name.replace(" ", "_"), hashlib.sha256(content).hexdigest())


def tar_with(tmp_path, entries):
    """A tar archive of a good matrix and these further members."""
    folder = small_matrix(tmp_path / "good", row_text("hostile", OLD, date=DAYS[0]))
    path = tmp_path / "hostile.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, "matrices")
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def member(name, kind=tarfile.REGTYPE, target="", **headers):
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.linkname = target
    entry.pax_headers = headers
    return entry


HOSTILE_TAR = {
    "absolute": (member("/etc/cron.d/x.toml"), "an absolute path"),
    "parent": (member("matrices/../../x.toml"), "a path that leaves the archive"),
    "parent inside": (member("matrices/errata/../x.toml"), "a path that leaves the archive"),
    "parent by pax": (member("x.toml", path="../../x.toml"), "a path that leaves the archive"),
    "symlink": (member("matrices/errata/y.toml", tarfile.SYMTYPE, "/etc/passwd"), "a link"),
    "symlinked folder": (member("matrices/errata2", tarfile.SYMTYPE, "/etc"), "a link"),
    "hard link": (member("matrices/errata/y.toml", tarfile.LNKTYPE, "matrices/gpus.toml"), "a link"),
    "device": (member("matrices/errata/y.toml", tarfile.CHRTYPE), "a device"),
    "fifo": (member("matrices/errata/y.toml", tarfile.FIFOTYPE), "a device, a pipe"),
    "backslash": (member("matrices\\..\\x.toml"), "a path of another system"),
    "drive": (member("C:/x.toml"), "a path of another system"),
    "program": (member("matrices/run.sh"), "no name of a file of a matrices folder"),
    "python": (member("matrices/errata/x.py"), "no name of a file of a matrices folder"),
    "hidden": (member("matrices/.git.toml"), "no name of a file of a matrices folder"),
    "deep": (member("matrices/a/b/x.toml"), "no name of a file of a matrices folder"),
    "control": (member("matrices/errata/\x1b[31m.toml"), "no name of a file of a matrices folder"),
    "latin": (member("matrices/errata/\udce9.toml"), "no name of a file of a matrices folder"),
    "another folder": (member("elsewhere/matrices/x.toml"), "no name of a file of a matrices folder"),
    "twice": (member("matrices/gpus.toml"), "stands twice"),
    "package of another name": (member("matrices/packages/numpy.json"), "packages/numpy.json"),
}


@pytest.mark.parametrize("name", HOSTILE_TAR)
def test_hostile_tar(tmp_path, home, name):
    entry, words = HOSTILE_TAR[name]
    content = b"" if entry.type in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE) else b"{}"
    path = tar_with(tmp_path, [(entry, content)])
    message = refused(home, path, words, hashlib.sha256(path.read_bytes()).hexdigest())
    last = (entry.pax_headers.get("path") or entry.name).rsplit("/", 1)[-1]
    assert last in message or repr(last)[1:-1] in message
    assert not (tmp_path / "x.toml").exists()
    assert not os.path.lexists("/etc/cron.d/x.toml")


def write_zip(tmp_path, entries):
    folder = small_matrix(tmp_path / "good", row_text("hostile", OLD, date=DAYS[0]))
    path = tmp_path / "hostile.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in sorted(folder.rglob("*")):
            archive.write(entry, entry.relative_to(folder))
        for info, content in entries:
            archive.writestr(info, content)
    return path


def zipped(name, mode=0):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


HOSTILE_ZIP = {
    "absolute": (zipped("/etc/x.toml"), "an absolute path"),
    "parent": (zipped("../x.toml"), "a path that leaves the archive"),
    "backslash": (zipped("..\\x.toml"), "a path of another system"),
    "symlink": (zipped("errata/y.toml", stat.S_IFLNK | 0o777), "a link"),
    "device": (zipped("errata/y.toml", stat.S_IFCHR | 0o600), "a device"),
    "program": (zipped("setup.py"), "no name of a file of a matrices folder"),
}


@pytest.mark.parametrize("name", HOSTILE_ZIP)
def test_hostile_zip(tmp_path, home, name):
    info, words = HOSTILE_ZIP[name]
    path = write_zip(tmp_path, [(info, b"/etc/passwd")])
    refused(home, path, words, hashlib.sha256(path.read_bytes()).hexdigest())


def test_zip_with_a_null_in_a_name_or_encrypted(tmp_path, home):
    path = write_zip(tmp_path, [(zipped("errata/yy.toml"), b"x")])
    content = path.read_bytes()
    for changed, words in (
        (content.replace(b"errata/yy.toml", b"errata/y\x00.toml"), "another system"),
        (set_flag(content, b"errata/yy.toml"), "is encrypted"),
    ):
        path.write_bytes(changed)
        refused(home, path, words, hashlib.sha256(changed).hexdigest())


def set_flag(content, name):
    """Set the bit "encrypted" of a member in the central directory."""
    start = content.rindex(name) - 46
    assert content[start : start + 4] == b"PK\x01\x02"
    (flags,) = struct.unpack_from("<H", content, start + 8)
    return content[: start + 8] + struct.pack("<H", flags | 1) + content[start + 10 :]


def test_bombs(tmp_path, home, monkeypatch):
    monkeypatch.setattr(matrix_archive, "_LARGEST", 1 << 20)
    monkeypatch.setattr(matrix_archive, "_TOTAL", 4 << 20)
    big = b"0" * (1 << 20) + b"0"
    one = tar_with(tmp_path / "1", [(member("matrices/errata/big.toml"), big)])
    refused(home, one, "'matrices/errata/big.toml': too large", hashlib.sha256(one.read_bytes()).hexdigest())
    many = tar_with(tmp_path / "2", [(member(f"matrices/errata/{number}.toml"), big[:-2]) for number in range(6)])
    refused(home, many, "too large", hashlib.sha256(many.read_bytes()).hexdigest())
    one = write_zip(tmp_path / "3", [(zipped("errata/big.toml"), big)])
    refused(home, one, "'errata/big.toml': too large", hashlib.sha256(one.read_bytes()).hexdigest())
    # a header that says less than there is
    content = one.read_bytes()
    start = content.rindex(b"errata/big.toml") - 46
    lied = content[: start + 24] + struct.pack("<I", 5) + content[start + 28 :]
    one.write_bytes(lied)
    refused(home, one, "hostile.zip", hashlib.sha256(lied).hexdigest())
    # metadata of a tar that unpacks to more than everything may have
    monkeypatch.setattr(matrix_archive, "_MEMBERS", 100)
    long = tar_with(tmp_path / "4", [(member("matrices/errata/y.toml", comment="0" * (8 << 20)), b"")])
    refused(home, long, "unpacks to more than", hashlib.sha256(long.read_bytes()).hexdigest())
    crowd = tar_with(tmp_path / "5", [(member(f"matrices/errata/{number}.toml"), b"") for number in range(120)])
    refused(home, crowd, "more than 100 files", hashlib.sha256(crowd.read_bytes()).hexdigest())


def test_a_part_is_no_matrix(tmp_path, home):
    path = tmp_path / "part.tar.gz"
    folder = small_matrix(tmp_path / "part", row_text("part", OLD, date=DAYS[0]))
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "errata", "matrices/errata")
    refused(home, path, "found no drivers.toml in it", hashlib.sha256(path.read_bytes()).hexdigest())


# ---------------------------------------------------------------------------------------------------------------- online


@pytest.fixture(scope="module")
def authority(tmp_path_factory, prerequisite):
    """A certificate for localhost that vouches for itself."""
    prerequisite(shutil.which("openssl"), "openssl")
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"]
    subprocess.run([*command, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], cwd=folder, check=True, capture_output=True)
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


def test_https_with_a_digest_from_elsewhere_and_a_redirect(tmp_path, server):
    path = make(tmp_path, beside=False)
    done = update(f"{server.address}/to//{path.name}", hashlib.sha256(path.read_bytes()).hexdigest())
    assert (done.changed, done.note) == (True, "")


def test_https_refusals(tmp_path, home, server, monkeypatch):
    path = make(tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    refused(home, f"{server.address}/none.tar.gz", "the server says 404", digest)
    refused(home, f"{server.address}/cut/{path.name}", "/cut/", digest)
    refused(home, f"{server.address}/to/http://localhost/{path.name}", "expected https all the way", digest)
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
        "from envdoctor.actions.matrix_update import update\n"
        "try: update(sys.argv[1])\n"
        "except Exception as error: print(error)\n"
        "print('requests' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[-1] == "False"


# ---------------------------------------------------------------------------------------------------------------- killed


def run_until(step, path):
    """Update in a child that kills itself with SIGKILL at the ``step``-th file operation; return whether it was killed."""
    child = os.fork()
    if child == 0:
        count = [0]

        def hook(name, arguments):
            if name in ("open", "os.mkdir", "os.rename", "os.symlink", "os.remove", "os.rmdir", "shutil.rmtree"):
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
    prerequisite(os.geteuid() == 0 and shutil.which("unshare"), "root and unshare, for a small tmpfs")
    folder = tmp_path / "small"
    folder.mkdir()
    first, second = make(tmp_path, DAYS[0], row="old"), make(tmp_path, DAYS[1], row="new")
    update(str(first))
    used = sum(entry.lstat().st_size // 4096 + 1 for entry in (tmp_path / "home").rglob("*")) * 4
    program = (
        "import sys\n"
        "from envdoctor.matrix import loader\n"
        "loader._SOURCE, loader._COMPILED = '/nonexistent', sys.argv[3]\n"
        "import envdoctor.actions.matrix_update as module\n"
        "module.time.gmtime = lambda *_: (2027, 4, 1, 0, 0, 0, 3, 91, 0)\n"
        "from envdoctor.errors import InputError\n"
        "module.update(sys.argv[1])\n"
        "try: module.update(sys.argv[2])\n"
        "except InputError as error: print(error)\n"
        "print([row.id for row in loader.load_matrix().rows() if row.origin != 'derived'])\n"
    )
    command = f'mount -t tmpfs -o size={used * 3 // 2}k none "{folder}" && exec "{sys.executable}" -c "$0" "$@"'
    environment = {**os.environ, "ENVDOCTOR_HOME": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    arguments = [str(first), str(second), str(tmp_path / "built-in-compiled")]
    done = subprocess.run(["unshare", "-m", "sh", "-c", command, program, *arguments], capture_output=True, text=True, env=environment, check=False)
    prerequisite("mount" not in done.stderr, f"a mount namespace: {done.stderr[:200]}")
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stdout
    assert done.stdout.splitlines()[-1] == "['old']"
