"""Families of models that a text names, as far as old releases of transformers or an engine do not
know them.
"""

from __future__ import annotations

import re
from typing import Set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.workload import Workload

__all__ = [
    "FAMILIES",
    "family_of",
    "named_families",
    "named_models",
    "serving_engine",
    "with_family",
]

#: What rows call a family, and how people and repositories name it; the more specific ones first.
#: ``scripts/surface_scan/families.toml`` says what tells that a package knows one.
FAMILIES = {
    "llama-3.2-vision": r"llama[-_ ]?3[._]2[-_ ]?\d{2}b[-_ ]?vision",
    "llama-3.1": r"llama[-_ ]?3[._][123](?![\d.])",
    "llama-4": r"llama[-_ ]?4[-_ ](?:scout|maverick)",
    "qwen2.5-omni": r"qwen[-_ ]?2[._]5[-_ ]?omni",
    "qwen2.5-vl": r"qwen[-_ ]?2[._]5[-_ ]?(?:\d{1,2}b[-_ ])?vl",
    "qwen2-audio": r"qwen[-_ ]?2[-_ ]?audio",
    "qwen2-vl": r"qwen[-_ ]?2[-_ ]?(?:\d{1,2}b[-_ ])?vl",
    "qwen3-vl": r"qwen[-_ ]?3[-_ ]?(?:\d{1,3}b[-_ ]?(?:a\d{1,2}b[-_ ])?)?vl",
    "qwen3-next": r"qwen[-_ ]?3[-_ ]?(?:coder[-_ ]?)?next",
    "qwen3-omni": r"qwen[-_ ]?3[-_ ]?omni",
    "qwen3-moe": r"qwen[-_ ]?3[-_ ]?(?:coder[-_ ]?)?\d{2,3}b[-_ ]?a\d{1,2}b",
    "qwen3.5": r"qwen[-_ ]?3[._]5(?![.\d]|[-_ ]?(?:plus|max|flash|omni|asr|tts))",
    "qwen3": r"qwen[-_ ]?3(?![.\d]|_\d(?!\d*b)|[-_ ]?(?:asr|tts|embedding|reranker|guard))",
    "gemma-3n": r"gemma[-_ ]?3n",
    "gemma-4": r"gemma[-_ ]?4(?![.\d]|b)",
    "gemma-3": r"gemma[-_ ]?3(?![.\d])",
    "gemma-2": r"gemma[-_ ]?2(?![.\d]|b)",
    "gpt-oss": r"gpt[-_ ]oss",
    "glm-4.1v": r"glm[-_ ]?4[._]1v",
    "glm-4.5v": r"glm[-_ ]?4[._]5v",
    "glm-4.7-flash": r"glm[-_ ]?4[._]7[-_ ]?flash",
    "glm-4.5": r"glm[-_ ]?4[._][567](?!v|\d)",
    "glm-4-0414": r"glm[-_ ](?:4|z1)[-_ ](?:rumination[-_ ])?(?:9|32)b[-_ ]0414",
    "glm-5": r"glm[-_ ]5(?![._v\d])",
    "mistral-small-3.1": r"mistral[-_ ]?small[-_ ]?3[._]1",
    "deepseek-v3.2": r"deepseek[-_ ]?v3[._]2",
    "deepseek-v4": r"deepseek[-_ ]?v4(?![._]?\d)",
    "deepseek-v3": r"deepseek[-_ ]?(?:v3(?:[._]1)?(?![._]?\d)"
    r"|r1(?![-_ :]?(?:\d{4}[-_ ])?(?:distill?|qwen|llama|lite|zero[-_ ]\d|\d{1,2}[._]?\d?b)))",
    "deepseek-ocr": r"deepseek[-_ ]?ocr(?![-_ ]?2)",
    "minimax-m2": r"minimax[-_ ]?m2(?![.\d])",
    "kimi-vl": r"kimi[-_ ]?vl",
    "kimi-linear": r"kimi[-_ ]?linear",
    "kimi-k2.5": r"kimi[-_ ]?k2[._]5",
    "mimo": r"mimo[-_ ]7b[-_ ](?!vl)",
    "phi-4-multimodal": r"phi[-_ ]?4[-_ ]multimodal",
    "olmo-2": r"olmo[-_ ]?2[-_ ]",
    "olmo-3": r"olmo[-_ ]?3[-_ ]",
    "granite-4": r"granite[-_ ]4[._]0[-_ ](?!tiny[-_ ]preview|vision|speech)",
    "smollm3": r"smollm[-_ ]?3",
    "smolvlm2": r"smolvlm[-_ ]?2",
    "ernie-4.5": r"ernie[-_ ]?4[._]5(?!\S*vl)",
    "seed-oss": r"seed[-_ ]oss",
    "apertus": r"apertus[-_ ]\d",
    "exaone-4": r"exaone[-_ ]?4[._]0",
    "lfm2": r"lfm2[-_ ](?:350m|700m|1[._]2b|2[._]6b)",
    "falcon-h1": r"falcon[-_ ]h1(?![-_r])|falcon[-_ ]h1[-_ ](?=[\d.]+b)",
    "command-a": r"command[-_ ](?:a[-_ ](?:03|reasoning|translate)|r7b)",
    "voxtral": r"voxtral[-_ ](?:mini[-_ ]3b|small)",
    "llava-onevision": r"llava[-_ ]onevision[-\w]{1,40}[-_]hf",
}
_NAMED = re.compile(
    r"(?<![a-z])(?:"
    + "|".join(f"(?P<f{number}>{form})" for number, form in enumerate(FAMILIES.values()))
    + ")",
    re.IGNORECASE,
)
#: What a line holds that names one: the word that each form begins with.
_BEGINNINGS = frozenset(re.split("[^a-z]", form)[0] for form in FAMILIES.values())
_NAMES = tuple(FAMILIES)


#: The name of a script or a configuration: who wrote it may run another model with it. A module of
#: transformers, and the folder, are of the family.
_SCRIPT = re.compile(
    r"(?<![\w.-])(?!(?:modeling|configuration|processing|tokenization|modular)_)[\w.-]{1,100}"
    r"\.(?:sh|py|ya?ml|ipynb|log)\b"
)
#: A model whose name says how many parameters it has, as a hub or a person writes it.
_SIZED = re.compile(
    r"(?<![\w./@:-])(?:[A-Za-z][\w.-]{1,40}/)?"
    r"(?:[A-Za-z][A-Za-z0-9.]{1,20}(?:-[A-Za-z0-9.]{1,12}){0,3}-|(?:llama|qwen|mistral|gemma)[ -]?"
    r"(?:\d(?:\.\d)? )?)\d{1,3}(?:\.\d{1,2})?b(?:-[A-Za-z0-9.]{1,20}){0,5}(?![\w/-])",
    re.IGNORECASE,
)
#: The size before the family, as people say it: ``a 70B llama``.
_SIZED_BEFORE = re.compile(
    r"(?<![\w./@:-])(\d{1,3}(?:\.\d{1,2})?b)[ -](?:parameter |size )?"
    r"(llama|qwen|mistral|gemma|deepseek|yi|phi|glm)\b(?![\w/.-]*/)",
    re.IGNORECASE,
)
_SERVING = re.compile(
    r"\b(?:with|using|on|in|via|through|by|under) (?:the )?(vllm|sglang)\b(?!/)"
    r"|\b(?:serv|deploy|host|launch|runn?|load|start)\w{0,4} .{0,60}\b(vllm|sglang)\b(?!/)"
    r"|\b(vllm|sglang) (?:serves?|loads?|runs?|starts?|hosts?"
    r"|fails? to (?:serve|load|run|start))\b"
    r"|\b(LLM)\(\s*model\s*=",
    re.IGNORECASE,
)
_CLASSES = {"llm": "vllm"}  # by the class that serves


def named_models(text: str) -> Set[str]:
    """Return the models that a line names with the number of their parameters."""
    if "b" not in text and "B" not in text:
        return set()
    whole = {
        match.group().strip().rstrip(".").replace(" ", "-") for match in _SIZED.finditer(text[:600])
    }
    return whole | {f"{name}-{size}" for size, name in _SIZED_BEFORE.findall(text[:600])}


def serving_engine(text: str) -> str:
    """Return the engine that a sentence says to serve a model with, "" where it says none."""
    match = _SERVING.search(text[:600])
    name = next(filter(None, match.groups())).lower() if match else ""
    return _CLASSES.get(name, name)


def named_families(text: str) -> Set[str]:
    """Return the families that a line names."""
    if not any(map(text.lower().__contains__, _BEGINNINGS)):
        return set()
    text = _SCRIPT.sub(" ", text[:1000])
    return {_NAMES[int((match.lastgroup or "f0")[1:])] for match in _NAMED.finditer(text)}


def family_of(model: str) -> str:
    """Return the family of a model by its hub id or path, "" where it names none or several."""
    named = named_families(model)
    return named.pop() if len(named) == 1 else ""


def with_family(workload: Workload) -> Workload:
    """Return a workload with the family of its model, where that is named and nobody states one."""
    model = workload.value("actor.model")
    if not model or workload.setting("model_family") is not None:
        return workload
    family = family_of(str(model))
    return workload.updated({}, {"model_family": family}) if family else workload
