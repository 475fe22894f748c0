"""A digest of RECORD: the same for the same files, whoever installed them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from zipfile import ZipFile

import pytest

from envdoctor.model.evidence import Known
from envdoctor.probes import probe_machine
from envdoctor.probes.distribution_files import digest_of_record, probe_distribution_files
from envdoctor.probes.machine import Machine

RECORD = b"x/a.py,sha256=aa,1\nx/b.so,sha256=bb,2\n"


@pytest.mark.parametrize(
    ("content", "same"),
    [
        (b"x/b.so,sha256=bb,2\r\nx/a.py,sha256=aa,1\r\n", True),
        (RECORD + b"x/__pycache__/a.cpython-311.pyc,,\n", True),
        (RECORD + b"../../../bin/x,sha256=cc,3\nx-1.dist-info/INSTALLER,sha256=dd,4\n", True),
        (RECORD.replace(b"bb", b"cc"), False),
        (RECORD + b"x/c.py,sha256=cc,1\n", False),
    ],
)
def test_what_installers_add_is_left_out(content, same):
    assert (digest_of_record(content) == digest_of_record(RECORD)) is same


def test_a_record_that_lists_nothing_says_nothing():
    assert digest_of_record(b"") is None
    assert digest_of_record(b"x/a.py,,\n\xff") is None


def test_two_installers_of_one_wheel(tmp_path, prerequisite):
    """pip and uv write other rows of their own for the same wheel."""
    prerequisite(shutil.which("uv"), "uv")
    wheel = str(tmp_path / "planted-1.0-py3-none-any.whl")
    info = "planted-1.0.dist-info"
    files = {
        "planted.py": "def x(): pass\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nplanted = planted:x\n",
    }
    rows = []
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
            digest = urlsafe_b64encode(sha256(text.encode()).digest()).decode().rstrip("=")
            rows.append(f"{name},sha256={digest},{len(text)}\n")
        archive.writestr(f"{info}/RECORD", "".join(rows) + f"{info}/RECORD,,\n")
    digests = []
    for installer in ("pip", "uv"):
        folder = tmp_path / installer
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        python = str(folder / "bin/python")
        install = ["install", "-q", "--no-index", "--no-deps", wheel]
        command = {
            "pip": [sys.executable, "-m", "pip", "--python", python, *install],
            "uv": ["uv", "pip", *install, "--python", python],
        }
        subprocess.run(command[installer], check=True)
        fact = probe_machine(python=python, in_cluster=True).get("distributions.files")
        assert isinstance(fact, Known)
        digests.append(fact.value)
    assert digests[0] == digests[1]
    assert digests[0].keys() == {"planted"}


def test_no_check_reads_it():
    assert "distributions.files" not in dict(probe_machine())


def test_without_distributions_nothing_is_known():
    assert not isinstance(probe_distribution_files(Machine())["distributions.files"], Known)
