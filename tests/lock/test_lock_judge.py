"""scripts/lock_judge: what it says of locks is right, and of locks made worse on purpose, a
fault.
"""

from __future__ import annotations

from typing import Dict, List, Mapping

import pytest

from envdoctor.intake import parse_assumptions
from envdoctor.lock.emit import render
from envdoctor.lock.locking import lock
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.resolution import Resolution
from scripts.lock_judge import Index, Refusals, read_written, stale_roots, unnamed_findings
from scripts.matrix_refresh.index import IndexFile

MATRIX = load_matrix()
OLD_DRIVER = (
    "gpu=H100:8",
    "nvidia-driver=535.129.03",
    "glibc=2.35",
    "os.platform=linux",
    "os.architecture=x86_64",
)


class Served(Index):
    """An index that has what it is given: days by file name."""

    def __init__(self, days: Mapping[str, str]) -> None:
        super().__init__()
        self._served = [
            IndexFile(name, "", "", f"{day}T00:00:00Z", ">=3.10", None, None)
            for name, day in days.items()
        ]

    def files(self, name: str) -> List[IndexFile]:
        return [file for file in self._served if file.name.startswith(name)]


def locked(*roots: str) -> Dict[str, str]:
    facts = Facts(parse_assumptions(OLD_DRIVER))
    resolution = lock(roots, (facts,), MATRIX, python="3.12")
    assert isinstance(resolution, Resolution)
    return render(resolution, "0", MATRIX)


def test_only_wheels_for_this_python_and_platform_count() -> None:
    index = Served(
        {
            "x-1.0-py3-none-any.whl": "2024-01-01",
            "x-2.0-cp312-cp312-manylinux_2_28_x86_64.whl": "2024-02-01",
            "x-2.0.tar.gz": "2024-01-31",
            "x-3.0-cp38-abi3-manylinux2014_x86_64.whl": "2024-03-01",
            "x-4.0-cp313-cp313-manylinux_2_28_x86_64.whl": "2024-04-01",
            "x-5.0-cp312-cp312-manylinux_2_39_x86_64.whl": "2024-05-01",
            "x-6.0-cp312-cp312-manylinux_2_28_aarch64.whl": "2024-06-01",
            "x-7.0.tar.gz": "2024-07-01",
        }
    )
    found = {
        str(release.version): str(release.day) for release in index.releases("x", "3.12", "2.35")
    }
    assert found == {"1.0": "2024-01-01", "2.0": "2024-02-01", "3.0": "2024-03-01"}


@pytest.mark.parametrize(
    ("newer", "without", "stale"),
    [
        ("2026-11-01", "", False),  # the lock says which row forbids it, and check agrees
        ("2026-11-01", "# not ", True),  # nothing is said
        ("2026-02-01", "# not ", False),  # not behind by a year
    ],
)
def test_a_root_that_is_behind_is_a_fault_without_a_word(
    newer: str, without: str, stale: bool
) -> None:
    files = locked("torch")
    text = files["requirements.txt"]
    if without:
        text = "\n".join(line for line in text.split("\n") if not line.startswith(without))
    written = read_written({**files, "requirements.txt": text})
    index = Served(
        {
            f"torch-{written.pins['torch']}-cp312-cp312-manylinux_2_28_x86_64.whl": "2025-09-01",
            "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl": newer,
        }
    )
    refused = Refusals(written, OLD_DRIVER, MATRIX)
    assert bool(list(stale_roots(written, index, "2.35", refused))) is stale


def test_a_row_that_does_not_hold_explains_nothing() -> None:
    files = locked("torch")
    text = files["requirements.txt"].replace(
        "[row driver-for-cuda-13:torch]", "[row torch-of-none]"
    )
    written = read_written({**files, "requirements.txt": text})
    index = Served(
        {
            f"torch-{written.pins['torch']}-cp312-cp312-manylinux_2_28_x86_64.whl": "2025-09-01",
            "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl": "2026-11-01",
        }
    )
    assert list(stale_roots(written, index, "2.35", Refusals(written, OLD_DRIVER, MATRIX)))


def test_what_check_warns_of_has_to_be_named() -> None:
    files = locked("vllm")
    written = read_written(files)
    assert not list(unnamed_findings(written.pins, OLD_DRIVER, written, MATRIX))
    silent = written._replace(header="")
    assert any(
        fault.startswith("not named: ptx-")
        for fault in unnamed_findings(written.pins, OLD_DRIVER, silent, MATRIX)
    )
    worse = {**written.pins, "torch": "2.15.0"}
    assert any(
        fault.startswith("check refuses it: ")
        for fault in unnamed_findings(worse, OLD_DRIVER, written, MATRIX)
    )
