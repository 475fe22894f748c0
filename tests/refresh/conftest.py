"""A small package index on loopback: pages in HTML or JSON, files with and without ranges, and
every misbehaviour that a test asks for.
"""

import hashlib
import html
import http.server
import io
import json
import os
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path
from typing import NamedTuple, Optional

import pytest

from ..cli.forked import ForkServer

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "refresh_matrix"
sys.path.insert(0, str(ROOT / "scripts"))


class Served(NamedTuple):
    name: str
    content: bytes
    uploaded: str = "2025-03-01T10:00:00.000000Z"
    requires_python: Optional[str] = None
    yanked: Optional[str] = None
    href: Optional[str] = None
    metadata: Optional[bytes] = None
    sha256: Optional[str] = None


def metadata_text(name, version, requires=(), python=">=3.9", more=""):
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {python}"] if python else []
    lines += [f"Requires-Dist: {line}" for line in requires]
    return "\n".join(lines) + "\n" + more + "\nThe description.\n"


def make_wheel(
    name, version, requires=(), *, text=None, folder=None, members=(), padding=0, **fields
):
    """Return the bytes of a wheel: METADATA lies last, as real ones have it, behind ``padding``
    bytes that do not pack.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if padding:
            archive.writestr(zipfile.ZipInfo(f"{name}/blob.bin"), b"\x5a" * padding)  # stored
        for member, content in members:
            archive.writestr(member, content)
        folder = folder or f"{name.replace('-', '_')}-{version}.dist-info"
        archive.writestr(
            f"{folder}/METADATA",
            metadata_text(name, version, requires, **fields) if text is None else text,
        )
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\n")
    return buffer.getvalue()


def wheel(name, version, requires=(), *, tags="py3-none-any", served=None, **how):
    """Return a served wheel with consistent names; ``served`` are fields of Served."""
    return Served(
        f"{name.replace('-', '_')}-{version}-{tags}.whl",
        make_wheel(name, version, requires, **how),
        **(served or {}),
    )


def sdist(name, version, requires=(), *, egg_info=None, more=(), text=None):
    stem = f"{name.replace('-', '_')}-{version}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        members = [
            (f"{stem}/PKG-INFO", metadata_text(name, version, requires) if text is None else text),
            *more,
        ]
        if egg_info is not None:
            members.append((f"{stem}/{name.replace('-', '_')}.egg-info/requires.txt", egg_info))
        # It would end the test run, loudly, if anything ran it.
        members.append((f"{stem}/setup.py", "raise SystemExit('setup.py was run')\n"))
        for member, content in members:
            data = content.encode() if isinstance(content, str) else content
            information = tarfile.TarInfo(member)
            information.size = len(data)
            archive.addfile(information, io.BytesIO(data))
    return Served(f"{stem}.tar.gz", buffer.getvalue())


class Index:
    """What the server has, how it behaves, and what it was asked."""

    def __init__(self):
        self.projects = {}
        self.as_json = False
        self.ranges = True
        self.failures = {}  # path → how many times 503 comes first
        self.delay = 0.0
        self.cut = {}  # path → bytes after which the connection ends
        self.extra_html = ""
        self.asked = []
        self.address = ""

    def add(self, project, *files):
        self.projects.setdefault(project, []).extend(files)

    def page(self, project):
        files = self.projects[project]
        if self.as_json:
            entries = [
                {
                    "filename": file.name,
                    "url": file.href or f"../../files/{file.name}",
                    "hashes": {"sha256": digest(file)},
                    "upload-time": file.uploaded,
                    "requires-python": file.requires_python,
                    "yanked": False if file.yanked is None else (file.yanked or True),
                    "core-metadata": False
                    if file.metadata is None
                    else {"sha256": hashlib.sha256(file.metadata).hexdigest()},
                }
                for file in files
            ]
            return json.dumps(
                {"meta": {"api-version": "1.1"}, "name": project, "files": entries}
            ).encode(), "application/vnd.pypi.simple.v1+json"
        lines = []
        for file in files:
            attributes = f' data-upload-time="{file.uploaded}"'
            if file.requires_python is not None:
                attributes += f' data-requires-python="{html.escape(file.requires_python)}"'
            if file.yanked is not None:
                attributes += f' data-yanked="{html.escape(file.yanked)}"'
            if file.metadata is not None:
                attributes += (
                    f' data-core-metadata="sha256={hashlib.sha256(file.metadata).hexdigest()}"'
                )
            href = html.escape(file.href or f"../../files/{file.name}#sha256={digest(file)}")
            lines.append(f'<a href="{href}"{attributes}>{html.escape(file.name)}</a><br/>')
        return (
            f"<!DOCTYPE html><html><body>{self.extra_html}{''.join(lines)}</body></html>".encode(),
            "text/html; charset=utf-8",
        )

    def file(self, name):
        for files in self.projects.values():
            for file in files:
                if file.name == name:
                    return file.content
                if f"{file.name}.metadata" == name and file.metadata is not None:
                    return file.metadata
        return None


def digest(file):
    return file.sha256 or hashlib.sha256(file.content).hexdigest()


def handler_of(index):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            index.asked.append((self.path, self.headers.get("Range")))
            time.sleep(index.delay)
            if index.failures.get(self.path, 0) > 0:
                index.failures[self.path] -= 1
                return self.answer(503, b"later")
            parts = self.path.strip("/").split("/")
            if parts[0] == "simple" and len(parts) == 2 and parts[1] in index.projects:
                return self.answer(200, *index.page(parts[1]))
            if self.path.rstrip("/") == "/simple":
                return self.answer(
                    200,
                    "".join(f'<a href="{name}/">{name}</a>\n' for name in index.projects).encode(),
                    "text/html",
                )
            content = index.file(parts[1]) if parts[0] == "files" and len(parts) == 2 else None
            if content is None:
                return self.answer(404, b"")
            wanted = self.headers.get("Range", "")
            if not wanted.startswith("bytes=") or not index.ranges:
                return self.answer(200, content)
            first, _, last = wanted[6:].partition("-")
            start, end = (
                (max(0, len(content) - int(last)), len(content))
                if not first
                else (int(first), min(int(last) + 1, len(content)))
            )
            if start >= end:
                return self.answer(416, b"")
            return self.answer(
                206,
                content[start:end],
                more={"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"},
            )

        def answer(self, status, content, kind="application/octet-stream", more=None):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            for name, value in (more or {}).items():
                self.send_header(name, value)
            self.end_headers()
            cut = index.cut.get(self.path)
            self.wfile.write(content if cut is None else content[:cut])
            if cut is not None:
                self.close_connection = True

    return Handler


@pytest.fixture
def index():
    served = Index()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(served))
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    served.address = f"http://127.0.0.1:{server.server_port}/simple"
    yield served
    server.shutdown()
    server.server_close()
    thread.join(5)


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Refresh:
    """The command on a folder of its own, as a developer runs it."""

    def __init__(self, index, folder, server):
        self.index = index
        self.server = server
        self.folder = folder
        self.output = folder / "matrices"
        self.cache = folder / "cache"
        self.list = folder / "packages.toml"

    def command(
        self, *options, names=None, also=("numpy", "torch", "triton"), elsewhere=(), families=""
    ):
        names = sorted(self.index.projects) if names is None else names
        kept = sorted(set(also) - set(names))
        self.list.write_text(
            f"packages = {json.dumps(names)}\nalso = {json.dumps(kept)}\nelsewhere = "
            f"{json.dumps(list(elsewhere))}\n{families}"
        )
        return [
            *(
                sys.executable,
                str(SCRIPT),
                "--list",
                str(self.list),
                "--index-url",
                self.index.address,
                "--output",
                str(self.output),
            ),
            *("--cache-dir", str(self.cache), "--jobs", "4", "--date", "2026-11-21", *options),
        ]

    def __call__(self, *options, environment=None, **lists):
        words = self.command(*options, **lists)[2:]
        done = self.server.run(words, self.environment(environment), os.getcwd(), None, 60)
        output, errors = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in errors, errors
        return Done(done.returncode, output, errors)

    @staticmethod
    def environment(more=None):
        kept = {
            key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")
        }
        return {**kept, "REFRESH_MATRIX_PAUSE": "0.01", **(more or {})}

    def document(self, name):
        return json.loads((self.output / "packages" / f"{name}.json").read_text(encoding="utf-8"))

    def release(self, name, version):
        return next(
            entry for entry in self.document(name)["releases"] if entry["version"] == version
        )

    def listing(self):
        return json.loads((self.output / "index.json").read_text(encoding="utf-8"))

    def bytes(self):
        return {
            str(path.relative_to(self.output)): path.read_bytes()
            for path in sorted(self.output.rglob("*"))
            if path.is_file()
        }


@pytest.fixture(scope="session")
def refresh_server():
    """Return the process whose forks run the script."""
    server = ForkServer("tests.refresh.forked")
    yield server
    server.close()


@pytest.fixture
def refresh(index, tmp_path, refresh_server):
    return Refresh(index, tmp_path, refresh_server)
