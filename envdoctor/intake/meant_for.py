"""What a report's run is meant for, where it is not Linux with CUDA: the CPU, ROCm, Intel's GPUs,
Ascend's NPUs, or TPUs.
"""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Tuple

from .marked import Marked
from .presence import is_here

__all__ = ["VENDORS", "meant_for_cpu", "meant_for_vendor"]

_LONGEST = 200_000  # characters that are gone through
#: Settings and files that make a run or a build one for the CPU.
_FOR_CPU = Marked(
    "cpu",
    r"\bDockerfile\.cpu\b|\bVLLM_TARGET_DEVICE=[\"']?cpu\b|(?<!\S)--device[= ]cpu\b"
    r"|\bdevice(?:_map)?=[\"']cpu[\"']",
    0,
)


class _Vendor(NamedTuple):
    """How a vendor's devices show: pieces of which a text has one, what only they have (images,
    files, settings, devices), and their names, behind words by which somebody says to have them.
    """

    pieces: Tuple[str, ...]
    shown: re.Pattern[str]
    said: re.Pattern[str]


def _said(names: str) -> re.Pattern[str]:
    return re.compile(
        r"\b(?:using|use|on|with|in|under|have|running|run|my|our|for|connect(?:ed)?(?: it)? to)\s+"
        r"(?:(?:an?|the|my|our|latest|AMD|Intel|Huawei|Google|this|one|two|four|eight|single|"
        r"multiple|"
        rf"\d{{1,3}} ?[x×]?)\s+){{0,3}}(?P<what>{names})",
        re.IGNORECASE,
    )


#: Intel's devices by their names (https://dgpu-docs.intel.com/devices/hardware-table.html).
_OF_INTEL = (
    r"(?:Intel(?:\(R\)|®)? )?(?:(?:Data Cent(?:er|re) GPU )?Max (?:Series\b|1100\b|1350\b|1550\b)"
    r"|(?:Data Cent(?:er|re) GPU )?Flex (?:Series\b|140\b|170\b)|Iris(?:\(R\)|®)? Xe\b"
    r"|Arc(?:\(TM\)|™)? (?:(?:Pro )?[AB]\d{2,3}\w?\b|1[34]0[TUV]\b|GPUs?\b|[Gg]raphics\b))"
)
#: By the field that says that a report is of these devices.
VENDORS: Mapping[str, _Vendor] = {
    "report.for_rocm": _Vendor(
        (
            "rocm",
            "ROCm",
            "ROCM",
            "[AMD",
            "HIP",
            "HSA",
            "MI1",
            "MI2",
            "MI3",
            "/dev/kfd",
            "Radeon",
            "RX ",
            "gfx",
        ),
        re.compile(
            r"\bDockerfile\.rocm\b|\bVLLM_TARGET_DEVICE=[\"']?rocm\b"
            r"|\bHSA_OVERRIDE_GFX_VERSION=\S+"
            r"|\bHIP_VISIBLE_DEVICES=\S+|(?<![\w./-])rocm/[\w.-]+(?::[\w.-]+)?"
            r"|(?<![\w./:-])(?:[\w.-]+/){0,3}[\w.-]+:[\w.-]*rocm[\w.-]*"
            r"|--device[= ]/dev/kfd\b|\brocm-smi\b|\brocminfo\b"
            r"|^\W{0,4}\[(?:Bug\]\W{0,3}\[)?(?i:rocm|amd)\]|\b\d ?[x×*] ?MI\d{3}X?\b"
        ),
        _said(
            r"ROCm(?: ?\d[\d.]*)?\b(?!\s+(?:support|users?|build|backend|and\s+CUDA))|"
            r"(?:Instinct |Radeon )?MI\d{3}X?\b|Radeon [RP]\w+|RX [5-9]\d{3}\b|"
            r"gfx(?:9|1[0-2])\d\w\w?\b"
        ),
    ),
    "report.for_xpu": _Vendor(
        (
            "xpu",
            "ipex",
            "XPU",
            "Arc",
            "Max ",
            "Flex ",
            "Iris",
            "oneapi",
            "sycl",
            "SYCL",
            "bigdl",
            "Intel GPU",
            "Intel iGPU",
            "Intel dGPU",
            "Intel integrated",
        ),
        re.compile(
            r"\bDockerfile\.xpu\b|\bVLLM_TARGET_DEVICE=[\"']?xpu\b|(?<!\S)--device[= ]xpu\b"
            r"|\bdevice(?:_map)?\s?=\s?[\"']xpu[\"']|\.to\([\"']xpu[\"']\)"
            r"|(?<!else )\btorch\.xpu\.\w+"
            r"|\b(?:ipex_llm|bigdl[./]llm)[./]\w*[./]?xpu\b|\bONEAPI_DEVICE_SELECTOR=\S+"
            r"|\bintel_extension_for_pytorch/lib/libintel-ext-pt-gpu\.so|\bxpu-smi\b|\bsycl-ls\b"
            r"|(?<![\w./-])intelanalytics/ipex-llm-[\w.-]*xpu[\w.-]*(?::[\w.-]+)?"
            # As the driver names a device, and as people do behind a label.
            r"|\bIntel\(R\) (?:Arc\(TM\)|Iris\(R\)|Data Center GPU)(?: [\w()]+)?"
            rf"|\b(?:GPU|[Gg]raphics(?: [Cc]ard)?|[Dd]evice)s?\W{{1,4}}(?:\d ?[x×*] ?)?{_OF_INTEL}"
        ),
        _said(
            r"XPUs?\b(?!\s+(?:support|users?|build|backend))|"
            rf"{_OF_INTEL}|(?<=Intel )(?:(?:integrated |discrete )?GPUs?|[id]GPUs?)\b"
            r"(?!\s+(?:support|users?|build|backend))"
        ),
    ),
    "report.for_npu": _Vendor(
        ("npu", "NPU", "scend", "ASCEND", "昇腾"),
        re.compile(
            r"\bASCEND_(?:RT_VISIBLE_DEVICES|HOME_PATH|TOOLKIT_HOME)=\S*|\bnpu-smi\b"
            r"|\btorch_npu/\w+|\bimport torch_npu\b|\bvllm_ascend/\w+|/usr/local/Ascend/\w+"
            r"|--device[= ]/dev/davinci\d*|(?<!\S)--device[= ]npu\b"
            r"|(?<![\w./-])(?:quay\.io/)?ascend/[\w.-]+(?::[\w.-]+)?"
        ),
        _said(r"(?:Ascend )?910[BC]?\d?\b|Atlas \d{3}\w*|(?:Ascend )?NPUs?\b(?!\s+support)"),
    ),
    "report.for_tpu": _Vendor(
        ("tpu", "TPU", "torch_xla", "torch-xla"),
        re.compile(
            r"\bVLLM_TARGET_DEVICE=[\"']?tpu\b|\bPJRT_DEVICE=[\"']?TPU\b|\btorch_xla/\w+|\blibtpu\b"
            r"|\bimport torch_xla\b|\bDockerfile\.tpu\b|\btpu_(?:worker|model_runner)\.py\b"
            r"|(?<![\w./-])vllm/vllm-tpu(?::[\w.-]+)?"
        ),
        _said(r"TPU(?: v\d\w*| pod| VM)?s?\b(?!\s+(?:support|backend))|v\d[ep]?-\d{1,4}\b TPUs?"),
    ),
}
_ELSEWHERE = re.compile(r"\bCUDA \d|\bNVIDIA\b|\bcu1\d\d\b|\bnvidia-smi\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;!?\n]")
_SENTENCE_END = re.compile(r"[.;!?](?=\s|$)|\n")
#: ``On ROCm (AMD GPU), FP8_E4M3 is supported`` says when, not where, unless something fails there.
_CONDITION = re.compile(r"\W*(?:On|With|In|For|Under)\b[^,]{1,60},|\W*For\b")
_FAILS = re.compile(
    r"\b(?:fail\w*|crash\w*|errors?|hangs?|stuck|break\w*|broken|cannot|can't|"
    r"(?:does|do|did)(?: not|n't)|not work\w*|segfault\w*|slow\w*|I|we|my|our)\b",
    re.IGNORECASE,
)
#: A library or a program that is looked for and is not there shows no device: engines that ask each
#: platform in turn say so (vLLM v0.8.4 platforms/__init__.py: "TPU platform is not available
#: because: No module named 'libtpu'").
_MISSED = re.compile(
    r"No module named|not (?:found|available|installed)|cannot open|[Uu]nable to|No such file"
)
_LINE = 300  # characters of a line on either side


def _line_of(text: str, match: re.Match[str]) -> str:
    """Return the line in which a match stands, of a long one what is near."""
    before = text[max(0, match.start() - _LINE) : match.start()].rpartition("\n")[2]
    return before + text[match.start() : match.end() + _LINE].partition("\n")[0]


def meant_for_vendor(text: str, field: str) -> str:
    """Return the words by which a report is one of a vendor's devices (a key of ``VENDORS``), ""
    for none, or where NVIDIA's things stand beside them.
    """
    text = text[:_LONGEST]
    vendor = VENDORS[field]
    if not any(piece in text for piece in vendor.pieces) or _ELSEWHERE.search(text):
        return ""
    for match in vendor.shown.finditer(text):
        if not _MISSED.search(_line_of(text, match)):
            return match.group()
    for said in vendor.said.finditer(text):
        before = _SENTENCE.split(text[max(0, said.start() - 90) : said.start("what")])[-1]
        behind = _SENTENCE.split(text[said.end() : said.end() + 90])[0]
        rest = _SENTENCE_END.split(text[said.end() : said.end() + _LINE])[0]
        whole = f"{before}{text[said.start('what') : said.end()]}{rest}"
        if _CONDITION.match(whole) and not _FAILS.search(whole):
            continue
        if is_here(before, behind):
            return " ".join(said.group().split())
    return ""


def meant_for_cpu(text: str) -> str:
    """Return the setting or the file by which a report's run is one for the CPU, "" for none."""
    match = _FOR_CPU.search(text[:_LONGEST])
    return match.group() if match else ""
