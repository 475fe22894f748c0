"""``envdoctor matrix``: look at what is known, check it, compare it, update it."""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..errors import InputError, suggest
from .command import Command
from .output import view
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..matrix.loader import Matrix

__all__ = ["COMMAND", "MATRIX_SCHEMA_VERSION"]

MATRIX_SCHEMA_VERSION = 1
#: Names the address or file of 'matrix update' without --from.
ADDRESS_VARIABLE = "ENVDOCTOR_MATRIX_ADDRESS"

Answer = Dict[str, Any]

_FORMATS = {**TEXT_FORMATS, "json": "for programs (schemas/matrix.schema.json)"}


class _Action(NamedTuple):
    """One action: its line for --help, its options, and what it does; ``execute`` returns the
    answer and the exit code.
    """

    summary: str
    configure: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], Tuple[Answer, int]]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor matrix ACTION [OPTION ...]"
    parser.epilog = "'envdoctor help matrix ACTION' shows the options of an action."
    parser.add_argument("--help", "-h", action="help", help="show this help")
    actions = parser.add_subparsers(
        title="actions",
        prog="envdoctor matrix",
        description="",
        dest="action",
        metavar="ACTION",
        required=True,
    )
    for name, action in _ACTIONS.items():
        made = actions.add_parser(
            name,
            help=action.summary,
            description=f"{action.summary[0].upper()}{action.summary[1:]}.",
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
            add_help=False,
        )
        action.configure(made)
        add_format(made, _FORMATS, json_alias=True)
        add_options(made, "output")
        add_general(made)


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    answer, code = _ACTIONS[options.action].execute(options)
    if options.format == "json":
        import json

        # Dates of TOML have no JSON form: they are written as ISO 8601.
        return json.dumps(
            {"schema_version": MATRIX_SCHEMA_VERSION, **answer}, indent=1, default=str
        ) + "\n", code
    from ..report.console import draw
    from ..report.matrix_text import lay_out_answer

    return draw(lay_out_answer(answer), view(options)), code


def _load(options: argparse.Namespace) -> Matrix:
    from ..matrix.loader import load_matrix

    return load_matrix(options.matrix)


# --------------------------------------------------------------------------------------------------
# show, list


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="NAME",
        nargs="+",
        help="vllm==0.8.5, vllm, 'vllm>=0.8,<0.9', H20, 10de:2329, sm_90, Hopper, driver 550, cuda "
        "12.8, a profile, or the id of a row",
    )
    add_options(parser, "matrix")


def _show(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.lookup import NotKnown, find

    try:
        return find(_load(options), " ".join(options.what)), 0
    except NotKnown as error:
        raise InputError(f"{error}{suggest(' '.join(options.what), error.known)}") from error


def _configure_list(parser: argparse.ArgumentParser) -> None:
    from ..matrix.authoring.listing import TOPICS

    topics = "; ".join(f"{name}: {summary}" for name, summary in TOPICS.items())
    parser.add_argument(
        "topic",
        metavar="TOPIC",
        nargs="?",
        choices=tuple(TOPICS),
        help=f"{topics}. Without one: how much there is of each",
    )
    add_options(parser, "matrix")


def _list(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.listing import listing

    return listing(_load(options), options.topic), 0


# --------------------------------------------------------------------------------------------------
# coverage, validate, lint


def _configure_coverage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="PACKAGE", nargs="*", help="only these (default: all)")
    add_options(parser, "matrix")


def _coverage(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.coverage import measure
    from ..model.versions import canonicalize_name

    matrix = _load(options)
    listing = matrix.index_listing()
    if listing is None:
        raise InputError(
            "this matrix carries no listing of the package index; a checkout has it "
            "(matrices/index.json, made by scripts/refresh_matrix)"
        )
    names = [canonicalize_name(name) for name in options.names]
    known = {*matrix.package_names, *listing.get("packages", ())}
    for name in names:
        if name not in known:
            raise InputError(
                f"{name}: neither in the matrix nor on its listing{suggest(name, known)}"
            )
    answer = measure(matrix, listing, names)
    return answer, 1 if answer["missing"] else 0


def _configure_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        help="a matrices folder or a site's own (default: the matrices/ of this checkout)",
    )


def _validate(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.validation import validate

    answer = validate(_given_folder(options.folder))
    return answer, 2 if answer["faults"] else 0


def _given_folder(folder: Optional[str]) -> str:
    if folder is not None:
        if not os.path.isdir(folder):
            raise InputError(
                f"{folder}: expected a folder, found "
                f"{'a file' if os.path.exists(folder) else 'nothing'}"
            )
        return folder
    from ..matrix.loader import builtin_folder

    folder_of_wheel = builtin_folder()
    if folder_of_wheel is None:
        raise InputError(
            "an installed envdoctor has no matrices/ folder, and its compiled form was checked "
            "when it was built; name a folder"
        )
    return folder_of_wheel


def _configure_lint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="DIR|ROW",
        nargs="*",
        help="a matrices folder or a site's own (default: the matrices/ of this checkout), and ids "
        "of rows: only what concerns these",
    )


def _linted_matrix(folder: str) -> Tuple[Matrix, str]:
    """Return the matrix that has the rows of a folder ("": those of this checkout), and how the
    origin of those begins that are to be judged.
    """
    from ..matrix.loader import load_builtin, load_folder, load_matrix

    if not folder:
        return load_builtin(), ""
    if os.path.exists(os.path.join(folder, "drivers.toml")):  # a whole matrix of its own
        return load_folder(folder), ""
    # A site's rows are judged by our tables and packages.
    return load_matrix([folder]), os.path.join(folder, "")


def _lint(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.lint import lint

    names = list(options.what)
    folder = ""
    if names and (os.sep in names[0] or os.path.isdir(names[0])):
        folder = _given_folder(names.pop(0))
    matrix, start = _linted_matrix(folder)
    written = {
        row.id: row
        for row in matrix.rows()
        if row.origin != "derived" and row.origin.startswith(start)
    }
    for name in names:
        if name not in written:
            raise InputError(
                f"{name}: neither a folder nor the id of a written row{suggest(name, written)}"
            )
    rows = [written[name] for name in names] or list(written.values())
    chosen = {(row.id, row.origin) for row in rows}
    findings = lint(
        matrix,
        time.strftime("%Y-%m-%d"),
        (lambda row: (row.id, row.origin) in chosen) if names or start else None,
    )
    answer: Answer = {
        "kind": "lint",
        "rows": len(rows),
        "findings": [finding._asdict() for finding in findings],
    }
    return answer, 1 if any(finding.level == "fault" for finding in findings) else 0


# --------------------------------------------------------------------------------------------------
# diff, update


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    kinds = "a matrices folder, a .tar.gz or .zip of one, 'built-in', 'current' or 'previous'"
    parser.add_argument("old", metavar="OLD", help=kinds)
    parser.add_argument("new", metavar="NEW", help="the same")


def _diff(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.diff import compare

    with ExitStack() as stack:
        old, new = _named_matrix(options.old, stack), _named_matrix(options.new, stack)
        answer = compare(old, new, options.old, options.new)
    return answer, 1 if answer["changes"] else 0


def _named_matrix(name: str, stack: ExitStack) -> Matrix:
    from ..matrix import place
    from ..matrix.loader import load_builtin, load_folder, load_generation, load_matrix

    if os.path.isdir(name):
        if not os.path.exists(os.path.join(name, "drivers.toml")):
            raise InputError(
                f"{name}: expected a whole matrices folder, found no drivers.toml in it"
            )
        return load_folder(name)
    if os.path.exists(name):
        from ..matrix.update.installation import open_archive

        return stack.enter_context(open_archive(name))
    if name == "built-in":
        return load_builtin()
    if name == "current":
        return load_matrix()
    if name == "previous":
        from ..matrix.update.installation import previous

        generation = place.current()
        if generation is None:
            raise InputError("previous: no update is installed, so there is none before it")
        before = previous(generation)
        loaded = load_generation(before) if before is not None else load_builtin()
        return loaded or load_builtin()
    raise InputError(
        f"{name}: expected a folder, an archive, 'built-in', 'current' or 'previous', found "
        "nothing of that name"
    )


def _configure_update(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--from",
        dest="source",
        metavar="URL|FILE",
        help="https address or file: a .tar.gz or .zip of a matrices folder (default: "
        f"${ADDRESS_VARIABLE})",
    )
    group.add_argument(
        "--rollback", action="store_true", help="go back to the matrix before the last update"
    )
    parser.add_argument(
        "--sha256",
        metavar="HEX",
        help="digest of the archive (default: what URL.sha256 or FILE.sha256 says)",
    )
    parser.add_argument(
        "--signers",
        metavar="FILE",
        help="install only what one of OpenSSH's allowed signers in this file signed: URL.sig or "
        "FILE.sig, of 'ssh-keygen -Y sign -n envdoctor-matrix'",
    )


def _update(options: argparse.Namespace) -> Tuple[Answer, int]:
    from ..matrix.authoring.diff import compare
    from ..matrix.update.installation import rollback, update

    for option, value in (("--sha256", options.sha256), ("--signers", options.signers)):
        if options.rollback and value is not None:
            raise InputError(f"{option} goes with --from")
    if options.rollback:
        done = rollback()
    else:
        done = update(_update_source(options), options.sha256, signers=options.signers)
    changes = compare(done.before, done.now, "before", "now")["changes"] if done.changed else []
    note = done.note
    if os.environ.get("ENVDOCTOR_MATRIX"):
        note = f"{note}; " * bool(note) + "ENVDOCTOR_MATRIX adds a site's rows to it"
    answer = {
        "kind": "update",
        "changed": done.changed,
        "message": done.message,
        "date": done.now.date,
        "origin": done.now.origin,
        "previous_date": done.before.date,
        "previous_origin": done.before.origin,
        "rows": _totals(changes, lambda table: table == "rows"),
        "releases": _totals(changes, lambda table: table in ("releases", "packages")),
        "note": note,
    }
    return answer, 0


def _update_source(options: argparse.Namespace) -> str:
    """Return where a newer matrix comes from: this envdoctor has no address of its own, whoever
    publishes one sets it.
    """
    source: str = options.source or os.environ.get(ADDRESS_VARIABLE, "")
    if not source:
        raise InputError(
            "matrix update: expected --from URL|FILE, or the address of whoever publishes the "
            f"matrix in ${ADDRESS_VARIABLE}; or --rollback"
        )
    return source


def _totals(changes: List[Mapping[str, Any]], selects: Callable[[str], bool]) -> str:
    counts = {
        word: sum(selects(change["table"]) and change["change"] == word for change in changes)
        for word in ("added", "removed", "changed")
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no change"


_ACTIONS: Mapping[str, _Action] = {
    "show": _Action(
        "show what is known about a release, package, GPU, driver, CUDA version or row",
        _configure_show,
        _show,
    ),
    "list": _Action(
        "list packages, rows, GPUs, drivers, toolkits, profiles, models or conda names",
        _configure_list,
        _list,
    ),
    "coverage": _Action(
        "compare the matrix with the listing of the package index; exits with 1 where "
        "something is missing",
        _configure_coverage,
        _coverage,
    ),
    "validate": _Action(
        "check the files of a folder; lists all faults and exits with 2",
        _configure_folder,
        _validate,
    ),
    "lint": _Action(
        "find rows that contradict releases, other rows or themselves; exits with 1 for faults",
        _configure_lint,
        _lint,
    ),
    "diff": _Action("compare two matrices; exits with 1 where they differ", _configure_diff, _diff),
    "update": _Action(
        "install a newer matrix, or go back; online only for an https address",
        _configure_update,
        _update,
    ),
}

COMMAND = Command(_configure, _execute, doing="reading the matrix")
