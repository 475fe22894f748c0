"""The run of ``scripts/scan_wheels``: which releases, which wheel of each, and how much may be
read.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence

from matrix_refresh.errors import Refused, Unreachable
from matrix_refresh.index import ACCEPT, IndexFile, parse_page
from matrix_refresh.transport import Transport
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .members import PROFILES, choose_wheel
from .record import Records, read_wheel
from .zip_range import RemoteZip

__all__ = ["Plan", "Scanned", "plan", "scan"]

_MOST_PAGE = 64 << 20


class Plan(NamedTuple):
    """One wheel to read."""

    package: str
    version: str
    file: IndexFile
    deep: bool
    architecture: str


class Scanned(NamedTuple):
    """What came of one wheel: its record, whether all was read, and why not."""

    plan: Plan
    record: Optional[Dict[str, Any]]
    complete: bool
    fault: str


def plan(
    transport: Transport,
    index: str,
    package: str,
    newest: int,
    versions: Iterable[str],
    deep: int,
    architecture: str = "x86_64",
) -> List[Plan]:
    """Return the wheels to read of a package, newest first: the ``newest`` final releases and the
    named ones.
    """
    address = f"{index}/{package}/"
    page = transport.get(address, _MOST_PAGE, ACCEPT)
    files, _ = parse_page(page.content, page.content_type, address, package)
    by_version: Dict[Version, Dict[str, IndexFile]] = {}
    for file in files:
        parts = file.name[:-4].split("-") if file.name.endswith(".whl") else []
        if len(parts) < 5 or canonicalize_name(parts[0]) != package:
            continue
        try:
            version = Version(parts[1])
        except InvalidVersion:
            continue
        if not version.is_prerelease and version.local is None:
            by_version.setdefault(version, {})[file.name] = file
    named = {Version(text) for text in versions}
    plans = []
    for place, version in enumerate(sorted(by_version, reverse=True)):
        if place >= newest and version not in named:
            continue
        name = choose_wheel(by_version[version], architecture)
        if name is not None:
            file = by_version[version][name]
            plans.append(Plan(package, str(version), file, place < deep, architecture))
    return plans


def scan(
    plans: Sequence[Plan], transport: Transport, records: Records, budget: int, connections: int
) -> List[Scanned]:
    """Read the wheels, a few at a time, until ``budget`` bytes were read; what is missing then is
    for another run.
    """
    lock = threading.Lock()
    promised = [transport.bytes_read]

    def may_read(size: int) -> bool:
        # What other threads are going to read counts already, else three large members would all be
        # begun on the last byte.
        with lock:
            if promised[0] + size > budget:
                return False
            promised[0] += size
            return True

    started = time.monotonic()
    done: Dict[int, Scanned] = {}
    with ThreadPoolExecutor(max_workers=connections) as pool:
        tasks = {
            pool.submit(_scan_one, item, transport, records, may_read): place
            for place, item in enumerate(plans)
        }
        try:
            for task in as_completed(tasks):
                scanned = done[tasks[task]] = task.result()
                state = scanned.fault or (
                    "read" if scanned.complete else "partly read: the budget is used up"
                )
                _say(
                    f"{len(done)}/{len(plans)} {transport.bytes_read >> 20} MB "
                    f"{time.monotonic() - started:.0f} s  {scanned.plan.file.name}: {state}"
                )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[place] for place in sorted(done)]


def _scan_one(item: Plan, transport: Transport, records: Records, may_read: Any) -> Scanned:
    record = records.load(item.file.sha256) or {
        "sha256": item.file.sha256,
        "file": item.file.name,
        "members": {},
    }
    profile = PROFILES[item.package]
    try:
        if record.get("complete") and not (item.deep and profile.deep and not record.get("deep")):
            return Scanned(item, record, True, "")
        archive = RemoteZip(transport, item.file.address)
        complete = read_wheel(archive, record, profile, item.deep, may_read, records.keep)
        if complete and item.deep:
            record["deep"] = True
            records.keep(record)
    except (Refused, Unreachable) as error:
        return Scanned(item, record if record["members"] else None, False, str(error))
    return Scanned(item, record, complete, "")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
