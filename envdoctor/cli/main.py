"""The console script: chooses the command, writes its text, and turns every outcome into an exit
code.

Nothing but built-in modules is imported before the command is known; a command's module is imported
only when chosen.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, NoReturn, Sequence, Tuple

    from .command import Command

__all__ = ["COMMANDS", "main", "run"]

#: Name -> (module, group and line for --help).
COMMANDS: Mapping[str, Tuple[str, str, str]] = {
    "check": (
        "check",
        "Find out what is wrong",
        "check an environment: what is wrong, why, and what to do",
    ),
    "diagnose": ("diagnose", "Find out what is wrong", "find out from its logs why a run failed"),
    "explain": (
        "explain",
        "Find out what is wrong",
        "explain a code (ED304) or a known combination, with sources",
    ),
    "probe": ("probe", "Find out what is wrong", "show what can be read from this machine"),
    "nodes": (
        "nodes",
        "Find out what is wrong",
        "ask every node of a cluster: which differ, and what that breaks",
    ),
    "prove": (
        "prove",
        "Find out what is wrong",
        "try it: imports, arithmetic on each GPU, kernels, collectives",
    ),
    "plan": (
        "plan",
        "Decide what to run",
        "check whether a training run fits in memory before it starts",
    ),
    "lock": (
        "lock",
        "Decide what to run",
        "choose versions that work together on given hardware",
    ),
    "fix": (
        "fix",
        "Decide what to run",
        "find the smallest change that cures an environment, or apply it",
    ),
    "bake": ("bake", "Run it", "judge a container image at build time for its target machines"),
    "entrypoint": ("entrypoint", "Run it", "check at container start, then become the command"),
    "run": ("run", "Run it", "check, start a command, watch it, and say why it failed"),
    "watch": ("watch", "Run it", "watch the memory of a run and predict when it meets its limit"),
    "matrix": ("matrix", "Look behind it", "inspect, validate, compare and update what is known"),
}

INTERNAL_FAULT = 4
INTERRUPTED = 130


def main() -> NoReturn:
    """Run the process's arguments and end the process.

    Every write was flushed, so it ends without the interpreter's own teardown: that costs 2 to 4
    ms, turns a reader that went away into exit code 120, and waits for threads of a probe that
    hangs.
    """
    # Nothing that is built here is garbage before the end, so looking for it is in vain: 3 ms of
    # 60.
    gc.set_threshold(100_000)
    _occupy_closed_descriptors()
    _prefer_own_modules()
    if sys.argv[1:2] == ["entrypoint"] and not {"--help", "-h"}.intersection(sys.argv[2:3]):
        _hand_off(sys.argv[2:])
    code = run(sys.argv[1:])
    os._exit(code)


def _prefer_own_modules() -> None:
    """Have what is imported from here on come from the standard library and from where envdoctor
    lies, before PYTHONPATH, the user's site and the working directory: a stray json.py is what we
    are to find, not to run.
    """
    import envdoctor

    envdoctor.search_path = list(sys.path)
    library = os.path.dirname(os.__file__)
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = [path for path in sys.path if path.startswith(library) and "-packages" not in path]
    places.append(own)
    sys.path[:] = places + [path for path in sys.path if path not in places]


def _hand_off(arguments: List[str]) -> NoReturn:
    """Check and become another program; a fault of ours, even a broken installation, must not be
    why that program does not run.
    """
    try:
        from ..entrypoint.handoff import hand_off

        hand_off(arguments)
    except Exception as error:  # noqa: BLE001 - see above
        end = arguments.index("--") if "--" in arguments else len(arguments)
        own, command = " ".join(arguments[:end]), arguments[end + 1 :]
        _say_plainly(f"envdoctor: no verdict: {_words_of(error)}")
        enforced = "enforce" in own or os.environ.get("ENVDOCTOR_POLICY") == "enforce"
        if command and not (enforced and "--strict" in own):
            import signal

            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
        os._exit(69)


def _words_of(error: Exception) -> str:
    """Return what an exception says, without secrets; its type alone where that cannot be told."""
    try:
        from ..model.redaction import redact

        return redact(f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - a broken installation is what failed
        return type(error).__name__


def _say_plainly(message: str) -> None:
    try:
        os.write(2, f"{message[:300]}\n".encode("utf-8", "backslashreplace"))
    except OSError:  # closed or full
        return


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit code; every error is one line on standard error."""
    from ..errors import EnvdoctorError

    try:
        return _run(list(arguments))
    except EnvdoctorError as error:
        from ..model.redaction import redact

        message = redact(str(error))
        _say_error(message)
        return _failed(arguments, message, error.exit_code)
    except KeyboardInterrupt:
        _say_error("interrupted")
        return INTERRUPTED
    except MemoryError:
        _say_error(
            "out of memory: this needs about 100 MiB, more than the limit of this process "
            "(ulimit -v) or of its container"
        )
        return INTERNAL_FAULT
    # The last resort: users get a line, ENVDOCTOR_DEBUG=1 the traceback.
    except Exception as error:  # noqa: BLE001
        return _failed(arguments, "a fault of envdoctor itself", _internal_fault(error))


def _end_in_order() -> None:
    """Let the first signal that asks for an end raise, so that what was started is ended; further
    ones change nothing about that, nor does one that was ignored from the start (nohup).
    """
    import signal

    def interrupt(_number: int, _frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in asking if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, interrupt)


def _failed(arguments: Sequence[str], message: str, code: int) -> int:
    """Return the exit code where there is no verdict; under --exit-style it may not read as one."""
    words = [*arguments, ""]
    style = next(
        (
            following if word == "--exit-style" else word[13:]
            for word, following in zip(words, words[1:])
            if word[:12] == "--exit-style"
        ),
        "",
    )
    if not style:
        return code
    from ..report.monitoring import STYLES, status_of_failure
    from .output import write

    return write(*status_of_failure(message, style)) if style in STYLES else code


def _run(arguments: List[str]) -> int:
    from .output import write

    name = arguments[0] if arguments else ""
    if name in ("--version", "-V") and len(arguments) == 1:
        from .. import __version__

        return write(f"envdoctor {__version__}\n", 0)
    if name in ("--help", "-h", "help") and len(arguments) == 1:
        return write(_help(), 0)
    if name == "help":
        return _run([*arguments[1:], "--help"])
    if name not in COMMANDS:
        _refuse(name)
    from ..mounts import mounts_elsewhere
    from .command import HelpWanted, parse
    from .output import PROGRESS, write_file

    command: Command = __import__(
        f"{__package__}.{COMMANDS[name][0]}", fromlist=["COMMAND"]
    ).COMMAND
    try:
        options = parse(name, COMMANDS[name][2], command, arguments[1:])
    except HelpWanted as wanted:
        return write(wanted.text, 0)
    try:
        PROGRESS.start("" if options.quiet else command.doing)
        if mounts_elsewhere():
            _pass_over_silent_updates()
        if command.has_children:
            _end_in_order()
        text, code = command.execute(options)
    finally:
        PROGRESS.stop()
    file = getattr(options, "output_file", None)
    if file is None or file == "-":
        return write(text, code)
    write_file(file, text)
    return code


def _pass_over_silent_updates() -> None:
    from ..sources import pass_over_silent_updates
    from .output import write_error

    note = pass_over_silent_updates()
    if note:
        write_error(f"envdoctor: note: {note}")


def _refuse(name: str) -> NoReturn:
    from ..errors import InputError, suggest

    choices = ", ".join(COMMANDS)
    if not name:
        raise InputError(f"expected a command: {choices}; 'envdoctor --help' says more")
    kind = "option" if name.startswith("-") else "command"
    raise InputError(
        f"no such {kind}: {name}{suggest(name, [*COMMANDS, '--help', '--version'])}; the commands "
        f"are {choices}"
    )


_WIDEST_HELP = 80
_PURPOSE = (
    "Checks environments for LLM training and inference: what is wrong, why, and what to do about "
    "it."
)
_MORE_HELP = (
    "'envdoctor help COMMAND' shows the options of a command, 'envdoctor --version' the version."
)
_EXIT_CODES = (
    ("0", "nothing found at or above --fail-on (default: error)"),
    (
        "1",
        (
            "findings; a plan that does not fit; a log that shows a failure; a lock that uv "
            "refuses to close; a change that was rolled back"
        ),
    ),
    ("2", "wrong usage, or input that cannot be read"),
    ("3", "no resolution: nothing meets the request"),
    ("4", "a fault in envdoctor itself, or a search that was given up"),
    ("130", "interrupted"),
)
_OTHER_CODES = (
    "run and watch exit as their command does; entrypoint becomes its command, or exits with 64, "
    "69, 78, 126 or 127."
)


def _help() -> str:
    from ..report.text import wrap
    from .output import text_width

    width = min(_WIDEST_HELP, text_width())
    lines = ["usage: envdoctor COMMAND [OPTION ...]", "", *wrap(_PURPOSE, width)]
    group = ""
    for name, (_, heading, summary) in COMMANDS.items():
        if heading != group:
            group = heading
            lines += ["", f"{group}:"]
        lines += wrap(summary, width, f"  {name:<10} ", " " * 13)
    lines += ["", *wrap(_MORE_HELP, width), "", "Exit codes:"]
    for code, meaning in _EXIT_CODES:
        lines += wrap(meaning, width, f"  {code:<4} ", " " * 7)
    lines += wrap(_OTHER_CODES, width)
    return "\n".join(lines) + "\n"


def _internal_fault(error: Exception) -> int:
    if os.environ.get("ENVDOCTOR_DEBUG"):
        import traceback

        from .output import write_error

        write_error(traceback.format_exc().rstrip("\n"))
        return INTERNAL_FAULT
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = (
        f" in {os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}"
        if place is not None
        else ""
    )
    _say_error(
        f"this is a fault of envdoctor itself: {_words_of(error)[:200]}{where}. "
        "Please report it with what ENVDOCTOR_DEBUG=1 shows (CONTRIBUTING.md, 'Reporting a fault')"
    )
    return INTERNAL_FAULT


def _say_error(message: str) -> None:
    from .output import write_error

    write_error(f"envdoctor: error: {message}")


def _occupy_closed_descriptors() -> None:
    """Open /dev/null where descriptor 0, 1 or 2 is closed, so that no file that is opened later is
    taken for one of them.
    """
    if sys.stdin is not None and sys.stdout is not None and sys.stderr is not None:
        return
    try:
        while os.open(os.devnull, os.O_RDWR) < 3:
            continue
    except OSError:  # no /dev: nothing is gained or lost
        return
