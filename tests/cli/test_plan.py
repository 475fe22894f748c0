"""``envdoctor plan`` and ``check --plan`` as a user runs them."""

import json
import subprocess
from pathlib import Path

import pytest

from .conftest import COMMAND, environment

RUNS = Path(__file__).parent.parent / "data" / "workloads"
MACHINE = ["--assume", "memory=1TB", "--assume", "gpu=A100-SXM4-80GB:8", "--assume", "shm=400GiB"]
SMALL = ["--assume", "memory=200GiB", "--assume", "gpu=A100-SXM4-80GB:8", "--assume", "shm=400GiB"]


def run(*arguments, columns=None, text=None):
    settings = environment()
    if columns:
        settings["COLUMNS"] = str(columns)
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        input=text,
    )


def test_verdict_and_exit_code():
    assert run("plan", RUNS / "simplerl_84.sh", *MACHINE).returncode == 0
    small = run("plan", RUNS / "simplerl_84.sh", *SMALL)
    assert small.returncode == 1
    assert small.stdout.startswith("simplerl")
    assert "does not fit (host memory)" in small.stdout
    assert "actor_rollout_ref.rollout.swap_space=4" in small.stdout


@pytest.mark.parametrize("command", [["plan"], ["check", "--plan"], ["check"]])
def test_a_script_on_standard_input_is_read_as_its_file_is(command):
    script = RUNS / "simplerl_84.sh"
    of_file = run(*command, script, *SMALL, "--format", "json")
    piped = run(*command, "-", *SMALL, "--format", "json", text=script.read_text())
    assert piped.returncode == of_file.returncode == 1
    codes = [
        [finding["code"] for finding in json.loads(output.stdout)["findings"]]
        for output in (of_file, piped)
    ]
    assert codes[0] == codes[1]


def test_what_if_is_judged_as_changed():
    changed = run(
        "plan",
        RUNS / "simplerl_84.sh",
        *SMALL,
        "--what-if",
        "actor_rollout_ref.rollout.swap_space=0",
    )
    assert changed.returncode == 0
    assert "With actor_rollout_ref.rollout.swap_space=0:" in changed.stdout


def test_sixty_columns_of_ascii():
    text = run("plan", RUNS / "simplerl_84.sh", *SMALL, columns=60).stdout
    assert text.isascii()
    allowed = (
        "actor_rollout_ref",
        "https://",
        "docker run",
        "pip install",
    )  # what is copied is not broken
    assert [
        line
        for line in text.splitlines()
        if len(line) > 60 and not any(word in line for word in allowed)
    ] == []


def test_json_has_every_term_with_formula_source_and_place():
    document = json.loads(run("plan", RUNS / "simplerl_84.sh", *MACHINE, "--format", "json").stdout)
    host = next(pool for pool in document["pools"] if pool["name"] == "host")
    assert host["verdict"] == "tight" == document["verdict"]
    assert all(
        term["formula"] and term["source"] and term["low"] <= term["high"] for term in host["terms"]
    )
    swap = next(term for term in host["terms"] if term["name"] == "swap space")
    assert swap["low"] == 448 << 30
    assert any("default of simplerl" in entry["place"] for entry in swap["inputs"])
    assert document["levers"][0]["settings"] == ["actor_rollout_ref.rollout.swap_space=4"]


def test_command_after_two_dashes():
    words = [
        "python3",
        "-m",
        "verl.trainer.main_ppo",
        "data.train_batch_size=256",
        "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B",
        "trainer.n_gpus_per_node=8",
    ]
    found = run("plan", *MACHINE, "--framework", "verl==0.4.1", "--", *words)
    assert found.returncode in (0, 1)
    assert "Qwen2.5-7B: 7.62 billion parameters" in found.stdout


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("./mine", "the size of ./mine (its config.json); state it: --what-if actor.model=MODEL"),
        ('"$(cat name)"', "actor.model (run.sh:1: what $(cat name) prints); state it: --what-if"),
        ("Qwen/Qwen2.5-7B", ""),
    ],
)
def test_the_one_value_that_would_decide_is_said_as_one_states_it(tmp_path, model, said):
    script = tmp_path / "run.sh"
    script.write_text(f"vllm serve {model} --max-model-len 4096 --max-num-seqs 8\n")
    text = " ".join(run("plan", script, *MACHINE, "-q").stdout.split())
    assert (said in text) if said else ("not known" not in text)


def test_a_misspelt_key_is_in_the_first_line(tmp_path):
    words = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
        "trainer.n_gpus_per_node=8"
    )
    script = tmp_path / "train.sh"
    script.write_text(f"{words}\n")
    assert "refused or passed over" not in run("plan", script, *MACHINE).stdout
    script.write_text(f"{words} actor_rollout_ref.rollout.gpu_memory_utilisation=0.6\n")
    found = run("plan", script, *MACHINE).stdout
    assert "; 1 setting refused or passed over" in " ".join(found.splitlines()[:2])
    assert "Use actor_rollout_ref.rollout.gpu_memory_utilization" in found


@pytest.mark.parametrize(
    ("before", "options", "severity"),
    [
        ("", "--max-model-len 32768", "error"),
        ("", "--max-model-len 4096", None),
        ("", "--max-model-len 32768 --something-new 3", "warning"),
        ("", "--max-model-len 32768 --hf-overrides '{\"rope_theta\": 1e6}'", None),
        ("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 ", "--max-model-len 32768", None),
        ("VLLM_ALLOW_LONG_MAX_MODEL_LEN=0 ", "--max-model-len 32768", "error"),
    ],
)
def test_a_model_that_takes_no_such_length(tmp_path, before, options, severity):
    config = {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "vocab_size": 32000,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "max_position_embeddings": 4096,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    script = tmp_path / "serve.sh"
    script.write_text(f"{before}vllm serve {tmp_path} {options}\n")
    text = run("plan", script, "--assume", "gpu=H100", "memory=100GiB").stdout
    assert (f"ED620 {severity}:" in text) if severity else "ED620" not in text
    assert ("1 other error below" in text.partition("\n\n")[0]) == (severity == "error")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan"], "expected a launch script"),
        (["plan", "missing.sh"], "missing.sh"),
        (["plan", RUNS / "simplerl_84.sh", "--what-if", "nothing=1"], "has no key 'nothing'"),
        (["plan", RUNS / "simplerl_84.sh", "--framework", "nobody"], "expected one of"),
        (["plan", RUNS / "simplerl_84.sh", "--target", "a", "--report", "b"], "give one of them"),
    ],
)
def test_wrong_usage(arguments, says):
    found = run(*arguments)
    assert found.returncode == 2
    assert says in found.stderr
    assert found.stdout == ""


def test_config_json_beside_the_model_is_read(tmp_path):
    config = {
        "num_hidden_layers": 28,
        "hidden_size": 3584,
        "vocab_size": 152064,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
    }
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 18944}))
    text = run(
        "plan",
        *MACHINE,
        "--framework",
        "verl==0.4.1",
        "--",
        "python3",
        "-m",
        "verl.trainer.main_ppo",
        f"actor_rollout_ref.model.path={tmp_path}",
    ).stdout
    assert "its config.json" in text
    (tmp_path / "config.json").write_text("{")
    broken = run(
        "plan",
        *MACHINE,
        "--framework",
        "verl==0.4.1",
        "--",
        "python3",
        "-m",
        "verl.trainer.main_ppo",
        f"actor_rollout_ref.model.path={tmp_path}",
    )
    assert broken.returncode == 2
    assert "is no JSON" in broken.stderr


def test_check_joins_the_plan_with_the_environment(broken):
    plain = run("check", "--facts", broken, "--format", "json")
    joined = run(
        "check",
        "--facts",
        broken,
        "--assume",
        "memory=200GiB",
        "gpu=A100-SXM4-80GB:8",
        "--format",
        "json",
        "--plan",
        RUNS / "simplerl_84.sh",
    )
    codes = {finding["code"] for finding in json.loads(joined.stdout)["findings"]}
    assert {"ED601", "ED604"} <= codes
    assert {finding["code"] for finding in json.loads(plain.stdout)["findings"]} & codes
    assert joined.returncode == 1


@pytest.mark.parametrize("code", ["ED601", "ED602", "ED603", "ED604", "ED605", "ED606", "ED607"])
def test_codes_are_explained(code):
    found = run("explain", code)
    assert found.returncode == 0
    assert "How to fix" in found.stdout


def test_check_without_a_plan_loads_nothing_of_it(broken):
    done = subprocess.run(
        [COMMAND[0], "-X", "importtime", *COMMAND[1:], "check", "--facts", str(broken)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    loaded = {
        line.rpartition("|")[2].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "envdoctor.rules" in loaded
    assert not [
        name
        for name in loaded
        if name.startswith(("envdoctor.plan.frameworks", "envdoctor.plan.memory."))
    ]


def test_a_sweep_is_a_table_of_plans():
    swept = run(
        "plan", RUNS / "simplerl_84.sh", *MACHINE, "--sweep", "rollout.swap_space=4,16", columns=140
    )
    assert swept.returncode == 0, swept.stderr
    rows = [line for line in swept.stdout.splitlines() if line.startswith("rollout.swap_space=")]
    assert [row.split()[0] for row in rows] == ["rollout.swap_space=4", "rollout.swap_space=16"]
    refused = run("plan", RUNS / "simplerl_84.sh", "--sweep", "a=1,2", "--fit")
    assert refused.returncode == 2
    assert "--sweep prints a table of plans; it does not go with --fit" in refused.stderr
