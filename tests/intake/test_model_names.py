"""Families of models that a text names."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.intake.model_names import FAMILIES, named_families
from envdoctor.matrix.loader import load_matrix


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1"),
        ("训练llama3.1-8b-instruct", "llama-3.1"),
        ("meta-llama/Llama-3.2-11B-Vision", "llama-3.2-vision"),
        ("Llama-4-Scout-17B-16E", "llama-4"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl"),
        ("Qwen2-VL-2B", "qwen2-vl"),
        ("qwen3 2B VL", "qwen3-vl"),
        ("Qwen/Qwen3-VL-30B-A3B", "qwen3-vl"),
        ("Qwen/Qwen3-0.6B", "qwen3"),
        ("google/gemma-3-27b-it", "gemma-3"),
        ("google/gemma-2-9b", "gemma-2"),
        ("openai/gpt-oss-20b", "gpt-oss"),
        ("zai-org/GLM-4.5-Air", "glm-4.5"),
    ],
)
def test_names(text, family):
    assert named_families(text) == {family}


@pytest.mark.parametrize(
    "text", ["Llama-2-7b", "Qwen2.5-7B", "google/gemma-2b", "llama 4 GPUs", "qwen3.5", "Qwen1.5-7B"]
)
def test_no_names(text):
    assert named_families(text) == set()


def test_every_family_has_a_row_and_one_of_several_is_none():
    matrix = load_matrix()
    ids = {row.id for row in matrix.rows()}
    assert {f"{family}-transformers" for family in FAMILIES} <= ids
    one = parse_report("transformers 4.42.3\nmodel: meta-llama/Llama-3.1-8B\n")
    assert one.value("request").settings()["model_family"] == "llama-3.1"
    both = parse_report("transformers 4.42.3\nLlama-3.1 works, Qwen3-8B does not\n")
    assert both.value("request") is None
