"""A plan shows each setting that would help once, with what it does."""

from __future__ import annotations

import pytest

from envdoctor.app import plan
from envdoctor.matrix.loader import load_matrix
from envdoctor.report.plan_text import render
from envdoctor.report.view import View
from envdoctor.sources import Sources, gather

RUN = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct data.max_prompt_length=1024 \\
  data.max_response_length=8192 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \\
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \\
  trainer.n_gpus_per_node=8 trainer.nnodes=1
"""


@pytest.mark.parametrize("memory", ["2TB", "200GB"])
def test_each_lever_stands_once_below_the_first_line(tmp_path, memory):
    script = tmp_path / "train.sh"
    script.write_text(RUN)
    facts = gather(Sources(assume=[f"memory={memory}", "gpu=L40S:8"], elsewhere=True))[0]
    result, _ = plan([str(script)], facts, load_matrix(), framework="verl==0.6.1")
    assert result.levers
    text = render(result, View(color=False, width=400))
    body = text.partition("\n")[2]
    for lever in result.levers:
        lines = [line for line in body.splitlines() if lever.text in line and "narrow" not in line]
        shown = sum(1 for other in result.levers if other.text == lever.text)
        assert len(lines) == shown, (lever.text, lines)


def test_what_helps_is_offered_beside_settings_that_nobody_knows(tmp_path):
    """Two pools do not fit, and neither is sure: a setting that lowers one makes no other worse."""
    script = tmp_path / "train.sh"
    script.write_text(RUN.rstrip() + " +trainer.of_my_own=1\n")
    facts = gather(Sources(assume=["memory=64GB", "gpu=T4:8"], elsewhere=True))[0]
    result, _ = plan([str(script)], facts, load_matrix(), framework="verl==0.6.1")
    assert result.workload.unread
    assert {pool.verdict for pool in result.plan.pools if pool.name != "shm"} == {"tight"}
    gpu = [lever for lever in result.levers if lever.pool == "gpu"]
    assert any("ppo_micro_batch_size_per_gpu" in lever.text for lever in gpu)
    assert all(lever.verdict == "tight" for lever in gpu)  # as little sure as the plan itself
