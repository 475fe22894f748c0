"""scripts/bench makes its environment whatever the shell's own PYTHONPATH names."""

import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "scripts" / "bench"


@pytest.mark.slow
def test_an_envdoctor_on_pythonpath_is_not_taken_for_installed(tmp_path, monkeypatch):
    metadata = tmp_path / "checkout" / "envdoctor.egg-info" / "PKG-INFO"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: envdoctor\nVersion: 0.1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "checkout"))
    loader = importlib.machinery.SourceFileLoader("bench", str(BENCH))
    bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
    loader.exec_module(bench)
    python = bench.build_environment(tmp_path / "environment")
    said = subprocess.run(
        [python.parent / "envdoctor", "--version"],
        capture_output=True,
        text=True,
        env=bench.plain_environment(),
        check=False,
    )
    assert said.stdout.startswith("envdoctor "), said.stderr
