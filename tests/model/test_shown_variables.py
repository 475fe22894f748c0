"""One allow-list of variables: no name that is not on it, no secret in what is."""

import re
from pathlib import Path

import pytest

from envdoctor.intake import parse_report
from envdoctor.model.shown_variables import is_listed
from envdoctor.probes.variables import select_variables

ROOT = Path(__file__).parent.parent.parent
HIDDEN_NAMES = """
HF_TOKEN HUGGING_FACE_HUB_TOKEN OPENAI_API_KEY WANDB_API_KEY AWS_SECRET_ACCESS_KEY VLLM_API_KEY
RAY_AUTH_TOKEN SGLANG_API_KEY RAY_REDIS_PASSWORD TORCH_SECRET NCCL_PASSPHRASE GITHUB_TOKEN USER HOME
MASTER_ADDR SLURM_JOB_USER HTTP_PROXY http_proxy SSH_CONNECTION NVIDIA_API_KEY NGC_API_KEY
"""


def test_names():
    for name in (
        "LD_LIBRARY_PATH",
        "NCCL_CUMEM_ENABLE",
        "VLLM_USE_V1",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TOKENIZERS_PARALLELISM",
    ):
        assert is_listed(name), name
    for name in HIDDEN_NAMES.split():
        assert not is_listed(name), name


def test_every_variable_of_the_matrix_is_read():
    """A row that asks for a variable outside the list would take it for absent."""
    named = set()
    for path in (ROOT / "matrices").rglob("*.toml"):
        named.update(re.findall(r"\bvar\s*=\s*\"(\w+)\"", path.read_text()))
    for path in (ROOT / "envdoctor" / "rules").glob("*.py"):
        named.update(re.findall(r"\bvariable\(\s*\"(\w+)\"", path.read_text()))
    assert {name for name in named if not is_listed(name)} == set()


@pytest.mark.parametrize("name", [*HIDDEN_NAMES.split(), "NCCL_DEBUG", "CUDA_HOME", "SLURM_JOB_ID"])
def test_a_report_keeps_what_the_probe_keeps(name):
    """What nobody may see of a machine nobody may see of a report either."""
    report = parse_report(f"torch==2.6.0\nexport {name}=/x/y\n")
    assert report.value("variables", {}) == select_variables({name: "/x/y"})
