"""Devices as people write them: ``8x H100 80GB``, ``RTX PRO 6000 + RTX 6000 Ada``."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ..model.facts import Gpu
from ..model.sizes import parse_size

__all__ = ["CAPABILITY", "GPU_NAME", "MIG", "parse_gpus"]

CAPABILITY = re.compile(
    r"\b(?:sm_?|compute_|compute capability:?\s*|cc\s*)(\d{1,2})\.?(\d)[af]?\b", re.IGNORECASE
)
MIG = re.compile(r"\bMIG\b.{0,20}\b(?:enabled|on|\dg\.\d{1,3}gb)|\b\dg\.\d{1,3}gb\b", re.IGNORECASE)
_COUNT_BEFORE = re.compile(
    r"^(\d{1,3})\s*(?:[x×*卡张块]\s*|\s(?=(?:NVIDIA|Tesla|RTX|GTX|GeForce|[AHBLV]\d)))(?=[A-Za-z])",
    re.IGNORECASE,
)
_COUNT_AFTER = re.compile(
    r"\s*(?:[x×*]\s*(\d{1,3})|\((?:x\s*)?(\d{1,3})(?:x|\s+GPUs?)?\)|(\d{1,3})\s*[卡张块])\s*$",
    re.IGNORECASE,
)
GPU_NAME = re.compile(
    r"(?:NVIDIA |GeForce |Tesla |Quadro )*(?:"
    r"(?:RTX|GTX)\s?(?:PRO\s?)?A?\d{3,4}\w?"
    r"(?:[ -](?:Ti|SUPER|D|Ada(?: "
    r"Generation)?|Blackwell|Max-Q|Laptop|GPU|v2|Workstation|Server|Edition|Generation|Turing|\d{1,3}GB))*"
    r"|(?:DGX )?(?:GH|GB)\d{2,3}\b"
    r"|(?<![\w.-])[AHBLVTPKM](?:2|4|10|10G|16|20|30|40|40S|60|80|100|200|300|800|40m|100X)\b"
    r"(?:[ -](?:SXM\d?|PCI[eE]|PCIE|NVL|HBM\d?e?|\d{1,3} ?GB?|\d{1,3}G|3e|DGXS|FHHL))*"
    r"|(?:TITAN)\s+(?:RTX|V|Xp?|Black)\b|DGX Spark(?: \(GB10\))?|Jetson(?: "
    r"\w+){1,3}|PG\d{3}-\d{3}|MI\d{3}\w?|Radeon[\w ]+|CMP \d+HX)",
)


def parse_gpus(text: str) -> List[Tuple[int, Gpu]]:
    """Read devices and their counts: ``8x H100 80GB``, ``RTX PRO 6000 + RTX 6000 Ada``."""
    devices = []
    for part in re.split(r"\s+(?:\+|and|&)\s+|\s*;\s*", text[:300]):
        entry = _gpu(part)
        if entry is not None:
            devices.append(entry)
    return devices


def _gpu(text: str) -> Optional[Tuple[int, Gpu]]:
    capability = CAPABILITY.search(text)
    memory = re.search(r"[,(]\s*(\d{1,6}(?:\.\d{1,3})?\s?(?:GiB|GB|MiB|G))\b", text)
    mig = True if MIG.search(text) else None
    text = re.sub(r"(?<=\d)(?=(?:Ti|SUPER|Super)\b)", " ", text)
    plain = (
        re.sub(r"\((?!GB10)(?!x?\s*\d{1,3}(?:x| GPUs?)?\))[^()]{0,100}\)", " ", text)
        .split(",")[0]
        .strip(" .")
    )
    count = 1
    before = _COUNT_BEFORE.match(plain)
    if before:
        count, plain = int(before.group(1)), plain[before.end() :]
    after = _COUNT_AFTER.search(plain)
    if after:
        count = int(after.group(1) or after.group(2) or after.group(3))
        plain = plain[: after.start()]
    name = GPU_NAME.search(plain)
    if name is None or count == 0:
        return None
    words = re.sub(r"\b(RTX|GTX)(?=\d)", r"\1 ", name.group().strip())
    chip = re.search(r"\((GB10)\)", text)
    device = Gpu(
        name=f"NVIDIA {chip.group(1)}" if chip else words,
        compute_capability=".".join(capability.groups()) if capability else None,
        memory_total=parse_size(memory.group(1)) if memory else None,
        mig_mode=mig,
    )
    return count, device
