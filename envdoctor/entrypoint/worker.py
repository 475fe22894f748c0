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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

__all__ = ["UnfitWorkerError", "check_worker"]

_PATIENCE = (
    30.0  # seconds beyond the check's own deadline, for a machine on which many workers start
)


# Isolated, as the script envdoctor-entrypoint starts it.
_BOOT = """
import sys
sys.path += sys.argv[1:]
from envdoctor.entrypoint.guarded import TASKS
TASKS["check"](["--", "true"])
"""


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

    command = [sys.executable, "-I", "-S", "-c", _BOOT, *_own_folders()]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=float(os.environ.get("ENVDOCTOR_TIMEOUT") or 5) + _PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        from ..model.redaction import redact

        # A fault of ours does not stop a worker, whose log is its standard error.
        print(f"envdoctor: no verdict: {redact(str(error))}", file=sys.stderr)  # noqa: T201
        return
    said = done.stderr.decode("utf-8", "replace").strip()
    if said:
        # Ray shows no more of an exception than that the worker died.
        print(said, file=sys.stderr, flush=True)  # noqa: T201
    if done.returncode == REFUSED:
        raise UnfitWorkerError(said)


def _own_folders() -> List[str]:
    """Return the folders from which envdoctor and what it needs were loaded."""
    import packaging

    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [os.path.dirname(own), os.path.dirname(os.path.dirname(packaging.__file__))]
