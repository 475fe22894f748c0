"""What a command is, and how its options are parsed."""

from __future__ import annotations

import argparse

from ..errors import InputError
from ..model.record import NamedTuple
from .output import text_width

__all__ = ["Command", "HelpWanted", "add_sources", "parse", "put_first", "sources_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, NoReturn, Optional, Sequence, Tuple

    from ..app import Sources


class Command(NamedTuple):
    """One command: what it adds to its parser, and what it does.

    ``execute`` returns the text and the exit code.

    With ``takes_command``, what follows a ``--`` is somebody else's command line: it is left alone,
    as ``options.command_line``.
    """

    configure: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], Tuple[str, int]]
    takes_command: bool = False


class HelpWanted(Exception):
    """``--help`` was given: no error, the text goes to standard output."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


# argparse asks gettext for every word, which reads the locale's folders: 2 ms, and a translation
# would depend on the machine.
argparse._ = str  # type: ignore[attr-defined]


class _Formatter(argparse.HelpFormatter):
    """Help of a known width: argparse's own asks shutil, at every option, which costs 4 ms."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=text_width() - 2)


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self._explained(message)}; '{self.prog} --help' says more")

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002 - argparse's signature
        raise HelpWanted(self.format_help())

    def _explained(self, message: str) -> str:
        required = message.partition("the following arguments are required: ")[2]
        if required and any(
            action.nargs == "+" and action.option_strings for action in self._actions
        ):
            return f"{message}{put_first(required)}"
        unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0]
        if not unknown:
            return message
        from ..errors import suggest

        if unknown.split("=")[0] in self._known_options():
            return f"{unknown} belongs behind the action: {self.prog} ACTION {unknown}"
        kind = "option" if unknown.startswith("-") else "argument"
        return f"no such {kind}: {unknown}{suggest(unknown.split('=')[0], self._known_options())}"

    def _known_options(self) -> List[str]:
        known = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                known += [
                    option
                    for parser in action.choices.values()
                    for option in parser._option_string_actions
                ]
        return known


def put_first(name: str) -> str:
    """Return the hint for a positional argument that is missing: argparse gives it to the option
    before it.
    """
    return f" (options such as --assume take all words that follow; put {name} before them)"


def parse(
    name: str, summary: str, command: Command, arguments: Sequence[str]
) -> argparse.Namespace:
    """Parse the options of one command; raises :class:`InputError` or :class:`HelpWanted`."""
    parser = _Parser(
        prog=f"envdoctor {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    own = list(arguments)
    command_line: List[str] = []
    if command.takes_command and "--" in own:
        command_line = own[own.index("--") + 1 :]
        own = own[: own.index("--")]
    return parser.parse_args(own, argparse.Namespace(command_line=command_line))


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where facts come from."""
    group = parser.add_argument_group("what is judged (default: this machine and this environment)")
    group.add_argument(
        "--facts",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="facts written by 'envdoctor probe --json'; several are nodes",
    )
    group.add_argument(
        "--report",
        metavar="FILE",
        help="a pasted report: collect_env, pip list, nvidia-smi ... ('-' is standard input)",
    )
    group.add_argument(
        "--requirements",
        metavar="FILE",
        help="judge what this requirements file or lock would install",
    )
    group.add_argument(
        "--lock", metavar="DIR", help="compare with what 'envdoctor lock -o DIR' wrote"
    )
    group.add_argument(
        "--assume",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="set one fact: nvidia-driver=535.129.03, gpu=H20:8",
    )
    group.add_argument("--python-version", metavar="X.Y", help="judge for this Python")
    group.add_argument("--python", metavar="PATH", help="judge the environment of this interpreter")
    group.add_argument("--root", metavar="DIR", help="judge an unpacked image or a mounted root")
    group.add_argument(
        "--deep",
        action="store_true",
        help="also read every installed file: damage, undefined symbols",
    )


def sources_of(options: argparse.Namespace) -> Sources:
    """Return what ``add_sources`` parsed."""
    from ..app import Sources

    return Sources(
        facts=options.facts,
        report=options.report,
        requirements=options.requirements,
        assume=options.assume,
        python_version=options.python_version,
        python=options.python,
        root=options.root,
        deep=options.deep,
        lock=options.lock,
    )


def split_codes(values: Optional[Sequence[str]]) -> List[str]:
    """Return codes given as several words or with commas between them."""
    return [code for value in values or () for code in value.split(",") if code]
