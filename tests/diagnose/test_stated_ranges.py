"""Messages that give the releases of a package that are taken, as packages print them."""

import time

import pytest

from envdoctor.app import diagnose
from envdoctor.diagnose.stated_ranges import StatedRange, stated_ranges
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.facts import Facts

#: Each as a package prints it (transformer-engine, xformers, megatron-core, transformers, trl,
#: peft, deepspeed, optimum, llamafactory, vllm), with what it says.
SAID = {
    "Supported flash-attn versions are >= 2.1.1, <= 2.7.4.post1. Found flash-attn 2.8.3.": (
        "flash-attn",
        ">=2.1.1,<=2.7.4.post1",
        "2.8.3",
    ),
    "Requires Flash-Attention version >=2.7.1,<=2.7.4 but got 2.8.0.post2.": (
        "flash-attn",
        ">=2.7.1,<=2.7.4",
        "2.8.0.post2",
    ),
    "Transformer-Engine v1.0.3 must be >= 1.2.0 to support`attention_bias`.": (
        "transformer-engine",
        ">=1.2.0",
        "1.0.3",
    ),
    "Only transformer-engine>=1.11.0 supports FP8 grouped gemm, but your version is 1.9.0.": (
        "transformer-engine",
        ">=1.11.0",
        "1.9.0",
    ),
    "Please install optimum>=1.7.0 to use Better Transformer. The version 1.4.0 was found.": (
        "optimum",
        ">=1.7.0",
        "1.4.0",
    ),
    "TRL currently supports vLLM versions from 0.10.2 to 0.17.1. You have version 0.18.0 installed."
    " We recommend installing this version.": ("vllm", ">=0.10.2,<=0.17.1", "0.18.0"),
    "Found an incompatible version of torchao. Found version 0.3.1, but only versions above 0.4.0"
    " are supported": ("torchao", ">0.4.0", "0.3.1"),
    "AutoSP requires transformers <= 4.50.3, found 4.56.0.": (
        "transformers",
        "<=4.50.3",
        "4.56.0",
    ),
    "Torch version must be 2.5 or higher to use symmetric memory. Current version: 2.4.1": (
        "torch",
        ">=2.5",
        "2.4.1",
    ),
    "BetterTransformer requires transformers<4.49 but found 4.50.0.": (
        "transformers",
        "<4.49",
        "4.50.0",
    ),
    "NIXL >= 0.9.0 is required, but nixl==0.7.1 is installed": ("nixl", ">=0.9.0", "0.7.1"),
    "apply_chat_template requires jinja2>=3.1.0 to be installed. Your version is 3.0.3.": (
        "jinja2",
        ">=3.1.0",
        "3.0.3",
    ),
    "bitsandbytes package must be at least 0.43.1, but found 0.41.0": (
        "bitsandbytes",
        ">=0.43.1",
        "0.41.0",
    ),
    "peft version >= 0.13.0 is required. You have version 0.9.0": ("peft", ">=0.13.0", "0.9.0"),
    "triton should be at least 3.2.0 for this kernel, current version is 2.1.0": (
        "triton",
        ">=3.2.0",
        "2.1.0",
    ),
    "vLLM >= 0.22.0 is required to use it. Install it with: pip install 'vllm>=0.22.0'": (
        "vllm",
        ">=0.22.0",
        "",
    ),
}
#: What gives no releases of a package, or of none that is known.
UNSAID = [
    "torch 2.4.0 needs python>=3.8, found 3.7.0",
    "FlashAttention2 requires compute capability >= 8.0, but found 7.5",
    "PCH requires CUDA 12.8+, got 12.1",
    "--fp4-gemm-backend flashinfer_cudnn needs cuDNN >= 9.23.1 for the GEMM (9.1.0).",
    "SGLANG_FLASHINFER_NUM_MAX_TOKENS>=4.5 is wanted, found 4.4",
    "cannot import name 'a' from 'b' (/usr/lib/python3.11/site-packages/torch-2.1.0/x.py)",
    "the loss is >= 1.25 of the transformers of 0.9",
    "The deprecated version of ZeRO Stage 1 is not supported in deepspeed >= 0.5.9.",
    "It seems that llamafactory doesn't support peft==0.14.0?",
    ">=" * 400,
    "a " * 500 + ">= 1.2.3",
]


@pytest.mark.parametrize("message", SAID)
def test_what_packages_print(message):
    assert stated_ranges(message)[:1] == [StatedRange(*SAID[message])]


@pytest.mark.parametrize("message", UNSAID)
def test_what_gives_no_releases_of_a_package(message):
    assert stated_ranges(message) == []


def test_hostile_messages_take_no_time():
    start = time.perf_counter()
    for part in ("1.1.1 ", ">= 1.1 ", "version ", "found 1.2.3 ", "torch >= ", "between 1.2 and "):
        stated_ranges(part * 20_000)
    assert time.perf_counter() - start < 1


@pytest.fixture
def finding(tmp_path):
    def run(text, *assume):
        path = tmp_path / "run.log"
        path.write_text(text, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        return diagnose([str(path)], facts, load_matrix()).traces[0].finding

    return run


TRACE = """\
Traceback (most recent call last):
  File "/w/train.py", line 3, in <module>
    from xformers.ops import memory_efficient_attention
  File "/v/lib/python3.11/site-packages/xformers/ops/fmha/flash.py", line 78, in <module>
    raise ImportError(
ImportError: {message}
"""


def test_who_asks_for_which_releases_and_on_which_side_the_one_here_is(finding):
    said = finding(TRACE.format(message=list(SAID)[1]))
    assert "xformers takes flash-attn>=2.7.1,<=2.7.4: flash-attn 2.8.0.post2 is too new." in (
        said.message
    )
    assert (said.component, said.kind) == ("flash-attn", "too-new")
    assert said.remedies[0].commands == (InstallerCall("install", ("flash-attn>=2.7.1,<=2.7.4",)),)
    assert "a newer release of xformers" in said.remedies[0].text


def test_a_message_without_the_release_that_is_there(finding):
    """The one that is stated counts, where it is outside; else nothing is said."""
    message = "Liger needs transformers>=4.52.0 for that."
    said = finding(TRACE.format(message=message), "transformers==4.50.0")
    assert "transformers 4.50.0 is too old" in said.message
    for assume in (["transformers==4.53.0"], []):
        assert " is too " not in finding(TRACE.format(message=message), *assume).message


def test_what_a_writer_goes_on_with_is_no_word_of_the_exception(finding):
    text = "ValueError: this kernel is not known\nBut it requires peft>=0.14.0, found 0.12.0\n"
    assert " is too " not in finding(f"# It fails\n\n{text}\nWhat do I do?\n").message


def test_words_that_contradict_each_other_are_not_believed(finding):
    message = "Requires Flash-Attention version >=2.7.1,<=2.9 but got 2.8.0."
    assert " is too " not in finding(TRACE.format(message=message)).message
