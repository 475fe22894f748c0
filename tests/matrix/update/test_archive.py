"""Archives that are refused: damaged, hostile, too large, or no matrix; nothing is written outside
of the home, and what serves stays.
"""

import hashlib
import io
import os
import stat
import struct
import tarfile
import zipfile

import pytest

from envdoctor.matrix.update import archive as matrix_archive

from ...time_taken import within
from ..folders import row_text, small_matrix
from .conftest import DAYS, OLD, make, refused

pytestmark = pytest.mark.usefixtures("home")


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
    "hard link": (
        member("matrices/errata/y.toml", tarfile.LNKTYPE, "matrices/gpus.toml"),
        "a link",
    ),
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
    "another folder": (
        member("elsewhere/matrices/x.toml"),
        "no name of a file of a matrices folder",
    ),
    "twice": (member("matrices/gpus.toml"), "stands twice"),
    "package of another name": (member("matrices/packages/numpy.json"), "packages/numpy.json"),
}


@pytest.mark.parametrize("name", HOSTILE_TAR)
def test_hostile_tar(tmp_path, home, name):
    entry, words = HOSTILE_TAR[name]
    content = (
        b""
        if entry.type in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
        else b"{}"
    )
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
    refused(
        home,
        one,
        "'matrices/errata/big.toml': too large",
        hashlib.sha256(one.read_bytes()).hexdigest(),
    )
    many = tar_with(
        tmp_path / "2",
        [(member(f"matrices/errata/{number}.toml"), big[:-2]) for number in range(6)],
    )
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
    long = tar_with(
        tmp_path / "4", [(member("matrices/errata/y.toml", comment="0" * (8 << 20)), b"")]
    )
    refused(home, long, "unpacks to more than", hashlib.sha256(long.read_bytes()).hexdigest())
    crowd = tar_with(
        tmp_path / "5", [(member(f"matrices/errata/{number}.toml"), b"") for number in range(120)]
    )
    refused(
        home,
        crowd,
        "more than 100 files and folders",
        hashlib.sha256(crowd.read_bytes()).hexdigest(),
    )


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_an_archive_of_very_many_members_is_refused_in_time(tmp_path, home, kind):
    name = "packages/p{}.json" if kind == tarfile.REGTYPE else "p{}"
    path = tmp_path / "many.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for number in range(12_000):
            archive.addfile(member(name.format(number), kind))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    within(10, lambda: refused(home, path, "more than 10000 files", digest))


def test_a_part_is_no_matrix(tmp_path, home):
    path = tmp_path / "part.tar.gz"
    folder = small_matrix(tmp_path / "part", row_text("part", OLD, date=DAYS[0]))
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "errata", "matrices/errata")
    refused(
        home, path, "found no drivers.toml in it", hashlib.sha256(path.read_bytes()).hexdigest()
    )
