"""A secret that comes in, in any shape and by any way, goes out by none; what is no secret
stays.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Callable, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.cli.main import run
from envdoctor.intake import clean_text, parse_report, parse_requirements
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.model import serde
from envdoctor.model.facts import Facts
from envdoctor.model.redaction import redact
from envdoctor.model.serde import dump_facts, load_facts
from envdoctor.probes.variables import select_variables
from envdoctor.report import REPORTERS
from envdoctor.report.diagnosis_text import DIAGNOSIS_FORMATS
from tests.cli.conftest import BROKEN

DATA = Path(__file__).parent.parent / "data"

#: ``{}`` is the secret. Each fits into one line and into a quoted word of a shell.
SHAPES = """
Authorization: Bearer {}
curl -H "Authorization: Basic {}" x
curl -u me:{} x
bearer {}
X-Api-Key: {}
Cookie: a=b; session={}
https://user:{}@host.example/simple
https://{}@host.example/simple
git+https://user:{}@github.com/org/repo.git@v1
redis://:{}@cache:6379/0
socks5://u:{}@10.0.0.1:1080
me:{}@proxy:3128
https://host.example/simple?token={}
https://bucket.example/x?X-Amz-Signature={}&X-Amz-Date=1
https://account.example/x?sv=1&sig={}
https://dl.example.com/{}/org/python/simple/
--api-key {}
--api-key={}
--hf-token "{}"
['--api-key', '{}']
api_key: {}
api_key='{}'
apiKey: "{}"
accessToken: {}
{"token": "{}"}
{\\"token\\": \\"{}\\"}
{"name": "HF_TOKEN", "value": "{}"}
HF_TOKEN={}
export WANDB_API_KEY="{}"
docker run -e HF_TOKEN={} image
ENV HF_TOKEN {}
os.environ["HF_TOKEN"] = "{}"
login(token="{}")
OPENAI_KEY={}
MY_SECRET={}
SECRET_KEY_BASE={}
db_password: {}
SMTP_PASS={}
passphrase={}
aws_credential = {}
AccountName=x;AccountKey={}==;EndpointSuffix=core
machine host login user password {}
docker login -u me -p {} registry.example
hf_abcdefgh{}
sk-proj-{}
ghp_{}
github_pat_{}
glpat-{}
xoxb-1-{}
nvapi-{}
AKIAIOSFODNN7{^}
eyJhbGciOiJIUzI1NiJ9.{}.{}
-----BEGIN PRIVATE KEY-----\\n{}{}\\n-----END PRIVATE KEY-----
{}{}
""".strip().splitlines()
#: These are told by their lines, so they come in where a text has lines.
LINES = """
- name: HF_TOKEN
  value: {}
- --api-key
- {}
  --api-key \\
    {} --port 8000
-----BEGIN RSA PRIVATE KEY-----
MIIE{}AAAABBBBCCCC/dd
{}
-----END RSA PRIVATE KEY-----
\x1b[32mapi_key\x1b[0m: \x1b[1m{}\x1b[0m
**token:** {}
| HF_TOKEN | {} |
"""


def planted(shape: str, secret: str) -> str:
    return shape.replace("{^}", secret.upper()).replace("{}", secret)


def secret_of(number: int) -> str:
    """A secret that tells which shape it was planted in."""
    return f"Zq{number:03d}7xW9pLk2Vn8Rt4"


SECRETS = re.compile(r"Zq(\d{3})7xW9pLk2Vn8Rt4", re.IGNORECASE)
EVERY = [planted(shape, secret_of(number)) for number, shape in enumerate(SHAPES)]


def leaks(text: str) -> List[str]:
    return sorted({[*SHAPES, LINES][int(found)] for found in SECRETS.findall(text)})


# --------------------------------------------------------------------------------------------------
# every way in, by what is kept of it


def _of_facts(facts: Facts) -> str:
    return json.dumps(dump_facts(facts))


def _report(text: str) -> str:
    lines = [f"CUDA_X1={text}", f"export NCCL_X2='{text}'", text, f"vllm serve m --x {text}"]
    return _of_facts(parse_report("\n".join(["torch==2.6.0", *lines])))


def _requirements(text: str) -> str:
    name = "requirements.txt"
    return _of_facts(parse_requirements(f"torch==2.6.0\n# {text}\nx @ https://h/{text}\n", name))


def _facts_file(text: str) -> str:
    table = {**BROKEN["facts"], "variables": {"value": {"VLLM_X": text}, "source": text}}
    return _of_facts(load_facts(json.dumps({**BROKEN, "facts": table}), "facts.json"))


def _assumptions(text: str) -> str:
    return _of_facts(Facts(parse_assumptions([f"env:VLLM_X={text}", f"request:x={text}"])))


def _variables(text: str) -> str:
    return json.dumps(select_variables({"VLLM_X": text}))


WAYS: Dict[str, Callable[[str], str]] = {
    "probe": _variables,
    "report": _report,
    "facts": _facts_file,
    "assume": _assumptions,
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=150)
@given(
    st.sampled_from(SHAPES),
    st.text("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", min_size=17, max_size=40),
    st.sampled_from(["{}", "x {} y", "({})", "a, {}"]),
)
def test_what_the_probe_hides_every_other_way_hides_too(way, shape, body, around):
    secret = f"Z2{body}9q"
    text = around.replace("{}", planted(shape, secret))
    assert secret.lower() not in WAYS[way](text).lower()


@pytest.mark.parametrize("around", ["{}", "> {}", "- {}", "INFO 11-22 10:00:00 [api.py:7] {}"])
def test_lines_of_a_report(around):
    text = planted(LINES, secret_of(len(SHAPES)))
    lines = [*EVERY, *(text.strip("\n").split("\n") if around in ("{}", "> {}") else ())]
    report = "torch==2.6.0\n" + "\n".join(around.replace("{}", line) for line in lines)
    assert leaks(redact(clean_text._ANSI.sub("", report))) == []
    assert leaks(_of_facts(parse_report(report))) == []


def test_the_mark_of_a_secret_is_no_emphasis():
    facts = parse_report("**NCCL_X**: https://me:x1@host/y\n**torch**: 2.6.0")
    assert facts.value("variables") == {"NCCL_X": "https://***@host/y"}
    assert facts.value("torch.version") == "2.6.0"


def test_requirements_and_their_faults():
    for number, text in enumerate(EVERY):
        try:
            kept = _of_facts(parse_requirements(f"torch==2.6.0\n{text}\n", "requirements.txt"))
        except ValueError as error:
            kept = str(error)
        except Exception as error:  # noqa: BLE001 - the message is what is looked at
            kept = str(error)
        assert leaks(kept) == [], number


# --------------------------------------------------------------------------------------------------
# every command in every format


@pytest.fixture
def said(capsys, monkeypatch):
    """Return a function that runs a command line and returns what it wrote to both outputs."""
    monkeypatch.setenv("COLUMNS", "110")
    for number, text in enumerate(EVERY):
        monkeypatch.setenv(f"VLLM_X{number}", text)

    def say(*arguments: object) -> str:
        run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "a fault of envdoctor" not in err
        assert out or err
        return str(out + err)

    return say


@pytest.fixture
def inputs(tmp_path):
    """Files of every kind, each with every shape."""
    lines = [*EVERY, *planted(LINES, secret_of(len(SHAPES))).split("\n")]
    report = ["PyTorch version: 2.9.0+cu130", "Nvidia driver version: 470.57.02"]
    report += [f"CUDA_X{n}={text}" for n, text in enumerate(EVERY)]
    report += [f"vllm serve model --x{n} '{text}'" for n, text in enumerate(EVERY)]
    table = {
        **BROKEN["facts"],
        "variables": {"value": {f"NCCL_X{n}": t for n, t in enumerate(EVERY)}, "source": "x"},
        "driver.init_error": {"unknown": " ".join(EVERY)},
    }
    log = "".join(
        f"RuntimeError: CUDA error: no kernel image is available for execution on the device {x}\n"
        f"(EngineCore pid=1) ERROR {x} torch.OutOfMemoryError: CUDA out of memory. Tried to {x}\n"
        f"ModuleNotFoundError: No module named '{x}'\n"
        f"ImportError: {x}: cannot open shared object file: No such file or directory\n"
        for x in EVERY
    )
    script = "".join(f"export VLLM_Y{n}='{text}'\n" for n, text in enumerate(EVERY))
    script += "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 \\\n"
    script += "".join(f"  +trainer.x{n}='{text}' \\\n" for n, text in enumerate(EVERY))
    script += f"  +trainer.api_key={secret_of(20)} +trainer.y=$HF_TOKEN_OF_TEST\n"
    files = {
        "report.txt": "\n".join([*report, *lines]),
        "facts.json": json.dumps({**BROKEN, "facts": table}),
        "requirements.txt": "\n".join(
            ["torch==2.9.0"]
            + [f"p{n} @ {t}" for n, t in enumerate(EVERY) if t.startswith(("http", "git"))]
        ),
        "run.log": log,
        "run.sh": script,
        **{f"bad{n}.txt": f"torch==2.9.0\n{text}\n" for n, text in enumerate(EVERY)},
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("form", REPORTERS)
def test_check_shows_none(said, inputs, form, monkeypatch):
    facts = ("--facts", inputs / "facts.json")
    options = ("--format", form, "--verbose")
    assert leaks(said("check", "--report", inputs / "report.txt", *options)) == []
    assert leaks(said("check", *facts, *options)) == []
    assert (
        leaks(said("check", *facts, "--requirements", inputs / "requirements.txt", *options)) == []
    )
    assumed = [f"env:NCCL_Y{number}={text}" for number, text in enumerate(EVERY)]
    assert leaks(said("check", *facts, *options, "--assume", *assumed)) == []
    monkeypatch.setenv("HF_TOKEN_OF_TEST", secret_of(21))
    assert leaks(said("check", *facts, *options, "--plan", inputs / "run.sh")) == []


@pytest.mark.parametrize("form", DIAGNOSIS_FORMATS)
def test_diagnose_shows_none(said, inputs, form):
    text = said("diagnose", inputs / "run.log", "--format", form, "--verbose")
    assert "no kernel image" in text
    assert leaks(text) == []


@pytest.mark.parametrize("form", ["console", "plain", "json"])
def test_plan_shows_none(said, inputs, form, monkeypatch):
    monkeypatch.setenv("HF_TOKEN_OF_TEST", secret_of(21))
    target = ("--target", inputs / "facts.json", "--format", form, "--verbose")
    text = said("plan", inputs / "run.sh", *target)
    assert leaks(text) == []
    words = ["python3", "-m", "verl.trainer.main_ppo", "trainer.n_gpus_per_node=8"]
    words += [f"+trainer.x{n}={text}" for n, text in enumerate(EVERY)]
    assert leaks(said("plan", *target, "--", *words)) == []


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_probe_shows_none(said, inputs, options):
    assert leaks(said("probe", *options)) == []
    assert leaks(said("probe", *options, "--report", inputs / "report.txt")) == []


def test_errors_show_none(said, inputs, monkeypatch):
    for number, text in enumerate(EVERY):
        assert leaks(said("check", "--requirements", inputs / f"bad{number}.txt")) == []
        assert leaks(said("check", text)) == []
        assert leaks(said("check", "--facts", f"there is no {text}")) == []
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert leaks(said("matrix", "update", f"ftp://me:{secret_of(6)}@host.example/x")) == []


# --------------------------------------------------------------------------------------------------
# what is no secret stays

HARMLESS = """
max_num_batched_tokens=8192
--max-num-batched-tokens 8192 --tokenizer meta-llama/Llama-3 --tokenizer-mode auto
key=value
data.prompt_key=prompt data.reward_fn_key=data_source
eos_token=</s> pad_token_id: 151643 --image-token-id 4
CACHE_KEY=abcdef primary_key: id
hf_transfer==0.1.9
scikit-learn-intelex 2024.1 disk-cache-directory-x
Author: PyTorch Team
Author-email: packages@pytorch.org
KeyError: 'model.layers.0'
undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib
vllm/vllm-openai:v0.8.5@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
ubuntu:22.04@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
DeepSeek-R1-Distill-Qwen-32B-bnb-4bit-instruct-v2
GPU-8f6d0e2a-1111-2222-3333-444444444444
nccl-shm-recv-250a7cc850ba9298-0-1-3
Node ID: 4e39b94ab72914f87ac6a82fb6e58efc58ea472ccef299a4e3fa2fd9
https://github.com/vllm-project/vllm/issues/4392#issuecomment-2087654321
https://download.pytorch.org/whl/cu124/torch-2.6.0%2Bcu124-cp310-cp310-linux_x86_64.whl
git+https://github.com/huggingface/transformers.git@0123456789abcdef0123456789abcdef01234567#egg=x
export HF_TOKEN=${HF_TOKEN} --api-key $KEY token: str
basic functionality of the bearer
Prompt tokens: 12, generation tokens: 5
PWD=/root/work
/home/me/secret: cannot be read: Permission denied
passwd: expected a .tar.gz or .zip of a matrices folder, found neither
token: expected a text, found 5
secret: is missing from facts.json
argument --api-token: expected one argument
--api-key needs a value
--auth-token, found 'x'
tls_key: /etc/tls/server.pem
""".strip().splitlines()


@pytest.mark.parametrize("line", HARMLESS)
def test_what_is_no_secret_stays(line):
    assert redact(line) == line


@pytest.mark.parametrize("word", ["expected", "found", "is", "the"])
def test_a_word_of_a_sentence_is_a_secret_where_no_sentence_follows(word):
    for text in ("password: {}", "--password {}", "password={} of x", "password: '{} of x'"):
        assert redact(text.replace("{}", word)) == text.replace(
            "{} of x" if "'" in text else "{}", "***"
        )
    assert redact(f"Cookie: {word} session=1") == "Cookie: ***"


def _corpus() -> List[Path]:
    return sorted((DATA / "reports").glob("*.txt")) + sorted((DATA / "logs").glob("*.log"))


@pytest.mark.parametrize("path", _corpus(), ids=lambda path: path.name)
def test_facts_of_real_reports_are_the_same_without_it(path, monkeypatch):
    """Only lines in which somebody planted a secret change."""
    text = path.read_text(encoding="utf-8", errors="replace")
    changed = [
        before
        for before, after in zip(text.split("\n"), redact(text).split("\n"))
        if before != after
    ]
    # Ray's actor ids are hidden with it: they look like keys, and nobody misses them.
    assert all(re.search(r"TOKEN|API_KEY|--api-key|actor_id=", line) for line in changed)
    if path.parent.name == "reports":
        with_it = _outcome(text)
        monkeypatch.setattr(clean_text, "redact", lambda text: text)
        assert _outcome(text) == with_it


def _outcome(text: str) -> str:
    try:
        return _of_facts(parse_report(text))
    except Exception as error:  # noqa: BLE001 - equal is what matters
        return repr(error)


def test_facts_of_real_machines_are_the_same_without_it():
    paths = sorted((DATA / "machines").rglob("facts.json"))
    assert paths
    for path in paths:
        text = path.read_text()
        assert load_facts(text, "x") == serde.read_facts(json.loads(text), "x")
