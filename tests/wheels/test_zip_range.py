"""Archives on a loopback server: honest ones member by member, and those that lie."""

import io
import random
import struct
import zipfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrix_refresh.errors import Refused, Unreachable


def archive(method=zipfile.ZIP_DEFLATED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


def noise(size):
    return random.Random(1).randbytes(size)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members(opened, server, method):
    members = {"small": b"text", "large": noise(700_000), "empty": b"", "even": b"\0" * 3_000_000}
    content = archive(method, **members)
    found = opened(content)
    assert set(found.members) == set(members)
    for name, expected in members.items():
        assert found.content(name, 1 << 22) == expected
    opened(content).content("small", 100)
    assert (
        sum(end - start for start, end in server.ranges) < 200_000 or len(content) < 200_000
    )  # the wheel does not come whole


def test_members_near_each_other_come_at_once(opened, server):
    members = {f"m{number}": noise(900 + number) for number in range(40)}
    far = {"hole": noise(600_000), "after": b"end" * 500}
    content = archive(**members, **far)
    found = opened(content, 1 << 20)
    before = len(server.ranges)
    wanted = [*members, "after"]
    read = {name: found.content(name, 1 << 20) for group in found.near(wanted) for name in group}
    assert read == {name: {**members, **far}[name] for name in wanted}
    assert len(server.ranges) - before <= 2  # the end of the archive is there already


def test_zip64(opened, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    content = archive(a=noise(2000), b=noise(500))
    assert content.find(b"PK\x06\x06") > 0
    assert opened(content).content("b", 1000) == noise(500)


def patched(content, sign, offset, layout, value, last=True):
    at = content.rfind(sign) if last else content.find(sign)
    data = bytearray(content)
    struct.pack_into(layout, data, at + offset, value)
    return bytes(data)


ONE = archive(member=b"abc" * 1000)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zip at all" * 50,
        ONE[:-10],
        ONE[: len(ONE) // 2],
        patched(ONE, b"PK\x05\x06", 12, "<L", 1 << 30),  # size of the directory
        patched(ONE, b"PK\x05\x06", 16, "<L", 1 << 20),  # its place
        patched(ONE, b"PK\x05\x06", 10, "<H", 7),  # number of members
        patched(ONE, b"PK\x05\x06", 16, "<L", 0xFFFFFFFF),  # zip64 without a record
        patched(ONE, b"PK\x01\x02", 28, "<H", 60000),  # length of a name
        patched(ONE, b"PK\x01\x02", 20, "<L", 1 << 28),  # reaches over the directory
        patched(ONE, b"PK\x01\x02", 42, "<L", 1 << 28),  # lies outside
    ],
    ids=lambda content: f"{len(content)} bytes",  # the members hold the time
)
def test_directories_that_lie(opened, content):
    with pytest.raises((Refused, Unreachable)):
        opened(content)


def test_overlapping_members(opened):
    content = archive(a=noise(1000), b=noise(1000))
    with pytest.raises(Refused, match="overlap"):
        opened(patched(content, b"PK\x01\x02", 42, "<L", 0))


def test_one_name_twice(opened):
    content = archive(aa=noise(10), ab=noise(10))
    at = content.rfind(b"PK\x01\x02") + 46
    with pytest.raises(Refused, match="one name"):
        opened(content[:at] + b"aa" + content[at + 2 :])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (patched(ONE, b"PK\x01\x02", 24, "<L", 100), "unpacks to more"),
        (patched(ONE, b"PK\x01\x02", 24, "<L", 4000), "damaged"),
        (patched(ONE, b"PK\x01\x02", 16, "<L", 1), "damaged"),
        (patched(ONE, b"PK\x01\x02", 24, "<L", 1 << 29), "at most"),
        (patched(ONE, b"PK\x01\x02", 8, "<H", 1), "encrypted"),
        (patched(ONE, b"PK\x01\x02", 10, "<H", 12), "method"),
        (patched(ONE, b"PK\x01\x02", 10, "<H", 0), "two sizes"),
        (patched(ONE, b"PK\x03\x04", 0, "<L", 0, last=False), "no member"),
        (patched(ONE, b"PK\x03\x04", 28, "<H", 60000, last=False), "reaches into"),
    ],
)
def test_members_that_lie(opened, content, reason):
    archive = opened(content)
    with pytest.raises(Refused, match=reason):
        archive.content("member", 1 << 20)


def test_a_bomb_ends_where_its_size_ends(opened):
    content = archive(bomb=b"\0" * (64 << 20))
    lying = patched(content, b"PK\x01\x02", 24, "<L", 1000)
    with pytest.raises(Refused, match="more than its 1000 bytes"):
        next(opened(lying).stream("bomb", 1 << 20))
    pieces = [len(piece) for piece in opened(content).stream("bomb", 1 << 30)]
    assert max(pieces) <= 4 << 20
    assert sum(pieces) == 64 << 20


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_archives(opened, changes):
    content = archive(a=noise(300), b=b"text" * 200)
    data = bytearray(content)
    for share, value in changes:
        data[int(share * (len(data) - 1))] = value
    try:
        found = opened(bytes(data))
        for name, member in found.members.items():
            assert zlib.crc32(found.content(name, 1 << 16)) == member.crc
    except (Refused, Unreachable):
        pass
