"""What a run names, looked up on this machine: nothing of a token, nothing that is not read."""

import socket

import pytest

from envdoctor.app import plan
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.workload import Workload
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.places import read_places
from envdoctor.sources import Sources, gather

PLACE = Evidence("test")


def places(home, environ=None, **values):
    table = {name.replace("__", "."): Known(value, PLACE) for name, value in values.items()}
    return read_places(Workload(table), {"HOME": str(home), **(environ or {})})


def test_paths_are_looked_up_once_and_parts_of_files_are_the_file(tmp_path):
    (tmp_path / "a.parquet").touch()
    there, gone = tmp_path / "a.parquet", tmp_path / "b.parquet"
    run_places = places(
        tmp_path,
        data__files=f"{there}@train, {gone}, data/relative.parquet, s3://x/y, {tmp_path}/*.json",
        data__val_files=str(gone),
        actor__model="~/model",
        critic__model="/nowhere/at/all",
    ).paths
    assert [(path.path, path.exists) for path in run_places] == [
        (f"{tmp_path}/model", False),
        (f"{there}@train", True),
        (str(gone), False),
    ]


def test_the_disk_of_a_folder_that_is_still_to_be_made(tmp_path):
    run_places = places(tmp_path, checkpoint__folder=str(tmp_path / "runs" / "one"))
    assert (run_places.disk, run_places.fresh, run_places.step) == (str(tmp_path), True, None)
    assert run_places.free > 0


@pytest.mark.parametrize(
    ("name", "text", "step"),
    [
        ("latest_checkpointed_iteration.txt", "120", 120),
        ("global_step_40/x", "", 40),
        ("checkpoint-500/x", "", 500),
        ("notes", "", None),
    ],
)
def test_the_last_step_of_a_folder(tmp_path, name, text, step):
    path = tmp_path / "ckpt" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    run_places = places(tmp_path, checkpoint__folder=str(tmp_path / "ckpt"))
    assert (run_places.step, run_places.fresh) == (step, False)


def test_a_port_on_which_something_listens(tmp_path):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert port in places(tmp_path, port=port).ports
    assert places(tmp_path).ports is None


def test_the_cache_of_the_hub_and_a_token_of_which_nothing_is_kept(tmp_path):
    cached = tmp_path / ".cache" / "huggingface" / "hub" / "models--Qwen--Qwen3-8B" / "snapshots"
    run = {"actor__model": "Qwen/Qwen3-8B"}
    assert [model.cached for model in places(tmp_path, **run).hub] == [False]
    (cached / "abc").mkdir(parents=True)
    token = tmp_path / ".cache" / "huggingface" / "token"
    assert places(tmp_path, **run).token is False
    token.write_text("hf_secretsecretsecret")
    run_places = places(tmp_path, {"HF_HUB_OFFLINE": "1"}, **run)
    assert ([model.cached for model in run_places.hub], run_places.offline) == (
        [True],
        "HF_HUB_OFFLINE",
    )
    assert run_places.token is True
    assert "hf_secret" not in repr(run_places)
    assert places(tmp_path, {"HF_TOKEN": "hf_x"}, **run).token is True
    elsewhere = places(tmp_path, {"HF_HUB_CACHE": str(tmp_path / "empty")}, **run)
    assert [model.cached for model in elsewhere.hub] == [False]


SCRIPT = "vllm serve /models/none-7B --port 8000"


@pytest.mark.parametrize(
    ("text", "elsewhere", "prepares"),
    [
        (SCRIPT, "", ""),
        (f"hf download a/b --local-dir /models/none-7B\n{SCRIPT}", "", "hf"),
        (f"ray stop\n{SCRIPT}", "", ""),
        (f"srun {SCRIPT}", "another machine", ""),
        (f"docker run --gpus all vllm/vllm-openai:v0.9 {SCRIPT}", "container", ""),
        (f"#SBATCH --nodes=1\n{SCRIPT}", "sbatch", ""),
    ],
)
def test_where_a_script_starts_its_run(tmp_path, text, elsewhere, prepares):
    script = tmp_path / "serve.sh"
    script.write_text(text + "\n")
    run = read_workload([str(script)], environ={})
    found = (run.value("launch.elsewhere"), run.value("launch.prepares"))
    assert found == (elsewhere, prepares)


def test_nothing_of_this_machine_counts_for_another(tmp_path):
    script = tmp_path / "serve.sh"
    script.write_text(SCRIPT + "\n")
    (facts,) = gather(Sources(assume=["gpu=H100-SXM5-80GB:8", "memory=1TB"], elsewhere=True))
    for here, codes in ((True, {"ED611"}), (False, set())):
        result, _ = plan([str(script)], facts, here=here)
        found = {finding.code for finding in result.findings if finding.code > "ED610"}
        assert {code for code in found if code < "ED617"} == codes


@pytest.mark.parametrize(
    ("name", "ways", "expected"),
    [("Qwen/Qwen2.5-7B", 8, 1), ("Qwen/Qwen2.5-7B", 4, 0), ("our-7B", 5, 0)],
)
def test_heads_are_not_split(tmp_path, name, ways, expected):
    script = tmp_path / "serve.sh"
    script.write_text(f"vllm serve {name} -tp {ways}\n")
    (facts,) = gather(Sources(assume=["gpu=H100-SXM5-80GB:8"], elsewhere=True))
    result, _ = plan([str(script)], facts)
    findings = [finding for finding in result.findings if "attention heads" in finding.message]
    assert [finding.severity for finding in findings] == ["warning"] * expected


@pytest.mark.parametrize(
    "command",
    [
        "trl sft --model_name_or_path a/b-7B --dataset_name {path}",
        "swift sft --model a/b-7B --dataset {path}#500 --tuner_type full",
        "deepspeed --module openrlhf.cli.train_sft --pretrain a/b-7B --dataset {path}",
        "torchrun -m verl.trainer.sft_trainer model.path=a/b-7B data.train_files={path}",
    ],
)
def test_data_that_is_not_there(tmp_path, command):
    script = tmp_path / "train.sh"
    for path, count in ((tmp_path / "none.jsonl", 1), (script, 0)):
        script.write_text(command.format(path=path) + "\n")
        places = read_places(read_workload([str(script)], environ={}), {})
        missing = [entry for entry in places.paths if entry.exists is False]
        assert [entry.field for entry in missing] == ["data.files"] * count
