"""Families of models that a text names."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.intake.assumptions import parse_assumptions
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
        ("zai-org/GLM-4.6", "glm-4.5"),
        ("zai-org/GLM-4.5V", "glm-4.5v"),
        ("zai-org/GLM-4.7-Flash", "glm-4.7-flash"),
        ("THUDM/GLM-Z1-Rumination-32B-0414", "glm-4-0414"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-moe"),
        ("Qwen/Qwen3-Coder-480B-A35B", "qwen3-moe"),
        ("Qwen/Qwen3-Coder-Next", "qwen3-next"),
        ("Qwen/Qwen3.5-27B", "qwen3.5"),
        ("google/gemma-4-31B-it", "gemma-4"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"),
        ("MiniMaxAI/MiniMax-M2", "minimax-m2"),
        ("moonshotai/Kimi-K2.5", "kimi-k2.5"),
        ("XiaomiMiMo/MiMo-7B-RL", "mimo"),
        ("microsoft/Phi-4-multimodal-instruct", "phi-4-multimodal"),
        ("allenai/OLMo-2-1124-7B", "olmo-2"),
        ("ibm-granite/granite-4.0-h-small", "granite-4"),
        ("HuggingFaceTB/SmolLM3-3B", "smollm3"),
        ("baidu/ERNIE-4.5-0.3B-PT", "ernie-4.5"),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "seed-oss"),
        ("swiss-ai/Apertus-8B-2509", "apertus"),
        ("LGAI-EXAONE/EXAONE-4.0-32B", "exaone-4"),
        ("LiquidAI/LFM2-1.2B", "lfm2"),
        ("tiiuae/Falcon-H1-7B-Instruct", "falcon-h1"),
        ("CohereForAI/c4ai-command-r7b-12-2024", "command-a"),
        ("mistralai/Voxtral-Mini-3B-2507", "voxtral"),
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", "llava-onevision"),
    ],
)
def test_names(text, family):
    assert named_families(text) == {family}


@pytest.mark.parametrize(
    "text",
    [
        *("Llama-2-7b", "Qwen2.5-7B", "google/gemma-2b", "llama 4 GPUs", "Qwen1.5-7B"),
        *("google/gemma-4b", "DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1:32b", "DeepSeek-V2"),
        *("Qwen3-Embedding-8B", "GLM-4.1", "SmolVLM-Instruct", "baidu/ERNIE-4.5-VL-28B-A3B-PT"),
        *("LFM2-VL-1.6B", "falcon-7b", "a seed of 4", "the command a user runs", "Kimi-K2"),
    ],
)
def test_no_names(text):
    assert named_families(text) == set()


def test_every_family_has_a_row_and_one_of_several_is_none():
    matrix = load_matrix()
    families = {
        argument
        for row in matrix.rows()
        for term in row.terms
        if term.component == "model_family"
        for argument in term.argument
    }
    assert set(FAMILIES) == families
    one = parse_report("transformers 4.42.3\nmodel: meta-llama/Llama-3.1-8B\n")
    assert one.value("request").settings()["model_family"] == "llama-3.1"
    both = parse_report("transformers 4.42.3\nLlama-3.1 works, Qwen3-8B does not\n")
    assert both.value("request") is None
    launched = parse_report("Qwen3-8B works\nvllm serve meta-llama/Llama-3.1-8B --port 8000\n")
    assert launched.value("request").settings()["model_family"] == "llama-3.1"
    assumed = parse_assumptions(["request:model=/models/Qwen3-8B"])["request"].value
    assert assumed.settings()["model_family"] == "qwen3"


def test_the_name_of_a_script_names_no_model():
    for text in ("bash run_qwen3b.sh", "python examples/gemma3_sft.py", "qwen2.5_vl.yaml"):
        assert not named_families(text)
    assert named_families("transformers/models/qwen3/modeling_qwen3.py") == {"qwen3"}
    assert named_families("bash run.sh --model Qwen/Qwen3-8B") == {"qwen3"}
