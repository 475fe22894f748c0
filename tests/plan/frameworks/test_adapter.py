"""What a script names and a plan opens: files alone, and no larger than is asked for."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Iterator

import pytest

from envdoctor.plan.frameworks.adapter import read_small


@pytest.fixture(autouse=True)
def at_most_ten_seconds() -> Iterator[None]:
    """End a test whose read waits for a writer that never comes."""

    def give_up(*_: object) -> None:
        raise AssertionError("the read waits")  # no OSError: those are caught

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"a: 1\xff\n")
    assert read_small(str(path)) == "a: 1\ufffd\n"
    assert read_small(str(path), 6) == "a: 1\ufffd\n"
    assert read_small(str(path), 5) is None
    assert read_small(str(tmp_path / "none")) is None
    assert read_small(str(tmp_path)) is None


def test_no_pipe_is_waited_for(tmp_path: Path) -> None:
    """Neither one that nobody writes to, nor one whose writer has sent nothing yet."""
    path = tmp_path / "config.yaml"
    os.mkfifo(path)
    assert read_small(str(path)) is None
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert read_small(str(path)) is None
    finally:
        os.close(writer)


def test_a_device_has_no_end() -> None:
    assert read_small("/dev/zero") is None
    assert read_small("/dev/null") == ""
