"""What a command is, and how its options are parsed."""

from __future__ import annotations

import argparse

from ..errors import InputError
from ..model.record import NamedTuple
from .output import text_width

__all__ = ["Command", "HelpWanted", "parse", "put_first"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, NoReturn, Sequence, Tuple


class Command(NamedTuple):
    """One command: what it adds to its parser, and what it does.

    ``execute`` returns the text and the exit code.

    With ``takes_command``, what follows a ``--`` is somebody else's command line: it is left alone,
    as ``options.command_line``. ``doing`` is what a terminal says while the command is at work.
    ``has_children``: it starts what must not outlive it, so that TERM and HUP end it as INT does.
    """

    configure: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], Tuple[str, int]]
    takes_command: bool = False
    doing: str = ""
    has_children: bool = False


class HelpWanted(Exception):
    """``--help`` was given: no error, the text goes to standard output."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


# argparse asks gettext for every word, which reads the locale's folders: 2 ms, and a translation
# would depend on the machine.
argparse._ = str  # type: ignore[attr-defined]


class _Formatter(argparse.HelpFormatter):
    """Help of a known width: argparse's own asks shutil, at every option, which costs 4 ms.

    An option stands on one line: its names, then what it takes, once.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(text_width(), 80), max_help_position=26)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        (metavar,) = self._metavar_formatter(action, default_metavar)(1)
        many = action.nargs in ("+", "*")
        return f"{metavar} ..." if many else metavar

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return self._format_args(action, action.dest)
        names = ", ".join(sorted(action.option_strings, key=lambda name: name.startswith("--")))
        takes = action.nargs != 0
        return f"{names} {self._format_args(action, action.dest.upper())}" if takes else names


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self._explained(message)}; '{self.prog} --help' says more")

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._positionals.title, self._optionals.title = "arguments", "options"

    def format_usage(self) -> str:
        """Return one line: what has to be given; the options follow in the help."""
        return f"usage: {self.usage or self._usage()}\n"

    def format_help(self) -> str:
        """Return the help: usage, description, and the options in groups of their own."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return f"{self.format_usage()}\n{formatter.format_help()}"

    def _usage(self) -> str:
        words = [self.prog]
        for action in self._actions:
            if not action.option_strings:
                name = action.metavar or action.dest
                words.append(
                    {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(
                        str(action.nargs), str(name)
                    )
                )
        return " ".join([*words, "[OPTION ...]"])

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
            return f"{unknown} belongs after the action: {self.prog} ACTION {unknown}"
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
        add_help=False,
    )
    command.configure(parser)
    own = list(arguments)
    command_line: List[str] = []
    if command.takes_command and "--" in own:
        command_line = own[own.index("--") + 1 :]
        own = own[: own.index("--")]
    return parser.parse_args(own, argparse.Namespace(command_line=command_line))
