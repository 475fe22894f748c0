"""What was seen to happen outranks what a table concludes."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.finding import Finding
from envdoctor.report.headline import summary_line
from envdoctor.report.selection import Options, report_of
from envdoctor.rules import judge
from envdoctor.rules.codes import CODES
from envdoctor.rules.observations import AT_WORK, IMPORTED, RAN, REACHED, REFUTED_BY, STATE
from envdoctor.rules.relevance import Reported, set_apart

STACK = "PyTorch version: 2.11.0+cu130\nNvidia driver version: 550.54.15\nGPU 0: NVIDIA H100\n"


def findings(text):
    return judge(parse_report(text), load_matrix(), today="2026-11-21")


def of(code, text):
    return [finding for finding in findings(text) if finding.code == code]


def test_a_device_that_torch_reached_makes_a_note_of_the_error():
    (error,) = of("ED101", STACK)
    assert error.severity == "error"
    (note,) = of("ED101", STACK + "Is CUDA available: True\n")
    assert note.severity == "advice"
    assert "is_available() was True" in note.message
    assert not note.remedies
    assert any("line 4" in entry.source for entry in note.evidence)
    (error,) = of("ED101", STACK + "Is CUDA available: False\n")
    assert error.severity == "error"


def test_what_holds_of_torch_is_taken_back_for_those_that_need_the_same():
    (note,) = of("ED101", STACK + "torchao: 0.17.0+cu130\nIs CUDA available: True\n")
    assert note.severity == "advice"
    (error,) = of("ED101", STACK + "torchao: 0.17.0+cu130\n")
    assert "The same holds for torchao" in error.message


def test_an_import_of_torch_says_nothing_of_what_others_need_of_the_driver():
    text = STACK + "torchao: 0.17.0+cu130\nIs CUDA available: False\n"
    assert {finding.severity for finding in of("ED101", text)} == {"error"}


def test_a_torch_that_was_imported_has_the_glibc_and_python_that_it_needs():
    text = "torch: 2.11.0+cu130\npython: 3.8\nglibc: 2.17\ntransformers: 5.9.0\n"
    before = [finding for finding in of("ED303", text) if "torch" in finding.packages]
    after = of("ED303", text + "CUDA available: False\n")
    assert before
    # what is said of transformers, too, stays an error
    assert any(finding.severity == "error" for finding in after)
    alone = of("ED303", "torch: 2.11.0+cu130\npython: 3.8\nCUDA available: False\n")
    assert [finding.severity for finding in alone] == ["advice"]


def test_companions_follow_the_label_of_torch():
    text = "vllm 0.10.2\nPyTorch version: 2.8.0+cu129\nPython 3.11\nOS: Ubuntu 22.04\n"
    messages = [entry.message for entry in findings(text) if "torchaudio" in entry.message]
    assert messages
    assert all("torchaudio 2.8.0+cu129" in message for message in messages)
    assert all(entry.verdict == "undetermined" for entry in findings(text))


def test_a_presumption_is_no_headline():
    facts = parse_report("vllm: 0.6.3\nGPU 0: NVIDIA GeForce RTX 5090\n")
    judged = judge(facts, load_matrix(), today="2026-11-21")
    presumed = tuple(finding for finding in judged if finding.presumed)
    assert presumed
    report = report_of(presumed, (facts,), "2026-11-21", Options())
    assert summary_line(report) == f"envdoctor: {len(presumed)} warning"


SAID = "I upgraded to vllm 0.20.0 and it always crashes on my machine.\n"
DRIVER = "Nvidia driver version: 550.54.15\nPython version: 3.11\n"


def test_what_one_sentence_tells_carries_no_error():
    (said,) = of("ED101", SAID + DRIVER)
    assert (said.severity, said.effect) == ("warning", "may-block")
    assert "one sentence" in said.message
    assert "I upgraded to vllm 0.20.0" in said.message


@pytest.mark.parametrize(
    "second",
    [
        "vllm==0.20.0\n",
        "vLLM Version: 0.20.0\n",
        "Successfully installed vllm-0.20.0\n",
        "/v/lib/python3.11/site-packages/vllm-0.20.0.dist-info/METADATA\n",
        "Here again vllm 0.20.0 does not start either.\n",
    ],
)
def test_what_a_second_statement_agrees_with_does(second):
    errors = [entry for entry in of("ED101", SAID + DRIVER + second) if entry.severity == "error"]
    assert [entry.component for entry in errors] == ["nvidia-driver"]


def test_a_list_is_no_sentence():
    (listed,) = of("ED101", "vllm 0.20.0, torch 2.11.0, 8 x H100\n" + DRIVER)
    assert listed.severity == "error"


def test_each_code_says_what_takes_it_back():
    """But for those of lines of logs, which are what was seen."""
    of_tables = {code for code in CODES if not code.endswith("95")}
    assert set(REFUTED_BY) == of_tables
    known = {IMPORTED, RAN, REACHED, AT_WORK, STATE}
    assert all(ways and known.issuperset(ways) for ways in REFUTED_BY.values())
    assert all(ways == (STATE,) or STATE not in ways for ways in REFUTED_BY.values())


#: What a report tells, and what was seen by it: who reached a device imported torch, too.
TOLD = {
    IMPORTED: ("Is CUDA available: False\n", {IMPORTED}),
    REACHED: ("Is CUDA available: True\n", {IMPORTED, REACHED}),
    AT_WORK: ("INFO metrics.py] Avg generation throughput: 41.3 tokens/s\n", {AT_WORK}),
}


@pytest.mark.parametrize("seen", [*TOLD, RAN])
@pytest.mark.parametrize("code", sorted(REFUTED_BY))
def test_each_pair_of_the_table(code, seen):
    """A made-up error of each code is a note where what takes it back was seen, and only there."""
    row = "made-up" if code in ("ED390", "ED490") else ""
    error = Finding(code, "torch", "kind", "error", "It fails.", packages=("torch",), row=row)
    if seen == RAN:
        ran = Reported(frozenset(["other"]), ran=frozenset(["torch"]), has_reason=True)
        (judged,) = set_apart([error], ran)
        expected = RAN in REFUTED_BY[code]
    else:
        text, told = TOLD[seen]
        facts = parse_report(f"torch 2.6.0\n{text}")
        judged = next(
            entry
            for entry in judge(facts, load_matrix(), today="2026-11-21", families=(), also=[error])
            if entry.key == error.key
        )
        expected = not told.isdisjoint(REFUTED_BY[code])
    assert (judged.severity == "advice") is expected


SERVES = "INFO metrics.py] Avg generation throughput: 41.3 tokens/s\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "ED102",
            "torch 2.9.0+cu128\nvllm 0.12.0\nNvidia driver version: 550.54.15\nGPU 0: NVIDIA H100\n",
        ),
        ("ED206", "torch 2.5.1+cu124\ndeepspeed 0.15.0\nnvcc: 11.8\n"),
        ("ED207", "torch 2.12.1+cu130\nnvidia-cudnn-cu13 9.20.0.48\nsystem cuDNN 9.23\n"),
        ("ED304", "torch 2.6.0\nvllm 0.7.2\n"),
        ("ED305", "Python 3.13\nvllm-flash-attn 2.5.9.post1\n"),
        ("ED311", "OS: Microsoft Windows 11\nPython 3.10\nvllm 0.6.3\n"),
        ("ED408", "torch 2.4.0+cpu\nvllm 0.6.3\n"),
    ],
)
def test_a_run_at_work_takes_back_a_warning(code, text):
    assert any(entry.severity != "advice" for entry in of(code, text))
    assert {entry.severity for entry in of(code, text + SERVES)} <= {"advice"}


def test_wrong_results_are_not_taken_back_by_a_run_at_work():
    text = "transformers 4.46.0\ntrl 0.12.0\n"
    row = "transformers-4.46-gradient-accumulation"
    for more in ("", SERVES):
        assert [entry.severity for entry in findings(text + more) if entry.row == row] == [
            "warning"
        ]


def test_a_run_at_work_takes_back_what_cannot_be():
    text = "torch 2.6.0\nvllm 0.7.2\ntransformers 4.40.0\nNvidia driver version: 450.80.02\n"
    before = [
        entry
        for entry in findings(text)
        if (entry.severity, entry.verdict) == ("error", "violated")
    ]
    after = findings(f"{text}Avg generation throughput: 41.3 tokens/s\n")
    assert {"ED101", "ED304"} <= {entry.code for entry in before}
    assert not [entry for entry in after if entry.breaks and entry.verdict == "violated"]
    notes = [entry for entry in after if "is at work" in entry.message]
    assert {entry.code for entry in before} <= {entry.code for entry in notes}
    assert not any(entry.remedies for entry in notes)


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("0.23.4", "warning"),  # two of its second numbers beyond any that is known
        ("0.17.0", "error"),
    ],
)
def test_a_release_far_beyond_those_that_are_known_supports_no_error(version, severity):
    (finding,) = [
        entry
        for entry in of("ED390", f"peft version {version}\ntransformers version 4.42.3\n")
        if entry.row == "peft-0.14-transformers-4.43"
    ]
    assert finding.severity == severity
    assert ("far newer than" in finding.message) is (severity == "warning")


def test_of_a_wheel_that_pip_takes_nowhere_here_a_glibc_is_no_error():
    """xformers 0.0.28.post3 has wheels for manylinux_2_28 alone; vllm 0.5.2 has them for 2_17, as
    its own tag says, and asks for more.
    """
    (warned,) = of("ED403", "GLIBC version: glibc-2.17\nxformers: 0.0.28.post3\n")
    assert warned.severity == "warning"
    assert "pip takes none of its wheels here" in warned.message
    (error,) = of("ED403", "GLIBC version: glibc-2.31\nvllm: 0.5.2\n")
    assert error.severity == "error"


@pytest.mark.parametrize(
    ("release", "torch"),
    [
        ("0.1.0", "2.5.1+cu124"),  # seen to serve
        ("0.1.3", "2.7.0+cu128"),  # between two that sglang pins with one torch
        ("0.1.4", "2.7.0+cu128"),
    ],
)
def test_a_build_for_another_torch_whose_symbols_were_not_read_is_a_warning(release, torch):
    (finding,) = of("ED401", f"torch: {torch}\nsgl-kernel: {release}\n")
    assert finding.severity == "warning"
    assert "is compiled for torch 2.6" in finding.message
