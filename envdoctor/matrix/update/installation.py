"""``envdoctor matrix update``: a newer matrix, from an https address or a file, and the way back.

The archive is checked whole (digest, names, schema), compiled beside its place, and put there by
replacing one symbolic link; ``matrix.place`` says where. Killed at any point, the old matrix or the
new one serves. The one before is kept for ``rollback``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import unquote, urlsplit

from ...errors import InputError, MatrixError
from ...file_replacement import create_file, replace_file, sync_folder
from ...model.redaction import redact
from ...model.sizes import size_text
from .. import place
from ..compiled import FORMAT
from ..loader import Matrix, load_builtin, load_folder, load_generation
from ..source import write_compiled
from .archive import unpack

__all__ = ["Update", "open_archive", "previous", "rollback", "update"]

_ARCHIVE_LIMIT = 64 << 20
_CONNECT = 15.0
_READ = 30.0
_WHOLE = 300.0
_REDIRECTS = 5
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Update(NamedTuple):
    """What an update or a rollback did: the matrix that serves now, the one before, and a remark
    for the user.
    """

    changed: bool
    message: str
    now: Matrix
    before: Matrix
    note: str = ""


def update(
    source: str,
    sha256: Optional[str] = None,
    environment: Mapping[str, str] = os.environ,
    signers: Optional[str] = None,
) -> Update:
    """Install a matrix.

    Args:
        source: an https address, a file: address or a path of a .tar.gz or .zip.
        sha256: its digest; where left out, ``<source>.sha256`` beside it says so.
        signers: a file of OpenSSH's allowed signers, one of whom made ``<source>.sig``; where left
            out, nobody has to have signed it.
        environment: names the folder of updates.

    Raises:
        InputError: anything that is not as it should be; then nothing was changed.
    """
    where = _folder(environment)
    wanted = _digest_of(sha256) if sha256 is not None else None
    with _prepared(where) as scratch:
        archive = os.path.join(scratch, _base_name(source))
        _fetch(source, archive, _ARCHIVE_LIMIT)
        digest = _file_digest(archive)
        _check_digest(
            source, digest, wanted if wanted is not None else _digest_beside(source, scratch)
        )
        signer = _signer(source, archive, signers, scratch) if signers is not None else None
        before = _serving(where)
        old = place.current(where)
        if old is not None and old.digest == digest[:12] and load_generation(old) is not None:
            return Update(
                False, "This matrix is installed already", before, before, _serves_note(old, before)
            )
        stage = os.path.join(scratch, "stage")
        files = os.path.join(stage, "matrices")
        os.makedirs(files)
        unpack(archive, files)
        date = _compile(files, stage, _base_name(source), before, old)
        origin: Dict[str, Optional[str]] = {
            "source": redact(source),
            "sha256": digest,
            "date": date,
            "installed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        origin["previous"] = old.name if old is not None else None
        replace_file(os.path.join(stage, "origin.json"), json.dumps(origin, indent=1).encode())
        _sync_tree(stage)
        name = _free_name(where, f"{date}.f{FORMAT}.{digest[:12]}")
        os.rename(stage, os.path.join(where, name))
        _point(where, name)
        _remove_needless(where)
    now = _serving(where)
    return Update(
        True,
        f"The matrix of {now.date} is installed",
        now,
        before,
        f"signed by {signer}" if signer is not None else _verified_note(source, sha256),
    )


def rollback(environment: Mapping[str, str] = os.environ) -> Update:
    """Go back to the matrix before the last update, or to the built-in one.

    Raises:
        InputError: there is no update to take back.
    """
    where = _folder(environment)
    old = place.current(where)
    if old is None:
        raise InputError(
            f"there is no update to take back: nothing is installed in {where}, the built-in "
            "matrix serves"
        )
    with _prepared(where):
        before = _serving(where)
        target = previous(old)
        if target is None:
            os.unlink(os.path.join(where, "current"))
            sync_folder(where)
        else:
            _point(where, target.name)
    now = _serving(where)
    return Update(True, f"Back to the matrix of {now.date}", now, before)


def previous(generation: place.Generation) -> Optional[place.Generation]:
    """Return the update before this one, where it is still there and whole; None means the built-in
    matrix.
    """
    name = read_origin(generation).get("previous")
    if not isinstance(name, str) or os.path.basename(name) != name:
        return None
    earlier = place.Generation.of(os.path.join(os.path.dirname(generation.path), name))
    return earlier if earlier is not None and load_generation(earlier) is not None else None


def read_origin(generation: place.Generation) -> Dict[str, Any]:
    """Return where an update came from; empty where that cannot be read."""
    try:
        with open(os.path.join(generation.path, "origin.json"), encoding="utf-8") as file:
            origin = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return origin if isinstance(origin, dict) else {}


@contextmanager
def open_archive(path: str) -> Iterator[Matrix]:
    """Give the matrix of an archive for as long as the context lasts, for a look before an
    update.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="envdoctor-") as folder:
        unpack(path, folder)
        yield load_folder(folder)


def _folder(environment: Mapping[str, str]) -> str:
    where = place.folder(environment)
    if where is None:
        if environment.get("ENVDOCTOR_HOME"):
            raise InputError(
                f"ENVDOCTOR_HOME={environment['ENVDOCTOR_HOME']}: expected an absolute path; it is "
                "where updates of the matrix are kept"
            )
        raise InputError(
            "there is no place for an update: set ENVDOCTOR_HOME to a folder (none of "
            "ENVDOCTOR_HOME, XDG_DATA_HOME and HOME names one)"
        )
    return where


def _serving(where: str) -> Matrix:
    """The matrix that serves: what ``load_matrix`` chooses, without a site's rows."""
    builtin = load_builtin()
    generation = place.current(where)
    updated = (
        load_generation(generation)
        if generation is not None and generation.date > builtin.date
        else None
    )
    return updated or builtin


def _serves_note(old: place.Generation, before: Matrix) -> str:
    return (
        ""
        if before.origin == old.path
        else "it does not serve, since the built-in matrix is not older"
    )


def _verified_note(source: str, sha256: Optional[str]) -> str:
    if sha256 is not None or not source.startswith("https:"):
        return ""
    return (
        "the digest came with the archive, so it proves that the download is whole, not who "
        "made it; --sha256 takes one from elsewhere, --signers asks for a signature"
    )


# --------------------------------------------------------------------------------------------------
# the folder


@contextmanager
def _prepared(where: str) -> Iterator[str]:
    """Hold the lock of the folder and give an empty scratch folder in it; what killed runs left is
    removed.
    """
    import fcntl

    try:
        os.makedirs(where, mode=0o755, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(os.path.join(where, "lock"), flags, 0o644)
    except OSError as error:
        raise InputError(
            f"{error.filename or where}: cannot be written, and updates of the matrix are kept "
            f"there: {error.strerror}"
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{where}: another update is under way") from error
        for name in os.listdir(where):
            if name.startswith("incoming."):
                _remove(os.path.join(where, name))
        scratch = os.path.join(where, f"incoming.{os.urandom(8).hex()}")
        try:
            os.mkdir(scratch)
            yield scratch
        except OSError as error:
            raise InputError(
                f"{error.filename or where}: cannot be written: {error.strerror}; nothing was "
                "changed"
            ) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    finally:
        os.close(lock)


def _remove(path: str) -> None:
    if os.path.islink(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _compile(
    files: str, stage: str, label: str, before: Matrix, old: Optional[place.Generation]
) -> str:
    """Check and compile the unpacked files, and return the date; raises :class:`InputError` for
    what could not serve.
    """
    try:
        write_compiled(files, stage, times=False)
        matrix = load_folder(files)
    except MatrixError as error:
        raise InputError(
            f"{label}: the archive has {error}\n  (is it for another version of envdoctor? nothing "
            "was changed)"
        ) from error
    # A day of grace: the world has time zones.
    today = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))
    if matrix.date > today:
        raise InputError(
            f"{label}: is of {matrix.date}, which has not come yet; nothing was changed"
        )
    builtin = load_builtin()
    if matrix.date <= builtin.date:
        raise InputError(
            f"{label}: is of {matrix.date}, not newer than the built-in matrix of {builtin.date}, "
            "which would go on serving; nothing was changed"
        )
    if old is not None and before.origin == old.path and matrix.date < before.date:
        raise InputError(
            f"{label}: is of {matrix.date}, older than the installed one of {before.date}; "
            "--rollback goes back to the one before that"
        )
    if not matrix.rows() or not matrix.package_names:
        raise InputError(f"{label}: holds no rows or no packages; nothing was changed")
    return matrix.date


def _free_name(where: str, stem: str) -> str:
    number = 0
    while os.path.lexists(os.path.join(where, f"{stem}.{number}")):
        number += 1
    return f"{stem}.{number}"


def _point(where: str, name: str) -> None:
    """Let ``current`` name a generation, in one step."""
    temporary = os.path.join(where, f"incoming.{os.urandom(8).hex()}.link")
    os.symlink(name, temporary)
    sync_folder(where)  # the generation has to be on disk before the link that names it
    os.replace(temporary, os.path.join(where, "current"))
    sync_folder(where)


def _remove_needless(where: str) -> None:
    """Remove all updates but the current one and the one before."""
    serving = place.current(where)
    if serving is None:
        return
    before = read_origin(serving).get("previous")
    for name in os.listdir(where):
        if place.Generation.of(name) is not None and name not in (serving.name, before):
            shutil.rmtree(os.path.join(where, name), ignore_errors=True)


def _sync_tree(folder: str) -> None:
    for path, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(path)


# --------------------------------------------------------------------------------------------------
# the archive and its digest


def _digest_of(text: str) -> str:
    digest = text.strip().lower()
    if not _DIGEST.fullmatch(digest):
        raise InputError(f"--sha256: expected 64 hexadecimal digits, found {text!r}")
    return digest


def _file_digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _check_digest(source: str, digest: str, wanted: str) -> None:
    if digest != wanted:
        raise InputError(
            f"{source}: expected sha256 {wanted}, found sha256 {digest}; nothing was changed"
        )


def _beside(source: str, ending: str) -> str:
    """Return the address of a file whose name has an ending more."""
    split = urlsplit(source)
    if "://" in source:
        return split._replace(path=f"{split.path}{ending}").geturl()
    return f"{source}{ending}"


def _signer(source: str, archive: str, signers: str, scratch: str) -> str:
    """Return who signed an archive, of those who may."""
    from .signature import check_signature

    beside, path = _beside(source, ".sig"), os.path.join(scratch, "signature")
    try:
        _fetch(beside, path, 1 << 16)
    except InputError as error:
        raise InputError(f"a signature is needed, in {beside} ({error})") from error
    return check_signature(source, archive, path, signers)


def _digest_beside(source: str, scratch: str) -> str:
    """Return the digest of the file ``<source>.sha256``, as sha256sum writes it."""
    beside = _beside(source, ".sha256")
    path = os.path.join(scratch, "digest")
    try:
        _fetch(beside, path, 1 << 16)
    except InputError as error:
        raise InputError(
            f"a digest is needed: give --sha256, or have it in {beside} ({error})"
        ) from error
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.split() for line in file if line.strip()]
    digests = [
        words[0].lower()
        for words in lines
        if len(words) == 1
        or (len(words) == 2 and os.path.basename(words[1].lstrip("*")) == _base_name(source))
    ]
    if len(digests) != 1 or not _DIGEST.fullmatch(digests[0]):
        raise InputError(
            f"{beside}: expected '<64 hexadecimal digits>  {_base_name(source)}' as sha256sum "
            "writes it"
        )
    return digests[0]


def _base_name(source: str) -> str:
    name = os.path.basename(unquote(urlsplit(source).path) if "://" in source else source)
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name)[-100:].lstrip(".") or "archive"


def _fetch(source: str, destination: str, limit: int) -> None:
    """Copy an address or a file to ``destination``; raises :class:`InputError`."""
    scheme = source.partition("://")[0].lower() if "://" in source else ""
    if scheme == "https":
        _download(source, destination, limit)
        return
    if scheme not in ("", "file"):
        raise InputError(f"{source}: expected an https address or a file, found {scheme}")
    path = source
    if scheme == "file":
        split = urlsplit(source)
        if split.netloc not in ("", "localhost"):
            raise InputError(
                f"{source}: expected a file of this machine such as file:///srv/matrix.tar.gz"
            )
        path = unquote(split.path)
    if os.path.isdir(path):
        raise InputError(
            f"{path}: expected a .tar.gz or .zip, found a folder; 'tar czf matrix.tar.gz -C {path} "
            ".' makes one"
        )
    try:
        with open(path, "rb") as file, create_file(destination) as target:
            _copy(iter(lambda: file.read(1 << 20), b""), target, source, limit)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _copy(chunks: Iterator[bytes], target: Any, source: str, limit: int) -> None:
    size, started = 0, time.monotonic()
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise InputError(
                f"{source}: larger than {size_text(limit)}, so this is hardly a matrix"
            )
        if time.monotonic() - started > _WHOLE:
            raise InputError(f"{source}: not there after {_WHOLE:.0f} s")
        target.write(chunk)


def _download(address: str, destination: str, limit: int) -> None:
    import requests  # late: only an update goes online

    try:
        with requests.Session() as session:
            response, final = _follow(session, address)
            with response, create_file(destination) as target:
                if response.status_code != 200:
                    raise InputError(
                        f"{final}: the server says {response.status_code} {response.reason}"
                    )
                _copy(response.iter_content(1 << 16), target, address, limit)
                expected = response.headers.get("Content-Length", "")
                if (
                    expected.isdigit()
                    and "Content-Encoding" not in response.headers
                    and target.tell() != int(expected)
                ):
                    raise InputError(
                        f"{address}: cut off after {target.tell()} of {expected} bytes"
                    )
    except requests.RequestException as error:
        raise InputError(f"{address}: cannot be read: {_reason(error)}") from error


def _follow(session: Any, address: str) -> Tuple[Any, str]:
    """Follow redirects as long as they stay on https."""
    for _ in range(_REDIRECTS + 1):
        response = session.get(
            address,
            stream=True,
            timeout=(_CONNECT, _READ),
            allow_redirects=False,
            headers={"Accept-Encoding": "identity"},
        )
        target = session.get_redirect_target(response)
        if target is None:
            return response, address
        response.close()
        from urllib.parse import urljoin

        following = urljoin(address, target)
        if not following.lower().startswith("https://"):
            raise InputError(f"{address}: leads to {following}, expected https all the way")
        address = following
    raise InputError(f"{address}: more than {_REDIRECTS} redirects")


def _reason(error: Exception) -> str:
    """The innermost words of a chain of exceptions: those around them repeat the address."""
    text = str(error)
    for mark in ("SSLCertVerificationError(1, ", "Caused by "):
        if mark in text:
            text = text.split(mark, 1)[1]
    return text.strip("()'\" ")[:300] or type(error).__name__
