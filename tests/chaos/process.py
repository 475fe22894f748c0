"""What a process is given: variables, places, limits, descriptors, a folder, signals."""

from __future__ import annotations

from typing import Iterator

from ..entrypoint.test_guard import HOSTILE
from .condition import READS_ALL, USER, Condition

__all__ = ["FAMILIES"]


def variables() -> Iterator[Condition]:
    for name, value in {
        **HOSTILE,
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


FAMILIES = (variables, places, limits, descriptors, folders, signals)
