"""What conda's solver says of requests that exclude each other."""

import pytest

HEAD = "LibMambaUnsatisfiableError: Encountered problems while solving:\n"
TREE = "Could not solve for environment specs\nThe following packages are incompatible\n"
LAMP = """├─ wick ==3.1 h0a1b2c3_5 is requested and can be installed;
├─ glass is requested and can be installed;
└─ lamp 2.0  is not installable because there are no viable options
   ├─ lamp 2.0 would require
   │  └─ wick 2.7.* , which conflicts with any installable versions previously reported;
   └─ lamp 2.0 would require
      └─ wick 2.8.* , which conflicts with any installable versions previously reported.
"""
ABSENT = """├─ lamp 2.0  is not installable because it requires
│  └─ wick 1.0.* , which does not exist (perhaps a missing channel);
├─ glass does not exist (perhaps a typo or a missing channel);
└─ oil does not exist (perhaps a typo or a missing channel).
"""
MACHINE = """└─ lamp 2.0 is not installable because it requires
   └─ __cuda >=12 *, which is missing on the system.
"""
RING = """└─ lamp ==2.0 cuda112py38h0bbbad9_1 is not installable because it requires
   └─ wick 2.0 cuda112py38h3d13190_1, which requires
      └─ lamp ==2.0.* *_1, which can be installed.
"""


@pytest.mark.parametrize(
    ("text", "words", "remedy"),
    [
        (
            TREE + LAMP,
            "lamp 2.0 goes with wick 2.7.* or wick 2.8.* alone, and wick ==3.1 h0a1b2c3_5 is asked",
            "go together",
        ),
        (TREE + ABSENT, "wick 1.0.*, which lamp 2.0 asks for, is in none of the", "channel has it"),
        (TREE + ABSENT, "glass and oil are in none of the channels", "channel has it"),
        (TREE + MACHINE, "lamp 2.0 asks for a machine with __cuda >=12 *.", "CONDA_OVERRIDE_CUDA"),
        (TREE + RING, "which goes with lamp ==2.0.* *_1 alone", "Take the builds out"),
        (
            HEAD
            + "  - nothing provides requested a::glass\n  - nothing provides wick 1.* needed by "
            "lamp-2.0-py_0\n",
            "wick 1.*, which lamp-2.0-py_0 asks for, is in none of the channels. a::glass is in none",
            "channel has it",
        ),
    ],
)
def test_who_asks_for_what(said, text, words, remedy):
    (trace,) = said(text if text.startswith(HEAD) else HEAD + "\n" + text).traces
    assert words in trace.finding.message
    assert any(remedy in entry.text for entry in trace.finding.remedies)


@pytest.mark.parametrize("rest", ["", "├─ \n", "│\n└─ lamp\n", "└─ , which conflicts with\n"])
def test_a_list_that_was_cut_says_what_it_says(said, rest):
    (trace,) = said(f"{HEAD}\n{TREE}{rest}").traces
    assert "no set of packages" in trace.finding.message


def test_a_tree_of_something_else_is_none(said):
    assert not said(f"src\n{ABSENT}").traces
