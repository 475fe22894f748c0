"""Runs that are written down and read."""

from __future__ import annotations

import pytest

from envdoctor.plan.frameworks import read_workload


@pytest.fixture
def read(tmp_path):
    """Return a function: text of a script, or name of a file, and files beside it -> workload."""

    def run(text, **files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("_yaml", ".yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        if text.endswith(".yaml") and "\n" not in text and " " not in text:
            return read_workload([str(tmp_path / text)], environ={})
        script = tmp_path / "run.sh"
        script.write_text(text + "\n")
        return read_workload([str(script)], environ={})

    return run
