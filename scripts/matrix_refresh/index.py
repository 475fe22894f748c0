"""The page of one project on an index (PEP 503, 691, 700, 714): HTML or JSON → files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import canonicalize_name

from .errors import Refused, UsageFault, printable

__all__ = ["ACCEPT", "IndexFile", "default_index", "parse_page"]

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, "
    "text/html;q=0.1"
)

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*")


class IndexFile(NamedTuple):
    """One file of a project.

    ``yanked``: None, or the reason, which may be empty. ``metadata``: None, or the hash of its
    core-metadata file, "" where that has none.
    """

    name: str
    address: str
    sha256: str
    uploaded: str
    requires_python: Optional[str]
    yanked: Optional[str]
    metadata: Optional[str]


def default_index() -> str:
    """Return the index that pip uses here: its options, environment and configuration decide, not
    this program.

    Raises:
        UsageFault: pip does not say.
    """
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/")
    command = [sys.executable, "-m", "pip", "install", "--help"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "1000", "NO_COLOR": "1"},
    )
    match = re.search(
        r"--index-url\s+<url>.*?\(default (https?://[^\s)]+)\)", done.stdout, re.DOTALL
    )
    if match is None:
        raise UsageFault("expected pip to say which index it uses, found nothing; give --index-url")
    return match.group(1).rstrip("/")


def parse_page(
    content: bytes, content_type: str, address: str, project: str
) -> Tuple[List[IndexFile], List[str]]:
    """Return the files of a page, and what was left out of it with the reason.

    Raises:
        Refused: the page is neither, or is another project's.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"the page is not UTF-8: {error.reason} at byte {error.start}") from error
    if "json" in content_type:
        entries = _json_entries(text, project)
    else:
        parser = _Anchors()
        parser.feed(text)
        parser.close()
        entries = parser.entries
    files: Dict[str, IndexFile] = {}
    left_out: List[str] = []
    for entry in entries:
        try:
            file = _file(entry, address)
        except Refused as fault:
            left_out.append(
                f"{printable(str(entry.get('filename') or entry.get('href') or '?'), 120)}: {fault}"
            )
            continue
        files.setdefault(file.name, file)
    return list(files.values()), left_out


class _Anchors(HTMLParser):
    """Anchors with their attributes and text; everything else on the page is nothing to us."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.entries: List[Dict[str, Any]] = []
        self._open: Optional[Dict[str, Any]] = None

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        if tag != "a":
            return
        values = dict(attrs)
        self._open = {
            "href": values.get("href") or "",
            "filename": "",
            "requires-python": values.get("data-requires-python"),
            "upload-time": values.get("data-upload-time") or "",
            # The attribute without a value counts as well: PEP 592.
            "yanked": (values["data-yanked"] or "") if "data-yanked" in values else None,
            "metadata": values.get("data-core-metadata", values.get("data-dist-info-metadata")),
        }
        self.entries.append(self._open)

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open["filename"] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._open = None


def _json_entries(text: str, project: str) -> List[Dict[str, Any]]:
    try:
        page = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("the page is not JSON") from error
    files = page.get("files") if isinstance(page, dict) else None
    if not isinstance(files, list):
        raise Refused("the page has no list of files")
    if canonicalize_name(str(page.get("name", project))) != project:
        raise Refused(f"the page is that of {printable(str(page.get('name')), 80)}")
    entries = []
    for item in files:
        if not isinstance(item, dict):
            continue
        yanked = item.get("yanked", False)
        metadata = item.get("core-metadata", item.get("dist-info-metadata"))
        hashes = item.get("hashes")
        entries.append(
            {
                "href": str(item.get("url", "")),
                "filename": str(item.get("filename", "")),
                "sha256": str(hashes.get("sha256", "")) if isinstance(hashes, dict) else "",
                "requires-python": item.get("requires-python"),
                "upload-time": str(item.get("upload-time", "")),
                "yanked": None
                if yanked is False or yanked is None
                else ("" if yanked is True else str(yanked)),
                "metadata": None
                if metadata is None or metadata is False
                else (f"sha256={metadata.get('sha256', '')}" if isinstance(metadata, dict) else ""),
            }
        )
    return entries


def _file(entry: Dict[str, Any], page: str) -> IndexFile:
    target, fragment = urldefrag(urljoin(page, entry["href"].strip()))
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https"):
        raise Refused("its address is not http or https")
    name = entry["filename"].strip()
    if not _FILE_NAME.fullmatch(name) or len(name) > 255:
        raise Refused("it is no file name")
    if unquote(parts.path.rsplit("/", 1)[-1]) != name:
        raise Refused("name and address differ")
    sha256 = entry.get("sha256") or (fragment[7:] if fragment.startswith("sha256=") else "")
    if sha256 and not _SHA256.fullmatch(sha256):
        raise Refused("its hash is none")
    metadata = entry["metadata"]
    if metadata is not None:
        metadata = (
            metadata[7:]
            if metadata.startswith("sha256=") and _SHA256.fullmatch(metadata[7:])
            else ""
        )
    return IndexFile(
        name,
        target,
        sha256,
        entry["upload-time"],
        entry["requires-python"],
        entry["yanked"],
        metadata,
    )
