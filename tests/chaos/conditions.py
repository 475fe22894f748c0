"""The chaos table: conditions in which a job may start, and what has to become of it.

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
from typing import Dict, Iterator, List, Mapping, Optional, Tuple, Union

from envdoctor.model.record import NamedTuple

__all__ = ["BUILDS", "CONDITIONS", "FAST", "POLICIES", "Condition"]

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
    builds: Where it applies. faults: Why it is known to fail, by build ("" for all others).
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
    faults: Mapping[str, str] = {}


# --------------------------------------------------------------------------------------------------
# variables


def variables() -> Iterator[Condition]:
    for name, value in {
        "PYTHONHOME": "/nonexistent",
        "PYTHONSTARTUP": "/nonexistent",
        "PYTHONINSPECT": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONMALLOC": "bogus",
        "PYTHONHASHSEED": "bogus",
        "PYTHONIOENCODING": "bogus",
        "PYTHONUTF8": "7",
        "PYTHONTRACEMALLOC": "bogus",
        "PYTHONPLATLIBDIR": "/nonexistent",
        "PYTHONOPTIMIZE": "2",
        "PYTHONVERBOSE": "2",
        "PYTHONPYCACHEPREFIX": "/dev/full",
        "PYTHONEXECUTABLE": "/nonexistent",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUSERBASE": "/dev/null",
        "PYTHONPATH": "/nonexistent:/dev/null/x",
        "PYTHONFAULTHANDLER": "1",
        "LC_ALL": "xx_XX.bogus",
        "LANG": "\udcff",
        "TZ": ":/nonexistent",
        "TERM": "\x1b[31m",
        "COLUMNS": "-1",
        "LD_LIBRARY_PATH": "/nonexistent:relative::",
        "LD_BIND_NOW": "1",
        "GLIBC_TUNABLES": "glibc.malloc.check=3:bogus",
        "MALLOC_PERTURB_": "165",
        "CUDA_HOME": "/nonexistent",
        "CUDA_VISIBLE_DEVICES": "bogus,\x07,-1",
        "NVIDIA_VISIBLE_DEVICES": "none",
        "NCCL_DEBUG": "x" * 5000,
        "RAY_ADDRESS": "ray://user:secret@[::bad",
        "SLURM_JOB_ID": "-1",
        "SLURM_CPUS_ON_NODE": "9" * 4000,
        "KUBERNETES_SERVICE_HOST": "bogus",
        "OMP_NUM_THREADS": "-9",
        "CDPATH": "/",
        "ENV": "/nonexistent",
        "BASH_ENV": "/nonexistent",
        "IFS": "/",
        "PS4": "$(exit 9)",
        "BASH_FUNC_kill%%": "() {  exit 9\n}",
        "BASH_FUNC_wait%%": "() {  return 78\n}",
        "envdoctor_policy": "enforce",
        "envdoctor_code": "78",
        "envdoctor_words": "0",
        "SHLVL": "abc",
        "PWD": "/wrong",
        "OPTIND": "99",
        "a.b": "1",
        "": "no name",
        "é": "ü\n\udcff",
    }.items():
        yield Condition(f"variable {name or '(none)'}", "rrr", {name: value})
    yield Condition(
        "a variable of 120,000 characters", "rrr", {"HUGE": "x" * 120_000}, builds=("not baked",)
    )
    yield Condition("PATH missing", {"": "rrr", "pyz": "rre"}, {"PATH": None})
    yield Condition(
        "PATH without programs",
        {"": "rrr", "pyz": "rre"},
        {"PATH": "/nonexistent"},
        words=("--", "/bin/sh", "-c", "echo ran; exit 7"),
    )
    yield Condition("2,000 variables", "rrr", {f"V{n}": "x" for n in range(2000)})
    yield Condition("an empty environment", {"": "rrr", "pyz": "rre"}, wrap="env -i")
    yield Condition("LD_PRELOAD of nothing", "rrr", {"LD_PRELOAD": "/nonexistent.so"})
    yield Condition("LD_PRELOAD of a folder", "rrr", {"LD_PRELOAD": "@HERE@"})
    for value, expected in {
        "1": "rrr",
        "yes": "rrr",
        "0": "rxx",
        "no": "rxx",
        "FALSE": "rxx",
    }.items():
        yield Condition(
            f"ENVDOCTOR_DISABLE={value} with a lock that is not met",
            expected,
            {"ENVDOCTOR_DISABLE": value},
            ("--lock", "@BAD@"),
        )
    for value in ("abc", "-1", "1e3", "601", "0", "0.01", "1.2.3", " 1", "\u0663"):
        yield Condition(f"ENVDOCTOR_TIMEOUT={value!r}", "ruu", {"ENVDOCTOR_TIMEOUT": value})
    for value in ("xml", "TEXT", " json"):
        yield Condition(f"ENVDOCTOR_FORMAT={value!r}", "ruu", {"ENVDOCTOR_FORMAT": value})
    for value in ("yes", "sha256:12", "Built-in", "sha256:" + "0" * 64):
        yield Condition(
            f"ENVDOCTOR_TRUST_MATRIX={value[:12]}", "ruu", {"ENVDOCTOR_TRUST_MATRIX": value}
        )
    yield Condition(
        "ENVDOCTOR_TRUST_MATRIX=built-in", "rrr", {"ENVDOCTOR_TRUST_MATRIX": "built-in"}
    )


def places() -> Iterator[Condition]:
    """HOME, TMPDIR and XDG: nothing that decides is read there."""
    odd = {
        "missing": "/nonexistent/x",
        "a file": "@HERE@/file",
        "a FIFO": "@HERE@/fifo",
        "full": "@FULL@",
        "EIO": "@EIO@",
        "silent": "@SILENT@",
        "a loop": "@HERE@/loop",
        "relative": "..",
        "no text": "/\udcff\n\x1b",
    }
    make = "echo x >@HERE@/file; mkfifo @HERE@/fifo; ln -s loop @HERE@/loop"
    for name in ("HOME", "TMPDIR"):
        for what, place in odd.items():
            setup = make if "@HERE@" in place else ""
            yield Condition(f"{name} {what}", "rrr", {name: place}, setup=setup)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "ENVDOCTOR_HOME"):
        for what in ("a file", "a FIFO", "a loop"):
            yield Condition(f"{name} {what}", "rrr", {name: odd[what]}, setup=make)
    # What decides is looked for below these. (With LD_LIBRARY_PATH on a mount that never answers no
    # program starts at all; one that answers EIO holds no library that this environment needs.)
    yield Condition("LD_LIBRARY_PATH EIO", "rrr", {"LD_LIBRARY_PATH": odd["EIO"]})
    for name in ("CUDA_HOME", "PYTHONPATH"):
        for what in ("EIO", "silent"):
            yield Condition(f"{name} {what}", "rrx", {name: odd[what]})


# --------------------------------------------------------------------------------------------------
# files of the environment

NUMPY = "@SITE@/numpy-1.26.4.dist-info"
CLICK = "@SITE@/click-8.1.7.dist-info"


def metadata() -> Iterator[Condition]:
    """A warning (ED803) where the content is wrong; undetermined where it cannot be read."""
    for what, expected, setup in (
        ("missing", "rrr", "rm F"),
        ("empty", "rrr", ": >F"),
        ("binary", "rrr", "head -c 3000 /bin/sh >F"),
        ("not UTF-8", "rrr", r"printf 'Name: numpy\nVersion: \377\n' >F"),
        ("another name", "rrr", r"printf 'Name: scipy\nVersion: 1.26.4\n' >F"),
        ("a dangling link", "rrr", "ln -sf /nonexistent F"),
        ("a FIFO", "rrx", "rm F; mkfifo F"),
        ("a socket's place", "rrx", "rm F; ln -s /dev/full F"),
        ("endless", "rrx", "rm F; ln -s /dev/zero F"),
        ("cut", "rrr", r"printf 'Name: numpy\nVersi' >F"),
        ("of 20 MB", "rrr", "yes 'Requires-Dist: x' | head -c 20000000 >>F"),
        ("of hostile text", "rrr", r"printf 'Name: numpy\nVersion: 1.26.4\nSummary: \033[2J\n' >F"),
    ):
        yield Condition(f"METADATA {what}", expected, setup=setup.replace("F", NUMPY + "/METADATA"))
    yield Condition(
        "METADATA of a package beside the stack a FIFO",
        setup=f"rm {CLICK}/METADATA; mkfifo {CLICK}/METADATA",
    )
    for file in ("RECORD", "INSTALLER", "direct_url.json"):
        yield Condition(f"{file} garbage", setup=f"head -c 3000 /bin/sh >{NUMPY}/{file}")
    yield Condition("RECORD a FIFO", setup=f"mkfifo {NUMPY}/RECORD")
    yield Condition("WHEEL a FIFO", "rrx", setup=f"mkfifo {NUMPY}/WHEEL")
    yield Condition(
        "direct_url.json nested deeply",
        setup=f"head -c 7000 /dev/zero | tr '\\0' '[' >{NUMPY}/direct_url.json",
    )
    for what, setup in {
        "a file as dist-info": "rm -r D; echo x >D",
        "a dangling dist-info": "rm -r D; ln -s /nonexistent D",
        "an empty dist-info": "rm D/*",
        "two releases": "cp -r D @SITE@/numpy-1.25.0.dist-info",
        "a leftover": "cp -r D @SITE@/~umpy-1.26.4.dist-info",
        "a removed package": "rm -r D",
        "an egg-info": "mkdir @SITE@/old.egg-info; echo 'Name: old' >@SITE@/old.egg-info/PKG-INFO",
        "hostile names": r"""mkdir "@SITE@/$(printf 'a\nb\033[2J\377-1.dist-info')" """,
        "a thousand packages": "for n in $(seq 1000); do mkdir @SITE@/p$n-1.dist-info; done",
        "an unfinished change": "mkdir @ENV@/.envdoctor-change; echo { >@ENV@/.envdoctor-change/state.json",
        "a compiled cache of garbage": "mkdir @SITE@/__pycache__; head -c 99 /bin/sh >@SITE@/__pycache__/numpy.pyc",
    }.items():
        yield Condition(
            what,
            setup=setup.replace("D", NUMPY)
            if "@SITE@" not in setup
            else setup.replace(" D", f" {NUMPY}"),
        )
    yield Condition("an egg-link that is a FIFO", "rrx", setup="mkfifo @SITE@/old.egg-link")
    unreadable = "setpriv --bounding-set=-dac_override,-dac_read_search"
    for what, path, expected in (
        ("site-packages", "@SITE@", {"": "rrn", "pyz": "rrx"}),
        ("a dist-info", NUMPY, "rrx"),
        ("METADATA", NUMPY + "/METADATA", "rrx"),
        ("the baseline", "@ENV@/share/envdoctor/baseline.json", "rrr"),
    ):
        make = "mkdir -p @ENV@/share/envdoctor; touch @ENV@/share/envdoctor/baseline.json; "
        yield Condition(
            f"no permission for {what}", expected, setup=f"{make}chmod 0 {path}", wrap=unreadable
        )


def startup_files() -> Iterator[Condition]:
    """What site executes is not executed."""
    acts = {
        "exits": "import os; os._exit(0)",
        "exits with 78": "import os; os._exit(78)",
        "raises": "raise RuntimeError",
        "sleeps": "import time; time.sleep(60)",
        "kills": "import os; os.kill(os.getppid(), 9)",
    }
    for act, text in acts.items():
        for file in ("sitecustomize.py", "usercustomize.py", "x.pth"):
            yield Condition(f"{file} {act}", setup=f"echo '{text}' >@SITE@/{file}")
    for what, expected, setup in (
        ("binary", "rrr", "head -c 3000 /bin/sh >@SITE@/x.pth"),
        ("a folder", "rrr", "mkdir @SITE@/x.pth"),
        ("a loop", "rrx", "ln -s x.pth @SITE@/x.pth"),
        ("a FIFO", "rrx", "mkfifo @SITE@/x.pth"),
        ("of missing folders", "rrr", "seq -f /nonexistent/%g 5000 >@SITE@/x.pth"),
        ("of 5 MB", "rrr", "yes '# x' | head -c 5000000 >@SITE@/x.pth"),
        ("of the top", "rrr", "echo / >@SITE@/x.pth"),
    ):
        yield Condition(f".pth {what}", expected, setup=setup)
    for folder in ("PYTHONPATH", "the working directory"):
        for act in ("exits", "sleeps"):
            setup = f"for m in os json re site encodings envdoctor packaging; do echo '{acts[act]}' >@HERE@/$m.py; done"
            yield Condition(
                f"modules of {folder}: {act}",
                "rrr",
                {"PYTHONPATH": "@HERE@"} if folder == "PYTHONPATH" else {},
                setup=setup,
                shell="" if folder == "PYTHONPATH" else "cd @HERE@",
            )


def interpreters() -> Iterator[Condition]:
    """What stands where the interpreter is expected."""
    path = "@ENV@/bin/python3"
    real = "@ENV@/bin/real"
    for what, expected, text in (
        # A script that says 64, 69 or 78 is no verdict, and warn never stops a command.
        ("exits with 64", "ruu", "#!/bin/sh\nexit 64"),
        ("exits with 69", "rnn", "#!/bin/sh\nexit 69"),
        ("exits with 78", "rxx", "#!/bin/sh\nexit 78"),
        # "the check ended with 0" without a word is no verdict.
        ("exits with 0", "rrn", "#!/bin/sh\nexit 0"),
        ("exits with 1", "rrn", "#!/bin/sh\nexit 1"),
        ("exits with 127", "rrn", "#!/bin/sh\nexit 127"),
        ("exits with 255", "rrn", "#!/bin/sh\nexit 255"),
        ("dies of SEGV", "rrn", "#!/bin/sh\nkill -s SEGV $$"),
        ("dies of KILL", "rrn", "#!/bin/sh\nkill -s KILL $$"),
        ("dies of PIPE", "rrn", "#!/bin/sh\nkill -s PIPE $$"),
        ("stops itself", "rrn", "#!/bin/sh\nkill -s STOP $$"),
        ("is no program", "rrn", "\\177ELF"),
        ("is empty", "rrn", ""),
        ("names no interpreter", "rrn", "#!/nonexistent"),
        ("hangs", "rrn", "#!/bin/sh\nexec sleep 60"),
        ("hangs and is deaf", "rrn", '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done'),
        ("is noisy", "rrr", f'#!/bin/sh\necho noise; echo noise >&2; exec {real} "$@"'),
        ("is late", "rrr", f'#!/bin/sh\nsleep 0.7; exec {real} "$@"'),
        ("leaves a child behind", "rrr", f'#!/bin/sh\nsleep 2 & exec {real} "$@"'),
        ("reads its input", "rrr", f'#!/bin/sh\ncat >/dev/null; exec {real} "$@"'),
        ("closes everything", "rre", f'#!/bin/sh\nexec {real} "$@" >&- 2>&- <&-'),
    ):
        # Its name decides which environment an interpreter serves, not what it is called by.
        setup = (
            f"ln -s python {real}; rm {path}; printf '%b\\n' '"
            + text.replace("\n", "\\n")
            + f"' >{path}; chmod 755 {path}"
        )
        hangs = what.startswith(("hangs", "stops"))
        yield Condition(
            f"python3 {what}",
            expected,
            options=("--timeout", "0.5") if hangs else (),
            setup=setup,
            builds=("not baked", "pyz") if hangs else BUILDS,
        )
    for what, setup in {
        "dangles": f"ln -sf /nonexistent {path}",
        "is a folder": f"rm {path}; mkdir {path}",
        "is a loop": f"ln -sf python3 {path}",
    }.items():
        # Another name of it is found: python beside it, or the next python3 of PATH.
        yield Condition(f"python3 {what}", {"": "rre"}, setup=setup)
    yield Condition(
        "no interpreter at all", {"": "rrn", "pyz": "rre"}, setup="rm @ENV@/bin/python*"
    )
    for what, expected, setup in (
        ("missing", "rrr", "rm F"),
        ("with system packages", "rrr", "sed -i s/false/true/ F"),
        ("garbage", "rre", "head -c 3000 /bin/sh >F"),
        ("of another home", "rre", "sed -i 's:^home = .*:home = /nonexistent:' F"),
        ("a FIFO", "rrn", "rm F; mkfifo F"),
    ):
        yield Condition(
            f"pyvenv.cfg {what}",
            expected,
            options=("--timeout", "0.5") if what == "a FIFO" else (),
            setup=setup.replace("F", "@ENV@/pyvenv.cfg"),
            builds=("not baked", "pyz") if what == "a FIFO" else BUILDS,
        )


def own_files() -> Iterator[Condition]:
    """envdoctor's own files: what cannot be loaded gives no verdict."""
    installed = ("baked", "not baked")
    yield Condition(
        "site-packages hidden", {"": "rrn", "pyz": "rrx"}, setup="mv @SITE@ @SITE@.hidden"
    )
    yield Condition(
        "site-packages empty",
        {"": "rrn", "pyz": "rrr"},
        setup="mv @SITE@ @SITE@.hidden; mkdir @SITE@",
    )
    yield Condition(
        "site-packages a file",
        {"": "rrn", "pyz": "rrx"},
        setup="mv @SITE@ @SITE@.hidden; echo >@SITE@",
    )
    yield Condition(
        "site-packages a loop",
        {"": "rrn", "pyz": "rrx"},
        setup="mv @SITE@ @SITE@.hidden; ln -s site-packages @SITE@",
    )
    yield Condition("packaging is gone", "rrr", setup="rm -r @SITE@/packaging", builds=installed)
    own = "cp -rL @SITE@/envdoctor @HERE@/copy; rm @SITE@/envdoctor; mv @HERE@/copy @SITE@/envdoctor; cd @SITE@/envdoctor; find . -name __pycache__ -exec rm -r {} +; "
    for what, change in {
        "verdict.py is gone": "rm entrypoint/verdict.py",
        "verdict.py is empty": ": >entrypoint/verdict.py",
        "verdict.py is cut": "head -c 3000 entrypoint/verdict.py >x; mv x entrypoint/verdict.py",
        "handoff.py is empty": ": >entrypoint/handoff.py",
        "guarded.py is binary": "head -c 999 /bin/sh >entrypoint/guarded.py",
        "a module exits with 0": "echo 'import os; os._exit(0)' >probes/__init__.py",
        "a module raises": "echo 'raise MemoryError' >rules/__init__.py",
        "the matrix is gone": "rm -r _compiled",
        "the matrix is empty": ": >_compiled/core.json",
        "the matrix is garbage": "head -c 9999 /bin/sh >_compiled/core.json",
    }.items():
        yield Condition(what, "rrn", setup=own + change, builds=installed)
    for what, change in {
        "missing": "rm F",
        "empty": ": >F",
        "cut": "head -c 100000 F >@HERE@/x; cp @HERE@/x F",
        "garbage": "head -c 9999 /bin/sh >F",
        "a folder": "rm F; mkdir F",
    }.items():
        yield Condition(
            f"the archive is {what}",
            "rrn",
            setup=change.replace("F", "@TOOL@/envdoctor"),
            builds=("pyz",),
        )


# --------------------------------------------------------------------------------------------------
# what was named


def inputs() -> Iterator[Condition]:
    """Locks, baselines, ignore files, matrices."""
    bad = {
        "missing": ":",
        "a FIFO": "mkfifo @HERE@/in",
        "an empty folder": "mkdir @HERE@/in",
        "empty": ": >@HERE@/in",
        "binary": "head -c 3000 /bin/sh >@HERE@/in",
        "cut": 'echo \'{"schema_version": 1, "pins": [\' >@HERE@/in',
        "nested deeply": "head -c 200000 /dev/zero | tr '\\0' '[' >@HERE@/in",
        "of another version": 'echo \'{"schema_version": 99, "pins": []}\' >@HERE@/in',
        "a list": "echo '[]' >@HERE@/in",
        "a loop": "ln -s in @HERE@/in",
        "endless": "ln -s /dev/zero @HERE@/in",
        "on a disk that answers EIO": "ln -s @EIO@/file @HERE@/in",
    }
    for what, setup in bad.items():
        yield Condition(f"lock {what}", "ruu", options=("--lock", "@HERE@/in"), setup=setup)
        yield Condition(
            f"named baseline {what}", "ruu", options=("--baseline", "@HERE@/in"), setup=setup
        )
        if what != "missing":
            place = "mkdir -p @ENV@/share/envdoctor; rm -f @ENV@/share/envdoctor/baseline.json; "
            yield Condition(
                f"baseline of the environment {what}",
                setup=place
                + setup.replace("@HERE@/in", "@ENV@/share/envdoctor/baseline.json").replace(
                    " in ", " baseline.json "
                ),
            )
        if what not in ("empty", "nested deeply", "of another version", "a list", "cut"):
            yield Condition(
                f"ignore file {what}", "ruu", {"ENVDOCTOR_IGNORE": "@HERE@/in"}, setup=setup
            )
        if what in ("missing", "a FIFO", "empty", "a loop", "on a disk that answers EIO"):
            yield Condition(
                f"matrix folder {what}", "ruu", {"ENVDOCTOR_MATRIX": "@HERE@/in"}, setup=setup
            )
    yield Condition(
        "lock that never answers", "rrn", options=("--timeout", "1", "--lock", "@SILENT@/file")
    )
    yield Condition(
        "matrix folder that never answers",
        "rrn",
        {"ENVDOCTOR_MATRIX": "@SILENT@/in"},
        ("--timeout", "1"),
    )
    yield Condition(
        "ignore file empty", "rrr", {"ENVDOCTOR_IGNORE": "@HERE@/in"}, setup=": >@HERE@/in"
    )
    yield Condition(
        "ignore file without a day",
        "ruu",
        {"ENVDOCTOR_IGNORE": "@HERE@/in"},
        setup="echo ED306 >@HERE@/in",
    )
    yield Condition(
        "ignore file that accepts the error",
        "rrr",
        {"ENVDOCTOR_IGNORE": "@HERE@/in"},
        ("--lock", "@BAD@"),
        setup="echo 'ED306 until=2999-12-31 reason=\"test\"' >@HERE@/in",
    )
    yield Condition(
        "ignore file that has run out",
        "rxx",
        {"ENVDOCTOR_IGNORE": "@HERE@/in"},
        ("--lock", "@BAD@"),
        setup="echo 'ED306 until=2020-12-31 reason=\"test\"' >@HERE@/in",
    )
    yield Condition(
        "matrix folder of broken rows",
        "ruu",
        {"ENVDOCTOR_MATRIX": "@HERE@/m"},
        setup="mkdir -p @HERE@/m/errata; echo '[[' >@HERE@/m/errata/x.toml",
    )
    yield Condition(
        "matrix folder with a FIFO",
        "ruu",
        {"ENVDOCTOR_MATRIX": "@HERE@/m"},
        setup="mkdir -p @HERE@/m/errata; mkfifo @HERE@/m/errata/x.toml",
    )
    yield Condition(
        "matrix folder without rows",
        "rrr",
        {"ENVDOCTOR_MATRIX": "@HERE@/m"},
        setup="mkdir -p @HERE@/m/errata",
    )
    yield Condition(
        "matrix folder missing, built-in trusted",
        "rrr",
        {"ENVDOCTOR_MATRIX": "/nonexistent"},
        ("--trust-matrix", "built-in"),
    )
    yield Condition("a lock that is met", options=("--lock", "@GOOD@"))
    yield Condition("a lock that is not met", "rxx", options=("--lock", "@BAD@"))
    write = "cp @GOOD@/envdoctor.lock.json @HERE@/in; sed -i 's/{}/{}/' @HERE@/in"
    for what, expected, before, after in (
        ("another release pinned", "rrr", "1.26.4", "1.25.0"),
        (
            "a pin that nobody asked for",
            "rrr",
            '"pins": [',
            '"pins": [{"name": "scipy", "version": "1"}, ',
        ),
        ("another Python", "rxx", '"python": "[^"]*"', '"python": "3.1"'),
        ("a newer glibc", "rxx", '"sm": \\[\\]', '"sm": [], "glibc": "9.99"'),
        ("an older glibc", "rrr", '"sm": \\[\\]', '"sm": [], "glibc": "2.0"'),
        ("a driver where there is none", "rrx", '"sm": \\[\\]', '"sm": [], "driver": "550.54"'),
        ("another architecture", "rxx", '"sm": \\[\\]', '"sm": [], "architecture": "s390x"'),
        ("another platform", "rxx", '"sm": \\[\\]', '"sm": [], "platform": "plan9"'),
        ("pins that are no list", "ruu", '"pins": .*"settings"', '"pins": 7, "settings"'),
        ("a pin without a version", "ruu", '"version"', '"verzion"'),
    ):
        yield Condition(
            f"a lock with {what}",
            expected,
            options=("--lock", "@HERE@/in"),
            setup=write.format(
                before.replace("[", "\\[") if before.endswith("[") else before, after
            ),
        )


# --------------------------------------------------------------------------------------------------
# limits, descriptors, folders, signals


def limits() -> Iterator[Condition]:
    """How much of a check a limit leaves is not known; the job starts."""
    for count in (11, 12, 14, 16, 20, 24, 32, 64, 256):
        yield Condition(f"{count} files", "rre", shell=f"ulimit -n {count}")
    for size in (8, 12, 16, 24, 40, 80, 160):
        yield Condition(f"{size} MB of addresses", "rre", shell=f"ulimit -v {size << 10}")
    for size in (4, 8, 16):
        yield Condition(f"{size} MB of data", "rre", shell=f"ulimit -d {size << 10}")
    for size in (64, 160, 512, 2048, "unlimited"):
        yield Condition(f"stack of {size} KB", "rre", shell=f"ulimit -s {size}")
    for size in (0, 1, 100):
        yield Condition(f"files of {size} blocks", "rrr", shell=f"ulimit -f {size}")
    for name in (
        "core=0",
        "core=unlimited",
        "memlock=0",
        "sigpending=0",
        "msgqueue=0",
        "locks=0",
        "nice=0",
        "rtprio=0",
        "cpu=9",
        "rss=0",
    ):
        yield Condition(f"limit {name}", "rrr", wrap=f"prlimit --{name}")
    for count in (1, 2, 3, 4, 8):
        yield Condition(
            f"{count} processes", "rre", wrap=f"prlimit --nproc={count} {USER}{READS_ALL}"
        )
    yield Condition("the lowest priority", wrap="nice -n 19")
    yield Condition("umask 777", shell="umask 777")


def descriptors() -> Iterator[Condition]:
    for text in (
        "0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-",
        "1>/dev/full", "2>/dev/full", "1>/dev/full 2>/dev/full", "0</", "0>@HERE@/x", "1<@HERE@", "2<@HERE@",
        "3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3",
    ):  # fmt: skip
        # A Python whose standard error is a folder ends before it has begun.
        expected = "rrn" if text == "2<@HERE@" else "rrr"
        yield Condition(
            f"descriptors {text.replace('@HERE@', 'DIR')}", expected, shell=f"exec {text}"
        )
        if text in ("2>&-", "1>/dev/full 2>/dev/full", "0<&- 1>&- 2>&-"):
            yield Condition(
                f"descriptors {text}, a lock that is not met",
                "rxx",
                options=("--lock", "@BAD@"),
                shell=f"exec {text}",
            )
    full = "mkfifo @HERE@/$$; exec 9<>@HERE@/$$; dd if=/dev/zero bs=65536 count=1 >&9 2>/dev/null; exec 2>&9"
    yield Condition("standard error nobody reads", shell=full)
    yield Condition(
        "standard error nobody reads, an error", "rxx", options=("--lock", "@BAD@"), shell=full
    )
    yield Condition(
        "300 descriptors",
        shell="exec python3 -c 'import os,sys\nfor n in range(3,303): os.dup2(0,n)\nos.execvp(sys.argv[1],sys.argv[1:])' \"$@\"",
    )


def folders() -> Iterator[Condition]:
    for what, shell in {
        "deleted": "mkdir @HERE@/$$; cd @HERE@/$$; rmdir @HERE@/$$",
        "/": "cd /",
        "/proc/self": "cd /proc/self",
        "/dev": "cd /dev",
        "of an odd name": r'd=$(printf "@HERE@/a\nb\033[2J\377$$"); mkdir "$d"; cd "$d"',
        "4,500 characters deep": "cd @HERE@; d=$(printf %0250d 0); for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mkdir -p $d; cd $d; done",
        "full": "cd @FULL@",
        "of the packages": "cd @SITE@",
        "of the script": "cd @TOOL@",
    }.items():
        yield Condition(f"working directory {what}", shell=shell)
    yield Condition(
        "working directory without permission",
        setup="mkdir @HERE@/d",
        shell='cd @HERE@/d; chmod 0 .; exec setpriv --bounding-set=-dac_override,-dac_read_search "$@"',
    )
    yield Condition(
        "working directory of a mount that is gone",
        mounts="mount -t tmpfs x @HERE@; cd @HERE@; umount -l @HERE@",
    )


def signals() -> Iterator[Condition]:
    for name in (
        "HUP",
        "INT",
        "QUIT",
        "TERM",
        "PIPE",
        "ALRM",
        "CHLD",
        "USR1",
        "USR2",
        "TSTP",
        "TTOU",
        "CONT",
        "WINCH",
    ):
        yield Condition(f"SIG{name} ignored", wrap=f"env --ignore-signal={name}")
    for name in ("HUP", "INT", "TERM", "ALRM", "CHLD", "PIPE"):
        yield Condition(f"SIG{name} blocked", wrap=f"env --block-signal={name}")
    yield Condition("all signals blocked", wrap="env --block-signal")
    yield Condition("all signals ignored", wrap="env --ignore-signal")
    yield Condition(
        "all signals blocked, an error",
        "rxx",
        options=("--lock", "@BAD@"),
        wrap="env --block-signal",
    )
    yield Condition("a session of its own", wrap="setsid -w")
    yield Condition("a child that it did not make", shell="sleep 1 >/dev/null 2>&1 & :")


# --------------------------------------------------------------------------------------------------
# words


def words() -> Iterator[Condition]:
    job = JOB
    for what, expected, options, line in (
        ("no --", "rrr", (), job),
        ("=", "rrr", ("--timeout=2", "--format=line"), ("--", *job)),
        ("the last of two counts", "rxx", ("--lock", "@GOOD@", "--lock", "@BAD@"), ("--", *job)),
        ("nothing behind --", "uuu", (), ("--",)),
        ("nothing", "uuu", (), ()),
        ("an unknown option", "ruu", ("--enforce",), ("--", *job)),
        ("an unknown option with a value", "ruu", ("--enforced", "yes"), ("--", *job)),
        ("an unknown option, no --", "uuu", ("--enforce",), ()),
        ("a short option", "ruu", ("-x",), ("--", *job)),
        ("an option without value", "uuu", ("--lock",), ()),
        ("--strict=1", "ruu", ("--strict=1",), ("--", *job)),
        ("--timeout 0", "ruu", ("--timeout", "0"), ("--", *job)),
        ("--timeout abc", "ruu", ("--timeout", "abc"), ("--", *job)),
        ("--timeout 1e1", "ruu", ("--timeout", "1e1"), ("--", *job)),
        ("an empty --timeout", "ruu", ("--timeout", ""), ("--", *job)),
        ("--format xml", "ruu", ("--format", "xml"), ("--", *job)),
        ("--format json", "rrr", ("--format", "json"), ("--", *job)),
        ("--format none, an error", "rxx", ("--format", "none", "--lock", "@BAD@"), ("--", *job)),
        ("an empty --lock", "ruu", ("--lock", ""), ("--", *job)),
        ("-- of the command's own", "rrr", (), ("--", "sh", "-c", 'echo "$@"; exit 7', "sh", "--", "--policy", "x")),
        ("a command that is not found", "rrr", (), ("--", "no-such-command")),
        ("a command that is a folder", "rrr", (), ("--", "/")),
        ("a command that is no program", "rrr", (), ("--", "/etc/passwd")),
        ("an empty command", "rrr", (), ("--", "")),
        ("a command like a variable", "rrr", (), ("--", "A=b", "sh", "-c", "echo ran")),
        ("an argument of 100,000 characters", "rrr", (), ("--", "sh", "-c", 'echo ${#1}; exit 7', "sh", "x" * 100_000)),
        ("5,000 arguments", "rrr", (), ("--", "sh", "-c", "echo $#; exit 7", "sh", *["a"] * 5000)),
        ("arguments that are no text", "rrr", (), ("--", "sh", "-c", 'printf "%s|" "$@"; exit 7', "sh", "\udcff", "", "a\nb", "*", "$x")),
        ("a command that kills itself", "rrr", (), ("--", "sh", "-c", "echo ran; kill -9 $$")),
        ("a command that ends with 78", "rrr", (), ("--", "sh", "-c", "echo ran; exit 78")),
    ):  # fmt: skip
        yield Condition(f"words: {what}", expected, options=options, words=tuple(line))
    for place in (
        "/nonexistent/r.json",
        "@HERE@",
        "/proc/1/x",
        "@FULL@/r.json",
        "@HERE@/fifo",
        "",
    ):
        yield Condition(
            f"report at {place or 'nowhere'}, an error",
            "rxx",
            options=("--lock", "@BAD@", "--report", place),
            setup="mkfifo @HERE@/fifo" if "fifo" in place else "",
        )


def policies() -> Iterator[Condition]:
    """Who wrote neither off nor warn has asked for more than to be warned."""
    for text in (
        "Enforce",
        "ENFORCE",
        "enforce ",
        " enforce",
        "enforced",
        "strict",
        "deny",
        "1",
        "true",
        "none",
        "\x1b",
        "\u0435nforce",
        "warn,enforce",
    ):
        for by_variable in (False, True):
            where = "ENVDOCTOR_POLICY" if by_variable else "--policy"
            yield Condition(
                f"{where} {text!r}", "ruu", spelling=("warn", text), by_variable=by_variable
            )
    for text in ("Warn", " warn", "OFF", "Off "):
        for by_variable in (False, True):
            where = "ENVDOCTOR_POLICY" if by_variable else "--policy"
            yield Condition(
                f"{where} {text!r}, an error",
                "rxx",
                options=("--lock", "@BAD@"),
                spelling=(text, "enforce"),
                by_variable=by_variable,
            )
    yield Condition(
        "--policy off, an error", "rrr", options=("--lock", "@BAD@"), spelling=("off", "off")
    )


# --------------------------------------------------------------------------------------------------
# users, mounts, namespaces, shells


def users() -> Iterator[Condition]:
    yield Condition("a user without an entry", wrap=USER + READS_ALL)
    yield Condition(
        "user -2", wrap=f"setpriv --reuid=4294967294 --regid=4294967294 --clear-groups{READS_ALL}"
    )
    yield Condition("no capabilities", wrap="setpriv --bounding-set=-all --inh-caps=-all")
    yield Condition("no new privileges", wrap="setpriv --no-new-privs")
    yield Condition(
        "a user without an entry, an error",
        "rxx",
        options=("--lock", "@BAD@"),
        wrap=USER + READS_ALL,
    )


def mounts() -> Iterator[Condition]:
    script = "/bin/sh"
    for what, expected, text in (
        (
            "the environment read-only",
            "rrr",
            "mount --bind @ENV@ @ENV@; mount -o remount,bind,ro @ENV@",
        ),
        (
            "the environment noexec",
            "rrr",
            "mount --bind @ENV@ @ENV@; mount -o remount,bind,noexec @ENV@",
        ),
        ("everything read-only", "rrr", "mount -o remount,bind,ro /"),
        ("no /var/tmp to write", "rrr", "mount -t tmpfs -o ro x /var/tmp"),
        ("an empty /sys", "rre", "mount -t tmpfs x /sys"),
        ("an empty /proc", "rre", "mount -t tmpfs x /proc"),
        ("an empty /etc", "rre", "mount -t tmpfs x /etc"),
        ("an empty /dev", "rre", "mount -t tmpfs x /dev"),
        ("an empty /dev/shm", "rrr", "mount -t tmpfs x /dev/shm"),
        ("a /dev/shm of a page", "rre", "mount -t tmpfs -o size=4k x /dev/shm"),
        ("no other processes in /proc", "rrr", "mount -t proc -o hidepid=2 x /proc"),
        (
            "a full /run",
            "rrr",
            "mount -t tmpfs -o size=4k x /run; head -c 9000 /dev/zero >/run/x 2>/dev/null || :",
        ),
    ):
        yield Condition(what, expected, mounts=text, interpreter=script)
    yield Condition(
        "the environment read-only, an error",
        "rxx",
        options=("--lock", "@BAD@"),
        mounts="mount --bind @ENV@ @ENV@; mount -o remount,bind,ro @ENV@",
    )


def namespaces() -> Iterator[Condition]:
    for flags in (
        "-n",
        "-u",
        "-i",
        "-C",
        "-p -f --kill-child",
        "-p -f --mount-proc",
        "-U",
        "-U -r",
        "-U -r -n -u -i -p -f --mount-proc",
        "-T",
    ):
        yield Condition(f"namespaces {flags}", wrap=f"unshare {flags}")
    yield Condition(
        "process 1, an error", "rxx", options=("--lock", "@BAD@"), wrap="unshare -p -f --mount-proc"
    )
    yield Condition(
        "process 1, no verdict",
        "rrn",
        setup="rm @ENV@/bin/python3; printf '#!/bin/sh\\nexit 1\\n' >@ENV@/bin/python3; chmod 755 @ENV@/bin/python3",
        wrap="unshare -p -f --mount-proc",
    )


def shells() -> Iterator[Condition]:
    broken = "rm @ENV@/bin/python3; printf '#!/bin/sh\\nkill -s SEGV $$\\n' >@ENV@/bin/python3; chmod 755 @ENV@/bin/python3"
    for name in ("dash", "bash", "busybox"):
        for what, fields in {
            "nothing wrong": {},
            "an error": {"expected": "rxx", "options": ("--lock", "@BAD@")},
            "wrong usage": {"expected": "ruu", "options": ("--lock", "/nonexistent")},
            "no verdict": {"expected": "rrn", "setup": broken},
            "all signals blocked": {"wrap": "env --block-signal"},
            "SIGCHLD ignored": {"wrap": "env --ignore-signal=CHLD"},
            "all closed": {"shell": "exec 0<&- 1>&- 2>&-"},
            "full outputs, no verdict": {
                "expected": "rrn",
                "setup": broken,
                "shell": "exec 1>/dev/full 2>/dev/full",
            },
            "deleted folder": {"shell": "mkdir @HERE@/$$; cd @HERE@/$$; rmdir @HERE@/$$"},
            "process limit": {"expected": "rre", "wrap": f"prlimit --nproc=1 {USER}{READS_ALL}"},
            "12 files": {"expected": "rre", "shell": "ulimit -n 12"},
            "odd names": {"variables": {"a.b": "1", "": "x", "é": "\udcff"}},
        }.items():
            if (name, what) == ("bash", "process limit"):
                continue  # it tries again for 15 s for each process
            yield Condition(f"{name}: {what}", interpreter=name, **fields)  # type: ignore[arg-type]


_NOT_READ = "what is no regular file counts as empty or missing, and so as a warning at most"

#: What is known to be wrong with envdoctor, by condition: the builds ("" for all), and what it is.
KNOWN: Dict[str, Tuple[Tuple[str, ...], str]] = {
    **dict.fromkeys(
        (
            "METADATA a FIFO",
            "METADATA a socket's place",
            "METADATA endless",
            "WHEEL a FIFO",
            "an egg-link that is a FIFO",
            ".pth a FIFO",
        ),
        (("",), _NOT_READ),
    ),
    **{
        f"no permission for {what}": (("baked", "pyz"), "a refusal by permissions is a warning")
        for what in ("a dist-info", "METADATA")
    },
    "PYTHONPATH silent": (("baked",), "the stamp of a baseline lists folders unwatched"),
    "busybox: 12 files": (("",), "busybox ends itself where it has no descriptor left"),
    "named baseline missing": (("",), "it counts as none, though it was named"),
    "matrix folder with a FIFO": (("",), "a row that is a FIFO is waited for"),
    "python3 exits with 64": (("",), "wrong usage is believed of any Python"),
}


def _all() -> List[Condition]:
    families = (
        variables, places, metadata, startup_files, interpreters, own_files, inputs, limits, descriptors,
        folders, signals, words, policies, users, mounts, namespaces, shells,
    )  # fmt: skip
    rows: Dict[str, Condition] = {"nothing wrong": Condition("nothing wrong")}
    for family in families:
        for row in family():
            assert row.name not in rows, row.name
            builds, fault = KNOWN.get(row.name, ((), ""))
            rows[row.name] = row._replace(faults=dict.fromkeys(builds, fault))
    assert rows.keys() >= KNOWN.keys()
    return list(rows.values())


CONDITIONS: List[Condition] = _all()

#: Three cells each in the fast suite; the rest is slow.
FAST = frozenset(
    [
        ("nothing wrong", "baked"),
        ("a lock that is not met", "not baked"),
        ("variable PYTHONHOME", "pyz"),
        ("site-packages hidden", "not baked"),
    ]
)
