"""Lists of hosts, with Slurm's own reader as the oracle."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.model.host_names import expand, fold_names, unfold

NAMES = st.lists(
    st.from_regex(r"(gpu|n|rack1-node|a)(0?[0-9]{1,3})(-ib)?|head|login\.site", fullmatch=True),
    min_size=1,
    max_size=40,
    unique=True,
)


@given(NAMES)
def test_folding_loses_no_name(names):
    assert sorted(expand(fold_names(names), "test")) == sorted(names)


@pytest.mark.parametrize(
    "text",
    [
        "gpu[01-16,18]",
        "gpu[9-11]",
        "a1,b[2,4-5],head",
        fold_names([f"n{number}" for number in (8, 9, 10, 11, 100)]),
        fold_names(["n08", "n09", "n10", "n9"]),
    ],
)
def test_slurm_reads_the_same(text, prerequisite, tmp_path):
    prerequisite(shutil.which("scontrol"), "scontrol (Debian: slurm-client)")
    (tmp_path / "slurm.conf").write_text("ClusterName=a\nSlurmctldHost=localhost\n")
    done = subprocess.run(
        ["scontrol", "show", "hostnames", text],
        capture_output=True,
        text=True,
        env={"SLURM_CONF": str(tmp_path / "slurm.conf"), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    assert done.stdout.split() == expand(text, "test")


@pytest.mark.parametrize(
    "text",
    ["-oProxyCommand=touch", "a;b", "$(id)", "gpu[3-1]", "gpu[1", "gpu[1-999999999]", "a b\x00"],
)
def test_what_is_no_host_is_refused(text):
    with pytest.raises(InputError):
        expand(text, "--ssh")


def test_widths_are_kept_apart():
    assert fold_names(["gpu09", "gpu10"]) == "gpu[09-10]"
    assert fold_names(["gpu9", "gpu10"]) == "gpu[9-10]"
    assert unfold("10.0.0.1#ab12") == ["10.0.0.1#ab12"]
