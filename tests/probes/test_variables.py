"""The probe of variables, and that no secret leaves a whole probe."""

import json
import os
import sys
from pathlib import Path

from envdoctor.model.evidence import Unknown
from envdoctor.probes.isolation import run_command
from envdoctor.probes.machine import Machine
from envdoctor.probes.variables import probe_variables, select_variables

ROOT = Path(__file__).parent.parent.parent
SECRET = "Zq7xW9pLk2Vn8Rt4"


def test_long_and_damaged_values():
    found = select_variables(
        {"LD_LIBRARY_PATH": "/x/y:" * 5000, "PATH": "/a\udcff", "NCCL_DEBUG": "x" * 20000}
    )
    assert len(found["LD_LIBRARY_PATH"]) <= 8193
    assert found["PATH"] == "/a\ufffd"
    assert len(found["NCCL_DEBUG"]) < 10
    json.dumps(found).encode()


def test_folder_has_no_environment(tmp_path):
    assert isinstance(probe_variables(Machine(str(tmp_path)))["variables"], Unknown)
    assert probe_variables(Machine(str(tmp_path), {"CUDA_HOME": "/x"}))["variables"].value == {
        "CUDA_HOME": "/x"
    }


def test_nothing_secret_leaves_a_whole_probe(tmp_path):
    """Secrets in variables, pip's and netrc's files, direct_url.json: none is in the facts, in any
    form.
    """
    home = tmp_path / "home"
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".pip").mkdir()
    configuration = (
        f"[global]\nindex-url = https://user:{SECRET}@host/simple\nextra-index-url =\n "
        f"   https://{SECRET}@other/simple\npassword = {SECRET}\n"
    )
    (home / ".config" / "pip" / "pip.conf").write_text(configuration)
    (home / ".pip" / "pip.conf").write_text(configuration)
    (home / ".netrc").write_text(f"machine host login user password {SECRET}\n")
    (home / ".pypirc").write_text(f"[pypi]\nusername = __token__\npassword = pypi-{SECRET}\n")
    site = tmp_path / "site"
    for name in ("alpha", "beta"):
        (site / f"{name}-1.0.dist-info").mkdir(parents=True)
        (site / f"{name}-1.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: gamma @ "
            f"https://u:{SECRET}@host/{SECRET}/g-1-py3-none-any.whl\n"
        )
    link = {
        "url": f"https://user:{SECRET}@host/{SECRET}/alpha.git?token={SECRET}",
        "vcs_info": {"vcs": "git", "commit_id": "0" * 40},
    }
    (site / "alpha-1.0.dist-info" / "direct_url.json").write_text(json.dumps(link))
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "PYTHONPATH": f"{ROOT}:{site}",
        "PIP_CONFIG_FILE": str(home / ".pip" / "pip.conf"),
        "PIP_INDEX_URL": f"https://user:{SECRET}@host/simple",
        "PIP_EXTRA_INDEX_URL": f"https://{SECRET}@host/simple https://a:{SECRET}@b/simple",
        "UV_INDEX": f"name=https://user:{SECRET}@host/simple",
        "UV_FIND_LINKS": f"https://host/{SECRET}/links?sig={SECRET}",
        "HTTPS_PROXY": f"http://user:{SECRET}@proxy:3128",
        "NCCL_SOCKET_IFNAME": "eth0",
        "VLLM_S3_ENDPOINT": f"https://{SECRET}@s3.example/",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_USER": SECRET,
        "SLURM_JOB_ACCOUNT": SECRET,
        "SLURM_JOB_PARTITION": "gpu",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "CUDA_HOME": f"https://user:{SECRET}@host/",
        "LD_LIBRARY_PATH": f"/opt/x:https://user:{SECRET}@host/",
        "TRITON_PTXAS_PATH": f"/opt/ptxas --token {SECRET}",
        "RAY_ADDRESS": f"ray://user:{SECRET}@head:10001",
        "GIT_ASKPASS": SECRET,
        **dict.fromkeys(
            [
                "HF_TOKEN",
                "OPENAI_API_KEY",
                "WANDB_API_KEY",
                "AWS_SECRET_ACCESS_KEY",
                "VLLM_API_KEY",
                "RAY_AUTH_TOKEN",
                "NGC_API_KEY",
                "SGLANG_API_KEY",
            ],
            SECRET,
        ),
    }
    code = (
        "import json; from envdoctor.model.serde import dump_facts; from envdoctor.probes import "
        "probe_machine\n"
        "print(json.dumps(dump_facts(probe_machine())))"
    )
    outcome = run_command(
        [sys.executable, "-c", code], 60, variables, stderr=True, folder=str(tmp_path)
    )
    assert outcome.status == 0, outcome.text
    facts = json.loads(outcome.text)["facts"]
    assert facts["variables"]["value"]["NCCL_SOCKET_IFNAME"] == "eth0"
    assert any(entry["name"] == "alpha" for entry in facts["distributions"]["value"])
    names = [name for name, fact in facts.items() if SECRET in json.dumps(fact)]
    assert names == []
