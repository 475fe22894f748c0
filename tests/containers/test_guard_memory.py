"""The check of a start where a container is killed as a whole: memory.oom.group of cgroup v2, as
kubelets set it.
"""

from __future__ import annotations

import pytest

from ..entrypoint.test_guard import make_environment, script_of
from .uml import POINT, boot, can_boot

pytestmark = pytest.mark.slow

#: Limit in MiB, and whether the baseline takes more than any of them leaves.
STARTS = ((16, True), (28, True), (64, True), (96, False))
BODY = """
cd {point}
echo +memory >cgroup.subtree_control
start() {{
  mkdir box$1
  echo "$1M" >box$1/memory.max; echo 0 >box$1/memory.swap.max; echo 1 >box$1/memory.oom.group
  sh -c 'echo $$ >"$0"/cgroup.procs; cd /; exec unshare -m -C sh -c "$1"' box$1 \\
    "umount {point}; mount -t cgroup2 x {point}; exec {script} --timeout 25 --baseline $2 -- sh -c 'echo ran; exit 7'" \\
    >{folder}/said 2>&1
  echo "$1: code $? $(tr '\\n' ' ' <box$1/memory.events) said $(tr '\\n' ' ' <{folder}/said)" >>{folder}/answers
}}
{starts}
"""


def test_check_never_runs_out_of_memory(tmp_path, prerequisite):
    prerequisite(*can_boot())
    environment = make_environment(tmp_path / "env")
    (tmp_path / "large.json").write_text(
        '{"schema_version": 2, "stamp": {"a": [' + "{}," * (12 << 20) + "{}]}}"
    )
    starts = "\n".join(
        f"start {limit} {tmp_path / 'large.json' if is_large else '/nonexistent'}"
        for limit, is_large in STARTS
    )
    script = script_of(environment)
    console = boot(
        tmp_path, BODY.format(point=POINT, starts=starts, folder=tmp_path, script=script)
    )
    answers = (tmp_path / "answers").read_text().splitlines()
    assert len(answers) == len(STARTS), console
    for answer in answers:
        assert ": code 7 " in answer
        assert " oom_kill 0 " in answer
        assert " ran" in answer
    assert "a memory limit of 16777216 bytes leaves no room for a check" in answers[0]
    assert "no verdict: " in answers[1]
    assert "no verdict: out of memory" in answers[2]
    assert "no verdict" not in answers[3]
