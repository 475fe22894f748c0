"""What a text tells of a package beside what a line found of it."""

import pytest

from envdoctor.app import check
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

FOUND = (
    "ImportError: huggingface-hub>=0.19.3,<1.0 is required for a normal functioning of this "
    "module, but found huggingface-hub==0.17.1\n"
)
UNMET = (
    "pkg_resources.DistributionNotFound: The 'transformers<4.45,>=4.33' distribution was not found "
    "and is required by ms-swift\n"
)


@pytest.fixture
def first(tmp_path):
    """The first finding of a text."""

    def run(text):
        path = tmp_path / "issue.txt"
        path.write_text(text, encoding="utf-8")
        matrix = load_matrix()
        return check(parse_report(text, matrix.package), matrix, logs=[str(path)]).findings[0]

    return run


@pytest.mark.parametrize(
    "told",
    [
        "I have installed huggingface-hub latest version 0.23.4, and still get this.\n",
        "$ pip list\nPackage Version\n------- -------\nhuggingface-hub 0.23.4\n\n",
        "huggingface_hub==0.23.4\n",
    ],
)
def test_what_is_there_already_is_not_installed_once_more(first, told):
    finding = first(told + FOUND)
    assert "tells of huggingface-hub 0.23.4, which is in that range" in finding.message
    assert "another copy, 0.17.1, where it looks" in finding.message
    (remedy,) = finding.remedies
    assert remedy.commands == ()
    assert remedy.text.startswith("Do not install it once more: find the copy")


@pytest.mark.parametrize("told", ["", "huggingface-hub==0.17.1\n", "tokenizers 0.23.4\n"])
def test_where_nothing_else_is_told_it_is_installed(first, told):
    finding = first(told + FOUND)
    assert "is in that range" not in finding.message
    assert [call.packages for call in finding.remedies[0].commands] == [
        ("huggingface-hub>=0.19.3,<1.0",)
    ]


def test_the_release_that_does_not_meet_a_range_is_named(first):
    """The text is written without blanks around the name, as in Chinese."""
    finding = first(f"{UNMET}我用swift微调，安装的是transformers==4.45.0.dev0，\n")
    assert "transformers 4.45.0.dev0, of which the text tells, does not." in finding.message
    assert finding.remedies[0].commands[0].packages == ("transformers<4.45,>=4.33",)


def test_a_model_that_no_release_of_a_range_knows_is_not_taken_away(first):
    """Qwen2-VL came with transformers 4.45.0."""
    (remedy,) = first(f"{UNMET}qwen2vl: transformers==4.45.0.dev0\n").remedies
    assert remedy.is_refused
    assert "does not know Qwen2-VL, which is run here" in remedy.text
