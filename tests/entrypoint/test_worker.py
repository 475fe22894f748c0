"""The hook of worker processes, without Ray; with it: tests/containers/test_ray_hook.py."""

import pytest

from envdoctor.entrypoint.worker import UnfitWorkerError, check_worker


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """An environment in which torch is twice."""
    from .conftest import ROOT

    (tmp_path / "torch-2.6.0+cu124.dist-info").mkdir()
    (tmp_path / "torch-2.6.0+cu124.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cu124\n"
    )
    (tmp_path / "torch-2.5.0.dist-info").mkdir()
    (tmp_path / "torch-2.5.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.5.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")


def test_says_the_verdict_and_returns(capfd):
    check_worker()
    assert capfd.readouterr().err.startswith("envdoctor: ")


def test_warns_by_default(damaged, capfd):
    check_worker()
    assert "ED" in capfd.readouterr().err


def test_disabled_is_silent(monkeypatch, capfd):
    monkeypatch.setenv("ENVDOCTOR_DISABLE", "1")
    check_worker()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("executable", ["/nonexistent/python"])
def test_a_check_that_cannot_start_stops_no_worker(monkeypatch, capfd, executable):
    monkeypatch.setattr("sys.executable", executable)
    monkeypatch.setenv("ENVDOCTOR_POLICY", "enforce")
    check_worker()
    assert "no verdict" in capfd.readouterr().err


def test_refuses_under_enforce(tmp_path, monkeypatch):
    """The entrypoint's own refusal decides; here a script stands for the interpreter."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'envdoctor: 1 error: too old' >&2\nexit 78\n")
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    with pytest.raises(UnfitWorkerError, match="1 error: too old"):
        check_worker()
