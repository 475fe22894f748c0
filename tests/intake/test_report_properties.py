"""Whatever is pasted: no other exception, no invented fact, linear time."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.intake import parse_report
from envdoctor.model.evidence import Known
from envdoctor.model.facts import Facts
from envdoctor.model.serde import dump_facts

from ..time_taken import least_seconds, within

DATA = Path(__file__).resolve().parent.parent / "data" / "reports"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DATA.glob("*.txt"))}
# Each line of these says one thing by itself.
LINE_BY_LINE = [
    "torch_collect_env",
    "sglang_check_env",
    "transformers_env",
    "no_gpu",
    "rocm",
    "vllm_collect_env_new",
]
EVERY_LINE = [line for text in TEXTS.values() for line in text.splitlines()]


def parse(text):
    try:
        return parse_report(text)
    except InputError:
        return Facts()


def values(facts):
    return {
        name: fact.value
        for name, fact in facts
        if isinstance(fact, Known) and not name.startswith("report.")
    }


@pytest.mark.parametrize("name", LINE_BY_LINE)
@given(data=st.data())
@settings(max_examples=40)
def test_shuffled_and_dropped_lines_never_invent(name, data):
    """What is still known is what was known, or less of it."""
    lines = TEXTS[name].splitlines()
    order = data.draw(st.permutations(range(len(lines))))
    kept = data.draw(st.integers(0, len(lines)))
    before, after = (
        values(parse(TEXTS[name])),
        values(parse("\n".join(lines[index] for index in order[:kept]))),
    )
    for field, value in after.items():
        if field == "distributions":
            for package, found in value.items():
                # The label, or the release beside the build, may stand in a line that is gone.
                assert before[field][package].version.startswith(found.version or "")
        elif field == "variables":
            assert set(value.items()) <= set(before[field].items())
        elif field in ("gpus", "toolkits", "driver.exposed", "driver.nvml_error"):
            assert (
                len(value) <= max(len(before.get(field, ())), 0)
                if field in ("gpus", "toolkits") and before.get(field)
                else True
            )
        elif field == "distributions.complete":
            assert value is False
        elif field in before and isinstance(value, str):
            assert (
                before[field] == value
                or before[field].startswith((value + ".", value + "+"))
                or field in ("driver.exposed", "torch.hip")
            )
        else:
            assert before.get(field, value) == value


@pytest.mark.parametrize("name", sorted(TEXTS))
@given(data=st.data())
@settings(max_examples=25)
def test_any_order_of_any_format_is_read(name, data):
    lines = TEXTS[name].splitlines()
    order = data.draw(st.permutations(range(len(lines))))
    json.dumps(dump_facts(parse("\n".join(lines[index] for index in order))))


@given(
    st.lists(st.sampled_from(EVERY_LINE) | st.text(max_size=60), max_size=40),
    st.sampled_from(["\n", "\r\n", " ", "\\\n", "\n> ", "\x1b[0m\n", " | "]),
)
@example(["\\"], "\n")
@settings(max_examples=300)
def test_mixtures_never_raise_anything_else(lines, separator):
    json.dumps(dump_facts(parse(separator.join(lines))))


@given(st.sampled_from(EVERY_LINE), st.integers(0, 200), st.integers(0, 200), st.text(max_size=8))
@settings(max_examples=400)
def test_damaged_lines_never_raise_anything_else(line, start, length, put):
    json.dumps(dump_facts(parse(line[:start] + put + line[start + length :])))


HOSTILE = {
    "one long line": "a" * 2_000_000,
    "dots": "torch version " + "." * 2_000_000,
    "spaces": "GPU" + " " * 2_000_000 + "x",
    "bars": "|" * 1_000_000,
    "quotes": "> " * 1_000_000,
    "escapes": "\x1b[" * 1_000_000,
    "half escapes": "\x1b]0;" * 500_000,
    "equals": "=" * 1_000_000,
    "pins in a line": "a==1.0 " * 300_000,
    "continued": "docker run \\\n" * 100_000,
    "numbers": "1." * 1_000_000,
    "many lines": "GPU 0: x (UUID: y)\n" * 150_000,
    "many packages": "".join(f"p{number}==1.0\n" for number in range(150_000)),
    "many variables": "".join(f"NCCL_{number}=1\n" for number in range(150_000)),
    "deep yaml": "".join(f"{' ' * min(number, 900)}k{number}:\n" for number in range(20_000)),
    "open quote": "docker run --gpus '" + "x " * 500_000,
    "whl": "-1-py" * 400_000 + ".whl",
    "conflict": "a 1 requires " * 100_000 + ", but you have",
    "version words": "python " * 300_000,
    "driver words": "nvidia driver version is " * 100_000,
    "smi": "| NVIDIA-SMI " * 100_000,
    "rows": ("| 0  " + "N" * 70 + "  Off | ") * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_bounded(name):
    """Two megabytes of anything take seconds at most, and what comes out is small."""
    facts = within(20, lambda: parse(HOSTILE[name]))
    assert len(json.dumps(dump_facts(facts))) < 4_000_000


def test_time_is_linear():
    block = "\n".join(EVERY_LINE) + "\n"
    least = least_seconds(lambda: parse(block * 10))
    within(4 * least * 2 + 0.3, lambda: parse(block * 40))


def test_results_do_not_depend_on_chance():
    lines = list(EVERY_LINE)
    random.Random(7).shuffle(lines)
    text = "\n".join(lines)
    assert json.dumps(dump_facts(parse(text))) == json.dumps(dump_facts(parse(text)))


@pytest.mark.parametrize("sign", "=+-_.#*|~:/\\a0 \u2500")
def test_a_line_of_one_sign_is_read_at_once(sign):
    """A rule that somebody drew: a line of "=" took three seconds."""
    within(1, lambda: parse(f"torch 2.6.0\n{sign * 200_000}\n"))
