"""No secret leaves: by name, by value, in URLs, in pip's configuration; what the rules need stays
readable.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from envdoctor.model.evidence import Unknown
from envdoctor.probes import variables
from envdoctor.probes.isolation import run_command
from envdoctor.probes.machine import Machine
from envdoctor.probes.variables import is_listed, probe_variables, redact, select_variables

ROOT = Path(__file__).parent.parent.parent
SECRET = "Zq7xW9pLk2Vn8Rt4"
HIDDEN_NAMES = """
HF_TOKEN HUGGING_FACE_HUB_TOKEN OPENAI_API_KEY WANDB_API_KEY AWS_SECRET_ACCESS_KEY VLLM_API_KEY RAY_AUTH_TOKEN SGLANG_API_KEY RAY_REDIS_PASSWORD
TORCH_SECRET NCCL_PASSPHRASE GITHUB_TOKEN USER HOME MASTER_ADDR HTTP_PROXY http_proxy SSH_CONNECTION NVIDIA_API_KEY NGC_API_KEY
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"https://user:{SECRET}@pypi.example.com/simple", "https://***@pypi.example.com/simple"),
        (
            f"https://{SECRET}@pypi.example.com:8443/simple/",
            "https://***@pypi.example.com:8443/simple/",
        ),
        (f"https://user:a/{SECRET}@host/simple", "https://***@host/simple"),
        (f"https://user:a@{SECRET}@host/simple", "https://***@host/simple"),
        (f"https://user:a,{SECRET};b@host/simple", "https://***@host/simple"),
        (f"https://host/simple?token={SECRET}", "https://host/simple?***"),
        (f"https://host/simple?{SECRET}#x", "https://host/simple?***"),
        (
            f"https://dl.example.com/{SECRET}/org/python/simple/",
            "https://dl.example.com/***/org/python/simple/",
        ),
        (f"http://{SECRET}", f"http://{SECRET}"),  # a bare host: nothing tells it from a name
        (
            f"git+https://{SECRET}@github.com/org/repo.git@0123456789abcdef",
            "git+https://***@github.com/org/repo.git@0123456789abcdef",
        ),
        ("git+ssh://git@github.com/org/repo@v1", "git+ssh://***@github.com/org/repo@v1"),
        ("https://download.pytorch.org/whl/cu124", "https://download.pytorch.org/whl/cu124"),
        ("https://download.pytorch.org/whl/cu124/torch-2.6.0%2Bcu124-cp310-cp310-linux_x86_64.whl",)
        * 2,
        ("tcp://10.0.0.1:29500", "tcp://10.0.0.1:29500"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        (f"user:{SECRET}@proxy:3128", "***@proxy:3128"),
        (f"--api-key {SECRET} --port 8000", "--api-key *** --port 8000"),
        (f"--api-key={SECRET} --port 8000", "--api-key=*** --port 8000"),
        (f"password: {SECRET}", "password: ***"),
        (f"Authorization: Bearer {SECRET}", "Authorization: ***"),
        (f'{{"token": "{SECRET}"}}', '{"token": ***'),
        ("hf_abcdefghijklmnop", "***"),
        ("x=ghp_abcdefghijklmnop", "x=***"),
        ("0123456789abcdef0123456789abcdef", "***"),
        ("/usr/local/nvidia/lib:/usr/local/nvidia/lib64",) * 2,
        ("/nix/store/0c5ih2hwdvkbxrhv7n7ywr5x9qxcl2nd-cuda_cudart-12.4.127/lib",) * 2,
        ("GPU-8f6d0e2a-1111-2222-3333-444444444444,GPU-9f6d0e2a-1111-2222-3333-444444444444",) * 2,
        ("MIG-8f6d0e2a-1111-2222-3333-444444444444",) * 2,
        ("expandable_segments:True,max_split_size_mb:128",) * 2,
        ("brand=tesla,driver>=470,driver<471 cuda>=12.4",) * 2,
        ("7.0 7.5 8.0 8.6 9.0+PTX",) * 2,
        ("", ""),
    ],
)
def test_redact(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected, "redaction is final"


_TOKEN = st.text(
    "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", min_size=20, max_size=60
)
_PLACES = [
    "https://user:{}@host.example/simple",
    "https://{}@host.example/simple",
    "https://{}:x-oauth@host.example/simple",
    "https://host.example/simple?x={}",
    "https://host.example/{}/simple",
    "--extra-index-url https://a:{}@host/simple https://b:{}@host/simple",
    "socks5://u:{}@10.0.0.1:1080",
    "s3://{}@bucket/x",
    "api_key={}",
    "TOKEN: {}",
    "--password {}",
    "bearer {}",
    "hf_{}",
    "sk-{}",
    "a:{}@proxy:3128",
]


@settings(max_examples=400, deadline=None)
@given(
    _TOKEN,
    st.sampled_from(_PLACES),
    st.sampled_from(["{}", "x {} y", "a,{}", "{};b", '"{}"', "({})"]),
)
def test_tokens_never_survive(token, place, around):
    assume(any(map(str.isdigit, token)))
    assert token not in redact(around.format(place.replace("{}", token)))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=500), st.text("ab:/@?#=.-_ keytoknsr[]\\'\"*", max_size=500)))
def test_redact_takes_anything(text):
    once = redact(text)
    assert len(once) <= 4 * len(text) + 16


@pytest.mark.parametrize(
    "name", ["_SHAPES", "_ASSIGNED", "_FLAG_SECRET", "_BEARER", "_BARE_USER", "_URL"]
)
def test_what_is_not_asked_cannot_match(name):
    """``redact`` asks a pattern only where a word of it is there: each text that the pattern
    matches has to get so far.
    """
    original = getattr(variables, name)
    asked = {
        "_SHAPES": lambda text: any(start in text for start in variables._SHAPE_STARTS),
        "_BEARER": lambda text: variables._mentions(text, ("bearer", "basic")),
        "_BARE_USER": lambda text: "@" in text,
        "_URL": lambda text: "://" in text,
    }.get(name, lambda text: variables._mentions(text, variables._SECRET_WORDS))

    @settings(max_examples=60, deadline=None)
    @given(st.from_regex(original.search.__self__))
    def check(text):
        assert asked(text)

    check()


def test_redact_is_quick():
    start = time.monotonic()
    for piece in (
        "a",
        "key",
        "k=",
        "://",
        "a:",
        "@",
        "a:b@",
        "-",
        "/",
        "https://a@",
        "token ",
        "eyJ",
        ".",
        "Bearer ",
    ):
        redact((piece * 8192)[:8192])
    assert time.monotonic() - start < 2


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
    found = [name for name, fact in facts.items() if SECRET in json.dumps(fact)]
    assert found == []


_SEGMENTS = st.sampled_from(
    [
        "/",
        "a",
        "abc12def34gh56",
        "é",
        "@",
        "?",
        "x.whl",
        " ",
        "\x1c",
        "'",
        "://",
        "a" * 24,
        "\\",
        ":",
        "%20",
    ]
)


@given(st.lists(_SEGMENTS, max_size=9).map("".join))
def test_addresses_of_files_are_redacted_as_any_other(path):
    """The short way that spares a start the regular expressions gives what they give."""
    text = variables.redact(f"file:///{path}")
    assert text == variables.redact(f" file:///{path}")[1:]
