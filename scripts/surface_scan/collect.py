"""Reads the .py members of wheels (and of source archives, where a release has no wheel) into the
store, of source archives also the C++ that holds the GPU against what it takes. Nothing of a
package is run, and no path of an archive is written to.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from matrix_refresh.errors import Refused, Unreachable, printable
from matrix_refresh.index import ACCEPT, IndexFile, parse_page
from matrix_refresh.releases import Release, group_files, taken
from matrix_refresh.transport import Transport
from packaging.version import Version
from wheel_scan.zip_range import RemoteZip

from .store import Archive, Sources
from .torch_checks import checks_devices

__all__ = ["NATIVE", "Wanted", "collect", "releases_of"]

_MOST_PAGE = 64 << 20
_MOST_SOURCE = 8 << 20
_MOST_SDIST = 512 << 20
_MODULES = (".py", ".so", ".pyd", ".pyi")
#: In source archives alone, at their paths there, where setup.py names them.
NATIVE = (".cpp", ".cu")
#: Nobody's environment imports these.
_ASIDE = frozenset(("tests", "test", "benchmarks", "examples"))


class Wanted(NamedTuple):
    """One archive that speaks for a release."""

    package: str
    version: str
    released: str
    file: IndexFile


def releases_of(
    transport: Transport, index: str, package: str, since: str, early: bool = False
) -> List[Wanted]:
    """Return the releases of a package that came on or after a day, newest first.

    Raises:
        Refused, Unreachable: as ``parse_page`` and ``Transport.get`` do.
    """
    address = f"{index}/{package}/"
    page = transport.get(address, _MOST_PAGE, ACCEPT)
    files, _ = parse_page(page.content, page.content_type, address, package)
    releases, _ = group_files(package, files)
    wanted = []
    for version in sorted(taken(releases, set(), early), reverse=True):
        release = releases[version]
        file = _speaker(release)
        if file is not None and release.released >= since:
            wanted.append(Wanted(package, str(version), release.released, file))
    return wanted


def _speaker(release: Release) -> Optional[IndexFile]:
    """The wheel for Linux and the newest Python, or the source archive."""
    wheels = [wheel for wheel in release.main if wheel.pythons]
    if wheels:
        return wheels[-1].file
    return release.sdists[0] if release.sdists else None


def collect(
    wanted: Sequence[Wanted],
    transport: Transport,
    sources: Sources,
    connections: int,
    report: Callable[[Wanted, str], None],
) -> int:
    """Read the archives that are not in the store; return how many could not be read.

    ``report`` is told of each archive, with the fault or "".
    """
    faults = 0
    todo = [item for item in wanted if not (item.file.sha256 and sources.has(item.file.sha256))]
    with ThreadPoolExecutor(connections) as pool:
        running = {pool.submit(_collect_one, item, transport, sources): item for item in todo}
        try:
            for done in as_completed(running):
                fault = done.result()
                faults += bool(fault)
                report(running[done], fault)
        except BaseException:  # KeyboardInterrupt too: what waits must not begin
            for future in running:
                future.cancel()
            raise
    return faults


def _collect_one(item: Wanted, transport: Transport, sources: Sources) -> str:
    try:
        if item.file.name.endswith(".whl"):
            members, contents = _of_wheel(item, transport, sources)
        else:
            members, contents = _of_sdist(item, transport, sources)
        archive = Archive(
            item.package, item.version, item.file.name, item.file.sha256, item.released, members
        )
        sources.keep(archive, contents)
    except (Refused, Unreachable) as error:
        return str(error)
    return ""


def _key(package: str, path: str, crc: int, size: int) -> str:
    return f"{package}:{path}:{crc:08x}:{size:x}"


def _on_path(name: str) -> str:
    """The path of a wheel's member below site-packages, "" for what is not installed there."""
    head, _, rest = name.partition("/")
    if head.endswith(".data"):
        kind, _, inner = rest.partition("/")
        return inner if kind in ("purelib", "platlib") else ""
    return "" if head.endswith(".dist-info") else name


def _is_aside(path: str) -> bool:
    return not _ASIDE.isdisjoint(path.split("/")[:-1])


def _of_wheel(
    item: Wanted, transport: Transport, sources: Sources
) -> Tuple[Dict[str, str], List[Tuple[str, bytes]]]:
    archive = RemoteZip(transport, item.file.address)
    members: Dict[str, str] = {}
    by_key: Dict[str, str] = {}
    for name, member in archive.members.items():
        path = _on_path(name)
        if not path.endswith(_MODULES) or path.endswith(".pyi"):
            continue
        if not path.endswith(".py") or _is_aside(path) or member.size > _MOST_SOURCE:
            members[path] = ""
            continue
        key = members[path] = _key(item.package, path, member.crc, member.size)
        by_key[key] = name
    names = {by_key[key]: key for key in sources.missing(by_key)}
    contents = [
        (names[name], archive.content(name, _MOST_SOURCE))
        for group in archive.near(names)
        for name in group
    ]
    return members, contents


def _of_sdist(
    item: Wanted, transport: Transport, sources: Sources
) -> Tuple[Dict[str, str], List[Tuple[str, bytes]]]:
    if item.file.name.endswith(".zip"):
        raise Refused("a source archive in zip form is not read")
    content = transport.get(item.file.address, _MOST_SDIST).content
    found: Dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            for path, member in _source_members(archive):
                file = archive.extractfile(member)
                if file is not None:
                    found[path] = file.read(_MOST_SOURCE)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise Refused(
            f"it is no source archive, or cut off: {printable(str(error), 80)}"
        ) from error
    native = {path: found.pop(path) for path in list(found) if path.endswith(NATIVE)}
    built = found.get("setup.py", b"")
    placed = _placed(found)
    placed.update(
        (path, text)
        for path, text in native.items()
        if path.rpartition("/")[2].encode() in built and checks_devices(text)
    )
    members = {
        path: _key(item.package, path, zlib.crc32(content), len(content))
        for path, content in placed.items()
    }
    missing = sources.missing(members.values())
    return members, [
        (members[path], content) for path, content in placed.items() if members[path] in missing
    ]


def _source_members(archive: tarfile.TarFile) -> Iterator[Tuple[str, tarfile.TarInfo]]:
    for member in archive:
        path = member.name.removeprefix("./").partition("/")[2]
        if (
            member.isreg()
            and path.endswith((".py", *NATIVE))
            and member.size <= _MOST_SOURCE
            and not _is_aside(path)
        ):
            yield path, member


def _placed(found: Dict[str, bytes]) -> Dict[str, bytes]:
    """Paths of a source archive as they come to lie below site-packages: below the folder that
    holds the top-level packages (``src``, ``python`` or the root), without setup.py.
    """
    for folder in ("src/", "python/", ""):
        tops = {
            path[len(folder) :].split("/")[0]
            for path in found
            if path.startswith(folder)
            and path[len(folder) :].count("/") == 1
            and path.endswith("/__init__.py")
        }
        if tops:
            return {
                path[len(folder) :]: content
                for path, content in found.items()
                if path.startswith(folder) and path[len(folder) :].split("/")[0] in tops
            }
    return {path: content for path, content in found.items() if path != "setup.py"}


def version_order(archive: Archive) -> Version:
    """Sort key of archives."""
    return Version(archive.version)
