"""``envdoctor explain``."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple, Union

from ..app import suggest
from ..errors import InputError
from ..report.layout import Block, heading, paragraph
from .command import Command
from .output import view

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..memory.findings import PlanRule
    from ..model.row import Row
    from ..rules import Rule

__all__ = ["COMMAND"]

_FEW_ROWS = 20

_EFFECTS = {
    "blocks": "will fail",
    "degrades": "works, but worse than it could",
    "wrong-results": "runs and gives wrong results",
    "note": "worth knowing",
}
_TRUSTS = {
    "established": "a vendor or maintainer says so, or it was measured",
    "reported": "users report it; nobody with authority has confirmed it",
}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="CODE|ROW-ID", help="a code (ED304), a rule's name, or the id of a row of the matrix")
    parser.add_argument("--matrix", metavar="DIR", action="append", default=[], help="add a site's own rows (also $ENVDOCTOR_MATRIX)")
    parser.add_argument("--no-color", action="store_true", help="no colour (also $NO_COLOR)")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..matrix.loader import load_matrix
    from ..memory.registry import RULES as PLAN_RULES
    from ..report.console import draw
    from ..rules import RULES as FACT_RULES

    listed: List[Union[Rule, PlanRule]] = [*FACT_RULES, *PLAN_RULES]
    matrix = load_matrix(options.matrix)
    wanted = options.what.strip()
    rules = [rule for rule in listed if wanted.upper() == rule.code or wanted.lower() == rule.name]
    row = matrix.row(wanted) or matrix.row(wanted.lower())
    coded = [entry for entry in matrix.rows() if entry.code == wanted.upper()]
    if row is not None:
        blocks = _row(row)
    elif rules:
        blocks = [block for rule in rules for block in _rule(rule)] + _listed(coded)
    elif coded:
        blocks = [heading(f"{coded[0].code}: known combinations"), Block(""), *_listed(coded)]
    else:
        known = [*(name for rule in listed for name in (rule.code, rule.name)), *_codes_and_ids(matrix)]
        raise InputError(f"{wanted}: no such code, rule or row{suggest(wanted, known)}")
    return draw(blocks, view(False, options.no_color)), 0


def _codes_and_ids(matrix: Matrix) -> List[str]:
    return [name for row in matrix.rows() for name in (row.code, row.id)]


def _rule(rule: Union[Rule, PlanRule]) -> List[Block]:
    blocks = [heading(f"{rule.code} {rule.name}: {rule.summary}")]
    for part in re.split(r"\n\s*\n", _dedent(rule.function.__doc__ or "")):
        blocks.append(Block(""))
        title, _, body = part.partition("\n")
        if re.fullmatch(r"[A-Z][\w ]*:?", title.strip()) and body:
            blocks += [heading(title.strip().rstrip(":")), *_prose(body, 2)]
        else:
            blocks += _prose(part, 0)
    return [*blocks, Block("")]


def _prose(text: str, indent: int) -> List[Block]:
    """Join lines to paragraphs; a list item or an address begins a new one."""
    paragraphs: List[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if paragraphs and not re.match(r"([-*] |[0-9]+\. |https?://)", stripped):
            paragraphs[-1] += f" {stripped}"
        elif stripped:
            paragraphs.append(stripped)
    return [paragraph(entry, indent) for entry in paragraphs]


def _dedent(text: str) -> str:
    first, _, rest = text.partition("\n")
    lines = rest.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in lines)]).strip()


def _listed(rows: Sequence[Row]) -> List[Block]:
    """Name the rows; those made for each distribution ("driver-for-cuda-13:torch") stand once, with the distributions."""
    if not rows:
        return []
    grouped: Dict[str, List[Row]] = {}
    for row in sorted(rows, key=lambda row: row.id):
        grouped.setdefault(row.id.partition(":")[0], []).append(row)
    blocks = [heading("Rows of the matrix")]
    for template, group in list(grouped.items())[:_FEW_ROWS]:
        names = [row.id.partition(":")[2] for row in group]
        blocks.append(paragraph(group[0].title + (f" ({', '.join(names)})" if names[0] else ""), 2, template + (":*" if names[0] else "")))
    if len(grouped) > _FEW_ROWS:
        blocks.append(paragraph(f"and {len(grouped) - _FEW_ROWS} more", 2))
    return blocks


def _row(row: Row) -> List[Block]:
    blocks = [heading(row.title), Block("")]
    blocks.append(paragraph(f"{row.id} ({row.code}, about {row.component}: {row.kind})", 0, "row"))
    blocks.append(paragraph(_EFFECTS.get(row.effect, row.effect), 0, "effect"))
    blocks.append(paragraph(_TRUSTS.get(row.trust, row.trust), 0, "trust"))
    blocks.append(paragraph("all of these hold", 0, "when"))
    blocks += [paragraph(f"- {term.scope}: {term}", 2) for term in row.terms]
    for setting in row.mitigations:
        blocks.append(paragraph(f"{setting.component}={setting.value} is set", 0, "unless"))
    for label, text in (("symptom", row.symptom), ("fix", row.fix), ("pins", " ".join(row.pins)), ("overrides", ", ".join(row.overrides))):
        if text:
            blocks.append(paragraph(text, 0, label))
    for source in row.sources:
        blocks.append(paragraph(source.address + (f' "{source.quote}"' if source.quote else ""), 0, "source"))
    blocks.append(paragraph(f"{row.established_by or 'not named'}, {row.date}", 0, "established by"))
    return blocks


COMMAND = Command(_configure, _execute)
