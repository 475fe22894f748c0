"""The loader's search order: ``ld.so --list`` is the oracle, on real libraries and on layouts that
a seed makes.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.probes.dynamic_loader import LinkMap, Loader, parse_cache, parse_list
from envdoctor.probes.elf import open_elf
from envdoctor.probes.isolation import run_command
from envdoctor.probes.machine import Machine

from .compiled import build, output, plain_environment
from .test_elf import libraries


def _interpreter():
    with open_elf(os.path.realpath(sys.executable)) as elf:
        return elf.interpreter


@pytest.fixture(scope="module")
def ask(prerequisite):
    """Ask the real loader and the own rules the same question; return both answers by soname."""
    interpreter = _interpreter() if os.path.isfile(os.path.realpath(sys.executable)) else None
    prerequisite(interpreter and "musl" not in interpreter, "glibc's loader")
    prerequisite(
        run_command([interpreter, "--list", os.path.realpath(sys.executable)], 10).status == 0,
        "ld.so --list (glibc 2.26)",
    )

    def both(path, **variables):
        environment = plain_environment(**variables)
        outcome = run_command([interpreter, "--list", str(path)], 20, environment)
        with open_elf(str(path)) as elf:
            kind = elf.kind
        links = LinkMap(Loader(Machine(environment=environment), kind, environment), str(path))
        own = {held.name: held.path for held in links.objects[1:]}
        own.update(dict.fromkeys(links.missing, ""))
        theirs = {
            name: found for name, found in parse_list(outcome.text).items() if "vdso" not in name
        }
        loader = os.path.basename(interpreter)
        clean = [
            {
                name: os.path.realpath(found) if found else ""
                for name, found in table.items()
                if os.path.basename(name) != loader
            }
            for table in (theirs, own)
        ]
        return outcome.status, clean[0], clean[1]

    return both


@pytest.mark.parametrize("path", libraries(40))
def test_real_libraries(ask, path):
    status, theirs, own = ask(path)
    if status == 0:
        assert own == theirs


@pytest.fixture(scope="module")
def gcc(prerequisite):
    prerequisite(shutil.which("gcc"), "gcc")


def _layout(folder, seed):
    """A chain and a diamond of libraries in some of five folders, with a random RPATH or RUNPATH
    each; the root is first.so.
    """
    chance = random.Random(seed)
    folders = [folder / name for name in "abcde"]
    names = ["first", "left", "right", "deep", "leaf"]
    needs = {
        "first": ["left", "right"],
        "left": ["deep"],
        "right": ["leaf", "deep"],
        "deep": ["leaf"],
        "leaf": [],
    }
    for place in folders:
        place.mkdir(parents=True, exist_ok=True)
    stubs = {
        name: build(folder / "stubs" / f"lib{name}.so", soname=f"lib{name}.so") for name in names
    }
    for name in names:
        places = [folders[0]] if name == "first" else chance.sample(folders, chance.randint(1, 3))
        for place in places:
            kind = chance.choice(["none", "rpath", "runpath", "both"])
            entries = [
                chance.choice(["$ORIGIN/../" + other.name, str(other), "${ORIGIN}", "/nowhere", ""])
                for other in chance.sample(folders, 2)
            ]
            options = [] if kind == "none" else [f"-Wl,-rpath,{':'.join(entries)}"]
            options.append(
                "-Wl,--enable-new-dtags" if kind == "runpath" else "-Wl,--disable-new-dtags"
            )
            if chance.random() < 0.1:
                options.append("-Wl,-z,nodefaultlib")
            build(
                place / f"lib{name}.so", "", *options, needs=[stubs[need] for need in needs[name]]
            )
    variables = {}
    if chance.random() < 0.7:
        variables["LD_LIBRARY_PATH"] = chance.choice([":", ";"]).join(
            map(str, chance.sample(folders, chance.randint(1, 3)))
        )
    if chance.random() < 0.2:
        variables["LD_PRELOAD"] = str(
            next(path for place in folders for path in [place / "libleaf.so"] if path.exists())
        )
    return folders[0] / "libfirst.so", variables


@pytest.mark.parametrize("seed", range(4))
def test_random_layouts(tmp_path, ask, gcc, seed):
    path, variables = _layout(tmp_path, seed)
    status, theirs, own = ask(path, **variables)
    if status != 0:  # the loader ends at the first library that is missing in some versions
        assert "" in own.values()
        return
    # LD_PRELOAD is listed under its path.
    assert {os.path.basename(name): found for name, found in own.items()} == {
        os.path.basename(name): found for name, found in theirs.items()
    }, variables


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4, 12), *range(100, 260)])
def test_many_random_layouts(tmp_path, ask, gcc, seed):
    test_random_layouts(tmp_path, ask, gcc, seed)


def test_rpath_comes_before_and_runpath_after_the_variable(tmp_path, ask, gcc):
    own, other = tmp_path / "own", tmp_path / "other"
    for place in (own, other):
        build(place / "libneed.so.1")
    for tags, expected in (("--disable-new-dtags", own), ("--enable-new-dtags", other)):
        path = build(
            tmp_path / tags / "libasks.so",
            "",
            f"-Wl,-rpath,{own}",
            f"-Wl,{tags}",
            needs=[own / "libneed.so.1"],
        )
        _, theirs, mine = ask(path, LD_LIBRARY_PATH=str(other))
        assert theirs["libneed.so.1"] == mine["libneed.so.1"] == str(expected / "libneed.so.1")


def test_a_library_of_another_machine_is_passed_over_and_a_damaged_one_ends_the_search(
    tmp_path, ask, gcc
):
    good = build(tmp_path / "good" / "libneed.so.1")
    path = build(tmp_path / "libasks.so", "", needs=[good])
    content = bytearray(good.read_bytes())
    content[18] = 40  # EM_ARM
    for name, data in (("foreign", bytes(content)), ("damaged", b"not a library at all")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "libneed.so.1").write_bytes(data)
    status, theirs, mine = ask(path, LD_LIBRARY_PATH=f"{tmp_path}/foreign:{tmp_path}/good")
    assert (status, theirs["libneed.so.1"], mine["libneed.so.1"]) == (0, str(good), str(good))
    status, _, mine = ask(path, LD_LIBRARY_PATH=f"{tmp_path}/damaged:{tmp_path}/good")
    assert status != 0
    assert mine["libneed.so.1"] == ""


def test_an_unpacked_image_gives_the_same_answers_inside_it(tmp_path, gcc):
    """The same layout on this machine and in a folder that stands for /: paths differ by the root
    alone.
    """
    here = tmp_path / "here"
    path, _ = _layout(here, 5)
    root = tmp_path / "root"
    shutil.copytree(here, root / str(here).lstrip("/"), symlinks=True)
    for folder in ("lib", "lib64", "usr/lib"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    variables = {"LD_LIBRARY_PATH": f"{here}/c:{here}/b"}
    with open_elf(str(path)) as elf:
        kind = elf.kind
    # Out of reach: the image has no cache, this machine's must not be read.
    shutil.rmtree(here / "stubs")
    outside = LinkMap(Loader(Machine(environment=variables), kind, variables), str(path))
    expected = {
        held.name: os.path.realpath(held.path) for held in outside.objects if str(here) in held.path
    }
    shutil.rmtree(here)
    inside = LinkMap(Loader(Machine(str(root), environment=variables), kind, variables), str(path))
    assert {held.name: os.path.normpath(held.path) for held in inside.objects} == expected
    assert all(not held.path.startswith(str(root)) for held in inside.objects)


def test_the_cache_is_as_ldconfig_prints_it(prerequisite):
    program = shutil.which("ldconfig") or "/sbin/ldconfig"
    prerequisite(
        os.path.exists(program) and os.path.exists("/etc/ld.so.cache"), "ldconfig and its cache"
    )
    printed = re.findall(
        r"^\t(\S+) \(libc6,(x86-64|AArch64)[^)]*\) => (.+)$", output(program, "-p"), re.MULTILINE
    )
    with open_elf(os.path.realpath(sys.executable)) as elf:
        machine = elf.kind[2]
    with open("/etc/ld.so.cache", "rb") as file:
        entries = parse_cache(file.read(), machine)
    word = {62: "x86-64", 183: "AArch64"}[machine]
    expected = {}
    for name, kind, path in printed:
        if kind == word:
            expected.setdefault(name, []).append(path)
    assert {name: sorted(paths) for name, paths in entries.items()} == {
        name: sorted(paths) for name, paths in expected.items()
    }
    assert all(entries[name][0] == paths[0] for name, paths in expected.items() if len(paths) == 1)


@settings(max_examples=200, deadline=1000)
@given(st.binary(max_size=400), st.booleans())
def test_any_cache_is_read(content, magic):
    entries = parse_cache(b"glibc-ld.so.cache1.1" + content if magic else content)
    assert all(paths for paths in entries.values())


@settings(max_examples=100)
@given(st.text(max_size=300))
def test_any_list_is_read(text):
    parse_list(text)


def test_a_list_of_the_loader():
    text = (
        "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc10.so => /a b/libc10.so (0x00007f)\n\tlibx.so.1 => "
        "not found\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tlibm.so.6 => /lib/libm.so.6 (0x1)\n"
    )
    assert parse_list(text) == {
        "libc10.so": "/a b/libc10.so",
        "libx.so.1": "",
        "/lib64/ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2",
        "libm.so.6": "/lib/libm.so.6",
    }
