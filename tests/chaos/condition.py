"""One row of the chaos table: a condition in which a job may start, and what has to become of it.

Every condition states what is expected under warn, enforce and enforce --strict as one letter each:

    r  runs: output and exit code are those of the command without envdoctor
    x  refused with 78 (an error, or what is undetermined under --strict)
    n  refused with 69 (no verdict)
    u  refused with 64 (wrong usage)
    e  runs with a verdict, or is refused with 69 or 78: how much is left for the check is not known

The column was written from docs/containers.md and docs/security.md, not from what was seen.

In texts ``@ENV@`` is the environment, ``@SITE@`` its site-packages, ``@TOOL@`` the folder of the
script, ``@HERE@`` a folder of the condition's own, ``@GOOD@`` and ``@BAD@`` a lock that the
environment meets and one that it does not, ``@FULL@`` a full file system, ``@EIO@`` and
``@SILENT@`` mounts that answer with an error and never.
"""

from __future__ import annotations

import os
from typing import Mapping, Optional, Tuple, Union

from envdoctor.model.record import NamedTuple

__all__ = ["BUILDS", "JOB", "POLICIES", "READS_ALL", "USER", "Condition"]

POLICIES = ("warn", "enforce", "strict")
BUILDS = ("baked", "not baked", "pyz")
JOB = ("sh", "-c", "echo ran; exit 7")
# Of each worker of the tests: the kernel counts the processes of a user.
_NUMBER = 12345 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
USER = f"setpriv --reuid={_NUMBER} --regid={_NUMBER} --clear-groups"
READS_ALL = " --inh-caps=+dac_read_search --ambient-caps=+dac_read_search"


class Condition(NamedTuple):
    """One row of the table.

    expected: One letter a policy; by build where builds differ ("" for all others).
    variables: Of the environment; None removes. options: Of the script, after the policy.
    setup: Shell, run once in a copy of the environment that is damaged.
    shell: Of the shell that starts the script: limits, descriptors, folder, traps.
    wrap: A command in front of that shell. mounts: Shell, run in a mount namespace before it.
    spelling: What stands for warn and for enforce. by_variable: The policy is in ENVDOCTOR_POLICY.
    words: The command line behind the options. interpreter: The shell that runs the script.
    builds: Where it applies.
    """

    name: str
    expected: Union[str, Mapping[str, str]] = "rrr"
    variables: Mapping[str, Optional[str]] = {}
    options: Tuple[str, ...] = ()
    setup: str = ""
    shell: str = ""
    wrap: str = ""
    mounts: str = ""
    spelling: Tuple[str, str] = ("warn", "enforce")
    by_variable: bool = False
    words: Tuple[str, ...] = ("--", *JOB)
    interpreter: str = ""
    builds: Tuple[str, ...] = BUILDS
