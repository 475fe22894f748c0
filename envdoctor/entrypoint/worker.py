"""The check at the start of a worker process that others start: Ray's
``worker_process_setup_hook``.

    ray.init(runtime_env={"worker_process_setup_hook": "envdoctor.entrypoint.worker.check_worker"})

A worker has threads already, so that the check runs in a new process, with the deadline and the
policies of ``envdoctor entrypoint``.
"""

from __future__ import annotations

import os
import sys

from .handoff import REFUSED

__all__ = ["UnfitWorkerError", "check_worker"]

_PATIENCE = (
    30.0  # seconds beyond the check's own deadline, for a machine on which many workers start
)


class UnfitWorkerError(RuntimeError):
    """This process cannot do its work here, and ENVDOCTOR_POLICY=enforce refuses it."""


def check_worker() -> None:
    """Check this machine and this worker's environment; what is found goes to standard error, and
    so to the worker's log.

    Settings are those of the entrypoint: ENVDOCTOR_POLICY, ENVDOCTOR_DISABLE, ENVDOCTOR_TIMEOUT,
    ENVDOCTOR_FORMAT.

    Raises:
        UnfitWorkerError: Errors were found under ``ENVDOCTOR_POLICY=enforce``; the text is the
            verdict.
    """
    import subprocess

    command = [sys.executable, "-m", "envdoctor", "entrypoint", "--", "true"]
    try:
        done = subprocess.run(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=float(os.environ.get("ENVDOCTOR_TIMEOUT") or 5) + _PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        from ..model.redaction import redact

        # A fault of ours does not stop a worker.
        print(f"envdoctor: no verdict: {redact(str(error))}", file=sys.stderr)  # noqa: T201 - a worker's log is its standard error
        return
    said = done.stderr.decode("utf-8", "replace").strip()
    if said:
        print(said, file=sys.stderr, flush=True)  # noqa: T201 - the same; Ray shows no more of an exception than that the worker died
    if done.returncode == REFUSED:
        raise UnfitWorkerError(said)


def _environment() -> dict[str, str]:
    """Return this process's variables, with the folder from which envdoctor was loaded where a new
    process would not find it (py_modules).
    """
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.basename(home) in ("site-packages", "dist-packages"):
        return dict(os.environ)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH")))),
    }
