"""Where a process runs: users, mounts, namespaces, shells."""

from __future__ import annotations

from typing import Iterator

from .condition import READS_ALL, USER, Condition

__all__ = ["FAMILIES"]


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


FAMILIES = (users, mounts, namespaces, shells)
