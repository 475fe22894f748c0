"""Start User-Mode Linux on processors whose extended state is larger than it knows (AMX).

UML 6.1 reads and writes floating-point state by ``PTRACE_GETREGSET`` with a buffer of a fixed size.
With AMX the host's state is larger, the write fails, and init dies with SIGSEGV. Where the first
read fails UML takes the old FP registers instead, so a seccomp filter lets both fail.

Usage: python start_uml.py linux.uml ARGUMENT...
"""

import ctypes
import errno
import os
import struct
import sys

PTRACE = 101  # x86-64
GETREGSET, SETREGSET = 0x4204, 0x4205
DENY, ALLOW = 0x00050000 | errno.EIO, 0x7FFF0000
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06

FILTER = [
    (LOAD, 0, 0, 0),  # the number of the system call
    (JUMP_EQUAL, 0, 4, PTRACE),
    (LOAD, 0, 0, 16),  # its first argument
    (JUMP_EQUAL, 1, 0, GETREGSET),
    (JUMP_EQUAL, 0, 1, SETREGSET),
    (RETURN, 0, 0, DENY),
    (RETURN, 0, 0, ALLOW),
]


def main() -> None:
    """Install the filter and become the command."""
    if os.uname().machine == "x86_64":
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in FILTER))
        program = ctypes.create_string_buffer(
            struct.pack("HxxxxxxQ", len(FILTER), ctypes.addressof(code))
        )
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            raise OSError(ctypes.get_errno(), "no seccomp filter")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
