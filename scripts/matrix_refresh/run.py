"""The command: options, the order of the work, progress, and what is said at the end."""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import os
import re
import sys
import time
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from packaging.version import Version

from envdoctor.model.redaction import redact

from . import archives, documents, releases, store
from .errors import Refused, Unreachable, UsageFault, printable
from .index import ACCEPT, IndexFile, default_index, parse_page
from .metadata import Metadata, parse_metadata, requires_of_egg_info
from .selection import DEFAULT_LIST, Selection, load_selection
from .transport import NotThere, Transport

__all__ = ["main"]

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_MOST_PAGE = 64 << 20
_MOST_INDEX = 256 << 20

_EPILOG = """exit codes: 0 done; 1 --check found news, or a file was refused or not reached
(it is named on stderr, all others are written); 2 usage, or no index"""


class Project(NamedTuple):
    """One project of the index: its releases, what is left out of its page, and whether the page
    was had.
    """

    name: str
    releases: Mapping[Version, releases.Release]
    left_out: Tuple[str, ...]
    fault: str = ""
    absent: bool = False


class Outcome(NamedTuple):
    """The work of one run. ``faults``: lines for stderr, each with the file's name."""

    documents: Dict[str, Dict[str, Any]]
    old: Dict[str, Optional[Dict[str, Any]]]
    listing: Dict[str, documents.Listed]
    faults: List[str]
    notes: List[str]
    read: int


class Refresh:
    """Reads projects and files of one index; ``jobs`` at a time."""

    def __init__(
        self,
        index: str,
        transport: Transport,
        kept: store.Store,
        selection: Selection,
        jobs: int,
        offline: bool,
        bar: Any,
    ) -> None:
        self._index = index
        self._transport = transport
        self._store = kept
        self._selection = selection
        self._jobs = jobs
        self._offline = offline
        self._bar = bar

    def run(self, names: Sequence[str], folder: str, date: str) -> Outcome:
        """Read the projects and return their package files; nothing is written."""
        paths = {
            name: os.path.join(folder, "packages", f"{name}.json") for name in self._selection.names
        }
        # All that is there is read first: a file that cannot be kept ends the run before it costs
        # anything.
        existing = {name: documents.load_document(path, name) for name, path in paths.items()}
        old = {name: existing[name] for name in names}
        projects = {
            project.name: project for project in self._mapped("pages", self._project, names)
        }
        faults = [
            f"{project.name}: {project.fault}" for project in projects.values() if project.fault
        ]
        notes = [
            f"{project.name}: {line}" for project in projects.values() for line in project.left_out
        ]
        read: Dict[str, Metadata] = {}
        refused: Dict[str, str] = {}
        early = self._selection.prereleases
        there = {
            name: {Version(entry["version"]) for entry in (old[name] or {}).get("releases", ())}
            for name in names
        }
        chosen: Dict[str, List[Version]] = {}
        pinned: Dict[str, Set[Version]] = {}
        while True:
            more = {
                name: releases.taken(
                    project.releases, there[name] | pinned.get(name, set()), name in early
                )
                for name, project in projects.items()
            }
            if more == chosen:
                break
            chosen = more
            self._read(projects, chosen, read, refused)
            # A pre-release that came in by a pin may pin others, so again until nothing comes.
            pinned = self._pinned(projects, chosen, read, existing)
        faults += [f"{name}: {reason}" for name, reason in sorted(refused.items())]
        made: Dict[str, Dict[str, Any]] = {}
        listing: Dict[str, documents.Listed] = {}
        for name, project in projects.items():
            if project.fault or project.absent:
                continue
            prune = partial(self._selection.prune, name)
            entries = [
                releases.describe(project.releases[version], read, prune)
                for version in chosen[name]
            ]
            unread = [
                version
                for version in chosen[name]
                if any(file.name in refused for file in project.releases[version].to_read)
            ]
            undated = [entry["version"] for entry in entries if not entry["released"]]
            if undated:
                faults.append(f"{name}: the index does not say when {', '.join(undated[:5])} came")
                continue
            # Once more: builds may have been scanned into it while this run waited for the index.
            old[name] = documents.load_document(paths[name], name)
            if entries or old[name] is not None:
                made[name] = documents.merge(name, old[name], entries, unread, date)
            listing[name] = documents.Listed(
                tuple(str(version) for version in chosen[name]),
                tuple(
                    str(version)
                    for version in chosen[name]
                    if project.releases[version].yanked is not None
                ),
                len(project.releases) - len(chosen[name]),
            )
        return Outcome(made, old, listing, faults, notes, len(read))

    def _mapped(self, what: str, function: Callable[[Any], Any], items: Sequence[Any]) -> List[Any]:
        """Apply a function to all items in threads; a signal ends the run at once, what was read is
        kept.
        """
        task = self._bar.add_task(what, total=len(items))
        pool = concurrent.futures.ThreadPoolExecutor(self._jobs)
        try:
            waiting = [pool.submit(function, item) for item in items]
            for done in concurrent.futures.as_completed(waiting):
                done.result()
                self._bar.advance(task)
            return [done.result() for done in waiting]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _project(self, name: str) -> Project:
        address = f"{self._index}/{name}/"
        try:
            if self._offline:
                page = self._store.page(name)
                if page is None:
                    raise Unreachable("its page is not in the cache")
            else:
                body = self._transport.get(address, _MOST_PAGE, ACCEPT)
                page = store.Page(body.content, body.content_type, address)
            files, left_out = parse_page(page.content, page.content_type, page.address, name)
            groups, more = releases.group_files(name, files)
            if not self._offline:
                self._store.keep_page(name, page)
        except NotThere:
            absent = name in self._selection.elsewhere
            return Project(name, {}, (), "" if absent else "the index has no such project", absent)
        except Unreachable as fault:
            absent = self._offline and name in self._selection.elsewhere
            return Project(name, {}, (), "" if absent else str(fault), absent)
        except Refused as fault:
            return Project(name, {}, (), f"page refused: {fault}")
        return Project(name, groups, tuple(left_out + more))

    def _read(
        self,
        projects: Mapping[str, Project],
        chosen: Mapping[str, Sequence[Version]],
        read: Dict[str, Metadata],
        refused: Dict[str, str],
    ) -> None:
        work = [
            (name, version, file)
            for name, versions in chosen.items()
            for version in versions
            for file in projects[name].releases[version].to_read
            if file.name not in read
            and file.name not in refused
            and file.name not in self._selection.unreadable
        ]
        for file, metadata, reason in (
            self._mapped("metadata", self._metadata, work) if work else ()
        ):
            if metadata is None:
                refused[file.name] = reason
            else:
                read[file.name] = metadata

    def _metadata(
        self, item: Tuple[str, Version, IndexFile]
    ) -> Tuple[IndexFile, Optional[Metadata], str]:
        name, version, file = item
        known = self._store.metadata(file.sha256)
        if known is not None:
            return file, known, ""
        if self._offline:
            return file, None, "it is not in the cache"
        try:
            metadata = self._fetch(name, version, file)
        except Refused as fault:
            return file, None, f"refused: {fault}"
        except Unreachable as fault:
            return file, None, f"not reached: {fault}"
        self._store.keep_metadata(file.sha256, file.name, metadata)
        return file, metadata, ""

    def _fetch(self, name: str, version: Version, file: IndexFile) -> Metadata:
        if not file.name.endswith(".whl"):
            information, requires = archives.read_sdist(
                self._transport, file.address, file.name, name, version
            )
            metadata = parse_metadata(information, name, version, source=True)
            if metadata.requires is None and requires is not None:
                metadata = metadata._replace(requires=requires_of_egg_info(requires))
            return metadata
        if file.metadata is not None:
            try:
                return parse_metadata(
                    archives.read_offered(self._transport, file.address, file.metadata),
                    name,
                    version,
                )
            except NotThere:
                pass  # offered and not there: the wheel itself has it
        return parse_metadata(
            archives.read_wheel(self._transport, file.address, name, version), name, version
        )

    def _pinned(
        self,
        projects: Mapping[str, Project],
        chosen: Mapping[str, Sequence[Version]],
        read: Mapping[str, Metadata],
        existing: Mapping[str, Optional[Mapping[str, Any]]],
    ) -> Dict[str, Set[Version]]:
        lines: Set[str] = set(self._selection.pinned)
        for name, project in projects.items():
            for version in chosen[name]:
                for file in project.releases[version].to_read:
                    metadata = read.get(file.name)
                    lines.update(metadata.requires or () if metadata is not None else ())
        for name, document in existing.items():
            if document is not None and (name not in projects or projects[name].fault):
                lines.update(
                    line for entry in document["releases"] for line in entry.get("requires", ())
                )
        return releases.pinned_prereleases(lines)


class _Silent:
    """A progress bar that shows nothing."""

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def advance(self, *_: Any) -> None:
        pass

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _progress(quiet: bool) -> Any:
    if quiet or not sys.stderr.isatty():
        return _Silent()
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="refresh_matrix",
        description="Regenerate matrices/packages/*.json and matrices/index.json from the metadata "
        "of the package index.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        default=[],
        help="only these packages of the list; the others stay as they are",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where there is news"
    )
    parser.add_argument(
        "--output",
        default=os.path.join(_ROOT, "matrices"),
        metavar="DIR",
        help="folder with packages/ and index.json (default: matrices)",
    )
    parser.add_argument(
        "--list",
        default=DEFAULT_LIST,
        metavar="FILE",
        dest="selection",
        help="the list of packages (default: packages.toml beside the code)",
    )
    parser.add_argument(
        "--index-url", metavar="URL", help="the simple index to read (default: that of pip)"
    )
    parser.add_argument(
        "--jobs", type=int, default=12, metavar="N", help="files read at once, 1 to 32 (default 12)"
    )
    parser.add_argument(
        "--cache-dir",
        default=store.default_folder(),
        metavar="DIR",
        help="where read metadata is kept by hash (default: %(default)s)",
    )
    parser.add_argument("--offline-cache", action="store_true", help="read nothing but the cache")
    parser.add_argument(
        "--date",
        metavar="YYYY-MM-DD",
        help="the day that is written where something changed (default: today, UTC)",
    )
    parser.add_argument(
        "--discover",
        action="store_true",
        help="print names on the index that a pattern of the list has and its names have not; end",
    )
    parser.add_argument(
        "--notes",
        action="store_true",
        help="also say which files of the index are none that can be read",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no summary; faults only"
    )
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not 1 <= options.jobs <= 32:
        parser.error(f"expected --jobs from 1 to 32, found {options.jobs}")
    if options.date and not re.fullmatch(r"\d{4}-\d\d-\d\d", options.date):
        parser.error(f"expected --date as 2026-11-21, found {options.date}")
    try:
        return _run(options)
    except UsageFault as fault:
        print(f"refresh_matrix: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "refresh_matrix: stopped; what was read is kept, nothing was written", file=sys.stderr
        )
        # Threads that wait for the network would hold the process up until they have their answer.
        sys.stderr.flush()
        os._exit(130)


def _run(options: argparse.Namespace) -> int:
    started = time.monotonic()
    selection = load_selection(options.selection)
    unknown = sorted(set(options.only) - set(selection.names))
    if unknown:
        raise UsageFault(f"expected names of {options.selection}, found {', '.join(unknown)}")
    index = (options.index_url or default_index()).rstrip("/")
    if not index.startswith(("http://", "https://")):
        raise UsageFault(
            f"expected an index address with http or https, found {printable(index, 60)}"
        )
    transport = Transport(pause=float(os.environ.get("REFRESH_MATRIX_PAUSE", "0.5")))
    if options.discover:
        return _discover(transport, index, selection)
    names = sorted(set(options.only)) or list(selection.names)
    date = options.date or datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    listing_path = os.path.join(options.output, "index.json")
    listed_on, listing = documents.load_listing(listing_path)
    try:
        kept = store.Store(options.cache_dir, index)
    except OSError as error:
        raise UsageFault(
            f"{options.cache_dir}: cannot be used as cache: {error.strerror}"
        ) from error
    with _progress(options.quiet) as bar:
        outcome = Refresh(
            index, transport, kept, selection, options.jobs, options.offline_cache, bar
        ).run(names, options.output, date)
    if not outcome.listing and outcome.faults:
        for line in outcome.faults[:5]:
            print(f"refresh_matrix: {printable(line, 400)}", file=sys.stderr)
        raise UsageFault(f"no project could be read from {printable(redact(index))}")
    newest = {
        **{name: entry for name, entry in listing.items() if name in selection.names},
        **outcome.listing,
    }
    changed = _changed(outcome, options)
    if newest != listing:
        changed["index.json"] = (listing_path, documents.render_listing(newest, date))
    elif listed_on:
        newest = listing
    if not options.check:
        # The listing last: it says that the packages are there.
        for path, content in changed.values():
            documents.write_if_new(path, content)
    for line in outcome.faults:
        print(f"refresh_matrix: {printable(line, 400)}", file=sys.stderr)
    if options.notes:
        for line in outcome.notes:
            print(f"left out: {printable(line, 400)}", file=sys.stderr)
    if not options.quiet:
        _summary(outcome, changed, options, transport, time.monotonic() - started)
    return 1 if outcome.faults or (options.check and changed) else 0


def _changed(outcome: Outcome, options: argparse.Namespace) -> Dict[str, Tuple[str, bytes]]:
    """The files that are not as they should be: name → path and content."""
    changed = {}
    for name, document in outcome.documents.items():
        if outcome.old[name] == document:
            continue
        changed[f"packages/{name}.json"] = (
            os.path.join(options.output, "packages", f"{name}.json"),
            documents.render(document),
        )
        change = documents.compare(outcome.old[name], document, outcome.listing[name].releases)
        if not options.quiet:
            print(f"{name}: {_sentence(change)}")
    return changed


def _sentence(change: documents.Change) -> str:
    parts = []
    for word, versions in (
        ("new", change.added),
        ("changed", change.changed),
        ("not on the index any more, kept", change.gone),
    ):
        if versions:
            parts.append(
                f"{len(versions)} {word} "
                f"({', '.join(versions[-3:])}{', …' if len(versions) > 3 else ''})"
            )
    return "; ".join(parts) or "only the form of the file"


def _summary(
    outcome: Outcome,
    changed: Mapping[str, Any],
    options: argparse.Namespace,
    transport: Transport,
    seconds: float,
) -> None:
    count = sum(len(entry.releases) for entry in outcome.listing.values())
    done = "would change" if options.check else "written"
    print(
        f"{len(outcome.listing)} packages, {count} releases, {outcome.read} files; {len(changed)} "
        f"{done}; "
        f"{transport.requests_made} requests, {transport.bytes_read / 1e6:.0f} MB, "
        f"{seconds:.0f} s; "
        f"{len(outcome.faults)} faults, {len(outcome.notes)} names on the index left out",
        file=sys.stderr,
    )


def _discover(transport: Transport, index: str, selection: Selection) -> int:
    try:
        page = transport.get(f"{index}/", _MOST_INDEX, "text/html").content.decode(
            "utf-8", "replace"
        )
    except (Unreachable, Refused) as fault:
        raise UsageFault(f"{printable(redact(index))}: {fault}") from fault
    names = (
        re.sub(r"[-_.]+", "-", name).lower()
        for name in re.findall(r"<a[^>]*>([A-Za-z0-9._-]+)</a>", page)
    )
    for name in selection.undiscovered(names):
        print(name)
    return 0
