"""No command shows a credential, and none writes one: what is planted where people keep them, end
to end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from envdoctor.cli.main import run
from envdoctor.matrix.update import installation
from envdoctor.probes import Machine, Probe, run_probes
from envdoctor.report import REPORTERS
from tests.cli.conftest import BROKEN
from tests.property.test_secrets import EVERY, SECRETS, secret_of

ROOT = Path(__file__).resolve().parents[2]
INDEX = "https://me:{}@127.0.0.1:9/simple"
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def leaks(text: str) -> List[str]:
    """The secrets in a text, each with what stands before it."""
    return [text[max(0, match.start() - 60) : match.end()] for match in SECRETS.finditer(text)]


def written(folder: Path) -> str:
    """Everything that lies below a folder, names too."""
    texts = []
    for path in folder.rglob("*"):
        texts.append(str(path.relative_to(folder)))
        if path.is_file():
            texts.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(texts)


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Credentials where pip, uv, frameworks and packages have theirs."""
    numbers = iter(range(100, 200))

    def secret() -> str:
        return secret_of(next(numbers))

    pip = tmp_path / "pip.conf"
    pip.write_text(
        f"[global]\nindex-url = {INDEX.format(secret())}\n"
        f"extra-index-url = https://{secret()}@127.0.0.1:9/more\n"
        f"proxy = http://me:{secret()}@127.0.0.1:9\n"
    )
    uv = tmp_path / "uv.toml"
    uv.write_text(f'[[index]]\nname = "private"\nurl = "{INDEX.format(secret())}"\n')
    variables = {
        "UV_CONFIG_FILE": str(uv),
        "PIP_CONFIG_FILE": str(pip),
        "PIP_INDEX_URL": INDEX.format(secret()),
        "PIP_EXTRA_INDEX_URL": INDEX.format(secret()),
        "UV_INDEX_URL": INDEX.format(secret()),
        "UV_EXTRA_INDEX_URL": INDEX.format(secret()),
        "UV_INDEX_PRIVATE_PASSWORD": secret(),
        "UV_HTTP_RETRIES": "0",
        "HF_TOKEN": f"hf_{secret()}",
        "WANDB_API_KEY": secret(),
        "AWS_SECRET_ACCESS_KEY": secret(),
        "HTTPS_PROXY": "",
        "NCCL_X": f"https://me:{secret()}@host/x",
        "VLLM_API_KEY": secret(),
        "RAY_X": f"token={secret()}",
        "ENVDOCTOR_HOME": str(tmp_path / "home"),
        "COLUMNS": "110",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    site = tmp_path / SITE
    for name, version in (("torch", "2.9.0+cu130"), ("private-thing", "1.0"), ("ray", "2.40.0")):
        folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Name: {name}\nVersion: {version}\n"
            f"Requires-Dist: numpy @ git+https://me:{secret()}@github.com/numpy/numpy@v2\n"
            f"Requires-Dist: click @ https://{secret()}@host/click-8-py3-none-any.whl\n"
            f"Home-page: https://me:{secret()}@host\n\n"
        )
        (folder / "direct_url.json").write_text(
            json.dumps(
                {
                    "url": f"https://me:{secret()}@host/org/{name}.git?token={secret()}",
                    "vcs_info": {"vcs": "git", "commit_id": "0" * 40},
                }
            )
        )
        (folder / "RECORD").write_text("")
        (folder / "INSTALLER").write_text(f"https://me:{secret()}@host")
    (site / "extra.pth").write_text(f"/srv/token={secret()}\n")
    monkeypatch.syspath_prepend(str(site))
    (tmp_path / "out").mkdir()
    return tmp_path


@pytest.fixture
def said(planted, capsys):
    """Return a function that runs a command line and returns all that it said and wrote."""

    def say(*arguments: object) -> str:
        run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "a fault of envdoctor" not in err
        files = written(planted / "out")
        assert out or err or files
        return f"{out}{err}{files}"

    return say


@pytest.mark.parametrize("form", REPORTERS)
def test_check_of_this_environment(said, form):
    text = said("check", "--format", form, "--verbose")
    assert "torch" in text
    assert leaks(text) == []


def test_probe_of_this_environment(said, planted):
    for options in (("--verbose",), ("--json",), ("-o", planted / "out" / "facts.json")):
        assert leaks(said("probe", *options)) == []
    assert '"private-thing"' in (planted / "out" / "facts.json").read_text()


TARGET = ("--assume", "gpu=H100:8", "nvidia-driver=570.86.15", "glibc=2.35")
TARGET = (*TARGET, "--python-version", "3.11")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["of the variables", "of the options", "of the files"])
def test_lock(said, planted, monkeypatch, where):
    """uv fails on an index with credentials, and says which; what it writes stays without."""
    options = []
    if where == "of the options":
        options = ["--index-url", INDEX.format(secret_of(10))]
        options += ["--extra-index-url", INDEX.format(secret_of(11))]
    if where == "of the files":
        for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.delenv(name)
    text = said("lock", "torch>=2.6", *TARGET, *options, "-o", planted / "out")
    assert "127.0.0.1:9" in text
    assert leaks(text) == []
    assert leaks(said("lock", "torch>=2.6", *TARGET, *options, "--format", "json")) == []


@pytest.mark.parametrize("text", EVERY[:60:3])
def test_lock_of_what_cannot_be(said, text):
    assert leaks(said("lock", f"torch @ {text}", "--no-close", *TARGET)) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json", "script"])
def test_fix(said, planted, form):
    """A broken machine, whose variables and addresses hold what they should not."""
    facts = {
        **BROKEN["facts"],
        "variables": {"value": {f"NCCL_X{n}": t for n, t in enumerate(EVERY)}, "source": "x"},
        "distributions": {
            "value": [
                {
                    "name": "torch",
                    "version": "2.9.0+cu130",
                    "direct_url": f"https://me:{secret_of(7)}@host/torch.whl",
                }
            ],
            "source": "site-packages",
        },
    }
    path = planted / "facts.json"
    path.write_text(json.dumps({**BROKEN, "facts": facts}))
    text = said("fix", "--facts", path, "--format", form, "-o", planted / "out" / "fix")
    assert leaks(text) == []
    assert leaks(said("fix", "--format", form)) == []


def test_bake(said, planted):
    text = said("bake", "--assume", "nvidia-driver=580.65.06", "-o", planted / "out" / "base.json")
    assert leaks(text) == []
    from envdoctor.entrypoint.baking import bake
    from envdoctor.matrix.loader import load_matrix
    from envdoctor.sources import Sources, gather

    baked = bake(gather(Sources())[0], {}, load_matrix(), None, ())
    assert "private-thing" in baked.baseline
    assert leaks(baked.baseline) == []


def test_watch(said, planted):
    """The command line that is watched holds a token, as its environment does."""
    command = ["sh", "-c", f": --api-key {secret_of(16)} hf_{secret_of(17)}; sleep 0.3"]
    out = planted / "out"
    text = said(
        *("watch", "--interval", "0.1", "--csv", out / "a.csv", "--svg", out / "a.svg"),
        *("--", *command),
    )
    assert "kind,pid" in text
    assert leaks(text) == []


@pytest.mark.parametrize("command", [("run",), ("watch", "--diagnose")])
def test_what_a_failed_command_wrote(planted, command):
    """Its own output is its own; what is said of it repeats no secret."""
    program = f"raise ValueError('no access with hf_{secret_of(17)} --api-key {secret_of(16)}')"
    done = subprocess.run(
        [*(sys.executable, "-m", "envdoctor", *command), "--", sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=planted,
        capture_output=True,
        text=True,
        timeout=60,
    )
    own, _, ours = done.stderr.partition("of one core)")
    assert "failed with ValueError" in ours
    assert leaks(own) != []
    assert leaks(ours) == []


def test_plan(said, planted):
    script = planted / "run.sh"
    lines = "".join(f"  +trainer.x{n}='{text}' \\\n" for n, text in enumerate(EVERY))
    script.write_text(
        "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 \\\n"
        + lines
        + "  +trainer.hub=$HF_TOKEN +trainer.index=$PIP_INDEX_URL\n"
    )
    for form in ("text", "json"):
        target = ("--assume", "gpu=H100:8", "--format", form, "--verbose")
        text = said("plan", script, *target, "-o", planted / "out" / f"plan.{form}")
        assert leaks(text) == []


@pytest.mark.slow
def test_capture(planted):
    """The bundle that people send."""
    out = planted / "out"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "capture_machine", out],
        env={**os.environ, "PYTHONPATH": str(planted / SITE)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    text = written(out)
    assert "private-thing" in text
    assert leaks(done.stdout + done.stderr + text) == []


@pytest.mark.slow
def test_where_a_matrix_came_from(planted, monkeypatch, capsys):
    """origin.json, what is said of an update, and of one that fails."""
    archive = planted / "matrix.tar.gz"
    subprocess.run(["tar", "czf", archive, "-C", ROOT / "matrices", "."], check=True)
    monkeypatch.setattr(
        installation,
        "_fetch",
        lambda source, path, limit: Path(path).write_bytes(archive.read_bytes()),
    )
    digest = installation._file_digest(str(archive))
    source = (
        f"https://me:{secret_of(6)}@host.example/x.tar.gz?token={secret_of(12)}#{secret_of(13)}"
    )
    code = run(["matrix", "update", "--from", source, "--sha256", digest])
    shown = "".join(capsys.readouterr())
    text = written(planted / "home")
    assert code != 0 or "origin.json" in text
    assert leaks(shown + text) == []


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_fault_of_its_own(planted, monkeypatch, capsys, debug):
    """An exception that quotes what it stumbled over, with a traceback where one is asked for."""
    monkeypatch.setenv("ENVDOCTOR_DEBUG", debug)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr("envdoctor.cli.check.gather", fail)
    for number, text in enumerate(EVERY):
        # Where the message is cut, half an address has lost the mark that ends its password.
        message = "x" * (number * 3) + " " + text
        assert run(["check"]) == 4
        err = capsys.readouterr().err
        assert "RuntimeError" in err
        assert not re.search(r"Zq\d{3}7x", err, re.IGNORECASE), err


def test_a_probe_that_fails_says_it_without() -> None:
    for text in EVERY[::6]:

        def fail(_: Machine, text: str = text) -> Dict[str, Any]:
            raise ValueError("x" * 440 + " " + text)

        for isolated in (False, True):
            probe = Probe("of-test", fail, ("node.name",), isolated)
            facts = run_probes(Machine(), [probe])
            assert not re.search(r"Zq\d{3}7x", str(facts.get("node.name")), re.IGNORECASE)
