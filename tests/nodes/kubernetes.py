"""An API server with pods and ``exec`` for a real kubectl, and a kubelet that starts what it is
told to on this machine.

What kubectl asks is answered as api-conventions.md says, what is no resource with a Status of code
404. ``exec`` speaks both protocols that kubectl does: SPDY/3.1 (draft-mbelshe-httpbis-spdy-00, the
only one before 1.30) with v4.channel.k8s.io, and WebSocket (RFC 6455) with v5.channel.k8s.io.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import signal
import struct
import subprocess
import threading
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

__all__ = ["ApiServer", "pod"]

_WORDS = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
]
#: What both ends have compressed before the first header: SPDY/3, 2.6.10.1.
_DICTIONARY = b"".join(
    struct.pack(">I", len(word)) + word.encode()
    for word in [
        *[*_WORDS, "200 OK", "version", "HTTP/1.1"],
        *["url", "public", "set-cookie", "keep-alive", "origin"],
    ]
) + (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    b"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    b"401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    b"503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    b"Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    b"application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    b"charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_SYN_STREAM, _SYN_REPLY, _PING, _GOAWAY = 1, 2, 6, 7
_FIN = 1
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_RESOURCES = [
    {
        "name": "pods",
        "singularName": "",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["get", "list"],
    },
    {
        "name": "pods/exec",
        "singularName": "",
        "namespaced": True,
        "kind": "PodExecOptions",
        "verbs": ["create", "get"],
    },
]


def pod(name: str, digest: str = "", phase: str = "Running", **labels: str) -> Dict[str, Any]:
    """Return a pod with one container, as the API has it."""
    status: Dict[str, Any] = {"phase": phase}
    if phase == "Running":
        image = {"name": "main", "imageID": f"docker.io/x@{digest}" if digest else ""}
        status["containerStatuses"] = [{**image, "ready": True, "restartCount": 0}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"nodeName": name, "containers": [{"name": "main", "image": "x"}]},
        "status": status,
    }


class ApiServer:
    """Serves these pods on a port of its own until :meth:`stop`.

    Args:
        pods: As the API has them.
        environment: What a process in the pod of a name gets.
    """

    def __init__(
        self, pods: List[Dict[str, Any]], environment: Callable[[str], Mapping[str, str]]
    ) -> None:
        self.pods = {entry["metadata"]["name"]: entry for entry in pods}
        self.environment = environment
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def config(self) -> str:
        """Return the text of a KUBECONFIG; JSON is YAML."""
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ApiServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path.endswith("/exec") and "upgrade" in self.headers.get("Connection", "").lower():
            self._exec(url)
            return
        document = _document(self.api, url.path, parse_qs(url.query))
        self._answer(404 if document is None else 200, document or _status("NotFound", 404))

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        if url.path.endswith("/exec"):
            self._exec(url)
        else:
            self._answer(405, _status("MethodNotAllowed", 405))

    def _answer(self, code: int, document: Dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _exec(self, url: Any) -> None:
        name, query = url.path.split("/")[-2], parse_qs(url.query, keep_blank_values=True)
        if name not in self.api.pods:
            self._answer(404, _status("NotFound", 404))
            return
        kind = self.headers.get("Upgrade", "").lower()
        protocols = ",".join(
            self.headers.get_all("X-Stream-Protocol-Version")
            or self.headers.get_all("Sec-WebSocket-Protocol")
            or []
        )
        wanted = {"spdy/3.1": "v4.channel.k8s.io", "websocket": "v5.channel.k8s.io"}.get(kind)
        if wanted is None or wanted not in [word.strip() for word in protocols.split(",")]:
            self._answer(400, _status("BadRequest", 400))
            return
        self.close_connection = True
        streams: _Streams
        if kind == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + _GUID
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            self._switch(
                "websocket", "Sec-WebSocket-Protocol", wanted, ("Sec-WebSocket-Accept", accept)
            )
            streams = _WebSocket(self.rfile, self.connection)
        else:
            self._switch("SPDY/3.1", "X-Stream-Protocol-Version", wanted)
            streams = _Spdy(self.rfile, self.connection)
        _run(query["command"], {**self.api.environment(name)}, streams)

    def _switch(self, kind: str, header: str, protocol: str, *more: Tuple[str, str]) -> None:
        self.send_response(101)
        for name, value in (
            ("Upgrade", kind),
            ("Connection", "Upgrade"),
            (header, protocol),
            *more,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()


def _status(reason: str, code: int) -> Dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": reason,
        "reason": reason,
        "code": code,
    }


def _document(
    api: ApiServer, path: str, query: Mapping[str, List[str]]
) -> Optional[Dict[str, Any]]:
    """Return what lies at a path of the API."""
    discovery = {
        "/version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _RESOURCES},
    }
    if path in discovery:
        return discovery[path]
    parts = path.strip("/").split("/")
    if parts[:4] != ["api", "v1", "namespaces", "default"] or parts[4:5] != ["pods"]:
        return None
    if len(parts) == 6:
        return api.pods.get(parts[5])
    wanted = dict(
        term.split("=") for text in query.get("labelSelector", ()) for term in text.split(",")
    )
    items = [
        entry
        for entry in api.pods.values()
        if wanted.items() <= entry["metadata"]["labels"].items()
    ]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


class _Streams:
    """What a client and a process say to each other, whatever carries it."""

    def __init__(self, rfile: Any, connection: Any) -> None:
        self._read, self._connection = rfile.read, connection
        self._lock = threading.Lock()

    def _send(self, data: bytes) -> None:
        with self._lock, suppress(OSError):
            self._connection.sendall(data)

    def open(self) -> None:
        """Wait until the client has opened its streams."""

    def input(self) -> Optional[bytes]:
        """Return what comes next for standard input; b"" at its end, None where the client left."""
        raise NotImplementedError

    def write(self, stream: str, data: bytes) -> None:
        """Send of "stdout", "stderr" or "error"."""
        raise NotImplementedError

    def close(self) -> None:
        """Say that nothing more comes."""
        raise NotImplementedError


class _Spdy(_Streams):
    def open(self) -> None:
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)
        self._ids: Dict[str, int] = {}
        while len(self._ids) < 4:
            if self._frame() is None:
                raise ConnectionError("the client left")

    def _frame(self) -> Optional[Tuple[int, int, bytes]]:
        """Read one frame; return stream, flags and data, with stream 0 for what is no data."""
        head = self._read(8)
        if len(head) < 8:
            return None
        first, second = struct.unpack(">II", head)
        flags, body = second >> 24, self._read(second & 0xFFFFFF)
        if not first >> 31:
            return first, flags, body
        kind = first & 0xFFFF
        if kind == _SYN_STREAM:
            (stream,) = struct.unpack(">I", body[:4])
            self._ids[_headers(self._inflate.decompress(body[10:]))["streamtype"]] = stream
            block = self._deflate.compress(struct.pack(">I", 0))
            block += self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._control(_SYN_REPLY, struct.pack(">I", stream) + block)
        elif kind == _PING:
            self._control(_PING, body)
        return None if kind == _GOAWAY else (0, flags, b"")

    def _control(self, kind: int, body: bytes) -> None:
        self._send(struct.pack(">HHI", 0x8003, kind, len(body)) + body)

    def input(self) -> Optional[bytes]:
        while True:
            frame = self._frame()
            if frame is None:
                return None
            stream, flags, data = frame
            if stream == self._ids["stdin"] and (data or flags & _FIN):
                return data  # a client that ends its input sends no data with that

    def write(self, stream: str, data: bytes, flags: int = 0) -> None:
        self._send(struct.pack(">II", self._ids[stream], flags << 24 | len(data)) + data)

    def close(self) -> None:
        for stream in ("stdout", "stderr", "error"):
            self.write(stream, b"", _FIN)


class _WebSocket(_Streams):
    _CHANNELS: Mapping[str, int] = {"stdout": 1, "stderr": 2, "error": 3}

    def input(self) -> Optional[bytes]:
        while True:
            head = self._read(2)
            if len(head) < 2:
                return None
            length = head[1] & 0x7F
            if length >= 126:
                length = int.from_bytes(self._read(2 if length == 126 else 8), "big")
            mask = self._read(4)
            data = self._read(length)
            plain = int.from_bytes(data, "big") ^ int.from_bytes(
                (mask * (length // 4 + 1))[:length], "big"
            )
            data = plain.to_bytes(length, "big")
            kind = head[0] & 0x0F
            if kind == 8:
                return None
            if kind == 9:
                self._frame(10, data)
            elif kind == 2 and data[:1] == b"\xff":  # v5: this channel is closed
                return b""
            elif kind == 2 and data[:1] == b"\0" and len(data) > 1:
                return data[1:]

    def _frame(self, kind: int, data: bytes) -> None:
        size = len(data)
        head = (
            struct.pack(">BB", 0x80 | kind, size)
            if size < 126
            else (struct.pack(">BBH", 0x80 | kind, 126, size))
        )
        self._send(head + data)

    def write(self, stream: str, data: bytes) -> None:
        self._frame(2, bytes([self._CHANNELS[stream]]) + data)

    def close(self) -> None:
        self._frame(8, struct.pack(">H", 1000))


def _headers(block: bytes) -> Dict[str, str]:
    """Return a block of SPDY headers: counts and lengths in four bytes."""
    parts, at = [], 4
    while at < len(block):
        (length,) = struct.unpack(">I", block[at : at + 4])
        parts.append(block[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return dict(zip(parts[::2], parts[1::2]))


def _run(command: List[str], environment: Dict[str, str], streams: _Streams) -> None:
    """Start the command of an ``exec`` and pass on what it says, as a kubelet does."""
    streams.open()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )

    def feed() -> None:
        assert process.stdin is not None
        with suppress(OSError, ValueError):
            data = streams.input()
            while data:
                process.stdin.write(data)
                data = streams.input()
            process.stdin.close()
            while data is not None:
                data = streams.input()
        # Who left wants nothing more; what ended is past that.
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

    threading.Thread(target=feed, daemon=True).start()
    pipes = {process.stdout: "stdout", process.stderr: "stderr"}
    while pipes:
        for pipe in select.select(list(pipes), [], [])[0]:
            data = os.read(pipe.fileno(), 1 << 15)
            if data:
                streams.write(pipes[pipe], data)
            else:
                del pipes[pipe]
    code = process.wait()
    status: Dict[str, Any] = {"metadata": {}, "status": "Success"}
    if code:
        causes = [{"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}]
        status = {**_status("NonZeroExitCode", 500), "details": {"causes": causes}}
    streams.write("error", json.dumps(status).encode())
    streams.close()
