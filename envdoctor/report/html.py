"""A page of HTML: one file that needs nothing from elsewhere, by day and night, on paper, without a
mouse and without a script.

The text is that of the other formats: its blocks become headings, paragraphs and entries that fold.
Tables, bars and drawings stand beside it. Where a table has more rows than a page should hold, the
script shows those that are in view; all of them are printed.
"""

from __future__ import annotations

import json
import pkgutil
from base64 import b64encode
from hashlib import sha256
from html import escape

from .figures import Bar, Box, Grid
from .text import clean, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, List, Optional, Sequence

    from ..model.report import Report
    from .blocks import Block
    from .figures import Cell, Drawing, Figure
    from .view import View

__all__ = ["draw", "render"]

_FEW_TOPOLOGIES = 4
_FEW_ROWS = 200  # that stand in the page itself
#: Entries that are not folded at first.
_OPEN = ("error", "warning", "fine")
_FOLDING = (*_OPEN, "advice")

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src '{style_hash}'; script-src '{script_hash}'; base-uri 'none'; form-action 'none'">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
<footer><p>envdoctor {version}</p></footer>
</main>
<script>{script}</script>
</body>
</html>
"""
_SEARCH = (
    '<div class="search" role="search" hidden><label for="search">Search</label>'
    '<input id="search" type="search" autocomplete="off"><output for="search" '
    'aria-live="polite"></output></div>'
)


def render(report: Report, view: View) -> str:
    """Return a report as a page."""
    from .findings_text import lay_out
    from .topology import topology_of

    named = len(report.nodes) > 1
    titles = [f"Topology of {facts.value('node.name', '?')}" for facts in report.nodes]
    boxes = [
        topology_of(facts, title if named else "Topology")
        for facts, title in zip(report.nodes, titles)
    ]
    figures = [box for box in boxes if box is not None][:_FEW_TOPOLOGIES]
    return draw(lay_out(report, view._replace(verbose=True)), figures)


def draw(blocks: Iterable[Block], figures: Sequence[Figure] = ()) -> str:
    """Return the blocks of any report as a page, figures behind its first line."""
    from .. import __version__

    first, *rest = blocks
    style, script = _part("page.css"), _part("page.js")
    title = _text(f"{first.head} {first.text}".strip(" :"))
    lines = [f"<h1>{title}</h1>", _SEARCH]
    for number, figure in enumerate(figures):
        lines += _figure(figure, number)
    lines += _body(rest)
    page = _PAGE.format(
        title=title,
        body="\n".join(lines),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        version=_text(__version__),
    )
    # The same bytes whatever encoding standard output has.
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _part(name: str) -> str:
    return (pkgutil.get_data(__package__, name) or b"").decode("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a policy allows this text alone (CSP level 2)."""
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _text(text: str) -> str:
    return escape(fold(clean(text)))


def _body(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the blocks as markup; what is indented below an entry is folded with it."""
    folding: List[int] = []
    fenced = False
    for block, following in zip(blocks, [*blocks[1:], None]):
        if fenced and not _is_copied(block):
            yield "</pre>"
            fenced = False
        while folding and (block.indent <= folding[-1] or not (block.text or block.head)):
            yield "</details>"
            folding.pop()
        if _is_copied(block):
            yield _text(block.text) if fenced else f"<pre>{_text(block.text)}"
            fenced = True
        elif block.style in _FOLDING and _goes_on(following, block.indent):
            opened = " open" if block.style in _OPEN else ""
            yield f'<details class="{block.style}"{opened}><summary>{_line(block)}</summary>'
            folding.append(block.indent)
        elif block.style == "title":
            yield f"<h2>{_text(f'{block.head} {block.text}'.strip())}</h2>"
        elif block.text or block.head:
            deeper = ' class="deeper"' if block.indent > (folding[-1] + 2 if folding else 0) else ""
            yield f"<p{deeper}>{_line(block)}</p>"
    yield ("</pre>" if fenced else "") + "</details>" * len(folding)


def _is_copied(block: Block) -> bool:
    return block.verbatim and bool(block.text)


def _goes_on(block: Optional[Block], indent: int) -> bool:
    return block is not None and block.indent > indent and bool(block.text or block.head)


def _line(block: Block) -> str:
    style = f" {block.style}" if block.style.isalpha() else ""
    head = f'<span class="head{style}">{_text(block.head)}</span> ' if block.head else ""
    return head + _text(block.text)


def _figure(figure: Figure, number: int) -> Iterator[str]:
    if isinstance(figure, Grid):
        return _grid(figure)
    if isinstance(figure, Box):
        return _boxes(figure)
    return _bar(figure, number) if isinstance(figure, Bar) else _drawing(figure)


def _boxes(figure: Box) -> Iterator[str]:
    """Yield boxes as lists in lists, which are read out and printed like any."""
    yield f'<section class="boxes"><h2>{_text(figure.title)}</h2>'
    yield from _parts(figure.parts)
    yield "</section>"


def _parts(boxes: Sequence[Box]) -> Iterator[str]:
    yield "<ul>"
    for box in boxes:
        style = f' class="{box.style}"' if box.style.isalpha() else ""
        mark = "! " if box.style in ("warning", "error") else ""
        yield f"<li{style}><span>{mark}{_text(box.title)}</span>"
        if box.parts:
            yield from _parts(box.parts)
        yield "</li>"
    yield "</ul>"


def _grid(grid: Grid) -> Iterator[str]:
    """Yield a table; of a long one the first rows, and all of them for the script."""
    count = len(grid.rows)
    title = _text(grid.title)
    yield f'<div class="grid" data-noun="{_text(grid.noun)}">'
    yield f"<h2>{title}</h2>"
    if count > _FEW_ROWS:
        yield (
            f'<noscript><p class="noscript">The first {_FEW_ROWS} of {count} {_text(grid.noun)}s; '
            "the others need scripts to be allowed.</p></noscript>"
        )
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
    yield f'<table aria-rowcount="{count + 1}"><thead><tr>'
    yield "".join([f'<th scope="col">{_text(name)}</th>' for name in grid.columns])
    yield "</tr></thead><tbody>"
    for place, (name, kind) in enumerate(grid.rows[:_FEW_ROWS], 2):
        cells = "".join([_cell(cell) for cell in grid.kinds[kind]])
        head = _text(name)
        yield f'<tr aria-rowindex="{place}"><th scope="row" title="{head}">{head}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    if count > _FEW_ROWS:
        yield f'<script type="application/json">{_data(grid)}</script>'
    yield "</div>"


def _cell(cell: Cell) -> str:
    text = _text(cell.text)
    odd = ' class="odd"' if cell.odd else ""
    return f'<td{odd} title="{text}">{"≠ " if cell.odd else ""}{text}</td>'


def _data(grid: Grid) -> str:
    """Return the rows as JSON that cannot end the element in which it stands."""
    table = {
        "columns": len(grid.columns),
        "kinds": [[[fold(clean(cell.text)), cell.odd] for cell in cells] for cells in grid.kinds],
        "rows": [[fold(clean(name)), kind] for name, kind in grid.rows],
    }
    text = json.dumps(table, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _bar(bar: Bar, number: int) -> Iterator[str]:
    """Yield a bar: what it surely takes whole, what it may take hatched, the limit as a line."""
    scale = max(bar.high, (bar.limit or 0) * 1.15, 1e-9) / 1000
    said = f"{bar.title}: {bar.low:.4g} to {bar.high:.4g} {bar.unit}, {bar.verdict}"
    said += f"; the limit is {bar.limit:.4g}" if bar.limit is not None else "; no limit is known"
    yield f'<figure><figcaption><span class="head {bar.style}">{_text(said)}</span></figcaption>'
    yield (
        f'<svg class="bar" viewBox="0 0 1000 32" preserveAspectRatio="none" role="img" '
        f'aria-label="{_text(said)}">'
    )
    if not number:
        yield (
            '<defs><pattern id="hatch" width="10" height="10" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="10"/>'
            "</pattern></defs>"
        )
    at = 0.0
    for place, part in enumerate(bar.segments):
        width = part.low / scale
        style = "second" if place % 2 else "first"
        words = _text(f"{part.name}: {part.low:.4g} to {part.high:.4g} {bar.unit}")
        yield _rectangle(style, at, width, words)
        at += width
    yield _rectangle("maybe", at, max(bar.high / scale - at, 0), "what it may take beyond that")
    if bar.limit is not None:
        end = f"{bar.limit / scale:.1f}"
        yield f'<line class="limit" x1="{end}" y1="0" x2="{end}" y2="32"/>'
    yield "</svg></figure>"


def _rectangle(style: str, at: float, width: float, title: str) -> str:
    return (
        f'<rect class="{style}" x="{at:.1f}" y="0" width="{width:.1f}" height="32">'
        f"<title>{title}</title></rect>"
    )


def _drawing(drawing: Drawing) -> Iterator[str]:
    title = _text(drawing.title)
    data = b64encode(drawing.svg.encode("utf-8")).decode("ascii")
    yield f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{title}">'
    yield f'<img src="data:image/svg+xml;base64,{data}" alt="{title}"></div>'
    yield f"<figcaption>{title}</figcaption></figure>"
