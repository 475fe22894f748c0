"""``envdoctor nodes``."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from itertools import chain

from ..errors import InputError
from ..file_replacement import open_growing
from .command import Command
from .engine_options import add_engines, named_engine, request_of
from .output import PROGRESS, view, write_error
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options, split_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterator, List, Mapping, Optional, TextIO, Tuple, TypeVar

    from ..model.node_answers import Answers, NodeAnswer
    from ..nodes.engines import NodeRequest

    T = TypeVar("T")

__all__ = ["COMMAND"]

_MOST_AT_ONCE = 1024


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor nodes [OPTION ...] | envdoctor nodes diff A B"
    parser.add_argument(
        "diff",
        metavar="diff A B",
        nargs="*",
        help="what changed between two files of answers: the same as --facts B --since A, except "
        "that the exit code is 1 if anything did",
    )
    group = parser.add_argument_group(
        "which nodes are asked (default: the job or cluster in which this runs)"
    )
    add_engines(group)
    group.add_argument(
        "--facts",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="what nodes answered before: files of -o, or of 'envdoctor probe -o' ('-' reads "
        "standard input)",
    )
    group = parser.add_argument_group("how they are asked")
    group.add_argument(
        "--python", metavar="PATH", default="", help="the interpreter on the nodes that is judged"
    )
    group.add_argument(
        "--deadline", metavar="S", type=float, default=30.0, help="seconds per node (default: 30)"
    )
    group.add_argument(
        "--at-once",
        metavar="N",
        type=int,
        default=128,
        help="how many nodes are asked at the same time (default: 128)",
    )
    group.add_argument(
        "--output",
        "-o",
        dest="answers",
        metavar="FILE",
        help="write the answers as they come, as JSON lines; with --resume nodes that answered are "
        "not asked again",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with the answers that are in the file of -o"
    )
    group = parser.add_argument_group("what is reported")
    group.add_argument(
        "--part",
        metavar="NAME=NODES",
        action="append",
        default=[],
        help="nodes that are compared only with each other: gpu=gpu[01-16]",
    )
    add_options(group, "since")
    add_format(
        group,
        {
            **TEXT_FORMATS,
            "json": "for programs (schemas/nodes.schema.json)",
            "prometheus": "metrics: node_exporter's textfile, OpenMetrics",
        },
    )
    group.add_argument(
        "--skip", metavar="CODE", nargs="+", action="extend", help="report everything but these"
    )
    add_options(group, "matrix")
    add_general(parser, "show every kind of node and every difference")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..app import Options, check_cluster
    from ..matrix.loader import load_matrix
    from ..model.node_answers import Answers
    from ..sources import read_snapshot

    _check(options)
    parts = _parts(options.part)
    matrix = load_matrix(options.matrix)
    answers = Answers()
    report = check_cluster(
        _answers(options, answers),
        answers.environments,
        matrix,
        Options((), split_codes(options.skip), (), "error"),
        parts=parts,
        since=None if options.since is None else read_snapshot(options.since),
    )
    code = report.exit_code
    if options.diff and report.since is not None:
        code = int(report.since.has_changes)
    if options.format == "prometheus":
        from ..report.prometheus import render_cluster

        return render_cluster(report), code
    if options.format == "json":
        from ..report.cluster_json import dump_cluster

        return dump_cluster(report), code
    from ..report.cluster_text import figures_of, lay_out_cluster
    from ..report.console import draw

    look = view(options)
    return draw(lay_out_cluster(report, look), look, lambda: figures_of(report)), code


def _check(options: argparse.Namespace) -> None:
    if options.diff:
        _take_diff(options)
    if not 1 <= options.deadline <= 3600:
        raise InputError(f"--deadline: expected 1 to 3600 seconds, found {options.deadline:g}")
    if not 1 <= options.at_once <= _MOST_AT_ONCE:
        raise InputError(f"--at-once: expected 1 to {_MOST_AT_ONCE}, found {options.at_once}")
    if options.resume and not options.answers:
        raise InputError("--resume: expected -o FILE with the answers to continue from")


def _take_diff(options: argparse.Namespace) -> None:
    """Take ``diff A B`` as what it is short for: B's answers, compared with A's."""
    action, *files = options.diff
    if action != "diff" or len(files) != 2:
        raise InputError(
            f"expected 'diff A B' with two files of answers, found {' '.join(options.diff)!r}"
        )
    if options.facts or options.since is not None:
        raise InputError("diff A B: says what is compared; leave --facts and --since out")
    options.since, options.facts = files[0], [files[1]]


def _parts(texts: List[str]) -> Mapping[str, List[str]]:
    from ..model.host_names import expand

    parts = {}
    for text in texts:
        name, equals, nodes = text.partition("=")
        if not equals or not name:
            raise InputError(f"--part: expected NAME=NODES such as gpu=gpu[01-16], found {text!r}")
        parts[name] = expand(nodes, f"--part {name}")
    return parts


def _answers(options: argparse.Namespace, answers: Answers) -> Iterator[NodeAnswer]:
    """Yield the answers that are in files, and those of the nodes that are asked now."""
    from ..sources import read_answers

    request = _request(options)
    for path in options.facts:
        yield from read_answers(path, answers)
    if request is None:
        return
    known: Dict[str, NodeAnswer] = {}
    if options.resume and os.path.exists(options.answers):
        known = {one.node: one for one in read_answers(options.answers, answers)}
    kept = [one for one in known.values() if one.host is not None]
    yield from _asked(options, request, answers, kept)


def _request(options: argparse.Namespace) -> Optional[NodeRequest]:
    """Return who is to be asked; None where the answers come from files alone."""
    from ..nodes.engines import engine_here

    engine = named_engine(options)
    if engine is None and options.facts:
        return None
    if engine is None:
        here = engine_here(os.environ)
        if here is None:
            raise InputError(
                "no nodes to ask: this is neither a Slurm job nor a pod, and $RAY_ADDRESS is not "
                "set; name the nodes with --ray, --slurm -p PARTITION, --kubectl, --mpi, --ssh or "
                "--facts"
            )
        engine = here, ""
    return request_of(engine, options)


def _asked(
    options: argparse.Namespace, request: NodeRequest, answers: Answers, kept: List[NodeAnswer]
) -> Iterator[NodeAnswer]:
    """Ask the nodes that are not among those kept; yield and write each answer as it comes."""
    from ..nodes.collection import collect
    from ..nodes.engines import jobs_of
    from ..nodes.payload import program_text

    asked = jobs_of(request)
    done = {one.node for one in kept}
    jobs = [job for job in asked.jobs if job.node not in done]
    program = program_text(request.python if request.engine != "ray" else None)
    with _Writer(options.answers, answers, kept) as writer:
        yield from kept
        said = collect(jobs, program, answers, deadline=options.deadline, at_once=options.at_once)
        for count, answer in enumerate(chain(asked.failed, said), 1):
            PROGRESS.say(f"{count} of {max(len(jobs), count)} nodes have answered")
            if answer.node not in done:
                yield writer.write(answer)
    if options.answers and not options.quiet:
        write_error(f"envdoctor: the answers are in {options.answers}")


class _Writer:
    """Writes answers to the file of -o, if there is one."""

    def __init__(self, path: Optional[str], answers: Answers, kept: List[NodeAnswer]) -> None:
        self._answers = answers
        self._written: Dict[str, bool] = {}
        self._path = path
        self._file: Optional[TextIO] = None
        if path is not None:
            lines = [line for one in kept for line in answers.lines_of(one, self._written)]
            self._file = self._guarded(lambda: open_growing(path, "".join(lines)))

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk, which write has told
                self._file.close()

    def write(self, answer: NodeAnswer) -> NodeAnswer:
        """Write the lines of an answer, and return it. Where the disk is full the nodes are judged
        all the same, and the rest is in no file.
        """
        file = self._file
        if file is not None:
            lines = "".join(self._answers.lines_of(answer, self._written))
            try:
                self._guarded(lambda: (file.write(lines), file.flush()))
            except InputError as error:
                self._file = None
                write_error(f"envdoctor: {error}; further answers are not saved")
                with suppress(OSError):
                    file.close()
        return answer

    def _guarded(self, step: Callable[[], T]) -> T:
        try:
            return step()
        except (OSError, ValueError) as error:
            raise InputError(
                f"-o {self._path}: cannot be written: {getattr(error, 'strerror', None) or error}"
            ) from error


COMMAND = Command(_configure, _execute, doing="asking the nodes", has_children=True)
