"""What may be wrong with an environment: packages, start-up files, interpreters, envdoctor
itself.
"""

from __future__ import annotations

from typing import Iterator

from .condition import BUILDS, Condition

__all__ = ["FAMILIES"]

NUMPY = "@SITE@/numpy-1.26.4.dist-info"
UNSPOKEN = "@SITE@/attic-1.0.dist-info"  # no row speaks of it, and nothing that it says decides


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
    for what, expected, setup in (
        ("missing", "rrr", "rm F"),
        ("a FIFO", "rrx", "rm F; mkfifo F"),
        ("on a disk that answers EIO", "rrx", "ln -sf @EIO@/file F"),
    ):
        yield Condition(
            f"METADATA of a package that no row speaks of {what}",
            expected,
            setup=setup.replace("F", UNSPOKEN + "/METADATA"),
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
        ("METADATA of a package that no row speaks of", UNSPOKEN + "/METADATA", "rrx"),
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
        yield Condition(f"python3 {what}", "rre", setup=setup)
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


FAMILIES = (metadata, startup_files, interpreters, own_files)
