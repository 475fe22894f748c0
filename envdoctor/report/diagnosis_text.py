"""What a log tells, as text and as JSON: the root first, its consequences under it, and what would
decide where nothing is established.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List

from ..model.diagnosis import Diagnosis, Suspect, Trace, traces_tree
from ..model.log import LogLine
from ..model.sizes import size_text
from .headline import target_line
from .json_report import dump_finding
from .layout import Block, heading, verdict_block
from .text import clean, clip, fold
from .view import View

__all__ = ["DIAGNOSIS_FORMATS", "dump_diagnosis", "render_diagnosis"]

DIAGNOSIS_FORMATS = ("text", "plain", "json")
DIAGNOSIS_SCHEMA_VERSION = 1

_LABEL = 8
_FEW = 3
_LINE_WIDTH = 220
_LOOKED_FOR = (
    "texts of Ray, vLLM, SGLang, torch, NCCL, CUDA, the kernel, the loader, Slurm, "
    "containers, pip and uv."
)
_NOTHING_FOUND = (
    "A run that ends without one of them was mostly killed from outside: look at dmesg -T of the "
    "node, the scheduler's record, "
    "and the logs of the other ranks."
)
_BLANK = Block("")
_CERTAINTY = {"established": "established", "likely": "likely", "candidate": "not established"}


def render_diagnosis(diagnosis: Diagnosis, format_name: str, view: View) -> str:
    """Return the diagnosis in one of ``DIAGNOSIS_FORMATS``, with a final newline."""
    if format_name == "json":
        return json.dumps(dump_diagnosis(diagnosis), indent=2 if view.verbose else 1) + "\n"
    from .console import draw

    return draw(
        _lay_out(diagnosis, view),
        view._replace(color=view.color and format_name == "text"),
    )


def summary(diagnosis: Diagnosis, width: int = 80) -> str:
    """Return the verdict in one line of at most ``width`` columns."""
    if not diagnosis.traces:
        return "envdoctor: none of the known causes is in the log"
    first = diagnosis.traces[0]
    lead = {"established": "", "likely": "likely: ", "candidate": "cause not established: "}[
        first.certainty
    ]
    return clip(f"envdoctor: {lead}{fold(clean(first.finding.message)).rstrip('.')}", width)


def _lay_out(diagnosis: Diagnosis, view: View) -> List[Block]:
    verbose = view.verbose
    read = (
        f"{diagnosis.lines} lines ({size_text(diagnosis.size)}) of "
        f"{', '.join(clean(name) for name in diagnosis.sources)}"
    )
    verdict = verdict_block(summary(diagnosis, max(80, view.width, view.columns)), view)
    blocks = [verdict, _BLANK, Block(f"Read {read}.", hang=2)]
    lines = (
        dict.fromkeys(target_line(node) for node in diagnosis.nodes) if diagnosis.facts_from else ()
    )
    line = "; ".join(entry for entry in lines if entry)
    known = (
        f"Joined with {clean(diagnosis.facts_from)}: {line}."
        if line
        else "No facts about the environment; pass --report or --facts."
    )
    blocks.append(Block(known, hang=2))
    if not diagnosis.traces:
        blocks += [
            _BLANK,
            Block(f"Looked for {diagnosis.looked_for} {_LOOKED_FOR}"),
            Block(_NOTHING_FOUND),
        ]
    for trace, depth in traces_tree(diagnosis.traces):
        blocks += [] if depth else [_BLANK]
        blocks += _trace(trace, 2 * depth, verbose)
    if diagnosis.findings:
        blocks += [
            _BLANK,
            heading(
                "Also found in this environment or plan; the log does not say whether it took part:"
            ),
        ]
        for finding in diagnosis.findings:
            blocks.append(
                Block(
                    fold(clean(finding.message)),
                    f"{finding.code} {finding.severity}:",
                    finding.severity,
                    2,
                    4,
                )
            )
    return blocks


def _trace(trace: Trace, indent: int, verbose: bool) -> Iterator[Block]:
    finding = trace.finding
    consequence = finding.caused_by is not None and trace.role == "effect"
    word = "consequence" if consequence else _CERTAINTY[trace.certainty]
    yield Block(
        fold(clean(finding.message)), f"{finding.code} {word}:", finding.severity, indent, 2
    )
    inner = indent + 2
    if trace.meaning and not consequence:
        yield Block(fold(clean(trace.meaning)), indent=inner)
    shown = trace.lines if verbose else trace.lines[: 1 if consequence else _FEW]
    for line in shown:
        yield _labelled("line", _line(line), inner)
    if trace.times > len(trace.lines):
        last = trace.lines[-1] if trace.lines else None
        yield _labelled(
            "",
            f"{trace.times} times" + (f", the last at {_place(last)}" if last is not None else ""),
            inner,
        )
    others = [
        str(entry) if verbose else entry.source
        for entry in finding.evidence
        if not any(entry.source == _place(line) for line in trace.lines)
    ]
    if others:
        yield _labelled(
            "seen in", "; ".join(dict.fromkeys(others if verbose else others[:_FEW])), inner
        )
    if consequence and not verbose:
        return
    for remedy in finding.remedies:
        yield _labelled("fix", remedy.text.rstrip("."), inner)
        for command in remedy.commands:
            yield Block(clean(command), style="command", indent=inner + _LABEL + 2, verbatim=True)
    if trace.suspects:
        yield Block("What may stand behind it:", indent=inner)
        for suspect in trace.suspects:
            yield from _suspect(suspect, inner + 2, verbose)
    if trace.collect and (trace.certainty != "established" or verbose or trace.suspects):
        yield _labelled("collect", "; ".join(trace.collect), inner)
    for source in finding.sources if verbose else ():
        yield _labelled("source", source.address, inner)
    if verbose:
        yield _labelled("key", finding.key, inner)


def _suspect(suspect: Suspect, indent: int, verbose: bool) -> Iterator[Block]:
    decides = f"; decided by: {'; '.join(suspect.collect)}" if suspect.collect else ""
    yield Block(
        fold(clean(f"{suspect.text}{decides}.")),
        f"{suspect.confidence} confidence:",
        "label",
        indent,
        2,
    )
    for remedy in suspect.remedies if verbose else ():
        yield _labelled("fix", remedy.text.rstrip("."), indent + 2)


def _place(line: LogLine) -> str:
    return f"{line.source}:{line.number}"


def _line(line: LogLine) -> str:
    who = f"({line.process}) " if line.process else ""
    return clip(f"{_place(line)}: {who}{clean(line.text)}", _LINE_WIDTH)


def _labelled(label: str, text: str, indent: int) -> Block:
    style = {"fix": "fix", "line": "quote", "collect": "label"}.get(label, "dim")
    return Block(fold(clean(text)), label.ljust(_LABEL - 1), style, indent, _LABEL)


def dump_diagnosis(diagnosis: Diagnosis) -> Dict[str, Any]:
    """Return the diagnosis as a JSON object; texts are cleaned as in every other format."""
    from .. import __version__

    return {
        "schema_version": DIAGNOSIS_SCHEMA_VERSION,
        "tool": {"name": "envdoctor", "version": __version__, "matrix_date": diagnosis.matrix_date},
        "summary": {"line": summary(diagnosis), "exit_code": diagnosis.exit_code},
        "read": {
            "sources": [clean(name) for name in diagnosis.sources],
            "lines": diagnosis.lines,
            "bytes": diagnosis.size,
            "looked_for": diagnosis.looked_for,
            "facts_from": clean(diagnosis.facts_from),
        },
        "traces": [
            _dump_trace(trace, depth == 0) for trace, depth in traces_tree(diagnosis.traces)
        ],
        "findings": [dump_finding(finding) for finding in diagnosis.findings],
    }


def _dump_trace(trace: Trace, root: bool) -> Dict[str, Any]:
    return {
        **dump_finding(trace.finding),
        "root": root,
        "certainty": trace.certainty,
        "role": trace.role,
        "meaning": clean(trace.meaning),
        "times": trace.times,
        "lines": [
            {
                "source": clean(line.source),
                "number": line.number,
                "text": clean(line.text),
                "process": clean(line.process),
                "clock": None
                if line.clock is None
                else {"kind": line.clock.kind, "seconds": line.clock.seconds},
            }
            for line in trace.lines
        ],
        "suspects": [
            {
                "text": clean(suspect.text),
                "component": clean(suspect.component),
                "kind": suspect.kind,
                "confidence": suspect.confidence,
                "row": suspect.row,
                "remedies": [
                    {
                        "text": clean(remedy.text),
                        "commands": [clean(command) for command in remedy.commands],
                    }
                    for remedy in suspect.remedies
                ],
                "collect": [clean(step) for step in suspect.collect],
            }
            for suspect in trace.suspects
        ],
        "collect": [clean(step) for step in trace.collect],
    }
