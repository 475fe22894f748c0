"""What a report's run is meant for, where it is not Linux with CUDA: the CPU, or ROCm."""

from __future__ import annotations

import re

from .presence import is_here

__all__ = ["meant_for_cpu", "meant_for_rocm"]

_LONGEST = 200_000  # characters that are gone through
#: Settings and files that make a run or a build one for the CPU.
_FOR_CPU = re.compile(
    r"\bDockerfile\.cpu\b|\bVLLM_TARGET_DEVICE=[\"']?cpu\b|(?<!\S)--device[= ]cpu\b"
    r"|\bdevice(?:_map)?=[\"']cpu[\"']"
)

#: The same for ROCm: images, files, devices, and what somebody says of their machine.
_FOR_ROCM = re.compile(
    r"\bDockerfile\.rocm\b|\bVLLM_TARGET_DEVICE=[\"']?rocm\b|\bHSA_OVERRIDE_GFX_VERSION=\S+"
    r"|\bHIP_VISIBLE_DEVICES=\S+|(?<![\w./-])rocm/[\w.-]+(?::[\w.-]+)?"
    r"|(?<![\w./:-])(?:[\w.-]+/){0,3}[\w.-]+:[\w.-]*rocm[\w.-]*"
    r"|--device[= ]/dev/kfd\b|\brocm-smi\b|\brocminfo\b"
)
_SAYS_ROCM = re.compile(
    r"\b(?:using|use|on|with|in|under|have|running|run|my|our|for)\s+(?:(?:an?|the|my|our|latest|"
    r"AMD|this)\s+){0,2}(?P<what>"
    r"ROCm(?: ?\d[\d.]*)?\b(?!\s+(?:support|users?|build|backend|and\s+CUDA))|"
    r"(?:Instinct |Radeon )?MI\d{3}X?\b|Radeon [RP]\w+)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\bCUDA \d|\bNVIDIA\b|\bcu1\d\d\b|\bnvidia-smi\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;!?\n]")


def meant_for_rocm(text: str) -> str:
    """Return the words by which a report is one of ROCm, "" for none, or where NVIDIA's things
    stand beside them.
    """
    text = text[:_LONGEST]
    if _ELSEWHERE.search(text):
        return ""
    match = _FOR_ROCM.search(text)
    if match is not None:
        return match.group()
    for said in _SAYS_ROCM.finditer(text) if "ROCm" in text or "MI3" in text else ():
        before = _SENTENCE.split(text[max(0, said.start() - 90) : said.start("what")])[-1]
        behind = _SENTENCE.split(text[said.end() : said.end() + 90])[0]
        if is_here(before, behind):
            return " ".join(said.group().split())
    return ""


def meant_for_cpu(text: str) -> str:
    """Return the setting or the file by which a report's run is one for the CPU, "" for none."""
    match = _FOR_CPU.search(text[:_LONGEST])
    return match.group() if match else ""
