"""What a text says that one distribution asks of another."""

import pytest

from envdoctor.errors import NothingRecognised
from envdoctor.intake import parse_report


def asked(text):
    """Return what each distribution asks for, by its name."""
    try:
        facts = parse_report(text)
    except NothingRecognised:
        return {}
    listed = (facts.value("distributions") or {}).values()
    return {one.name: one.requires for one in listed if one.requires}


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("vllm 0.8.3 requires HF transformers newer than 4.51.0", "vllm", "transformers>4.51.0"),
        (
            (
                "The latest version of `autoawq` pins the `transformers` package (its dependency) "
                "thus: `transformers<=4.47.1`, an older one."
            ),
            "autoawq",
            "transformers<=4.47.1",
        ),
        ("transformers 4.50 or newer is required by trl 0.19.0", "trl", "transformers>=4.50"),
        ("peft>=0.10,<0.12 is pinned by unsloth", "unsloth", "peft>=0.10,<0.12"),
        ("lmdeploy 依赖 transformers<4.47", "lmdeploy", "transformers<4.47"),
        ("ms-swift depends on transformers at least 4.33", "ms-swift", "transformers>=4.33"),
        ("trl 0.9.0 needs transformers 4.31 or older", "trl", "transformers<=4.31"),
        ("trl 0.9.x only works with transformers==4.40.0", "trl", "transformers==4.40.0"),
        (
            "trl 0.9.0 requires transformers between 4.31 and 4.40",
            "trl",
            "transformers>=4.31,<=4.40",
        ),
        ("trl 0.9.0 需要 transformers 4.31 及以上", "trl", "transformers>=4.31"),
        ("unsloth pins torch 2.4.0", "unsloth", "torch==2.4.0"),
        ("trl 0.9.0 only supports transformers < 4.46.1 for now", "trl", "transformers<4.46.1"),
        ("trl中要求的peft版本是0.10.0", "trl", "peft==0.10.0"),
        ("这个trl版本只支持transformers versions < 4.46.1", "trl", "transformers<4.46.1"),
    ],
)
def test_who_asks_for_what(text, name, line):
    facts_of = "unsloth 2024.8\n" if name == "unsloth" else ""
    assert asked(facts_of + text)[name] == (line,)


@pytest.mark.parametrize(
    "text",
    [
        "vllm should require transformers>=4.50",
        "Does vllm 0.8.0 require torch>=2.6?",
        "I need torch 2.5 for my work",
        "The driver must be at least 535",
        "vllm no longer requires xformers==0.0.27",
        "trl does not only work with transformers==4.40.0",
        "If trl 0.9.0 only works with transformers==4.40.0, say so",
    ],
)
def test_what_nobody_asks_for(text):
    assert asked(text) == {}


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("unsloth accepts only peft >=0.10,<=0.12", "unsloth", "peft>=0.10,<=0.12"),
        ("unsloth is only compatible with peft<0.12", "unsloth", "peft<0.12"),
        ("unsloth works only with peft between 0.10 and 0.12", "unsloth", "peft>=0.10,<=0.12"),
        ("unsloth is limited to peft up to 0.12.0", "unsloth", "peft<=0.12.0"),
        ("unsloth allows peft below 0.12", "unsloth", "peft<0.12"),
    ],
)
def test_what_a_release_takes(text, name, line):
    assert asked(f"unsloth 2024.8\n{text}")[name] == (line,)


@pytest.mark.parametrize(
    "text",
    [
        "unsloth is compatible with peft 0.12",  # and with what else nobody says
        "unsloth allows to train with peft 0.12",
        "unsloth accepts a path, peft 0.12.0 does not",
    ],
)
def test_what_takes_no_range(text):
    assert asked(f"unsloth 2024.8\n{text}") == {}


def test_one_verb_may_ask_for_two():
    text = "unsloth 2024.8\nunsloth needs peft>=0.11 and trl 0.9.4"
    assert asked(text)["unsloth"] == ("peft>=0.11", "trl>=0.9.4")


@pytest.mark.parametrize("whose", ["my project", "our training code", "this repository"])
def test_what_the_writers_own_program_asks_for(whose):
    facts = parse_report(f"unsloth 2024.8\n{whose} needs peft>=0.12")
    assert facts.value("report.wanted") == {"peft": ">=0.12"}
    assert parse_report(f"unsloth 2024.8\n{whose} needs peft").value("report.wanted") is None


def test_what_metadata_do_not_speak_of_is_kept_by_release():
    from envdoctor.matrix.loader import load_matrix

    text = (
        "xformers 0.0.30 accepts only flash-attn>=2.7.1,<=2.7.4.\nxformers 0.0.30 needs torch>=2.7"
    )
    facts = parse_report(text, load_matrix().package)
    assert facts.value("report.asked_besides") == {"xformers==0.0.30": "flash-attn>=2.7.1,<=2.7.4"}
    assert facts.value("report.asked_otherwise") == {"xformers": "torch>=2.7"}


@pytest.mark.parametrize(
    ("text", "key", "specifier"),
    [
        ("bitsandbytes supports CUDA 11.7-12.5 only", "bitsandbytes CUDA", ">=11.7,<=12.5"),
        ("bitsandbytes has libraries for CUDA 11.7 to 12.5", "bitsandbytes CUDA", ">=11.7,<=12.5"),
        ("flash-attn requires CUDA 12.0 or newer", "flash-attn CUDA", ">=12.0"),
        ("xformers needs Python >= 3.9", "xformers Python", ">=3.9"),
        ("vllm requires an NVIDIA driver of at least 525.60", "vllm driver", ">=525.60"),
    ],
)
def test_what_is_asked_of_the_machine(text, key, specifier):
    facts = parse_report(f"torch 2.5.1\n{text}")
    if key != "vllm driver":
        assert facts.value("report.takes") == {key: specifier}
    assert not any(one.requires for one in facts.value("distributions").values())


@pytest.mark.parametrize(
    "text",
    [
        "Does bitsandbytes support CUDA 11.7-12.5?",
        "bitsandbytes should support CUDA 11.7 to 12.5",
        "flash-attn does not require CUDA 12.0 or newer",
        "flash-attn works with CUDA 12.0 here",
        "I need CUDA 12.0 or newer",
    ],
)
def test_what_asks_nothing_of_the_machine(text):
    assert parse_report(f"torch 2.5.1\n{text}").value("report.takes") is None
