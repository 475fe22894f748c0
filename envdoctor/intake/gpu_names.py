"""Devices as people write them: ``8x H100 80GB``, ``RTX PRO 6000 + RTX 6000 Ada``."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ..model.facts import Gpu
from ..model.sizes import parse_size

__all__ = [
    "ARCHITECTURES",
    "CAPABILITY",
    "COUNT",
    "COUNTS",
    "GPU_NAME",
    "MIG",
    "named_gpus",
    "parse_gpus",
]

CAPABILITY = re.compile(
    r"\b(?:sm_?|compute_|compute capability:?\s*|cc\s*)(\d{1,2})\.?(\d)[af]?\b", re.IGNORECASE
)
MIG = re.compile(r"\bMIG\b.{0,20}\b(?:enabled|on|\dg\.\d{1,3}gb)|\b\dg\.\d{1,3}gb\b", re.IGNORECASE)
#: GPU architectures, as torch.cuda.get_arch_list prints them.
ARCHITECTURES = re.compile(r"\b(?:sm|compute)_\d{2,3}[af]?\b")
COUNT = r"\d{1,3}|single|one|two|dual|three|four|quad|eight|sixteen|单|两|双|四|八"
COUNTS = {
    **dict.fromkeys(("single", "one", "单"), 1), **dict.fromkeys(("two", "dual", "两", "双"), 2),
    "three": 3, **dict.fromkeys(("four", "quad", "四"), 4), **dict.fromkeys(("eight", "八"), 8),
    "sixteen": 16,
}  # fmt: skip
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
    r"(?:RTX|GTX)\s?(?:PRO\s?)?A?\d{3,4}(?!s\b)\w?"
    r"(?:[ -](?:Ti|SUPER|Super|D|A(?= Laptop)|OEM|SFF|Embedded|with Max-Q Design|Ada(?: "
    r"Generation)?|Blackwell|Max-Q|Laptop|GPU|v2|Workstation|Server|Edition|Generation|Turing|\d{1,3}GB))*"
    r"|(?:DGX )?(?:GH|GB)\d{2,3}(?=s?\b)(?:[ -](?:\d{1,3}GB?|HBM3e?|NVL\d{0,2}))*"
    r"|(?:(?<![\w.-])|(?<=[1-9][x×*]))(?![BHMPTV]2\b)[AHBLVTPKM](?:2|4|10|10G|16|20|30|40|40S|60|80|100|200|300|800|40m|100S|100X)(?=s?\b)"
    r"(?:[ -](?:SXM\d?|PCI[eE]|PCIE|NVL|HBM\d?e?|\d{1,3} ?GB?|\d{1,3}G|3e|DGXS|FHHL))*"
    r"|Quadro [A-Z]{1,2}\d{3,4}|GeForce (?:GT|MX)\s?\d{3,4}"
    r"|TITAN\s+(?:RTX|V|Xp?|Black)\b|DGX Spark(?: \(GB10\))?|Jetson"
    r"(?: (?:AGX|NX|Nano|Orin|Super|Thor|TX[12]|T\d{4}|Xavier|Developer Kit"
    r"|\d{1,2}GB))+|PG\d{3}-\d{3}|MI\d{3}\w?|Radeon[\w ]+|CMP \d+HX)",
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


#: What stands before a device that somebody runs on, and what makes it one among many.
_RUN_ON = re.compile(
    r"\b(?:on|using|with|have|has|had|got|own|my|our|this|these|running)\s+"
    r"(?:(?:an?|the|my|our|this|these|same|new|local|remote|node|machine|server|box|host|instance|"
    r"of|with|gpus?|device|cards?)\s+)*$",
    re.IGNORECASE,
)
_ONLY_SPOKEN_OF = re.compile(
    r"\b(?:for|per|than|like|as|vs\.?|versus|e\.g\.?|from|any|every|all|other|another|no|or)\s+"
    r"(?:an?\s+|the\s+)?$",
    re.IGNORECASE,
)
_COUNTED = re.compile(rf"(?<![\w./+-])({COUNT})(?:(\s?[x×*]\s?)|[ -])$", re.IGNORECASE)
_TIMES_BEFORE = re.compile(r"(?<![\w./+-])[x×](\d{1,3})\s$")
_TIMES_BEHIND = re.compile(r"s?(?:\s?[x×*]\s?(\d{1,3})|\s?\(x?(\d{1,3})x?\))(?!\w)")
_BEHIND = re.compile(r"s?(?:[\s,;:!?)(]|\.(?!\w)|$)")
_OF_THE_KIND = re.compile(
    r"s?\s+(?:support|kernels?|images?|wheels?|builds?|branch|paths?|config\w*|tun\w+|or\b|class\b|"
    r"equivalents?|performance|prices?|SSDs?|NVMe)",
    re.IGNORECASE,
)
_GPU_BEFORE = re.compile(r"\b(?:GPU|card|device)\s+$", re.IGNORECASE)
_GPU_BEHIND = re.compile(r"s?\s+(?:GPU|card|installed)", re.IGNORECASE)
#: Names that are also those of other things; each has a vendor, a count or "GPU" beside it.
_SHORT = re.compile(r"[A-Z]\d{1,2}(?:m|M)?(?!\w)")


def named_gpus(text: str) -> List[Tuple[int, Gpu]]:
    """Read the devices that a clause says somebody runs on: ``on two H100s``, ``my RTX 4090``,
    ``with 8 x A100``; not those that it only speaks of (``faster than an H100``).
    """
    devices = []
    for match in GPU_NAME.finditer(text):
        before, start = text[: match.start()], match.start()
        if (start and text[start - 1] in "/\\.@-_:=#") or not _stands_behind(text, match.end()):
            continue
        count, sure, rest = _count_beside(before, text, match.end())
        if _ONLY_SPOKEN_OF.search(rest) or not (
            sure or _RUN_ON.search(rest) or _GPU_BEFORE.search(rest)
        ):
            continue
        short = _SHORT.fullmatch(match.group()) is not None and count is None
        if short and not (_GPU_BEHIND.match(text, match.end()) or _GPU_BEFORE.search(rest)):
            continue
        entry = _gpu(match.group())
        if entry is not None and count != 0:
            devices.append((count or 1, entry[1]))
    return devices


def _stands_behind(text: str, end: int) -> bool:
    if _OF_THE_KIND.match(text, end):
        return False
    return bool(_BEHIND.match(text, end) or _TIMES_BEHIND.match(text, end))


def _count_beside(before: str, text: str, end: int) -> Tuple[Optional[int], bool, str]:
    """Return how many devices are named, whether the count alone tells that it is one, and what
    stands before both. A bare number may belong to the word before it (``CUDA 12 H100``).
    """
    times = _TIMES_BEHIND.match(text, end)
    if times:
        return int(times.group(1) or times.group(2)), True, before
    times = _TIMES_BEFORE.search(before)
    if times:
        return int(times.group(1)), True, before[: times.start()]
    counted = _COUNTED.search(before)
    if counted is None:
        return None, False, before
    word = counted.group(1).lower()
    count = int(word) if word.isdigit() else COUNTS[word]
    rest = before[: counted.start()]
    plural = re.match(r"s\b|s?\s+(?:GPU|card)s\b", text[end : end + 12], re.IGNORECASE)
    sure = bool(counted.group(2) or (plural and not re.search(r"[A-Za-z]\s$", rest)))
    if not sure and word.isdigit() and _RUN_ON.search(rest) is None:
        return None, False, before
    return count, sure, rest
