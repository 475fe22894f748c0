"""What is read in the words of uv when nothing fits: real uv, wheels of our own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Callable

import pytest

from envdoctor.lock.closing.refusal import find_conflicts, find_holes
from envdoctor.model.resolution import Hole, Pin
from envdoctor.model.versions import parse_version

from .synthetic_index import Index


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = (
        Index()
        .add("old", "1.0", ["base>=3"])
        .add("old", "2.0", ["base>=3"])
        .add("base", "1.0")
        .add("base", "2.0")
    )
    index.add("exact", "1.0", ["base==1.5"]).add("early", "1.0", ["base<1"]).add(
        "marked", "1.0", ["base>=3 ; python_version >= '3.8'"]
    )
    index.add("lonely", "1.0", ["nowhere>=1"]).add("above", "1.0", ["exact"]).add(
        "strict", "1.0", ["base<2"]
    )
    folder: Path = index.write(tmp_path_factory.mktemp("wheels"))
    return folder


@pytest.fixture
def refusal(
    shelf: Path, tmp_path: Path, prerequisite: Callable[[object, str], None]
) -> Callable[..., str]:
    uv = pytest.importorskip("uv") if not os.environ.get("CI") else __import__("uv")
    prerequisite(uv, "uv")

    def run(*requests: str) -> str:
        command = [
            uv.find_uv_bin(),
            "pip",
            "compile",
            "-",
            "--no-index",
            "--find-links",
            str(shelf),
            "--color",
            "never",
            "--python-version",
            "3.11",
        ]
        variables = {**os.environ, "HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            command,
            input="\n".join(requests),
            capture_output=True,
            text=True,
            check=False,
            env=variables,
            timeout=60,
        )
        assert done.returncode == 1
        return done.stderr

    return run


def _pin(name: str, version: str) -> Pin:
    return Pin(name, parse_version(version))


@pytest.mark.parametrize(
    ("pin", "hole"),
    [
        (_pin("old", "2.0"), Hole("old", "2.0", "base>=3", "base<=2.0")),
        (_pin("old", "1.0"), Hole("old", "1.0", "base>=3", "base<=2.0")),
        (_pin("exact", "1.0"), Hole("exact", "1.0", "base==1.5")),
        (_pin("early", "1.0"), Hole("early", "1.0", "base<1", "base>=1.0")),
        (_pin("marked", "1.0"), Hole("marked", "1.0", "base>=3", "base<=2.0")),
        (_pin("lonely", "1.0"), Hole("lonely", "1.0", "nowhere>=1")),
        (_pin("base", "7.0"), Hole("base", "7.0")),
        (_pin("above", "1.0"), None),  # what the tail asks for says nothing of which pin to change
    ],
)
def test_a_hole_of_the_index_is_found(refusal: Callable[..., str], pin: Pin, hole: Hole) -> None:
    assert find_holes(refusal(f"{pin.name}=={pin.version}"), (pin,)) == (
        (hole,) if hole is not None else ()
    )


def test_pins_that_exclude_each_other_are_no_hole(refusal: Callable[..., str]) -> None:
    pins = (_pin("strict", "1.0"), _pin("base", "2.0"))
    message = refusal("strict==1.0", "base==2.0")
    assert find_holes(message, pins) == ()
    assert find_conflicts(message, pins) == ("base<2",)
