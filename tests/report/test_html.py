"""Pages: what they are made of, whatever the texts say; in a real browser, what it shows of
them.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor import __version__
from envdoctor.report import View, render
from envdoctor.report.blocks import Block
from envdoctor.report.cluster_text import figures_of, lay_out_cluster
from envdoctor.report.figures import Bar, Box, Cell, Drawing, Grid, Segment
from envdoctor.report.html import draw
from envdoctor.report.text import clean, fold
from tests.rules.test_node_table import cluster, entry, report_of, without_gpu

from .conftest import HEALTHY, HOSTILE_TEXT, REPORT, hostile_report

HOSTILE = f"</script></title></style><script>alert(1)</script><img src=x onerror=alert(2)>'\"&amp; {HOSTILE_TEXT}"


class Page(HTMLParser):
    """The elements of a page with their attributes, its texts, and its data."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.data, self._open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input", "img", "rect", "line"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "line"):
            assert self._open.pop() == tag, "elements cross"

    def handle_data(self, data):
        if self._open[-1:] == ["script"]:
            self.data.append(data)
        elif self._open and self._open[-1] != "style":
            self.texts.append(data)

    @property
    def shape(self):
        """What no text may change."""
        return [(tag, sorted(attributes)) for tag, attributes in self.elements]


def figures(text, rows=3):
    return [
        Grid(text, [text, text], [[Cell(text, True)]], [(text, 0)] * rows, text),
        Bar(text, [Segment(text, 1, 2), Segment(text, 1, 1)], 2, 3, 4, text, text, "error"),
        Drawing(f"{text}, drawn", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        Box(text, [Box(text, [Box(text, (), "error"), Box(text, (), "gpu")]), Box(text)]),
    ]


def page_of(text, rows=3):
    blocks = [
        Block(text),
        Block(""),
        Block(text, text, "error"),
        Block(text, text, "dim", 2),
        Block(text, "", "command", 2, 0, True),
        Block(text, text, "warning", 2),
        Block(text, text, "fix", 4),
        Block(text, style="title"),
        Block(text, text),
    ]
    return draw(blocks, figures(text, rows))


PLAIN = Page(page_of("x"))
LONG = Page(page_of("x", 300))


@settings(max_examples=40, deadline=None)
@given(
    st.text(
        alphabet="<>&'\"/!-=\\{}%$ax\x00\x1b\u202e\u2066\u200b\u2028\ud800]",
        min_size=1,
        max_size=60,
    )
)
def test_no_text_changes_what_a_page_is_made_of(text):
    if not clean(text).strip():
        return
    for rows, plain in ((3, PLAIN), (300, LONG)):
        page = Page(page_of(text, rows))
        assert page.shape == plain.shape


@pytest.mark.parametrize("rows", [3, 300])
def test_hostile_text_is_text(rows):
    page = Page(page_of(HOSTILE, rows))
    assert page.shape == (PLAIN if rows == 3 else LONG).shape
    shown = fold(clean(HOSTILE))
    assert shown in page.texts
    if rows > 3:
        (table,) = [json.loads(data) for data in page.data if data.startswith("{")]
        assert table["rows"] == [[shown, 0]] * 300
        assert table["kinds"] == [[[shown, True]]]


@pytest.mark.parametrize("report", [REPORT, HEALTHY, hostile_report()])
def test_nothing_is_fetched_and_nothing_else_runs(report):
    page = Page(render(report, "html", View(80)))
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href", "action"):
            assert attributes.get(name, "data:").startswith("data:")
        assert tag not in ("iframe", "object", "form", "base", "a")
    (policy,) = [one["content"] for _, one in page.elements if "http-equiv" in one]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_golden(golden):
    page = render(REPORT, "html", View(80)).replace(__version__, "VERSION")
    golden("html.html", re.search(r"<main>.*</main>\n", page, re.DOTALL)[0])


def test_findings_fold_with_what_belongs_to_them():
    text = render(REPORT, "html", View(80))
    page = Page(text)
    assert [one["class"] for tag, one in page.elements if tag == "details"] == [
        "error",
        "warning",
        "advice",
    ]
    inner = text[text.index("<details") : text.rindex("</details>")]
    assert (
        inner.index("ED101") < inner.index('<details class="warning"') < inner.index("</details>")
    )
    assert "pip install &#x27;torch==2.9.0+cu128&#x27;" in inner


def cluster_page(count):
    store, answers = cluster(min(count, 40), {17: without_gpu} if count > 1 else {})
    named = []
    for number in range(count):
        one, name = answers[min(number, len(answers) - 1)], f"gpu{number + 1:05d}"
        named.append(one._replace(node=name, host={**one.host, "node.name": entry(name)}))
    report = report_of(store, named)
    view = View(80, verbose=True, markup="html")
    return draw(lay_out_cluster(report, view), figures_of(report))


def test_the_odd_cell_is_marked_and_its_node_comes_first():
    page = cluster_page(32)
    rows = re.findall(r"<tr aria-rowindex.*?</tr>", page)
    assert len(rows) == 32
    assert ">gpu00017</th>" in rows[0]
    assert re.findall(r'class="odd"[^>]*>&#8800; ([^<]*)', page) == ["7 x NVIDIA H100 80GB HBM3"]


def test_of_ten_thousand_nodes_few_stand_in_the_page():
    page = cluster_page(10_000)
    assert len(re.findall("<tr aria-rowindex", page)) == 200
    assert len(page) < 300_000
    (table,) = [json.loads(data) for data in Page(page).data if data.startswith("{")]
    assert len(table["rows"]) == 10_000


#: No window of Chromium's is narrower, but a frame may be.
_NARROWEST = 500


@pytest.fixture(scope="module")
def browser(prerequisite, tmp_path_factory):
    """Return a function that opens a page, runs a script in it, and returns what that says."""
    program = shutil.which("chromium")
    prerequisite(program, "chromium (Debian: chromium)")
    folder = tmp_path_factory.mktemp("browser")

    def run(page, script="", axe="", width=1600, scheme="light"):
        if script:  # the page's own policy forbids every script but its own
            page = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", page)
            said = f"<script>{axe}</script><script>(async()=>{{const said=await(async()=>{{{script}}})();"
            said += "parent.document.body.textContent="
            page += f"{said}'SAID'+JSON.stringify(said)+'END'}})()</script>"
        if width < _NARROWEST:
            style = f"width: {width}px; height: 900px; border: 0"
            page = f'<!doctype html><iframe style="{style}" srcdoc="{html.escape(page)}"></iframe>'
        (folder / "page.html").write_text(page, encoding="utf-8")
        done = subprocess.run(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={folder}/profile",
                f"--window-size={width},900",
                f"--blink-settings=preferredColorScheme={1 if scheme == 'light' else 0}",
                "--virtual-time-budget=20000",
                "--enable-logging=stderr",
                "--dump-dom",
                f"file://{folder}/page.html",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Content Security Policy" not in done.stderr, done.stderr
        assert "Uncaught" not in done.stderr, done.stderr
        if not script:
            return done.stdout
        return json.loads(
            re.search(r"SAID(.*)END", done.stdout, re.DOTALL)[1]
            .replace("&amp;", "&")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
        )

    return run


@pytest.mark.slow
def test_the_script_runs_under_its_own_policy(browser):
    shown = browser(cluster_page(1_000))
    assert re.search(r'class="search"[^>]*>', shown)[0].count("hidden") == 0
    assert 10 < len(re.findall("<tr aria-rowindex", shown)) < 100


SEARCH = """
const input = document.querySelector('input');
input.value = %s;
input.dispatchEvent(new Event('input'));
const rows = [...document.querySelectorAll('tbody:not(.space) tr:not([hidden])')];
return [document.querySelector('output').textContent, rows.length, rows[0] && rows[0].textContent];
"""


@pytest.mark.slow
@pytest.mark.parametrize("count", [32, 10_000])
def test_search(browser, count):
    page = cluster_page(count)
    said, rows, first = browser(page, SEARCH % '"7 x nvidia"')
    assert (rows, first[:8]) == (1, "gpu00017")
    assert said.startswith(f"1 of {count} nodes")
    said, rows, _ = browser(page, SEARCH % '"gpu00031"')
    assert rows == 1
    said, rows, _ = browser(page, SEARCH % '"nonesuch"')
    assert rows == 0
    assert said.startswith(f"0 of {count} nodes")


LINES = """
const input = document.querySelector('input');
input.value = 'second';
input.dispatchEvent(new Event('input'));
const shown = [...document.querySelectorAll('main > p:not([hidden])')];
return [document.querySelector('output').textContent, shown.map(one => one.textContent)];
"""


@pytest.mark.slow
def test_lines_are_searched_where_there_is_nothing_else(browser):
    page = draw([Block("title"), Block("the first"), Block("the second")])
    assert browser(page, LINES) == ["1 of 2 entries", ["the second"]]


SCROLL = """
const region = document.querySelector('.scroll');
region.scrollTop = 1e9;
region.dispatchEvent(new Event('scroll'));
const rows = [...document.querySelectorAll('tbody:not(.space) tr')];
dispatchEvent(new Event('beforeprint'));
const printed = document.querySelectorAll('tbody:not(.space) tr').length;
return [rows.length, rows.at(-1).textContent, printed, document.documentElement.scrollWidth - innerWidth];
"""


@pytest.mark.slow
def test_the_last_of_ten_thousand_is_reached_and_all_are_printed(browser):
    rows, last, printed, beyond = browser(cluster_page(10_000), SCROLL)
    assert rows < 100
    assert last.startswith("gpu10000")
    assert printed == 10_000
    assert beyond <= 0


BEYOND = "const page = document.documentElement; return [innerWidth, page.scrollWidth - page.clientWidth]"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["1", "32", "figures"])
def test_nothing_stands_beyond_a_narrow_screen(browser, name):
    page = page_of("words") if name == "figures" else cluster_page(int(name))
    assert browser(page, BEYOND, width=360) == [360, 0]


@pytest.mark.slow
def test_a_thousand_nodes_open_within_a_second(browser):
    script = (
        "return performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart"
    )
    assert min(browser(cluster_page(1_000), script) for _ in range(3)) < 1000


AXE = """
const found = await axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']});
return [found.violations.map(one => one.id + ': ' + one.nodes[0].html), found.passes.length];
"""


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1600, "dark")])
@pytest.mark.parametrize("name", ["1", "32", "10000", "report", "healthy", "figures"])
def test_accessible(browser, prerequisite, name, width, scheme):
    module = pytest.importorskip if sys.version_info < (3, 10) else __import__
    try:
        place = Path(module("axe_core_python").__file__).parent
    except ImportError:
        prerequisite(False, "axe-core-python (pip)")
    pages = {
        "report": lambda: render(REPORT, "html", View(80)),
        "healthy": lambda: render(HEALTHY, "html", View(80)),
        "figures": lambda: page_of("words"),
    }
    page = pages[name]() if name in pages else cluster_page(int(name))
    axe = (place / "axe.min.js").read_text(encoding="utf-8")
    violations, passes = browser(page, AXE, axe, width, scheme)
    assert violations == []
    assert passes > 20


@pytest.mark.slow
def test_axe_would_say_so(browser, prerequisite):
    """The oracle can fail: grey on white, and a picture without words."""
    place = Path(__import__("axe_core_python").__file__).parent
    page = render(HEALTHY, "html", View(80)).replace("--text: #1b1f24", "--text: #bbbbbb")
    page = page.replace("<footer>", '<img src="data:,"><footer>')
    axe = (place / "axe.min.js").read_text(encoding="utf-8")
    violations, _ = browser(page, AXE, axe)
    assert {entry.partition(":")[0] for entry in violations} >= {"color-contrast", "image-alt"}
