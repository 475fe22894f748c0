"""The files of scripts/integrations before the validators of those who will read them, and what
they call before envdoctor itself.

Docker builds and runs the Dockerfile in tests/containers/test_docker.py, Slurm runs its two files
in test_slurm.py, Ray the hook in test_ray_hook.py.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.fuse import SILENT, mounted

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "scripts" / "integrations"
MANIFESTS = sorted(FOLDER.glob("kubernetes-*.yaml"))
SCHEMAS = {
    "compose.yaml": "vendor.compose-spec",
    "github-action/action.yml": "vendor.github-actions",
}
EXPRESSION = re.compile(r"\$\{\{ *inputs\.([\w-]+) *\}\}")


def run(*command, **options):
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, check=False, **options
    )


@pytest.fixture(scope="module")
def kubernetes_validate(prerequisite):
    module = pytest.importorskip if sys.version_info < (3, 10) else __import__
    try:
        return module("kubernetes_validate")
    except ImportError:
        return prerequisite(False, "kubernetes-validate (pip)")


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_kubernetes_accepts_the_manifests(kubernetes_validate, path):
    for document in yaml.safe_load_all(path.read_text()):
        assert kubernetes_validate.validate(document, "1.37", strict=True)


def test_kustomize_puts_them_together(prerequisite, kubernetes_validate):
    prerequisite(run("kubectl", "kustomize", "--help").returncode == 0, "kubectl with kustomize")
    done = run("kubectl", "kustomize", FOLDER)
    assert done.returncode == 0, done.stderr
    documents = list(yaml.safe_load_all(done.stdout))
    kinds = sorted(document["kind"] for document in documents)
    assert kinds == ["DaemonSet", "DaemonSet", "Job", "Role", "RoleBinding", "ServiceAccount"]
    for document in documents:
        assert kubernetes_validate.validate(document, "1.37", strict=True)


@pytest.mark.parametrize(("assumed", "code"), [("450.80.02", 1), ("570.86.15", 0)])
def test_the_rule_of_the_node_problem_detector(assumed, code):
    """Its words are those of custompluginmonitor/types/config.go; its command means what it wants:
    0 OK, 1 NonOK, 2 Unknown, and a line that is not cut.
    """
    config = json.loads((FOLDER / "node-problem-detector.json").read_text())
    assert set(config) == {"plugin", "pluginConfig", "source", "conditions", "rules"}
    known = {"invoke_interval", "timeout", "max_output_length", "concurrency"}
    assert set(config["pluginConfig"]) == known
    (rule,) = config["rules"]
    assert set(rule) == {"type", "condition", "reason", "path", "args", "timeout"}
    assert rule["condition"] in [entry["type"] for entry in config["conditions"]]
    arguments = ["--assume", f"nvidia-driver={assumed}", "torch==2.6.0", "gpu=H100:8"]
    done = run(sys.executable, "-m", "envdoctor", *rule["args"], *arguments, cwd=ROOT)
    assert done.returncode == code, done.stderr
    assert 0 < len(done.stdout.rstrip("\n")) <= config["pluginConfig"]["max_output_length"]
    wrong = run(
        sys.executable, "-m", "envdoctor", *rule["args"], "--facts", "/nonexistent", cwd=ROOT
    )
    assert wrong.returncode == 2


def test_kubernetes_would_refuse_a_wrong_one(kubernetes_validate):
    document = yaml.safe_load(MANIFESTS[0].read_text())
    document["spec"]["selektor"] = document["spec"].pop("selector")
    with pytest.raises(Exception, match=r"selector|selektor"):
        kubernetes_validate.validate(document, "1.37", strict=True)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_of_their_makers(prerequisite, tmp_path, name):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[name]]
    prerequisite(run(*command[:3], "--version").returncode == 0, "check-jsonschema (pip)")
    assert run(*command, FOLDER / name).returncode == 0
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(
        (FOLDER / name).read_text().replace("services:", "servces:").replace("using:", "usng:")
    )
    assert run(*command, wrong).returncode == 1


def commands():
    """Yield each envdoctor command line of the manifests."""
    for path in MANIFESTS:
        for words in re.findall(r'command: (\["envdoctor.*\])', path.read_text()):
            program, *arguments = yaml.safe_load(words)
            yield [*program.split("-"), *arguments]  # envdoctor-entrypoint: as the command


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_the_commands_in_manifests_mean_something(words):
    """An option that is none would be said here, and exit with 2 (check) or 64 (entrypoint,
    enforce).
    """
    done = run(
        sys.executable,
        "-m",
        *words,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        cwd="/",
    )
    assert "no such" not in done.stderr
    assert "expected" not in done.stderr.splitlines()[0] if done.stderr else True
    nobody = "could not name the nodes" in done.stderr or "not on PATH" in done.stderr
    assert done.returncode in ((2,) if nobody else (0, 1, 78))


def test_what_compose_and_manifests_set_is_what_the_rules_ask_for():
    """64 MiB of /dev/shm, the default, would bring ED502."""
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["trainer"]
    wanted = {
        "shm": compose["shm_size"].replace("gb", "GiB"),
        "memlock": "1048576TiB" if compose["ulimits"]["memlock"] == -1 else "0",
    }
    pod = yaml.safe_load((FOLDER / "kubernetes-init-container.yaml").read_text())["spec"]
    assert pod["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert pod["initContainers"][0]["image"] == pod["containers"][0]["image"]

    def codes(shm):
        assumed = ["torch==2.8.0", "gpu=H100:8", "nvidia-driver=570.86.15", f"shm={shm}"]
        done = run(
            sys.executable,
            "-m",
            "envdoctor",
            "check",
            "--only",
            "ED502",
            "--format",
            "json",
            "--assume",
            *assumed,
            cwd=ROOT,
        )
        return done.stdout.count('"ED502"')

    assert codes(wanted["shm"]) == 0
    assert codes("64MiB") > 0


@pytest.mark.parametrize("name", ["slurm-prolog", "slurm-health-check"])
def test_shell_files(prerequisite, name):
    done = run("sh", "-c", "command -v shellcheck")
    prerequisite(done.returncode == 0, "shellcheck")
    assert run("shellcheck", "--exclude=SC2181", FOLDER / name).stdout == ""
    # No PATH in a prolog: every program is named whole.
    text = (FOLDER / name).read_text()
    assert "/usr/bin/python3" in text
    assert "/usr/bin/timeout" in text


STANDS_IN = """import sys
print("ERROR:  nhc:  Health check failed:  envdoctor: 1 error")
sys.exit({code})
"""


def prolog(program, **variables):
    """Run the prolog as slurmd does, with another program in the place of the archive."""
    return run(
        FOLDER / "slurm-prolog",
        env={"ENVDOCTOR_PYZ": str(program), **variables},
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(("code", "ended"), [(0, 0), (1, 1), (2, 0), (4, 0)])
def test_the_prolog_takes_an_error_alone_for_one(tmp_path, code, ended):
    (tmp_path / "x.py").write_text(STANDS_IN.format(code=code))
    done = prolog(tmp_path / "x.py")
    assert (done.returncode, done.stderr) == (ended, "")
    assert done.stdout.startswith("print ERROR:") is (ended == 1)


@pytest.mark.slow
def test_the_prolog_ends_beside_a_check_in_state_d(tmp_path, prerequisite):
    """The archive lies on a file system that does not answer: the kernel ends nothing that
    waits.
    """
    prerequisite(os.path.exists("/dev/fuse") and os.geteuid() == 0, "root and /dev/fuse")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "x.py").write_text(STANDS_IN.format(code=1))
    (tmp_path / "dead").mkdir()
    path = tmp_path / "dead" / "x.py"
    with mounted(tmp_path / "source", tmp_path / "dead", {"x.py": SILENT}):
        start = time.monotonic()
        done = prolog(path, ENVDOCTOR_SECONDS="1")
        assert time.monotonic() - start < 5
        assert (done.returncode, done.stdout) == (0, "")
        states = run("ps", "-wweo", "stat,args").stdout.splitlines()
        assert any(line.startswith("D") and str(path) in line for line in states), states
        # What is left behind holds no pipe of slurmd: run() has read to the end of both.


@pytest.mark.slow
def test_the_steps_of_the_action_run(tmp_path):
    """As the runner does it: inputs become the values of expressions, each step is a bash script of
    its own that stops at the first error.
    """
    action = yaml.safe_load((FOLDER / "github-action" / "action.yml").read_text())
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\n")

    def steps(first=0, **inputs):
        given = {
            **{name: field.get("default", "") for name, field in action["inputs"].items()},
            **inputs,
        }
        for step in action["runs"]["steps"][first:]:
            assert "${{" not in step["run"]  # injection
            variables = {
                name: EXPRESSION.sub(lambda found: given[found.group(1)], value)
                for name, value in step.get("env", {}).items()
            }
            environment = {
                **os.environ,
                "GITHUB_ACTION_PATH": str(FOLDER / "github-action"),
                "RUNNER_TEMP": str(tmp_path),
                **variables,
            }
            environment.pop("PYTHONPATH", None)
            done = run(
                "bash",
                "--noprofile",
                "--norc",
                "-eo",
                "pipefail",
                "-c",
                step["run"],
                cwd=tmp_path,
                env=environment,
            )
            if done.returncode:
                break
        return done

    refused = steps(requirements="requirements.txt", assume="nvidia-driver=450.80.02 gpu=H100:8")
    assert refused.returncode == 1, refused.stderr
    assert "::error title=ED101" in refused.stdout
    accepted = steps(1, requirements="requirements.txt", assume="")
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    hostile = steps(1, requirements="requirements.txt", assume="$(touch here)")
    assert hostile.returncode == 2
    assert not (tmp_path / "here").exists()
