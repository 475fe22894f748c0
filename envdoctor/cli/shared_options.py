"""Options that several commands have: each is worded once, and means the same everywhere.

``-o`` is always a file or folder, ``--format`` always the form of what is printed, and what takes
several words takes all that follow.
"""

from __future__ import annotations

import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

    from ..sources import Sources

__all__ = [
    "TEXT_FORMATS",
    "add_format",
    "add_general",
    "add_options",
    "add_sources",
    "sources_of",
    "split_codes",
]

#: The formats of a text for people, and what each is.
TEXT_FORMATS: Mapping[str, str] = {
    "text": "for people (default), in colour on a terminal",
    "plain": "the same without colour",
    "markdown": "to be pasted into an issue",
    "html": "a page that needs nothing from elsewhere",
}

_MANY: Dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
_EACH: Dict[str, Any] = {"action": "append", "default": []}

#: Name -> option strings and what argparse is told.
_OPTIONS: Mapping[str, Tuple[Tuple[str, ...], Dict[str, Any]]] = {
    "facts": (
        ("--facts", "--target"),
        {
            "metavar": "FILE",
            **_MANY,
            "help": "facts that 'envdoctor probe -o FILE' wrote; several files are several "
            "machines",
        },
    ),
    "report": (
        ("--report",),
        {
            "metavar": "FILE",
            "help": "a pasted report: collect_env, pip list, nvidia-smi ... ('-' reads standard "
            "input)",
        },
    ),
    "requirements": (
        ("--requirements",),
        {"metavar": "FILE", "help": "what this requirements file or lock would install"},
    ),
    "lock": (
        ("--lock",),
        {"metavar": "DIR", "help": "the folder that 'envdoctor lock -o DIR' wrote"},
    ),
    "assume": (
        ("--assume",),
        {
            "metavar": "KEY=VALUE",
            **_MANY,
            "help": "state a fact: nvidia-driver=535.129.03 gpu=H20:8 torch==2.6.0",
        },
    ),
    "python": (
        ("--python",),
        {"metavar": "PATH", "help": "the environment of this interpreter or folder"},
    ),
    "python-version": (("--python-version",), {"metavar": "X.Y", "help": "this version of Python"}),
    "root": (("--root",), {"metavar": "DIR", "help": "an unpacked image or a mounted root"}),
    "deep": (
        ("--deep",),
        {
            "action": "store_true",
            "help": "also read every installed file, to find damage and undefined symbols",
        },
    ),
    "plan": (
        ("--plan",),
        {
            "metavar": "CONFIG",
            "nargs": "+",
            "help": "also judge the memory of this run: its launch script or configuration files",
        },
    ),
    "framework": (
        ("--framework",),
        {
            "metavar": "NAME[==V]",
            "help": "the training framework, where the run does not say: verl==0.4.1",
        },
    ),
    "allow-index": (
        ("--allow-index",),
        {
            "metavar": "NAME",
            **_EACH,
            "help": "also use builds from this index: pytorch (+cu126), github (flash-attn's "
            "wheels)",
        },
    ),
    "since": (
        ("--since", "--baseline"),
        {
            "metavar": "FILE",
            "help": "also say what changed since this file was written by 'probe -o' or 'nodes -o'",
        },
    ),
    "matrix": (
        ("--matrix",),
        {
            "metavar": "DIR",
            **_EACH,
            "help": "add a site's own rows and signatures (also $ENVDOCTOR_MATRIX)",
        },
    ),
    "output": (
        ("--output", "-o"),
        {"metavar": "FILE", "dest": "output_file", "help": "write the output to this file"},
    ),
}


def add_options(group: argparse._ActionsContainer, *names: str, **helps: str) -> None:
    """Add shared options by name; ``helps`` rewords one where a command means more by it."""
    for name in names:
        strings, settings = _OPTIONS[name]
        settings = {**settings, "help": helps.get(name, settings["help"])}
        group.add_argument(*strings, **settings)


def add_sources(parser: argparse.ArgumentParser, **helps: str) -> None:
    """Add the options that say where facts come from; ``helps`` as in :func:`add_options`."""
    group = parser.add_argument_group("what is judged (default: this machine, this environment)")
    add_options(
        group,
        "python",
        "facts",
        "report",
        "requirements",
        "root",
        "lock",
        "assume",
        "python-version",
        "deep",
        **{
            "lock": "compare with the lock in this folder, which 'envdoctor lock -o DIR' wrote",
            **helps,
        },
    )


def add_format(
    group: argparse._ActionsContainer, formats: Mapping[str, str], json_alias: bool = False
) -> None:
    """Add ``--format`` with these formats and what each is.

    ``console``, an older name of ``text``, is still taken, and ``--json`` where it was an option.
    """
    words = "; ".join(f"{name}: {summary}" for name, summary in formats.items())
    group.add_argument(
        "--format",
        metavar="FORMAT",
        type=lambda text: "text" if text == "console" else text,
        choices=tuple(formats),
        default="text",
        help=words,
    )
    if json_alias:
        group.add_argument(
            "--json", dest="format", action="store_const", const="json", help=argparse.SUPPRESS
        )


def add_general(parser: argparse.ArgumentParser, verbose: Optional[str] = None) -> None:
    """Add the options of every command; ``verbose`` says what ``-v`` shows, where there is more."""
    group = parser.add_argument_group("other options")
    group.add_argument("--help", "-h", action="help", help="show this help")
    if verbose is not None:
        group.add_argument("--verbose", "-v", action="store_true", help=verbose)
    group.add_argument(
        "--quiet", "-q", action="store_true", help="print the verdict only, and no progress"
    )
    group.add_argument(
        "--color",
        metavar="WHEN",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto (default: on a terminal; see also $NO_COLOR and $FORCE_COLOR), always, never",
    )
    group.add_argument(
        "--no-color", dest="color", action="store_const", const="never", help=argparse.SUPPRESS
    )


def sources_of(options: argparse.Namespace) -> Sources:
    """Return what ``add_sources`` parsed."""
    from ..sources import Sources

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


def split_codes(values: Optional[Sequence[str]]) -> Sequence[str]:
    """Return codes given as several words or with commas between them."""
    return [code for value in values or () for code in value.split(",") if code]
