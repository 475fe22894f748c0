"""An index that misbehaves: what is refused is named, all else is written, and nothing that is
there is lost.
"""

import io
import json
import os
import signal
import subprocess
import time
import zipfile

import pytest

from .conftest import Served, make_wheel, metadata_text, sdist, wheel

GOOD = ["numpy>=1"]


def zip_with(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def lying_about_size():
    """A directory that declares a small METADATA which unpacks to more than anyone reads."""
    content = bytearray(
        zip_with(
            ("torch-2.7.0.dist-info/METADATA", metadata_text("torch", "2.7.0") + "x" * (8 << 20))
        )
    )
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    return bytes(content)


def huge():
    """128 MB of METADATA in about as many kilobytes of wheel."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("torch-2.7.0.dist-info/METADATA", "w") as file,
    ):
        file.write(metadata_text("torch", "2.7.0").encode())
        for _ in range(128):
            file.write(b"x" * (1 << 20))
    return buffer.getvalue()


DIRECTORY = "torch-2.7.0.dist-info/METADATA"
HOSTILE = {
    "truncated": (lambda: make_wheel("torch", "2.7.0", GOOD)[:-30], "no zip archive, or cut off"),
    "empty": (lambda: b"", "not reached|HTTP 416|refused"),
    "no zip": (lambda: b"<html>" * 9000, "no zip archive"),
    "wrong name": (
        lambda: make_wheel("torch", "2.7.0", text=metadata_text("numpy", "2.7.0")),
        "its metadata is that of numpy",
    ),
    "renamed": (
        lambda: make_wheel("numpy", "2.7.0"),
        "metadata of another project: numpy-2.7.0.dist-info",
    ),
    "wrong version": (
        lambda: make_wheel("torch", "2.7.0", text=metadata_text("torch", "2.7.1")),
        "that of version 2.7.1",
    ),
    "wrong folder": (
        lambda: make_wheel("torch", "2.7.0", folder="torch-9.dist-info"),
        "another project",
    ),
    "no version": (lambda: make_wheel("torch", "2.7.0", text="Name: torch\n"), "version none"),
    "no metadata": (lambda: zip_with(("torch/__init__.py", "")), "has no METADATA"),
    "two": (
        lambda: zip_with(
            (DIRECTORY, metadata_text("torch", "2.7.0")), ("Torch-2.7.dist-info/METADATA", "")
        ),
        "several METADATA",
    ),
    "huge": (huge, "at most 4194304 are read"),
    "lying": (lying_about_size, "unpacks to more|damaged"),
    "not UTF-8": (
        lambda: make_wheel(
            "torch",
            "2.7.0",
            text=metadata_text("torch", "2.7.0", more="Author: \xff").encode("latin-1"),
        ),
        "not UTF-8",
    ),
    "NUL": (
        lambda: make_wheel("torch", "2.7.0", text=metadata_text("torch", "2.7.0", ["numpy\0"])),
        "NUL",
    ),
    "terminal": (
        lambda: make_wheel(
            "torch", "2.7.0", text=metadata_text("torch", "2.7.0", ["numpy\x1b[31m"])
        ),
        "impossible line",
    ),
    "path up": (
        lambda: make_wheel("torch", "2.7.0", members=[("../../etc/cron.d/x", "y")]),
        "outside the archive: ../../etc/cron.d/x",
    ),
    "path absolute": (
        lambda: make_wheel("torch", "2.7.0", members=[("/etc/passwd", "y")]),
        "outside the archive: /etc/passwd",
    ),
    "many": (lambda: make_wheel("torch", "2.7.0", ["numpy"] * 4001), "4001 requirements"),
    "long": (
        lambda: make_wheel("torch", "2.7.0", [f"numpy; extra == '{'x' * 3000}'"]),
        "impossible line",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_wheel_is_refused_by_name_and_nothing_is_lost(index, refresh, kind):
    index.add("torch", wheel("torch", "2.6.0", GOOD), wheel("torch", "2.7.0", GOOD))
    index.add("numpy", wheel("numpy", "1.0"))
    assert refresh().code == 0
    before = refresh.bytes()
    make, reason = HOSTILE[kind]
    # The index replaced the file of a release that is known, and has a new release beside it.
    index.projects["torch"][1] = Served("torch-2.7.0-py3-none-any.whl", make())
    index.add("torch", wheel("torch", "2.8.0", GOOD))
    done = refresh()
    assert done.code == 1
    assert any(part in done.err for part in reason.split("|")), done.err
    assert "torch-2.7.0-py3-none-any.whl" in done.err
    assert "\x1b" not in done.err
    old = json.loads(before["packages/torch.json"])
    assert refresh.document("torch")["releases"] == [
        *old["releases"],
        {**old["releases"][0], "version": "2.8.0"},
    ]
    assert refresh.bytes()["packages/numpy.json"] == before["packages/numpy.json"]
    assert not any("etc" in str(path) for path in refresh.folder.rglob("*"))


def test_a_release_whose_only_wheel_is_refused_is_there_without_requirements(index, refresh):
    index.add("torch", Served("torch-2.7.0-py3-none-any.whl", b"nothing"))
    assert refresh().code == 1
    assert "requires" not in refresh.release("torch", "2.7.0")


def test_a_file_that_the_list_knows_as_unreadable_is_no_fault(index, refresh):
    index.add(
        "torch", wheel("torch", "2.6.0", GOOD), Served("torch-2.7.0-py3-none-any.whl", b"nothing")
    )
    assert refresh(families='unreadable = ["torch-2.7.0-py3-none-any.whl"]\n').code == 0
    assert "requires" not in refresh.release("torch", "2.7.0")
    assert not any("2.7.0" in path for path, _ in index.asked)


HOSTILE_SOURCES = {
    "path up": (
        lambda: sdist("torch", "2.7.0", GOOD, more=[("../../evil", "x")]),
        "outside the archive",
    ),
    "absolute": (
        lambda: sdist("torch", "2.7.0", GOOD, more=[("/etc/evil", "x")]),
        "outside the archive",
    ),
    "bomb": (
        lambda: sdist("torch", "2.7.0", GOOD, more=[("torch-2.7.0/a", b"\0" * (300 << 20))]),
        "unpacks to more",
    ),
    "wrong name": (
        lambda: sdist("torch", "2.7.0", text=metadata_text("numpy", "2.7.0")),
        "that of numpy",
    ),
    "no requirement": (lambda: sdist("torch", "2.7.0", egg_info="@@@\n"), "no requirement"),
    "truncated": (
        lambda: sdist("torch", "2.7.0", GOOD)._replace(
            content=sdist("torch", "2.7.0", GOOD).content[:60]
        ),
        "cut off",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE_SOURCES)
def test_a_hostile_source_archive_is_refused(index, refresh, kind):
    make, reason = HOSTILE_SOURCES[kind]
    index.add("torch", wheel("torch", "2.6.0", GOOD), make())
    done = refresh()
    assert done.code == 1
    assert reason in done.err
    assert "torch-2.7.0.tar.gz" in done.err
    assert refresh.release("torch", "2.6.0")["requires"] == GOOD


def test_a_page_cannot_smuggle_anything_in(index, refresh):
    index.extra_html = (
        "<script>document.write('<a "
        'href="http://127.0.0.1:1/evil-1.0-py3-none-any.whl">evil-1.0-py3-none-any.whl</a>\')</script>'
        '<a href="javascript:alert(1)">torch-9.0-py3-none-any.whl</a>'
        '<a href="file:///etc/passwd">torch-9.1-py3-none-any.whl</a>'
        '<a href="../../files/numpy-1.0-py3-none-any.whl">torch-9.2-py3-none-any.whl</a>'
        '<a href="../../files/numpy-1.0-py3-none-any.whl">numpy-1.0-py3-none-any.whl</a>'
        '<a href="../../files/x">../../x/torch-9.3-py3-none-any.whl</a>'
        "<!-- <a href='../../files/torch-9.4-py3-none-any.whl'>torch-9.4-py3-none-any.whl</a> -->"
        "<a>torch-9.5-py3-none-any.whl"
    )
    reason = '"><img src=x onerror=alert(1)>\x1b[2J'
    index.add(
        "torch",
        wheel("torch", "2.6.0", GOOD, served={"yanked": reason}),
        Served("torch-bad version-py3-none-any.whl", b""),
    )
    done = refresh("--notes")
    assert done.code == 0, done.err
    assert refresh.listing()["packages"] == {"torch": {"releases": ["2.6.0"], "yanked": ["2.6.0"]}}
    assert refresh.release("torch", "2.6.0")["yanked_reason"] == reason  # as data, escaped by JSON
    assert b"\x1b" not in refresh.bytes()["packages/torch.json"]
    assert "\x1b" not in done.err
    assert done.err.count("left out: torch: ") >= 6
    assert not any(path.startswith("/files/numpy") for path, _ in index.asked)


def test_a_page_of_another_project_is_refused(index, refresh):
    index.as_json = True
    index.add("torch", wheel("torch", "2.6.0", GOOD))
    index.add("numpy", wheel("numpy", "1.0"))
    index.page = lambda project, page=index.page: page("numpy")
    done = refresh()
    assert done.code == 1
    assert "torch: page refused: the page is that of numpy" in done.err


def test_a_server_without_ranges_serves_small_wheels_whole(index, refresh):
    index.ranges = False
    index.add("torch", wheel("torch", "2.6.0", GOOD, padding=1 << 20))
    assert refresh().code == 0
    assert refresh.release("torch", "2.6.0")["requires"] == GOOD


def test_a_server_without_ranges_is_not_asked_for_large_wheels(index, refresh):
    index.ranges = False
    index.add("torch", wheel("torch", "2.6.0", GOOD, padding=70 << 20))
    done = refresh()
    assert done.code == 1
    assert "at most 67108864 are read" in done.err


def test_a_server_that_stumbles_is_asked_again(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", GOOD))
    index.failures = {"/simple/torch/": 3, "/files/torch-2.6.0-py3-none-any.whl": 2}
    assert refresh().code == 0
    assert refresh.release("torch", "2.6.0")["requires"] == GOOD


def test_a_server_that_stays_down_costs_nothing_that_is_there(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", GOOD))
    index.add("numpy", wheel("numpy", "1.0"))
    assert refresh().code == 0
    before = refresh.bytes()
    index.failures = {"/simple/torch/": 99}
    done = refresh()
    assert done.code == 1
    assert "HTTP 503 after 5 attempts" in done.err
    assert refresh.bytes() == before
    index.failures = {"/simple/torch/": 99, "/simple/numpy/": 99}
    assert refresh().code == 2
    assert refresh.bytes() == before
    index.failures = {"/files/torch-2.7.0-py3-none-any.whl": 99}
    index.add("torch", wheel("torch", "2.7.0", GOOD))
    assert refresh().code == 1
    assert refresh.release("torch", "2.6.0")["requires"] == GOOD
    index.failures = {}
    assert refresh().code == 0
    assert refresh.release("torch", "2.7.0")["requires"] == GOOD


def test_an_answer_that_is_cut_off_is_asked_for_again_and_never_taken(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", GOOD))
    index.cut = {"/simple/torch/": 40}
    done = refresh()
    assert done.code == 2
    assert not (refresh.output / "packages").exists()


def test_a_project_that_is_gone(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", GOOD))
    index.add("numpy", wheel("numpy", "1.0"))
    assert refresh().code == 0
    before = refresh.bytes()
    del index.projects["numpy"]
    done = refresh(names=["numpy", "torch"])
    assert done.code == 1
    assert "numpy: the index has no such project" in done.err
    assert refresh.bytes() == before
    done = refresh(names=["torch"], elsewhere=["numpy"])
    assert done.code == 0


def test_killed_in_the_middle_and_run_again(index, refresh):
    for name in ("torch", "numpy", "triton"):
        index.add(
            name,
            *(
                wheel(name, f"2.{minor}.0", ["numpy"], tags=f"cp39-cp39-manylinux_2_{minor}_x86_64")
                for minor in range(20)
            ),
        )
    clean = refresh.folder / "clean"
    assert refresh("--output", str(clean), "--cache-dir", str(refresh.folder / "other")).code == 0
    expected = {
        str(path.relative_to(clean)): path.read_bytes() for path in sorted(clean.rglob("*.json"))
    }
    index.delay = 0.02
    for _ in range(3):
        index.asked.clear()
        process = subprocess.Popen(
            refresh.command(),
            env=refresh.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while (
            sum(path.startswith("/files/") for path, _ in index.asked) < 15
            and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    index.delay = 0
    index.asked.clear()
    assert refresh().code == 0
    assert refresh.bytes() == expected
    assert 0 < sum(path.startswith("/files/") for path, _ in index.asked) < 60, (
        "what the killed runs read was not read again"
    )


def test_killed_while_it_writes(index, refresh, monkeypatch):
    """Whatever a kill leaves is a whole file, old or new, and the next run ends where one run would
    have.
    """
    from envdoctor import file_replacement

    path = refresh.folder / "x.json"
    path.write_bytes(b"old")

    def cut(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(file_replacement.os, "fsync", cut)
    with pytest.raises(KeyboardInterrupt):
        file_replacement.replace_file(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in refresh.folder.iterdir()] == ["x.json"]


def test_a_damaged_cache_is_read_again(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", GOOD))
    assert refresh().code == 0
    before = refresh.bytes()
    (entry,) = (path for path in (refresh.cache / "metadata").rglob("*") if path.is_file())
    for text in ("", "{", '{"sha256": "0", "requires": ["evil"]}', "[]"):
        entry.write_text(text)
        assert refresh().code == 0
        assert refresh.bytes() == before
