"""The baseline: written at build, trusted as long as nothing was installed, and of no effect on the
verdict.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.entrypoint.baseline import read_baseline

from ..schemas import validate
from .conftest import ROOT, environment, write_lock

STACK = {
    "torch": "2.6.0+cu124",
    "nvidia-cublas-cu12": "12.4.5.8",
    "numpy": "1.26.4",
}


def install(site, name, version, *requires):
    """A distribution as far as metadata goes, and what stands for its module."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {line}" for line in requires),
    ]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    (folder / "INSTALLER").write_text("pip\n")
    return folder


@pytest.fixture
def image(tmp_path):
    """Return (python, site-packages) of an environment that stands for an image: envdoctor by a
    .pth file, and a stack by its metadata.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True
    )
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    # envdoctor and what it needs, without the rest of the environment that the tests run in.
    (site / "packaging").symlink_to(Path(__import__("packaging").__file__).parent)
    (site / "envdoctor").symlink_to(ROOT / "envdoctor")
    for name, version in STACK.items():
        install(site, name, version)
    (site / "torch").mkdir()
    (site / "torch" / "version.py").write_text(
        "__version__ = '2.6.0+cu124'\ncuda: str = '12.4'\nhip = None\n"
    )
    return tmp_path / "env" / "bin" / "python", site


def run(image, *arguments, **variables):
    command = [str(image[0]), "-m", "envdoctor", *map(str, arguments)]
    return subprocess.run(
        command,
        env=environment(PYTHONPATH=None, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )


def baseline_of(image):
    return image[0].parent.parent / "share" / "envdoctor" / "baseline.json"


def test_bake_writes_what_a_start_needs(image):
    done = run(image, "bake", "--assume", "nvidia-driver=550.54.14", "gpu=H100:8", "glibc=2.35")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(baseline_of(image).read_text())
    assert document["packages"]["torch"] == "2.6.0+cu124"
    assert document["target"] == ["nvidia-driver=550.54.14", "gpu=H100:8", "glibc=2.35"]
    # NVIDIA's release notes: CUDA 12.x by minor-version compatibility from 525.60.13 on.
    assert document["requires"]["driver"] == "525.60.13"
    assert 'ENV NVIDIA_REQUIRE_CUDA="driver>=525.60.13"' in done.stdout
    assert (
        read_baseline(str(baseline_of(image))) == document
    )  # the scanner without json reads the same


def test_json(image):
    good = run(image, "bake", "--dry-run", "--format", "json", "--assume", "gpu=H100:8")
    refused = run(
        image, "bake", "--format", "json", "--assume", "nvidia-driver=450.80.02", "gpu=V100"
    )
    for done, code in ((good, 0), (refused, 1)):
        document = json.loads(done.stdout)
        validate(document, "bake")
        assert document["report"]["summary"]["exit_code"] == done.returncode == code
        assert document["baseline"] is None
    document = json.loads(run(image, "bake", "--format", "json").stdout)
    assert document["baseline"] == str(baseline_of(image))
    assert (
        read_baseline(document["baseline"])["nvidia_require_cuda"]
        == (document["nvidia_require_cuda"])
    )


def test_image_that_cannot_work_on_its_target_is_not_baked(image):
    done = run(image, "bake", "--assume", "nvidia-driver=450.80.02", "gpu=V100")
    assert done.returncode == 1
    assert "ED101" in done.stdout or "ED102" in done.stdout
    assert not baseline_of(image).exists()


def test_lock_is_compared_and_its_requirements_are_kept(image, tmp_path):
    requires = {"driver": "535.104.05", "glibc": "2.17", "sm": ["9.0"]}
    lock = write_lock(tmp_path, "torch==2.6.0+cu124", "numpy==2.1.0", **requires)
    warned = run(image, "bake", "--lock", lock)
    assert "numpy 1.26.4 is installed, but the lock pins 2.1.0" in warned.stdout
    assert json.loads(baseline_of(image).read_text())["requires"]["driver"] == "535.104.05"
    # At the start the baked lock asks of the host what the same lock asks without a baseline: here
    # no driver is known or there.
    for options in ([], ["--lock", lock]):
        if options:
            baseline_of(image).unlink()
        done = run(image, "entrypoint", "--policy", "enforce", "--strict", *options, "--", "true")
        assert done.returncode == 78, done.stderr
        assert "numpy 1.26.4 is installed, but the lock pins 2.1.0" in done.stderr


def test_a_baseline_that_was_named_is_there_or_enforce_refuses(image):
    for policy, code in (("warn", 0), ("enforce", 64)):
        named = ["--policy", policy, "--baseline", "/nonexistent"]
        done = run(image, "entrypoint", *named, "--", "true")
        assert done.returncode == code
        assert "the baseline /nonexistent cannot be read (No such file" in done.stderr


def test_metadata_that_a_start_may_not_read_is_not_as_baked(image, prerequisite):
    prerequisite(os.geteuid() == 0, "the test takes the rights of root away")
    run(image, "bake")
    metadata = next(image[1].glob("numpy-*.dist-info")) / "METADATA"
    words = ["-m", "envdoctor", "entrypoint", "--", "true"]
    unprivileged = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    for path in (metadata, metadata.parent):
        mode = path.stat().st_mode
        path.chmod(0)
        said = [
            subprocess.run(
                [*before, image[0], *words],
                env=environment(PYTHONPATH=None),
                capture_output=True,
                text=True,
                check=True,
            ).stderr
            for before in ([], unprivileged)
        ]
        path.chmod(mode)
        assert "judged whole" not in said[0]  # root reads it
        assert f"{metadata} cannot be read (EACCES" in said[1]


def test_an_image_without_what_its_lock_was_asked_for_is_not_baked(image, tmp_path):
    lock = write_lock(tmp_path, "torch==2.6.0+cu124", "vllm==0.8.5", roots=["vllm>=0.8"])
    refused = run(image, "bake", "--lock", lock)
    assert refused.returncode == 1
    assert "ED306 error" in refused.stdout
    assert "vllm is not installed; the lock was made for it" in refused.stdout
    assert not baseline_of(image).exists()


def test_a_lock_that_nests_too_deep_is_one_line(image, tmp_path):
    (tmp_path / "envdoctor.lock.json").write_text("[" * 200_000)
    done = run(image, "bake", "--dry-run", "--lock", tmp_path)
    assert done.returncode == 2
    assert "expected a lock written by" in done.stderr


def test_lock_for_another_machine_is_refused(image, tmp_path):
    write_lock(tmp_path, driver="999.1", python="3.7", glibc="9.99")
    done = run(image, "entrypoint", "--policy", "enforce", "--lock", tmp_path, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (78, "")
    assert "the lock is for Python 3.7" in done.stderr
    assert "error" in done.stderr.splitlines()[2], (
        "the gravest comes first, before a driver that may not be needed here"
    )
    assert "is older than the 9.99 that the lock requires" in done.stderr
    assert run(image, "entrypoint", "--lock", tmp_path, "--", "echo", "ran").stdout == "ran\n"


def change(image, how):
    site = image[1]
    if how == "installed":
        install(site, "xformers", "0.0.1")
    elif how == "removed":
        (site / "torch" / "version.py").unlink()
        (site / "torch").rmdir()
    elif how == "replaced":
        os.utime(site / "torch-2.6.0+cu124.dist-info", (1, 1))
    elif how == "module":
        (site / "sitecustomize.py").write_text("")


@pytest.mark.parametrize("how", ["installed", "removed", "replaced", "module"])
def test_what_was_installed_since_is_seen(image, how):
    assert run(image, "bake").returncode == 0
    before = run(image, "entrypoint", "--", "true")
    assert "judged whole" not in before.stderr
    change(image, how)
    after = run(image, "entrypoint", "--", "true")
    assert after.returncode == 0
    assert "judged whole, not as baked: " in after.stderr


def test_another_matrix_is_seen(image):
    """A newer one knows more of the software half as well."""
    assert run(image, "bake").returncode == 0
    document = json.loads(baseline_of(image).read_text())
    document["tool"]["matrix_date"] = "2020-01-01"
    baseline_of(image).write_text(json.dumps(document))
    assert (
        "judged whole, not as baked: the matrix was of 2020-01-01, is of 20"
        in run(image, "entrypoint", "--", "true").stderr
    )


def test_another_envdoctor_is_seen(image):
    """It may have probes and rules that the baseline does not name."""
    assert run(image, "bake").returncode == 0
    document = json.loads(baseline_of(image).read_text())
    document["tool"]["version"] = "0.0.1"
    baseline_of(image).write_text(json.dumps(document))
    assert (
        "judged whole, not as baked: envdoctor was 0.0.1, is "
        in run(image, "entrypoint", "--", "true").stderr
    )


def test_compiled_files_are_no_change(image):
    assert run(image, "bake").returncode == 0
    (image[1] / "__pycache__").mkdir(exist_ok=True)
    (image[1] / "__pycache__" / "six.cpython-311.pyc").write_bytes(b"")
    assert "judged whole" not in run(image, "entrypoint", "--", "true").stderr


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b"[1]",
        b'{"schema_version": 2}',
        b'{"schema_version": 2, "stamp": {}}',
        b'{"schema_version": 2, "stamp": {}, "tool": 1}',
        b"{" * 100_000,
    ],
)
def test_baseline_that_cannot_be_read_costs_nothing_but_time(image, content):
    baseline_of(image).parent.mkdir(parents=True)
    baseline_of(image).write_bytes(content)
    done = run(image, "entrypoint", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "judged whole" in done.stderr


def test_baseline_with_broken_facts_costs_nothing_but_time(image):
    assert run(image, "bake").returncode == 0
    document = json.loads(baseline_of(image).read_text())
    broken = {"schema_version": 1, "facts": {"torch.version": {"value": 3}}}
    for key, value in (("facts", None), ("facts", {}), ("facts", broken), ("probes", 3)):
        baseline_of(image).write_text(json.dumps({**document, key: value}))
        done = run(image, "entrypoint", "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (0, "ran\n")
        assert "judged whole" in done.stderr


def findings(text):
    document = json.loads(text)
    validate(document, "report")
    return [(entry["key"], entry["severity"], entry["message"]) for entry in document["findings"]]


def verdict_of_start(image, *options):
    return findings(
        run(image, "entrypoint", *options, "--", "true", ENVDOCTOR_FORMAT="json").stderr
    )


def verdict_of_check(image):
    return findings(run(image, "check", "--format", "json").stdout)


def test_verdict_is_the_same_with_and_without_a_baseline_and_that_of_check(image):
    assert run(image, "bake").returncode == 0
    assert (
        verdict_of_start(image)
        == verdict_of_start(image, "--baseline", "/nonexistent")
        == verdict_of_check(image)
    )


@pytest.mark.parametrize("own", [False, True], ids=["of the index", "built here"])
def test_a_start_that_was_not_baked_tells_a_build_of_ones_own_from_the_index(image, own):
    """What is built here is judged less surely, and what tells so lies beside METADATA, of which a
    start reads a part: of what rules speak of.
    """
    install(image[1], "transformers", "4.46.0", "requests>=2.32.2")
    for name, version, line in (
        ("requests", "2.31.0", "idna"),
        ("natten", "0.17.1", "torch==2.1.0"),
    ):  # neither is in the matrix
        folder = install(image[1], name, version, line)
        if own:
            (folder / "direct_url.json").write_text(
                '{"url": "file:///src", "dir_info": {"editable": true}}'
            )
    found = verdict_of_start(image)
    assert found == verdict_of_check(image)
    severities = {key: severity for key, severity, _ in found}
    assert severities["ED301:requests:too-old"] == ("warning" if own else "error")
    assert ("ED401:natten:abi-mismatch" in severities) is not own


def test_report_file(image, tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    assert run(image, "entrypoint", "--report", path, "--", "true").returncode == 0
    validate(json.loads(path.read_text()), "report")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("report")] == [
        "report.json"
    ]
    done = run(image, "entrypoint", "--report", "/proc/no/such", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "the report cannot be written to /proc/no/such" in done.stderr


DEVICES = (
    "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c "
    "1 9 && "
)


def in_pod(image, prepare, *arguments):
    """Run with a /dev of its own; return the process, and what Kubernetes would show as the reason
    of the pod's end.
    """
    line = f'{DEVICES}{prepare}; "$@"; code=$?; timeout 1 cat /dev/termination-log 2>&1; exit $code'
    command = [
        "unshare",
        "-m",
        "sh",
        "-c",
        line,
        "sh",
        str(image[0]),
        "-m",
        "envdoctor",
        "entrypoint",
        *map(str, arguments),
    ]
    return subprocess.run(
        command,
        env=environment(PYTHONPATH=None),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )


def test_termination_log(image, tmp_path, prerequisite):
    able = (
        subprocess.run(
            ["unshare", "-m", "sh", "-c", DEVICES + "true"], capture_output=True, check=False
        ).returncode
        == 0
    )
    prerequisite(able, "root, mount namespaces and mknod")
    write_lock(tmp_path, glibc="9.99")
    enforce = ["--policy", "enforce", "--lock", tmp_path, "--", "echo", "ran"]
    refused = in_pod(image, "touch /dev/termination-log", *enforce)
    assert refused.returncode == 78
    assert refused.stdout.startswith("envdoctor: 1 error: glibc ")
    assert "ran" not in refused.stdout
    assert (
        "policy warn: echo starts all the same"
        in in_pod(image, "touch /dev/termination-log", *enforce[2:]).stdout
    )
    assert (
        in_pod(image, "touch /dev/termination-log", "--", "true").stdout == ""
    )  # nothing was wrong
    assert "No such file" in in_pod(image, "true", *enforce).stdout  # it is never made
    for odd in (
        "ln -s /dev/x /dev/termination-log; touch /dev/x",
        "mkfifo /dev/termination-log",
        "mkdir /dev/termination-log",
    ):
        assert in_pod(image, odd, *enforce).returncode == 78


def test_a_lock_that_is_not_there_is_wrong_usage(image, tmp_path):
    """A mistyped path must not switch the check off where it was asked to refuse."""
    for policy, code, output in (("enforce", 64, ""), ("warn", 0, "ran\n")):
        done = run(
            image,
            "entrypoint",
            "--policy",
            policy,
            "--lock",
            tmp_path / "nothing",
            "--",
            "echo",
            "ran",
        )
        assert (done.returncode, done.stdout) == (code, output)
        assert "nothing: expected envdoctor.lock.json" in done.stderr


def test_of_many_warnings_a_start_shows_some(image):
    names = [f"absent-{number}" for number in range(1, 30)]
    install(image[1], "transformers", "4.46.0", *[f"{name}>9" for name in names])
    for name in names:
        install(image[1], name, "4.46.0")
    done = run(image, "entrypoint", "--", "true")
    lines = done.stderr.splitlines()
    assert "29 warnings" in lines[0]
    assert len([line for line in lines if " warning: " in line and line.startswith("  ED")]) == 8
    assert lines[-1] == "  21 more; 'envdoctor check' says all"
