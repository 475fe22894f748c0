"""Who signed an archive: real keys, and ssh-keygen as the oracle of what it signed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix.update.archive import unpack
from envdoctor.matrix.update.installation import update
from envdoctor.matrix.update.signature import NAMESPACE, check_signature

from .conftest import DAYS, make, serving

MATRICES = Path(__file__).resolve().parents[3] / "matrices"
pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(autouse=True)
def _openssh(prerequisite):
    prerequisite(shutil.which("ssh-keygen") is not None, "ssh-keygen (openssh-client)")


@pytest.fixture
def key(tmp_path):
    """Makes a key and the line that allows its owner."""

    def made(name):
        path = tmp_path / name
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True
        )
        public = path.with_suffix(".pub").read_text().split()
        return path, f"{name}@example.org {' '.join(public[:2])}\n"

    return made


def sign(archive, key, namespace=NAMESPACE):
    archive.with_name(archive.name + ".sig").unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key, archive],
        check=True,
        capture_output=True,
    )


def test_what_an_allowed_signer_signed_is_installed(tmp_path, key):
    path, line = key("alice")
    archive, signers = make(tmp_path), tmp_path / "signers"
    signers.write_text("# who may\n" + key("bob")[1] + line)
    sign(archive, path)
    done = update(str(archive), signers=str(signers))
    assert (done.changed, done.note) == (True, "signed by alice@example.org")
    assert serving() == "new-row"


def test_what_nobody_allowed_signed_is_refused(tmp_path, key):
    path, line = key("alice")
    archive, signers = make(tmp_path), tmp_path / "signers"
    signers.write_text(key("bob")[1])
    with pytest.raises(InputError, match="a signature is needed, in "):
        update(str(archive), signers=str(signers))
    sign(archive, path)
    with pytest.raises(InputError, match="found that of somebody else"):
        update(str(archive), signers=str(signers))
    signers.write_text(line)
    sign(archive, path, "file")  # for another purpose
    with pytest.raises(InputError, match="the signature is not one of this archive"):
        update(str(archive), signers=str(signers))
    other = make(tmp_path, DAYS[1], row="other")
    sign(other, path)
    shutil.copy(f"{other}.sig", f"{archive}.sig")
    with pytest.raises(InputError, match="the signature is not one of this archive"):
        update(str(archive), signers=str(signers))
    (tmp_path / "garbage").write_bytes(b"\x00\xff")
    shutil.copy(tmp_path / "garbage", f"{archive}.sig")
    with pytest.raises(InputError, match="or none that can be read"):
        update(str(archive), signers=str(signers))
    with pytest.raises(InputError, match="expected a file of allowed signers"):
        update(str(archive), signers=str(tmp_path / "nowhere"))
    assert serving() == "old-torch"


def test_without_openssh_it_says_what_is_needed(tmp_path, key, monkeypatch):
    path, line = key("alice")
    archive, signers = make(tmp_path), tmp_path / "signers"
    signers.write_text(line)
    sign(archive, path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="--signers needs ssh-keygen of OpenSSH"):
        update(str(archive), signers=str(signers))
    assert serving() == "old-torch"


def test_the_archive_of_the_script(tmp_path, key):
    """Every file of the folder, checked by sha256sum and ssh-keygen; the same when made again."""
    path, line = key("alice")
    signers = tmp_path / "signers"
    signers.write_text(line)
    archive = tmp_path / "matrix.tar.gz"
    for name in ("other.tar.gz", archive.name):
        subprocess.run(
            [sys.executable, MATRICES.parent / "scripts" / "pack_matrix", "--key", path, name],
            cwd=tmp_path,
            check=True,
        )
    assert archive.read_bytes() == (tmp_path / "other.tar.gz").read_bytes()
    for name in (archive.name, "other.tar.gz"):
        subprocess.run(["sha256sum", "--check", f"{name}.sha256"], cwd=tmp_path, check=True)
    (tmp_path / "unpacked").mkdir()
    sizes = unpack(str(archive), str(tmp_path / "unpacked"))
    files = [file for file in MATRICES.rglob("*") if file.is_file()]
    assert sizes == {str(file.relative_to(MATRICES)): file.stat().st_size for file in files}
    signed_by = check_signature("it", str(archive), f"{archive}.sig", str(signers))
    assert signed_by == "alice@example.org"
