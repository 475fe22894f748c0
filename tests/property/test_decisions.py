"""No sentence of the program is read back: with every one replaced by "x" it decides the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Dict

import pytest

from .decisions import ROOT


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_sentences_decide_nothing(step: int) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.property.decisions", how, str(step)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for how in ("plain", "silenced")
    ]
    outputs = [process.communicate() for process in running]
    for process, (_, error) in zip(running, outputs):
        assert process.returncode == 0, error
    plain, silenced = (_decisions(output) for output, _ in outputs)
    assert len(plain) > 100 // step
    differing = {
        name: (decided, silenced.get(name))
        for name, decided in plain.items()
        if decided != silenced.get(name)
    }
    assert not differing, "\n".join(f"{name}: {pair}" for name, pair in differing.items())


def _decisions(output: str) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads(output)
    return found
