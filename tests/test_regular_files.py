"""The one reader of files that must be files: the kernel's own kinds of things are the oracle."""

from __future__ import annotations

import os
import socket

import pytest

from envdoctor.regular_files import NotRegularError, open_regular, read_regular


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize("size", [0, 1, 5000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_file_is_read_whole(tmp_path, size):
    path, content = tmp_path / "file", os.urandom(size)
    path.write_bytes(content)
    assert read_regular(str(path), 8 << 20) == content
    for limit in (0, 1, size, size + 1):
        assert read_regular(str(path), limit) == content[:limit]


def test_what_the_kernel_makes_up_is_read_whole():
    text = read_regular("/proc/self/maps", 1 << 20)
    assert text.endswith(b"\n")
    assert b"[stack]" in text


def test_the_null_device_is_an_empty_file(tmp_path):
    (tmp_path / "off").symlink_to(os.devnull)
    assert read_regular(str(tmp_path / "off"), 100) == b""


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/urandom"])
def test_a_device_is_no_file(path):
    with pytest.raises(NotRegularError, match="not a regular file"):
        read_regular(path, 100)
    with pytest.raises(NotRegularError):
        open_regular(path)


def test_a_pipe_is_no_file_and_is_not_waited_for(pipe):
    with pytest.raises(NotRegularError):
        read_regular(pipe, 100)
    writer = os.open(pipe, os.O_RDWR)
    try:
        with pytest.raises(NotRegularError):  # nothing was written yet
            read_regular(pipe, 100)
        os.write(writer, b"x" * 200)
        for limit in (100, 300):
            with pytest.raises(NotRegularError):
                read_regular(pipe, limit)
    finally:
        os.close(writer)


def test_a_socket_cannot_be_opened(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="No such device or address"):
            read_regular(str(tmp_path / "socket"), 100)


def test_a_folder_is_none(tmp_path):
    for read in (lambda: read_regular(str(tmp_path), 100), lambda: open_regular(str(tmp_path))):
        with pytest.raises(IsADirectoryError):
            read()


def test_no_descriptor_stays_open(pipe, tmp_path):
    before = os.listdir("/proc/self/fd")
    for path in (pipe, str(tmp_path), "/dev/zero", "/proc/self/status", "/nonexistent"):
        for read in (lambda: read_regular(path, 10), lambda: open_regular(path)):  # noqa: B023
            try:
                answer = read()
            except OSError:
                continue
            if isinstance(answer, int):
                os.close(answer)
    assert os.listdir("/proc/self/fd") == before
