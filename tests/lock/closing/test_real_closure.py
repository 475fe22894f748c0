"""Real stacks closed against the index of this machine: accepted by uv for their platform, hashes
as the index says, installed by pip and uv.
"""

import html
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ...cli.conftest import COMMAND, ROOT

H20 = ("--assume", "gpu=H20", "nvidia-driver=535.129.03", "glibc=2.31", "--python-version", "3.10")
H100 = ("--assume", "gpu=H100", "nvidia-driver=550.54.15", "glibc=2.31", "--python-version", "3.11")
STACKS = {
    "an old engine under an override": ("vllm==0.6.3", *H20),
    "an engine": ("vllm==0.10.2", *H100),
    "a framework whose tail binds the core": ("verl[vllm]", "ray[default]", "flash-attn", *H100),
    "a framework with source archives": ("openrlhf[vllm]", *H100),
    "a package that nobody judges": ("lmdeploy", *H100),
}
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
CPU = ("--assume", "gpu=none", "--python-version", PYTHON)
PROFILES = {
    "ray": ("ray", "pydantic", "click"),
    "tokenizers": ("transformers", "tokenizers", "huggingface-hub"),
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    """What this machine says of its index, without its user's configuration."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_FIND_LINKS", "PIP_EXTRA", "UV_FIND_LINKS", "UV_CACHE"))
    }
    cache = str(tmp_path_factory.mktemp("cache"))
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "UV_CACHE_DIR": cache,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.fixture(scope="module")
def uv(prerequisite, variables):
    from uv import find_uv_bin

    path = find_uv_bin()
    done = subprocess.run(
        [path, "pip", "compile", "-"],
        input="packaging",
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    prerequisite(done.returncode == 0, "an index that uv reaches")
    return path


@pytest.fixture(scope="module")
def lock(variables, uv, tmp_path_factory):
    """Return a function that locks once per request and returns the folder."""
    made = {}

    def run(*arguments):
        if arguments not in made:
            folder = tmp_path_factory.mktemp("lock")
            done = subprocess.run(
                [*COMMAND, "lock", *arguments, "-o", folder],
                env=variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=500,
            )
            assert done.returncode == 0, done.stderr
            made[arguments] = folder
        return made[arguments]

    return run


def closure(folder):
    return json.loads((folder / "envdoctor.lock.json").read_text())["closure"]


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_is_accepted_by_uv_for_its_platform(lock, variables, uv, tmp_path, name):
    folder = lock(*STACKS[name])
    found = closure(folder)
    assert found["state"] == "closed"
    subprocess.run(
        [uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], env=variables, check=True
    )
    python = STACKS[name][-1]
    for file, more in (("pylock.toml", ()), ("requirements.txt", ("--require-hashes",))):
        command = [
            uv,
            "pip",
            "sync",
            "--dry-run",
            *more,
            "--python",
            tmp_path / "venv",
            "--python-version",
            python,
        ]
        command += ["--python-platform", found["platform"], folder / file]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert f"Would install {len(found['lines'])} packages" in done.stderr


def test_hashes_are_those_of_the_index(lock, variables):
    import requests

    lines = closure(lock(*STACKS["an engine"]))["lines"]
    chosen = [
        line for line in lines if line["name"] in ("torch", "vllm", "transformers")
    ] + random.Random(0).sample(lines, 12)
    for line in chosen:
        page = requests.get(
            f"{line['index'].rstrip('/')}/{line['name']}/",
            timeout=60,
            verify=variables.get("SSL_CERT_FILE") or True,
        )
        stated = re.findall(
            r'href="[^"]*/([^"/#]+)#(sha256)=([0-9a-f]+)"', html.unescape(page.text)
        )
        stem = re.compile(
            rf"{re.escape(line['name']).replace(chr(92) + '-', '[-_.]+')}-{re.escape(line['version'])}(-|\.tar|\.zip)",
            re.IGNORECASE,
        )
        expected = {f"{kind}:{digest}" for file, kind, digest in stated if stem.match(file)}
        assert expected, line["name"]
        assert set(line["hashes"]) == expected, line["name"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_cpu_profile_is_installed_by_the_printed_command_and_healthy(
    lock, variables, uv, tmp_path, tool, profile
):
    folder, venv = lock(*PROFILES[profile], *CPU), tmp_path / "venv"
    subprocess.run(
        [uv, "venv", "-q", "--seed", "--python", sys.executable, venv], env=variables, check=True
    )
    header = (folder / "requirements.txt").read_text().splitlines()
    (command,) = [
        line.partition(": ")[2] for line in header if line.startswith(f"# install with {tool}: ")
    ]
    own = {
        **variables,
        "PATH": f"{venv / 'bin'}:{Path(uv).parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(venv),
        "PIP_NO_CACHE_DIR": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(
        subprocess.run(
            [uv, "pip", "list", "--format", "json"],
            env=own,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    installed = {entry["name"]: entry["version"] for entry in document}
    for line in closure(folder)["lines"]:
        assert installed[line["name"]] == line["version"]
    # What pip itself says of the set, and what we say.
    assert (
        subprocess.run([uv, "pip", "check"], env=own, capture_output=True, check=False).returncode
        == 0
    )
    done = subprocess.run(
        [*COMMAND, "check", "--python", venv, "--only", "ED3", "ED8"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
