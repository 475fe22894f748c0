"""Runs envdoctor with one fault in one probe: ``chaos.py PROBE FAULT FREEZER-GROUP ARGUMENT ...``.

File faults hit every regular file and folder that the probe opens, through ``os`` alone: imports
and pipes are not touched.
"""

import ctypes
import errno
import os
import random
import signal
import stat
import sys
import time

PROBE, FAULT, GROUP, *ARGUMENTS = sys.argv[1:]

import envdoctor.probes as probes  # noqa: E402 - behind the arguments

active = False
real = {
    name: getattr(os, name)
    for name in ("open", "read", "scandir", "listdir", "stat", "lstat", "statvfs", "readlink")
}
REFUSALS = {"missing": errno.ENOENT, "no-permission": errno.EACCES, "eio": errno.EIO}
garbage = random.Random(5).randbytes(1 << 16) if sys.version_info >= (3, 9) else b"\x00\xff" * 999
served = set()


def refuse(name):
    def call(path=".", *rest, **options):
        if active and not str(path).startswith(("/dev/", "/proc/self/fd")):
            raise OSError(REFUSALS[FAULT], os.strerror(REFUSALS[FAULT]), path)
        return real[name](path, *rest, **options)

    return call


def read(descriptor, size):
    if not active or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return real["read"](descriptor, size)
    if FAULT == "huge":
        return b"9" * size
    if FAULT == "empty" or descriptor in served:
        served.discard(descriptor)
        return b""
    served.add(descriptor)
    return garbage[:size]


def misbehave(machine):
    if FAULT == "hang":
        while True:
            time.sleep(10)
    if FAULT == "deaf":  # no signal but SIGKILL reaches it
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
        while True:
            time.sleep(10)
    if FAULT == "crash":
        ctypes.string_at(0)
    if FAULT == "unkillable":
        for name, word in (("cgroup.procs", "0"), ("freezer.state", "FROZEN")):
            with open(f"{GROUP}/{name}", "w") as file:
                file.write(word)
        time.sleep(60)
    if FAULT == "exit":
        os._exit(0)
    raise MemoryError("no memory is left")


def wrap(function):
    def run(machine):
        global active
        active = True
        try:
            return function(machine)
        finally:
            active = False

    return run


if FAULT in REFUSALS:
    for name in set(real) - {"read"}:
        setattr(os, name, refuse(name))
elif FAULT in ("empty", "binary", "huge"):
    os.read = read

# In the entrypoint a child does everything; in check only what is isolated may do what cannot be
# caught.
isolated = ARGUMENTS[0] == "check" and FAULT in ("deaf", "crash", "unkillable", "exit")
chosen = []
for probe in probes.all_probes():
    if probe.name == PROBE:
        files = FAULT in REFUSALS or FAULT in ("empty", "binary", "huge")
        probe = probe._replace(
            function=wrap(probe.function) if files else misbehave,
            isolated=isolated or probe.isolated,
            deadline=1.0,
        )
    chosen.append(probe)
assert PROBE == "none" or any(probe.name == PROBE for probe in chosen)
by_name = {probe.name: probe for probe in chosen}
load_probes = probes.load_probes
probes.load_probes = lambda modules: tuple(by_name[probe.name] for probe in load_probes(modules))

sys.argv = ["envdoctor", *ARGUMENTS]
from envdoctor.cli.main import main  # noqa: E402

main()
