"""HTTP as the refresh needs it: every body is bounded, ranges are checked, transient faults are
retried.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Callable, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

import requests

from envdoctor.model.redaction import redact

from .errors import Refused, Unreachable, printable

__all__ = ["Body", "NotThere", "Transport"]

_TRANSIENT = frozenset((408, 425, 429, 500, 502, 503, 504))
_CHUNK = 1 << 16
_LONGEST_PAUSE = 30.0


class NotThere(Unreachable):
    """The index answered that it has no such page or file."""


class Body(NamedTuple):
    """An answer: its bytes, where they start in the file, and the size of the file where the server
    said so.
    """

    content: bytes
    start: int
    total: Optional[int]
    content_type: str
    ranged: bool


class Transport:
    """A session for each thread; ``requests_made`` and ``bytes_read`` count over all of them."""

    def __init__(
        self,
        attempts: int = 5,
        timeout: float = 60.0,
        pause: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._attempts = attempts
        self._timeout = timeout
        self._pause = pause
        self._sleep = sleep
        self._local = threading.local()
        self._lock = threading.Lock()
        self.requests_made = 0
        self.bytes_read = 0

    def get(self, address: str, limit: int, accept: str = "*/*") -> Body:
        """Return a whole body of at most ``limit`` bytes.

        Raises:
            NotThere: 404 or 410.
            Unreachable: no answer after all attempts.
            Refused: the body is longer.
        """
        return self._fetch(address, limit, {"Accept": accept})

    def get_range(self, address: str, first: Optional[int], length: int, whole: int = 0) -> Body:
        """Return ``length`` bytes from ``first``; the last ``length`` bytes where that is None.

        A server without ranges sends the whole file: taken up to ``whole`` bytes, refused beyond.
        """
        wanted = f"bytes=-{length}" if first is None else f"bytes={first}-{first + length - 1}"
        return self._fetch(
            address,
            max(length, whole),
            {"Range": wanted, "Accept-Encoding": "identity"},
            first,
            length,
        )

    def _session(self) -> requests.Session:
        session: Optional[requests.Session] = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.max_redirects = 5
            session.headers["User-Agent"] = "envdoctor-refresh-matrix"
            self._local.session = session
        return session

    def _fetch(
        self,
        address: str,
        limit: int,
        headers: Mapping[str, str],
        first: Optional[int] = None,
        length: Optional[int] = None,
    ) -> Body:
        if urlsplit(address).scheme not in ("http", "https"):
            raise Refused(f"its address is not http or https: {printable(address, 60)}")
        fault = ""
        for attempt in range(self._attempts):
            if attempt:
                self._sleep(
                    min(_LONGEST_PAUSE, self._pause * 2 ** (attempt - 1))
                    * (0.75 + random.random() / 2)
                )
            try:
                with self._session().get(
                    address, headers=dict(headers), stream=True, timeout=(10, self._timeout)
                ) as answer:
                    with self._lock:
                        self.requests_made += 1
                    if answer.status_code in (404, 410):
                        raise NotThere(f"{printable(redact(address))}: HTTP {answer.status_code}")
                    if answer.status_code in _TRANSIENT:
                        fault = f"HTTP {answer.status_code}"
                        self._wait_as_told(answer.headers, attempt)
                        continue
                    if answer.status_code not in (200, 206):
                        raise Unreachable(
                            f"{printable(redact(address))}: HTTP {answer.status_code}"
                        )
                    return self._read(answer, limit, first, length)
            except (
                requests.ConnectionError,
                requests.Timeout,
                requests.exceptions.ChunkedEncodingError,
                requests.exceptions.ContentDecodingError,
            ) as error:
                fault = type(error).__name__
            except requests.RequestException as error:
                raise Unreachable(
                    f"{printable(redact(address))}: {type(error).__name__}"
                ) from error
        raise Unreachable(f"{printable(redact(address))}: {fault} after {self._attempts} attempts")

    def _wait_as_told(self, headers: Mapping[str, str], attempt: int) -> None:
        seconds = headers.get("Retry-After", "")
        if seconds.isdigit() and attempt + 1 < self._attempts:
            self._sleep(min(_LONGEST_PAUSE, float(seconds)))

    def _read(
        self, answer: requests.Response, limit: int, first: Optional[int], length: Optional[int]
    ) -> Body:
        start, total = 0, None
        ranged = answer.status_code == 206
        if ranged:
            start, total = _content_range(answer.headers)
            if length is None or (first is not None and start != first):
                raise Refused("the server sent another part of the file than was asked for")
            limit = length
        declared = answer.headers.get("Content-Length", "")
        if declared.isdigit() and int(declared) > limit:
            raise Refused(f"it has {int(declared)} bytes, at most {limit} are read")
        parts = []
        size = 0
        for part in answer.iter_content(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise Refused(f"it has more than {limit} bytes")
        with self._lock:
            self.bytes_read += size
        if (
            declared.isdigit()
            and "Content-Encoding" not in answer.headers
            and size != int(declared)
        ):
            raise requests.ConnectionError(
                "cut off"
            )  # requests itself is silent about a short body
        return Body(
            b"".join(parts),
            start,
            total if ranged else size,
            answer.headers.get("Content-Type", ""),
            ranged,
        )


def _content_range(headers: Mapping[str, str]) -> Tuple[int, Optional[int]]:
    unit, _, rest = headers.get("Content-Range", "").partition(" ")
    span, _, total = rest.partition("/")
    start = span.split("-", 1)[0]
    if unit != "bytes" or not start.isdigit():
        raise Refused("the server sent a part of the file without saying which")
    return int(start), int(total) if total.isdigit() else None
