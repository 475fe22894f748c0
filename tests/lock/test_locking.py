"""The use case: what a lock is made for, whoever makes it where."""

from __future__ import annotations

import pytest

from envdoctor import sources
from envdoctor.errors import InputError
from envdoctor.lock.locking import lock
from envdoctor.model.evidence import Absent, Evidence, Known
from envdoctor.model.facts import Facts
from envdoctor.model.resolution import Resolution
from envdoctor.sources import Sources, gather

HERE = Evidence("here")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_lock_for_a_gpu_is_for_linux_wherever_it_is_made(monkeypatch, platform):
    """A lock for macOS would have neither CUDA nor what cures it."""
    workstation = Facts(
        {
            "os.platform": Known(platform, HERE),
            "os.architecture": Known("arm64", HERE),
            "glibc.version": Absent(HERE),
        }
    )
    monkeypatch.setattr(sources, "probe", lambda **_: workstation)
    assumed = ("gpu=H20", "nvidia-driver=535.129.03")
    targets = gather(Sources(assume=assumed, python_version="3.10", elsewhere=True))
    found = lock(["torch==2.4.0"], targets)
    assert isinstance(found, Resolution)
    assert (found.requires.platform, found.requires.architecture) == ("linux", "x86_64")
    assert str(found.pin("nvidia-cublas-cu12").version) == "12.3.4.1"
    own = gather(Sources(python_version="3.10", elsewhere=True))
    assert lock(["numpy"], own).request.platform == platform


@pytest.mark.parametrize("version", ["3.10.x", "", "²", "cp310"])
def test_a_python_that_is_no_version_is_said(version):
    facts = Facts({"python.version": Known(version, Evidence("facts.json"))})
    with pytest.raises(
        InputError, match=r"expected a version as python\.version.*--python-version"
    ):
        lock(["vllm"], [facts])
