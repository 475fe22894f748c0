"""A real Ray calls our hook in each worker: it says its verdict, and under enforce a worker that
cannot work is refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

#: One machine; two tasks under the hook, and what came of them. The hook's own output goes to the
#: workers' logs.
PROGRAM = """
import glob, json, sys
import ray
variables = json.loads(sys.argv[1])
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=sys.argv[2], runtime_env={
    "worker_process_setup_hook": "envdoctor.entrypoint.worker.check_worker", "env_vars": variables,
})
@ray.remote(max_retries=0)
def work(number):
    return number * 2
try:
    answer = ray.get([work.remote(number) for number in (1, 2)], timeout=60)
except Exception as error:
    answer = f"{type(error).__name__}: {error}"
ray.shutdown()
logs = "".join(open(path, errors="replace").read() for path in glob.glob(sys.argv[2] + "/session_latest/logs/worker-*"))
print(json.dumps([answer, logs]))
"""


@pytest.fixture
def ask(ray_python, tmp_path, fakes):
    (tmp_path / "stack" / "torch-2.6.0+cu124.dist-info").mkdir(parents=True)
    (tmp_path / "stack" / "torch-2.6.0+cu124.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cu124\n"
    )

    def run(driver, policy):
        variables = {
            "PYTHONPATH": f"{ROOT}:{tmp_path / 'stack'}",
            "LD_LIBRARY_PATH": str(fakes),
            "FAKE_NVIDIA": f"driver={driver}",
            "ENVDOCTOR_POLICY": policy,
        }
        # Sockets of Ray lie below; their paths may have 107 characters.
        folder = f"/tmp/ray-{os.getpid()}-{policy}-{driver[:3]}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        command = [ray_python, "-c", PROGRAM, json.dumps(variables), folder]
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=150,
                cwd=tmp_path,
                check=False,
            )
        finally:
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    f"import shutil; shutil.rmtree({folder!r}, ignore_errors=True)",
                ],
                check=False,
            )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.strip().split("\n")[-1])

    return run


def test_a_fit_worker_works(ask):
    answer, logs = ask("570.86.15", "enforce")
    assert answer == [2, 4]
    assert "envdoctor: " in logs


def test_an_unfit_one_says_why_and_works(ask):
    answer, logs = ask("450.80.02", "warn")
    assert answer == [2, 4]
    assert "450.80.02" in logs


def test_an_unfit_one_is_refused(ask):
    answer, logs = ask("450.80.02", "enforce")
    assert answer.startswith("WorkerCrashedError")
    assert "450.80.02" in logs
    assert "refused: true does not start" in logs
