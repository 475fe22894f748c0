"""A server with ranges on loopback.

The scanner lies in scripts/, which is no package: its folder goes on the path.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        content = self.server.content
        first, last = self.headers["Range"][len("bytes=") :].split("-")
        start = max(0, len(content) - int(last)) if not first else int(first)
        end = len(content) if not first else min(int(last) + 1, len(content))
        part = content[start:end]
        self.server.ranges.append((start, end))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.content, made.ranges = b"", []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def opened(server):
    from matrix_refresh.transport import Transport
    from wheel_scan.zip_range import RemoteZip

    def open_(content, piece=1 << 16):
        server.content, server.ranges = content, []
        return RemoteZip(
            Transport(attempts=1), f"http://127.0.0.1:{server.server_port}/a.whl", piece
        )

    return open_
