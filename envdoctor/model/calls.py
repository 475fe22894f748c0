"""Commands that remedies print, as values: the installer's and envdoctor's own.

Rules say what is to be done; ``rules.addressing`` says in which environment; ``str`` words it for
a shell, and :meth:`InstallerCall.words` for a process. Any other command is a text.
"""

from __future__ import annotations

from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple, Union

    Call = Union["InstallerCall", "OwnCall", str]

__all__ = ["InstallerCall", "OwnCall", "parse_call", "reinstall", "shell_word"]

_PIP = (("pip",), ("python", "-m", "pip"))
_SIGNS_OF_NAMES = "-_."


class InstallerCall(NamedTuple):
    """One run of an installer.

    action: "install", "uninstall", "show" or "check". packages: names or requirements. options: as
    pip and uv both have them. indexes: addresses beside the default index. variables: pairs of name
    and value that are set for it. python: the interpreter whose environment is meant. uv: how uv is
    called where it does the work; "" where pip does.
    """

    action: str
    packages: Tuple[str, ...] = ()
    options: Tuple[str, ...] = ()
    indexes: Tuple[str, ...] = ()
    variables: Tuple[Tuple[str, str], ...] = ()
    python: str = "python"
    uv: str = ""

    def words(self) -> Tuple[str, ...]:
        """Return the words of the command, without the variables."""
        return (*self._before(), *self.packages)

    def _before(self) -> Tuple[str, ...]:
        """Return the words in front of the packages."""
        if self.uv:
            words = [self.uv, "pip", self.action, "--python", self.python]
        else:
            words = [self.python, "-m", "pip", self.action]
            words += ["--yes"] if self.action == "uninstall" else []
        for index in self.indexes:
            words += ["--extra-index-url", index]
        words += ["--index-strategy", "unsafe-best-match"] if self.indexes and self.uv else []
        return (*words, *self.options)

    def shell_words(self) -> Tuple[str, ...]:
        """Return the words as a shell is given them: requirements are always quoted."""
        return (
            *(f"{name}={shell_word(value)}" for name, value in self.variables),
            *map(shell_word, self._before()),
            *(package if _is_name(package) else _quoted(package) for package in self.packages),
        )

    def __str__(self) -> str:
        return " ".join(self.shell_words())


class OwnCall(NamedTuple):
    """A command of envdoctor that judges or changes an environment; ``python`` is the interpreter
    of that environment where it has to be named.
    """

    name: str
    options: Tuple[str, ...] = ()
    python: Optional[str] = None

    def __str__(self) -> str:
        named = () if self.python is None else ("--python", self.python)
        return " ".join(map(shell_word, ("envdoctor", self.name, *named, *self.options)))


def reinstall(requirement: str, *options: str) -> InstallerCall:
    """Return the call that installs one distribution anew and nothing else."""
    return InstallerCall("install", (requirement,), (*options, "--force-reinstall", "--no-deps"))


def parse_call(text: str) -> Call:
    """Return a command that stands in a table as a value where it is pip's; any other as it is."""
    if "pip " not in text:
        return text
    from shlex import split

    try:
        words = tuple(split(text))
    except ValueError:  # a quotation that does not end
        return text
    for start in _PIP:
        if words[: len(start)] == start and len(words) > len(start):
            action, *rest = words[len(start) :]
            options = tuple(word for word in rest if word.startswith("-"))
            return InstallerCall(
                action, tuple(word for word in rest if word not in options), options
            )
    return text


def shell_word(text: str) -> str:
    """Return a word as a shell reads it back, quoted where it has to be."""
    from shlex import quote

    return quote(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _is_name(text: str) -> bool:
    """Tell whether this is the name of a distribution, without version, extra or marker."""
    return all(sign.isalnum() or sign in _SIGNS_OF_NAMES for sign in text)
