"""Markdown, read by a real parser (markdown-it, which rich brings)."""

from markdown_it import MarkdownIt

from envdoctor.report import View, render

from .conftest import REPORT, ROOT, hostile_report


def test_hostile_text_is_only_text():
    html = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .render(render(hostile_report(), "markdown", View(80)))
    )
    assert "<img" not in html
    assert "<strong>bold" not in html
    assert 'href="http://x"' not in html
    assert "@all" not in html.replace("<code>", "").split("envdoctor: ")[0]


def test_commands_are_code_blocks():
    tokens = MarkdownIt().parse(render(REPORT, "markdown", View(80)))
    assert [token.content.strip() for token in tokens if token.type == "fence"] == [
        ROOT.remedies[0].commands[0]
    ]
