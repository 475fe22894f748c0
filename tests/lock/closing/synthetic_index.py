"""A package index of our own: small wheels and source archives of any name, served as PEP 503, 691
and 658 say, with faults on request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import http.server
import io
import json
import tarfile
import threading
import time
import zipfile
from contextlib import contextmanager

UPLOADED = "2024-01-01T00:00:00Z"


def normalized(name):
    return name.lower().replace("_", "-").replace(".", "-")


def wheel(name, version, requires=(), *, extras=(), tag="py3-none-any"):
    """Return (file name, bytes, METADATA) of a wheel that installers take."""
    stem = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Provides-Extra: {extra}" for extra in extras] + [
        f"Requires-Dist: {line}" for line in requires
    ]
    metadata = "\n".join(lines) + "\n"
    files = {
        f"{name.replace('-', '_')}_synthetic.py": f"version = {version!r}\n",
        f"{stem}.dist-info/METADATA": metadata,
        f"{stem}.dist-info/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
        ),
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for path, text in files.items()
    )
    files[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2024, 1, 1, 0, 0, 0)), text)
    return f"{stem}-{tag}.whl", data.getvalue(), metadata


def sdist(name, version, members):
    """Return (file name, bytes) of a source archive; the setup code in it, if it ever runs, leaves
    a mark and fails.
    """
    stem = f"{name}-{version}"
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in {
            "setup.py": (
                "import pathlib; pathlib.Path(__file__).parent.joinpath('ran').touch(); "
                "raise SystemExit(9)\n"
            ),
            **members,
        }.items():
            entry = tarfile.TarInfo(f"{stem}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"{stem}.tar.gz", data.getvalue()


class Index:
    """Files by project, and how the server misbehaves.

    ``requests`` are the paths that were asked for.
    """

    def __init__(self):
        self.files = {}  # file name -> (project, bytes, METADATA or None)
        self.requests = []
        self.password = None
        self.dies_after = None  # answered requests, then every connection is cut
        self.hangs = False
        self.times = True
        self.uploaded = {}  # file name or project -> time, where it is not UPLOADED
        self.address = ""

    def add(self, name, version, requires=(), **options):
        file, data, metadata = wheel(name, version, requires, **options)
        self.files[file] = (normalized(name), data, metadata)
        return self

    def add_sdist(self, name, version, members):
        file, data = sdist(name, version, members)
        self.files[file] = (normalized(name), data, None)
        return self

    def write(self, folder):
        """Write all files into a folder, for --find-links."""
        folder.mkdir(parents=True, exist_ok=True)
        for file, (_, data, _) in self.files.items():
            (folder / file).write_bytes(data)
        return folder

    def hashes(self, project):
        return {
            "sha256:" + hashlib.sha256(data).hexdigest()
            for owner, data, _ in self.files.values()
            if owner == project
        }

    def page(self, project):
        """Return the PEP 691 page of a project, or None."""
        files = []
        for file, (owner, data, metadata) in sorted(self.files.items()):
            if owner == project:
                entry = {
                    "filename": file,
                    "url": f"../../files/{file}",
                    "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                    "size": len(data),
                }
                if metadata is not None:
                    entry["core-metadata"] = {
                        "sha256": hashlib.sha256(metadata.encode()).hexdigest()
                    }
                if self.times:
                    entry["upload-time"] = self.uploaded.get(file) or self.uploaded.get(
                        project, UPLOADED
                    )
                files.append(entry)
        return {"meta": {"api-version": "1.1"}, "name": project, "files": files} if files else None


@contextmanager
def served(index):
    """Serve an index; its ``address`` is the one for --index-url."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            return

        def answer(self, status, kind="text/plain", data=b""):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def do_GET(self):
            index.requests.append(self.path)
            if index.hangs:
                time.sleep(30)
            if index.dies_after is not None and len(index.requests) > index.dies_after:
                self.close_connection = True
                self.connection.close()
                return
            if index.password is not None:
                wanted = base64.b64encode(f"user:{index.password}".encode()).decode()
                if self.headers.get("Authorization") != f"Basic {wanted}":
                    self.answer(401)
                    return
            parts = self.path.strip("/").split("/")
            if parts[0] == "files":
                name = parts[1].replace("%2B", "+")
                described = name.endswith(".metadata")
                entry = index.files.get(name[: -len(".metadata")] if described else name)
                if entry is None or (described and entry[2] is None):
                    self.answer(404)
                else:
                    self.answer(
                        200,
                        "application/octet-stream",
                        entry[2].encode() if described else entry[1],
                    )
                return
            page = index.page(parts[1]) if len(parts) > 1 else None
            if page is None:
                self.answer(404)
            elif "json" in self.headers.get("Accept", ""):
                self.answer(200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode())
            else:
                links = "".join(
                    f'<a href="{html.escape(entry["url"])}#sha256={entry["hashes"]["sha256"]}">{entry["filename"]}</a>\n'
                    for entry in page["files"]
                )
                self.answer(
                    200, "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
                )

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    index.address = f"http://127.0.0.1:{server.server_address[1]}/simple/"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
