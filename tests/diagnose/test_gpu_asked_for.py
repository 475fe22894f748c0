"""What packages raise where torch sees no GPU, and what the facts have of one."""

import json
import re
from pathlib import Path

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts

MESSAGES = Path(__file__).parents[2] / "matrices" / "messages"
ASKS_FOR_ONE = re.compile(
    r"\bGPUs? is (?:required|needed)|\bNo GPU (?:or \w+ )*found\. A GPU|\bno GPU available"
    r"|quantization is only supported on GPU|CUDA is (?:not available\.|required but)"
)


def measured():
    """The texts of transformers and accelerate whose sources raise them where there is none."""
    for package in ("transformers", "accelerate"):
        document = json.loads((MESSAGES / f"{package}.json").read_text("utf-8"))
        for entries in document["messages"].values():
            for template, _, places, _ in entries:
                conditions = " ".join(place[4][-1] for place in places if place[4])
                is_of_device = re.search(r"not \(?torch\.\w+\.is_available\(\)", conditions)
                if is_of_device and ASKS_FOR_ONE.search(template):
                    yield re.sub(r"\{[^{}]*\}", "x", template)


def traces(tmp_path, line, facts=None):
    path = tmp_path / "run.log"
    path.write_text(f"RuntimeError: {line}\n", encoding="utf-8")
    return diagnose([str(path)], facts, load_matrix()).traces


def test_what_measured_packages_raise_without_a_gpu_is_read():
    anchors = next(s for s in load_matrix().signatures if s.id == "cuda-no-device").anchors
    texts = set(measured())
    unread = [text for text in texts if not any(anchor in text for anchor in anchors)]
    assert len(texts) > 8
    assert unread == []


UNSLOTH = "Unsloth cannot find any torch accelerator? You need a GPU."


def test_a_machine_without_a_gpu_is_the_cause(tmp_path):
    facts = Facts({"gpus": Known((), Evidence("report"))})
    root = traces(tmp_path, UNSLOTH, facts)[0].finding
    assert root.message.startswith("The machine has no GPU, and what was called needs one")
    assert (root.component, root.kind) == ("gpu", "missing")


@pytest.mark.parametrize("assume", [["gpu=H100:8"], ["python=3.11"]])
def test_of_a_machine_with_one_or_of_which_nothing_is_known_it_is_not_said(tmp_path, assume):
    facts = with_assumptions(Facts(), dict(parse_assumptions(assume)))
    for trace in traces(tmp_path, UNSLOTH, facts):
        assert "The machine has no GPU" not in trace.finding.message
