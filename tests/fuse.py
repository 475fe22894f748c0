"""A FUSE file system of the tests: a mirror of a real folder, in which chosen names answer with an
error, late or never.

It speaks the kernel's protocol (linux/fuse.h) through /dev/fuse itself, so that nothing has to be
installed. What waits for an answer that never comes is in state D once the server has taken the
request: no signal ends it, as on a hard NFS mount.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, Optional

import pytest

HEADER = struct.Struct("<IIQQIIII")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, RELEASE, FLUSH = 1, 2, 3, 5, 14, 15, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 36, 42
PARALLEL_DIROPS = 1 << 18  # else the kernel asks for one name of a folder at a time
SILENT = 0
SLOW, DELAY_S = -1, 0.02
MNT_DETACH = 2
CLONE_NEWNS, MS_REC, MS_SLAVE = 0x20000, 0x4000, 0x80000


@contextlib.contextmanager
def mounted(source: Path, place: Path, faults: Dict[str, int]) -> Iterator[subprocess.Popen]:
    """Mount a mirror of ``source`` at ``place`` for as long as the context lasts.

    ``faults``: by name of a file or folder ("" is the top) the errno with which it, and all below
    it, answers, ``SLOW`` for an answer after ``DELAY_S``, or ``SILENT`` for none at all.
    """
    _hide_mounts()
    server = subprocess.Popen(
        [sys.executable, __file__, str(source), str(place), json.dumps(faults)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdout is not None
    try:
        if server.stdout.readline() != b"mounted\n":
            pytest.skip("a FUSE file system cannot be mounted here")
        yield server
    finally:
        # Without its server the connection ends, and with it all that waits for an answer.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        server.stdout.close()
        ctypes.CDLL(None).umount2(os.fsencode(place), MNT_DETACH)


@functools.cache
def _hide_mounts() -> None:
    """Keep mounts to this process and its children: beside one that never answers, every probe of
    this machine takes another way.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None):
        pytest.skip("a mount namespace cannot be made here")


def wait_for(condition, seconds: float = 5.0) -> bool:
    """Wait until something is true; return whether it became so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


class Server:
    """Answers the kernel's requests: one after the other, or where it is slow as many at a time as
    it has threads, since a slow disk is late and not busy.
    """

    def __init__(self, source: str, faults: Dict[str, int]) -> None:
        self.source = source
        self.faults = faults
        self.paths = {1: ""}
        self.numbers = {"": 1}
        self.device = os.open("/dev/fuse", os.O_RDWR)
        self.lock = threading.Lock()

    def mount(self, place: str) -> None:
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"tests", os.fsencode(place), b"fuse.tests", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "mount")

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self.device, 1 << 18)
            except OSError as error:
                if error.errno == errno.ENODEV:  # unmounted
                    return
                continue  # ENOENT: a request that was interrupted before it was taken
            length, kind, unique, node, *_ = HEADER.unpack_from(request)
            if kind in (FORGET, BATCH_FORGET, INTERRUPT):  # these have no answer
                continue
            try:
                answer = self.answer(kind, node, request[HEADER.size : length])
            except OSError as error:
                self.reply(unique, b"", error.errno or errno.EIO)
            else:
                if answer is not None:
                    self.reply(unique, answer)

    def reply(self, unique: int, content: bytes, error: int = 0) -> None:
        os.write(self.device, struct.pack("<IiQ", 16 + len(content), -error, unique) + content)

    def answer(self, kind: int, node: int, body: bytes) -> Optional[bytes]:
        """Return the answer to a request, or None for silence."""
        if kind == INIT:
            major, _, ahead, _ = struct.unpack_from("<IIII", body)
            size = 1 << 17
            limits = (PARALLEL_DIROPS, 9, 9, size, 1, 32)
            return struct.pack("<IIIIHHIIHHI7I", major, 31, ahead, *limits, *[0] * 9)
        if kind == LOOKUP:
            path = os.path.join(self.paths[node], os.fsdecode(body.rstrip(b"\0")))
            fault = self.fault(path)
            if fault == SILENT:
                return None
            status = os.lstat(os.path.join(self.source, path))
            if fault is not None:
                raise OSError(fault, "")
            with self.lock:
                number = self.numbers.setdefault(path, len(self.numbers) + 1)
                self.paths[number] = path
            return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attributes(number, status)
        path = os.path.join(self.source, self.paths[node]).rstrip("/")
        if kind in (GETATTR, OPEN, OPENDIR):
            fault = self.fault(self.paths[node])
            if fault == SILENT:
                return None
            if fault is not None:
                raise OSError(fault, "")
        if kind == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node, os.lstat(path))
        if kind in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 1, 0)  # 1: past the page cache
        if kind == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            with open(path, "rb") as file:
                file.seek(offset)
                return file.read(size)
        if kind == READDIR:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.names(path, offset, size)
        if kind == READLINK:
            return os.fsencode(os.readlink(path))
        if kind in (RELEASE, FLUSH, RELEASEDIR):
            return b""
        raise OSError(errno.ENOSYS, "")

    def fault(self, path: str) -> Optional[int]:
        """Return the fault of a path, or of a folder above it; one that is slow has waited."""
        names = [name for name in ("", *path.split("/")) if name in self.faults]
        fault = self.faults[names[0]] if names else None
        if fault != SLOW:
            return fault
        time.sleep(DELAY_S)
        return None

    @staticmethod
    def names(path: str, offset: int, size: int) -> bytes:
        names = [".", "..", *sorted(os.listdir(path))]
        answer = b""
        for place, name in enumerate(map(os.fsencode, names[offset:]), offset):
            entry = struct.pack("<QQII", place + 100, place + 1, len(name), 0) + name
            entry += bytes(-len(entry) % 8)
            if len(answer) + len(entry) > size:
                break
            answer += entry
        return answer

    @staticmethod
    def attributes(number: int, status: os.stat_result) -> bytes:
        times = (int(status.st_atime), int(status.st_mtime), int(status.st_ctime), 0, 0, 0)
        blocks = -(-status.st_size // 512)
        owner = (status.st_mode, status.st_nlink, status.st_uid, status.st_gid, 0, 4096, 0)
        return ATTRIBUTES.pack(number, status.st_size, blocks, *times, *owner)


if __name__ == "__main__":
    folder, mount_point, wanted = sys.argv[1:]
    server = Server(folder, json.loads(wanted))
    try:
        server.mount(mount_point)
    except OSError as error:
        sys.exit(str(error))
    print("mounted", flush=True)
    for _ in range(63 if SLOW in server.faults.values() else 0):
        threading.Thread(target=server.serve, daemon=True).start()
    server.serve()
