"""``plan --fit``: what is found makes the run fit, by the same plan."""

from __future__ import annotations

import shlex

import pytest
import yaml

from envdoctor.app import plan
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.workload import Workload
from envdoctor.plan.memory.fit import pasted as said_where
from envdoctor.report.plan_text import summary
from envdoctor.sources import Sources, gather

from .conftest import RUNS
from .test_monotony import BESIDE
from .test_monotony import RUNS as ADAPTERS


@pytest.fixture
def fitted(matrix, tmp_path):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')

    def run(words, assume, framework=None, **more):
        (facts,) = gather(Sources(facts=[str(empty)], assume=assume))
        return plan(words, facts, matrix, framework=framework, **more)[0]

    return run


@pytest.mark.parametrize(
    ("name", "framework", "assume"),
    [
        ("simplerl_84.sh", "simplerl", ["memory=931GiB", "gpu=A100-SXM4-80GB:8"]),
        ("tinyzero_61.sh", "tinyzero", ["memory=200GB", "gpu=A100-SXM4-40GB:2"]),
    ],
)
def test_what_is_found_makes_it_fit_when_it_is_pasted(fitted, name, framework, assume):
    words = [str(RUNS / name)]
    before = fitted(words, assume, framework)
    fitted_plan = fitted(words, assume, framework, fit=True)
    assert before.plan.verdict != "fits" == fitted_plan.plan.verdict
    assert fitted_plan.before.verdict == before.plan.verdict
    again = fitted(words, assume, framework, changes=fitted_plan.changes)
    assert again.plan.verdict == "fits"
    assert fitted_plan.plan.notes[0] == f"To paste: {' '.join(fitted_plan.changes)}"
    assert fitted_plan.plan.notes[1].startswith("Price: ")
    assert not any("length" in setting for setting in fitted_plan.changes)


#: Runs that do not fit these machines, one of each way to write settings.
TOTALS = """\
python3 -m verl.trainer.main_ppo data.train_batch_size=256 data.max_prompt_length=1024 \\
  data.max_response_length=8192 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  actor_rollout_ref.actor.ppo_mini_batch_size=96 actor_rollout_ref.actor.ppo_micro_batch_size=96 \\
  actor_rollout_ref.rollout.log_prob_micro_batch_size=160 actor_rollout_ref.rollout.name=vllm \\
  actor_rollout_ref.ref.log_prob_micro_batch_size=160 trainer.n_gpus_per_node=8 trainer.nnodes=1"""
SFT = """\
torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.max_length=8192 \\
  data.micro_batch_size=256 model.partial_pretrain=google/gemma-2b"""
WRITTEN = {**ADAPTERS, "verl-totals.sh": TOTALS, "verl-sft-totals.sh": SFT}
SMALL = {
    "verl-totals.sh": "A100-SXM4-80GB:8",
    "verl-sft-totals.sh": "A100-SXM4-40GB:8",
}


#: Runs that take no settings behind their command, and the file that has them.
IN_FILE = {"roll.sh": "examples/runs/one.yaml"}


def pasted(path, settings):
    """Return the run with settings as one pastes them: behind the command, or in its file."""
    text = path.read_text()
    if path.name in IN_FILE:
        file = path.parent / IN_FILE[path.name]
        tree = yaml.safe_load(file.read_text())
        for setting in settings:
            names, _, value = setting.partition("=")
            *above, last = names.split(".")
            place = tree
            for name in above:
                place = place.setdefault(name, {})
            place[last] = yaml.safe_load(value)
        file.write_text(yaml.safe_dump(tree))
        return [str(path)]
    if path.suffix == ".toml":
        return ["uv", "run", "rl", "@", str(path), *settings]
    if path.suffix == ".yaml":
        rows = "".join(f"{one.replace('=', ': ', 1)}\n" for one in settings)
        keys = {one.partition("=")[0] for one in settings}
        kept = [row for row in text.splitlines(True) if row.partition(":")[0] not in keys]
        text = "".join(kept) + rows
    else:
        text = f"{text.rstrip()} {shlex.join(settings)}\n"
    path.write_text(text)
    return [str(path)]


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_what_is_found_is_the_same_run_when_it_is_pasted(fitted, tmp_path, name):
    """As a user pastes it, and not as --what-if takes it: the framework's reader reads it again."""
    for other, text in {**BESIDE.get(name, {}), name: f"{WRITTEN[name]}\n"}.items():
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_text(text)
    path = tmp_path / name
    assume = ["memory=150GiB", f"gpu={SMALL.get(name, 'A10:8')}"]
    words = ["uv", "run", "rl", "@", str(path)] if path.suffix == ".toml" else [str(path)]
    found = fitted(words, assume, fit=True)
    again = fitted(pasted(path, found.changes), assume)
    assert again.plan.verdict == found.plan.verdict, found.changes
    bounds = [
        [(pool.name, pool.subject, pool.low, pool.high) for pool in one.plan.pools]
        for one in (again, found)
    ]
    assert bounds[0] == bounds[1], found.changes
    assert not [one for one in again.findings if one.severity == "error" and one.code == "ED607"]
    if name in SMALL:
        assert found.changes
    first = summary(found)  # what to change, and what it does, before anything else
    assert all(setting in first for setting in found.changes[:2])
    assert not found.changes or ("; no setting" not in first and " -> " in first)


def test_a_server_is_spread_as_little_as_fits(fitted):
    words = ["vllm", "serve", "Qwen/Qwen2.5-72B-Instruct", "--max-model-len", "16384"]
    fitted_plan = fitted(words, ["memory=1TB", "gpu=H100-SXM5-80GB:8"], fit=True)
    assert fitted_plan.changes == ("--tensor-parallel-size=4",)


def test_a_run_that_fits_is_left_alone(fitted):
    words = ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", "--max-model-len", "16384"]
    fitted_plan = fitted(words, ["memory=1TB", "gpu=H100-SXM5-80GB:8"], fit=True)
    assert fitted_plan.changes == ()
    assert fitted_plan.plan.notes[0] == "Nothing has to be changed."


def test_shorter_texts_are_never_the_way(fitted):
    words = ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", "--max-model-len", "900000"]
    fitted_plan = fitted(words, ["memory=1TB", "gpu=A100-SXM4-40GB:1"], fit=True)
    assert fitted_plan.plan.verdict != "fits"
    assert not any("max-model-len" in setting for setting in fitted_plan.changes)


def test_settings_of_a_framework_that_reads_a_file_are_said_for_that_file(fitted, tmp_path):
    file = tmp_path / "tune.yaml"
    file.write_text(
        "base_model: Qwen/Qwen2.5-7B\nadapter: lora\nlora_r: 16\nsequence_len: 8192\n"
        "micro_batch_size: 16\ngradient_accumulation_steps: 2\nbf16: true\nflash_attention: true\n"
    )
    result = fitted([str(file)], ["memory=2TB", "gpu=H100-SXM5-80GB:8"], fit=True)
    assert result.changes
    note = next(one for one in result.plan.notes if one.startswith("In tune.yaml: "))
    assert not any(one.startswith("To paste") for one in result.plan.notes)
    entries = yaml.safe_load("{" + note.partition(": ")[2] + "}")
    assert sorted(f"{key}={value}" for key, value in entries.items()) == sorted(result.changes)


PLACE = Evidence("jobs/agentic.yaml:7")


@pytest.mark.parametrize(
    ("framework", "fields", "settings", "notes"),
    [
        (
            "roll",
            {"actor.micro_batch": ("actor_train.training_args.per_device_train_batch_size", PLACE)},
            ["actor_train.training_args.per_device_train_batch_size=1", "actor_train.other=True"],
            (
                "In jobs/agentic.yaml: actor_train.training_args.per_device_train_batch_size: 1, actor_train.other: true",
            ),
        ),
        (
            "transformers",
            {
                "actor.micro_batch": ("--per_device_train_batch_size", Evidence("a.sh:3")),
                "actor.strategy": ("zero_optimization.stage", Evidence("ds/zero2.json:4")),
            },
            ["zero_optimization.stage=3", "--per_device_train_batch_size=1"],
            (
                "To paste: --per_device_train_batch_size=1",
                "In ds/zero2.json: zero_optimization.stage: 3",
            ),
        ),
        (  # a file that a command may say the settings of
            "torchtune",
            {"actor.micro_batch": ("batch_size", Evidence("lora.yaml:9"))},
            ["batch_size=1"],
            ("To paste: batch_size=1",),
        ),
        (  # no file is known
            "axolotl",
            {"actor.micro_batch": ("micro_batch_size", Evidence("--what-if"))},
            ["micro_batch_size=1"],
            ("To paste: micro_batch_size=1",),
        ),
    ],
)
def test_each_setting_is_said_for_the_place_that_it_is_read_from(
    framework, fields, settings, notes
):
    table = {field: Known(4, place) for field, (_, place) in fields.items()}
    table["framework"] = Known(framework, Evidence("a.sh:1"))
    workload = Workload(table, {field: key for field, (key, _) in fields.items()})
    assert said_where(workload, settings) == notes
