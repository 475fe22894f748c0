"""Who made an archive: a signature of OpenSSH beside it, which OpenSSH itself checks.

``ssh-keygen -Y sign -n envdoctor-matrix -f KEY matrix.tar.gz`` writes ``matrix.tar.gz.sig``; whom
one trusts stands in a file of "allowed signers" (ssh-keygen(1), OpenSSH 8.2 and newer).
"""

from __future__ import annotations

import os
import shutil

from ...errors import InputError
from ...model.redaction import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

__all__ = ["NAMESPACE", "check_signature"]

NAMESPACE = "envdoctor-matrix"  # a signature that was made for something else is none of an archive
_LONGEST = 60.0  # seconds


def check_signature(source: str, archive: str, signature: str, signers: str) -> str:
    """Return the name under which the signer of an archive is trusted.

    Args:
        source: What the archive is called in messages.
        archive: The file.
        signature: The file that its signer made.
        signers: The file of allowed signers.

    Raises:
        InputError: nobody who is named there signed it, or ssh-keygen cannot be run.
    """
    if not os.path.isfile(signers):
        raise InputError(f"--signers {signers}: expected a file of allowed signers, found none")
    known = _run(["find-principals", "-s", signature, "-f", signers], None)
    names = known.stdout.split()
    if known.returncode != 0 or not names:
        raise InputError(
            f"{source}: expected the signature of somebody whom {signers} names, found that of "
            "somebody else, or none that can be read; nothing was changed"
        )
    for name in names:
        words = ["verify", "-f", signers, "-I", name, "-n", NAMESPACE, "-s", signature]
        verified = _run(words, archive)
        if verified.returncode == 0:
            return name
    raise InputError(
        f"{source}: the signature is not one of this archive ({_said(verified)}); nothing was "
        "changed"
    )


def _run(words: list[str], archive: str | None) -> subprocess.CompletedProcess[str]:
    import subprocess

    program = shutil.which("ssh-keygen")
    if program is None:
        raise InputError("--signers needs ssh-keygen of OpenSSH 8.2 or newer, which is not here")
    with open(archive or os.devnull, "rb") as stdin:
        try:
            return subprocess.run(
                [program, "-Y", *words],
                stdin=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LONGEST,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"--signers: {program} cannot be run: {error}") from error


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return redact(lines[0])[:200] if lines else f"ssh-keygen ended with {done.returncode}"
