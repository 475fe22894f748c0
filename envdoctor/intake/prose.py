"""What people write by hand: ``GPU: 8x H100``, ``driver 535.129.03``, ``vllm 0.6.3``.

What could mean two things stays unknown.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple

from ..model.facts import Gpu
from ..model.sizes import parse_limit, parse_size
from ..model.versions import canonicalize_name, try_version
from .clean_text import Line
from .collect_env import architecture, operating_system, plain_label, platform_words, python_version
from .container_spec import image_of_words
from .draft import INTENT, LABEL, PROSE, Draft
from .names import known_distribution
from .nvidia_output import driver_release
from .package_lists import read_range
from .word_lists import phrases

__all__ = ["ClaimedVersion", "ProseReader", "claimed_version", "parse_gpus"]

_NUMBER = r"\d+(?:\.\d+)+(?:[a-zA-Z0-9.]*)(?:\+[A-Za-z0-9.]*)?"
_VERSION = re.compile(rf"v?({_NUMBER}|\d+\.\w+)")
_MORE = re.compile(
    r"\s*(?:\+|or (?:later|newer|above|more|higher|greater)|and "
    r"(?:later|newer|above|up|higher))(?:$|[\s,;)])"
)
_LESS = re.compile(r"\s*or (?:older|below|earlier|lower|less)\b")
_RANGE = re.compile(r"(?:(?:>=|<=|==|~=|!=|<|>)\s*v?\d[\w.+*]*\s*,?\s*)+")
_PAIR = re.compile(r"([A-Za-z/][\w ./()?\[\]-]{0,60}?)\s*(?:[:=]|\.{4,}|->)\s*(\S.*)$")
_NAMED = re.compile(
    r"(?<![\w./:=-])([A-Za-z][\w-]{1,40}(?:[ ](?:attention|attn|engine|factory|vision))?)(?: "
    rf"version)?(?: |: ?|=|, | \()"
    rf"(?:version |is )?v?({_NUMBER})(?![\w/])(\s?\+(?!\w)|\s+or (?:later|newer|above))?",
    re.IGNORECASE,
)
_TABLE_ROW = re.compile(r"([A-Za-z][\w.-]{1,60})(?: {2,})(\d[\w.!+-]*)(?: .*)?$")
_BUILD_LABEL = re.compile(
    r"(?<![\w./-])(torch|pytorch)\s+v?(\d+\.\d+(?:\.\d+)?)\s*\+?\s*\(?((?:cu|rocm)\d{2,3}|cpu)\b",
    re.IGNORECASE,
)
_WANTS = re.compile(
    r"\b(?:requires?|requires-python|required|needs?|expect(?:s|ed)?|should|must|instead|upgrad\w*|downgrad\w*|recommend\w*|supports?|"
    r"README|fixed|works? (?:with|on)|tried|also|before|after|until|since|not)\b",
    re.IGNORECASE,
)
_DRIVER = re.compile(
    r"\b(?:nvidia|gpu|cuda|kernel|display|kmd)?[ "
    r"-]?driver(?:-\d{3}(?:-\w+)?)?\b(?:\s+(?:version|release|installed|is))*"
    r"\s*[:=(]?\s*v?(\d{3}\.\d{2,3}(?:\.\d{1,3})?)\b",
    re.IGNORECASE,
)
_DRIVER_CUDA = re.compile(r"\b(?:CUDA version[: ]*|CUDA[: ]+)(\d{1,2}\.\d{1,2})\b", re.IGNORECASE)
_PYTHON = re.compile(
    r"(?<![\w./-])python[ :=]*(?:version[ "
    r":]*)?v?([23]\.\d{1,2}(?:\.\d{1,2})?)(?![\w.])(?!\s*(?:or|\+|to|-)\s*\w)",
    re.IGNORECASE,
)
_PYTHON_PATH = re.compile(r"/python(3\.\d{1,2})/(?:site|dist)-packages\b")
_FABRIC = re.compile(
    r"nvidia-fabric-?manager(?:-\d{3})?\s*(?::|=|\s)\s*(?:version\s*)?(\d{3}\.\d{2,3}(?:\.\d{2,3})?)",
    re.IGNORECASE,
)
_COMPAT = re.compile(r"cuda-compat-(\d{2})-(\d)\b(?:\D{1,20}(\d{3}\.\d{2,3}(?:\.\d{2,3})?))?")
_SYSTEM_CUDNN = re.compile(
    r"\bsystem(?:-wide)?\s+cudnn\s+v?(\d+\.\d+(?:\.\d+){0,2})", re.IGNORECASE
)
_ARCH_LIST = re.compile(r"\b(?:sm|compute)_\d{2,3}[af]?\b")
_CAPABILITY = re.compile(
    r"\b(?:sm_?|compute_|compute capability:?\s*|cc\s*)(\d{1,2})\.?(\d)[af]?\b", re.IGNORECASE
)
_HOST_DIRECTORY = re.compile(r"(?:^|\s)cd\s+(/\S{1,300})\s*$")
_PARTS = re.compile(r"\s+[/|]\s+|\s*;\s+|,\s+(?=[A-Za-z])")
_GLIBC = re.compile(
    r"(?<![\w-])glibc(?: version)?(?: is)?[ :=-]+(\d\.\d{2})\b(?!\s*\+)", re.IGNORECASE
)
_TOOLKIT = re.compile(
    r"\b(?:nvcc|CUDA "
    r"toolkit)\b[^\d/]{0,14}?(\d{2}\.\d(?:\.\d{1,4})?)\b|\bcuda_(\d{2}\.\d)\.r\d{2}\.\d/compiler",
    re.IGNORECASE,
)
_RELEASE = r"(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\b"
_DRIVER_FILES = (
    (
        re.compile(rf"\bNVML(?: library)?(?: version)?\s*[:=]?\s*{_RELEASE}", re.IGNORECASE),
        "driver.nvml_release",
    ),
    (re.compile(rf"\blibcuda\.so\.{_RELEASE}"), "driver.libcuda_release"),
    (
        re.compile(rf"\bkernel module(?: version)?\s*[:=]?\s*{_RELEASE}", re.IGNORECASE),
        "driver.release",
    ),
)
_MIG = re.compile(
    r"\bMIG\b.{0,20}\b(?:enabled|on|\dg\.\d{1,3}gb)|\b\dg\.\d{1,3}gb\b", re.IGNORECASE
)

_GPU_COUNT_BEFORE = re.compile(
    r"^(\d{1,3})\s*(?:[x×*]\s*|\s(?=(?:NVIDIA|Tesla|RTX|GTX|[AHBLV]\d)))(?=[A-Za-z])", re.IGNORECASE
)
_GPU_COUNT_AFTER = re.compile(
    r"\s*(?:[x×*]\s*(\d{1,3})|\((?:x\s*)?(\d{1,3})(?:x|\s+GPUs?)?\))\s*$", re.IGNORECASE
)
_GPU_NAME = re.compile(
    r"(?:NVIDIA |GeForce |Tesla |Quadro )*(?:"
    r"(?:RTX|GTX)\s?(?:PRO\s?)?A?\d{3,4}\w?"
    r"(?:[ -](?:Ti|SUPER|D|Ada(?: "
    r"Generation)?|Blackwell|Max-Q|Laptop|GPU|v2|Workstation|Server|Edition|Generation|Turing|\d{1,3}GB))*"
    r"|(?:DGX )?(?:GH|GB)\d{2,3}\b"
    r"|[AHBLVTPKM](?:2|4|10|10G|16|20|30|40|40S|60|80|100|200|300|800|40m|100X)\b"
    r"(?:[ -](?:SXM\d?|PCI[eE]|PCIE|NVL|HBM\d?e?|\d{1,3} ?GB?|\d{1,3}G|3e|DGXS|FHHL))*"
    r"|(?:TITAN)\s+(?:RTX|V|Xp?|Black)\b|DGX Spark(?: \(GB10\))?|Jetson(?: "
    r"\w+){1,3}|PG\d{3}-\d{3}|MI\d{3}\w?|Radeon[\w ]+|CMP \d+HX)",
)
_GPU_KEYS = phrases(
    """
    gpu, gpus, gpu type, gpu model, gpu models, gpus used, gpu name, graphics card, video card, gpu
    device, gpu info, gpu hardware, hardware, accelerator, accelerators, nvidia gpu, nvidia gpus,
    device name, gpu card, cuda device, devices, gpu 型号, card, gpu(s), gpus
    """
)
_COUNT_KEYS = phrases(
    """
    gpu number, gpu count, number of gpus, num gpus, gpus per node, n_gpus_per_node, num_gpus, #
    gpus
    """
)
_DRIVER_KEYS = phrases(
    """
    nvidia driver, driver, gpu driver, cuda driver, nvidia-driver, nvidia gpu driver, driver
    release, nvidia driver release, kernel driver, host driver, nvidia drivers, nvidia_driver
    """
)
_MEMORY_KEYS = phrases(
    """
    host memory, system memory, ram, system ram, total memory, cpu memory, total ram, main memory,
    memory, mem, host ram, cpu ram, physical memory, node memory
    """
)
_SHM_KEYS = phrases(
    """
    /dev/shm, shm, shm size, shm-size, shm_size, dev_shm, /dev/shm size, shared memory, shared
    memory size, dev/shm, size of /dev/shm
    """
)
_MEMORY_LIMIT_KEYS = phrases(
    "memory limit, container memory limit, container memory, cgroup memory limit, mem limit, "
    "memory.max, pod memory limit, docker memory limit"
)
_DIRECTORY_KEYS = phrases(
    """
    working directory, cwd, current working directory, working dir, pwd, workdir, current directory,
    run from
    """
)
_TORCH_CUDA_KEYS = phrases(
    """
    torch cuda, pytorch cuda, torch.version.cuda, torch built with cuda, torch.cuda, pytorch built
    with cuda, torch compiled cuda, torch cuda build
    """
)
_TOOLKIT_KEYS = phrases(
    """
    nvcc, cuda toolkit, cudatoolkit, system cuda, cuda compiler, cuda-toolkit, local cuda toolkit,
    cuda toolkit nvcc, system cuda nvcc, cuda sdk, system nvcc, cuda nvcc
    """
)
_LIMIT_KEYS = {
    "memlock": ("rlimit.memlock", 1024),
    "max locked memory": ("rlimit.memlock", 1024),
    "nofile": ("rlimit.nofile", 1),
    "open files": ("rlimit.nofile", 1),
    "nproc": ("rlimit.nproc", 1),
}


class ClaimedVersion(NamedTuple):
    """What a text says of a version: the version itself, or the range that it leaves."""

    version: Optional[str] = None
    constraint: str = ""


def claimed_version(text: str) -> Optional[ClaimedVersion]:
    """Read ``0.7.3 (PyPI)``, ``>=0.16.0``, ``0.16.0+``, ``2.x``; None where no version stands at
    the start.
    """
    text = text.strip().strip("\"'")
    found = _RANGE.match(text)
    if found:
        constraint = re.sub(r"\s+|(?<=[<>=~!])v", "", found.group()).strip(",")
        exact = re.fullmatch(r"==([0-9][\w.+]*)", constraint)
        return ClaimedVersion(exact.group(1)) if exact else ClaimedVersion(None, constraint)
    found = _VERSION.match(text)
    if found is None:
        return None
    version, rest = found.group(1).rstrip("."), text[found.end() :]
    wild = re.fullmatch(r"(\d+(?:\.\d+)*)\.[xX]", version)
    if wild:
        return ClaimedVersion(None, f"=={wild.group(1)}.*")
    if version.endswith("+"):
        version, rest = version[:-1], "+" + rest
    if try_version(version) is None:
        return None
    if _MORE.match(rest):
        return ClaimedVersion(None, f">={version}")
    if _LESS.match(rest):
        return ClaimedVersion(None, f"<={version}")
    return ClaimedVersion(version)


def parse_gpus(text: str) -> List[Tuple[int, Gpu]]:
    """Read ``8x H100 80GB``, ``NVIDIA H20 x8``, ``RTX PRO 6000 + RTX 6000 Ada``: pairs of a count
    and a device.
    """
    found = []
    for part in re.split(r"\s+(?:\+|and|&)\s+|\s*;\s*", text[:300]):
        entry = _gpu(part)
        if entry is not None:
            found.append(entry)
    return found


def _gpu(text: str) -> Optional[Tuple[int, Gpu]]:
    capability = _CAPABILITY.search(text)
    memory = re.search(r"[,(]\s*(\d{1,6}(?:\.\d{1,3})?\s?(?:GiB|GB|MiB|G))\b", text)
    mig = True if _MIG.search(text) else None
    text = re.sub(r"(?<=\d)(?=(?:Ti|SUPER|Super)\b)", " ", text)
    plain = (
        re.sub(r"\((?!GB10)(?!x?\s*\d{1,3}(?:x| GPUs?)?\))[^()]{0,100}\)", " ", text)
        .split(",")[0]
        .strip(" .")
    )
    count = 1
    before = _GPU_COUNT_BEFORE.match(plain)
    if before:
        count, plain = int(before.group(1)), plain[before.end() :]
    after = _GPU_COUNT_AFTER.search(plain)
    if after:
        count, plain = int(after.group(1) or after.group(2)), plain[: after.start()]
    name = _GPU_NAME.search(plain)
    if name is None or count == 0:
        return None
    words = re.sub(r"\b(RTX|GTX)(?=\d)", r"\1 ", name.group().strip())
    chip = re.search(r"\((GB10)\)", text)
    size = parse_size(memory.group(1)) if memory else None
    device = Gpu(
        name=f"NVIDIA {chip.group(1)}" if chip else words,
        compute_capability=f"{capability.group(1)}.{capability.group(2)}" if capability else None,
        memory_total=size,
        mig_mode=mig,
    )
    return count, device


def _leading_size(value: str, *, binary: bool = False) -> Optional[int]:
    """Return the size at the start of a text (``64 GiB RAM``)."""
    found = re.match(
        r"\d{1,15}(?:\.\d{1,3})?\s?(?:[KMGTPkmgtp]i?)?[Bb]?\b", value.strip().strip("\"'")
    )
    return parse_size(found.group(), binary=binary) if found else None


class ProseReader:
    """Reads what the others left: first ``key: value``, then names with a version next to them."""

    def __init__(self) -> None:
        self._label = ""

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False where nothing was found in it."""
        text = line.text
        if len(text) > 400:
            return False
        label, self._label = self._label, ""
        if label and self._read_pair(label, text, line, draft):
            return True
        self._read_facts(text, line, draft)
        parts = _PARTS.split(text)[:40]
        pair = _PAIR.match(text)
        if pair and len(parts) > 1 and plain_label(pair.group(1)) not in _GPU_KEYS | _DRIVER_KEYS:
            pair = _PAIR.match(parts[0])
        if pair and self._read_pair(pair.group(1), pair.group(2), line, draft):
            for part in parts[1:]:
                self._read_part(part, line, draft)
            return True
        if len(parts) > 1:
            return sum(self._read_part(part, line, draft) for part in parts) > 0
        row = _TABLE_ROW.fullmatch(text)
        if row and known_distribution(row.group(1)) and try_version(row.group(2)) is not None:
            draft.distribution(row.group(1), row.group(2), line, LABEL)
            return True
        if re.fullmatch(r"[A-Za-z][\w -]{1,40}(?: version)?:?", text):
            self._label = text.rstrip(":")  # the value may stand on the next line
        return self._read_sentence(text, line, draft)

    def _read_part(self, text: str, line: Line, draft: Draft) -> bool:
        pair = _PAIR.match(text)
        return bool(
            pair and self._read_pair(pair.group(1), pair.group(2), line, draft)
        ) or self._read_sentence(text, line, draft)

    def _read_pair(self, key: str, value: str, line: Line, draft: Draft) -> bool:
        plain = plain_label(key)
        if plain in _GPU_KEYS or re.fullmatch(r"gpus? ?(?:type|model|name)?s?(?: on \w+)?", plain):
            return _devices(value, line, draft, LABEL + 5)
        if plain in _COUNT_KEYS and value.isdigit() and len(value) < 4:
            draft.device_count = int(value)
            return True
        if plain == "gpu memory":
            size = parse_size(
                value.split(",")[0].replace(" total", "").split(" / ")[-1], binary=True
            )  # torch counts GiB, and tools print "GB"
            if size:
                draft.device(0, Gpu(memory_total=size), line, PROSE + 9)
            return size is not None
        if plain in _DRIVER_KEYS or plain.endswith("driver") or plain.startswith("nvidia driver"):
            return _driver(value, line, draft)
        return self._read_machine(plain, value, line, draft) or self._read_software(
            plain, value, line, draft
        )

    def _read_machine(self, plain: str, value: str, line: Line, draft: Draft) -> bool:
        if plain in _MEMORY_KEYS or plain in _SHM_KEYS:
            # Docker, df and Kubernetes count /dev/shm in powers of two, also where they print "MB".
            size = _leading_size(value, binary=plain in _SHM_KEYS)
            if size is None or size < 1 << 20:
                return False
            draft.put("shm.size" if plain in _SHM_KEYS else "memory.total", size, line, PROSE)
            return True
        if plain in _MEMORY_LIMIT_KEYS:
            size = _leading_size(value)
            if size is not None:
                draft.put("memory.limit", size, line, PROSE)
            return size is not None
        if plain in _DIRECTORY_KEYS and value.startswith(("/", "~", ".")):
            draft.put("python.working_directory", value.split(" ")[0], line)
            return True
        if plain in (
            "os",
            "operating system",
            "host os",
            "system",
            "linux distribution",
            "linux",
            "distro",
            "os platform",
        ):
            operating_system(value, line, draft, PROSE)
            return True
        if plain in (
            "platform",
            "environment",
            "env",
            "cluster",
            "deployment",
            "running on",
            "orchestration",
        ):
            platform_words(value, line, draft)
            return False
        if plain in ("arch", "architecture", "cpu arch", "cpu architecture", "machine"):
            machine = architecture(value)
            capability = _CAPABILITY.search(value)
            if machine:
                draft.put("os.architecture", machine, line)
            elif capability:
                draft.device(
                    0,
                    Gpu(compute_capability=f"{capability.group(1)}.{capability.group(2)}"),
                    line,
                    PROSE + 9,
                )
            return True
        if plain in ("kernel", "linux kernel", "kernel release") and re.match(r"\d+\.\d+", value):
            draft.put("os.kernel", value.split()[0], line)
            return True
        if plain in ("glibc", "libc", "gnu libc"):
            found = re.match(r"(?:glibc[- ]?)?(\d\.\d{1,2})\b", value)
            if found:
                draft.put("glibc.version", found.group(1), line)
            return found is not None
        limit = _LIMIT_KEYS.get(plain)
        if limit:
            number = parse_limit(value.split()[0], unit=limit[1])
            if number is not None:
                draft.put(limit[0], number, line, PROSE)
            return number is not None
        return False

    def _read_software(self, plain: str, value: str, line: Line, draft: Draft) -> bool:
        if plain in _TORCH_CUDA_KEYS:
            found = re.match(r"(?:cu|CUDA )?(\d{2})\.?(\d)", value)
            if found:
                draft.put("torch.cuda", f"{found.group(1)}.{found.group(2)}", line)
            return True
        if plain in _TOOLKIT_KEYS:
            found = re.search(r"(?<![\d.])(\d{1,2}\.\d{1,2}(?:\.\d{1,4})?)(?![\d.])", value)
            path = re.search(r"(/[\w./-]+)", value)
            if found and path:
                draft.toolkit(path.group(1), found.group(1), line, "report")
            elif found:
                draft.put("toolkit.version", found.group(1), line, PROSE)
            return True
        if plain == "python" or plain.startswith("python ") or plain == "python3":
            version = python_version(value)
            if version and not _MORE.match(value[len(version) :]):
                draft.put("python.version", version, line, LABEL)
            return version is not None
        if plain in (
            "image",
            "docker image",
            "container image",
            "container",
            "docker",
            "base image",
        ):
            image = image_of_words(value)
            if image:
                draft.image(image, line)
            return image is not None
        if plain == "cuda_home" and value.startswith("/"):
            draft.variable("CUDA_HOME", value, line)
            return True
        return _distribution(plain, value, line, draft)

    def _read_facts(self, text: str, line: Line, draft: Draft) -> None:
        """Read what leaves no doubt wherever it stands in a line."""
        lowered = text.lower()
        if (
            "sm_" in lowered
            and len(_ARCH_LIST.findall(text)) > 1
            and ("[" in text or "arch" in lowered or "supports" in lowered)
        ):
            draft.put("torch.arch_list", tuple(_ARCH_LIST.findall(text)[:40]), line)
        if "fabric" in lowered:
            found = _FABRIC.search(text)
            if found:
                draft.put("driver.fabric_manager", found.group(1), line)
        if "cuda-compat" in lowered:
            found = _COMPAT.search(text)
            if found:
                draft.put("compat.cuda_version", f"{found.group(1)}.{found.group(2)}", line)
                if found.group(3):
                    draft.put("compat.release", found.group(3), line)
        if "/cuda" in lowered and "/compat" in lowered:
            found = re.search(r"(/usr/local/cuda[\w.-]*/compat(?:/lib)?)", text)
            if found:
                draft.put("compat.path", found.group(1), line)
        if "cudnn" in lowered:
            found = _SYSTEM_CUDNN.search(text)
            if found:
                draft.put("cudnn.system_version", found.group(1), line, PROSE)
        if "memory." in lowered:
            found = re.search(r"\bmemory\.(?:max|limit_in_bytes)\b\D{0,6}(\d{7,18})\b", text)
            if found and int(found.group(1)) < 1 << 60:
                draft.put("memory.limit", int(found.group(1)), line)
        if "nvml" in lowered or "libcuda" in lowered or "kernel module" in lowered:
            self._read_driver_files(text, line, draft)
        if "-packages" in text:
            found = _PYTHON_PATH.search(text)
            if found:
                draft.put("python.version", found.group(1), line, INTENT)
        if text.startswith("cd ") or " cd " in text:
            found = _HOST_DIRECTORY.search(text)
            if found:
                draft.put("python.working_directory", found.group(1), line, PROSE)

    @staticmethod
    def _read_driver_files(text: str, line: Line, draft: Draft) -> None:
        for pattern, field in _DRIVER_FILES:
            found = pattern.search(text)
            if found:
                draft.put(field, found.group(1), line, PROSE)

    def _read_sentence(self, text: str, line: Line, draft: Draft) -> bool:
        if read_range(text, line, draft):
            return True
        if _WANTS.search(text.split("(")[0]):
            return False
        heard = False
        release = _DRIVER.search(text)
        if release:
            draft.put("driver.release", release.group(1), line, PROSE)
            cuda = _DRIVER_CUDA.search(text[release.end() :])
            if cuda:
                draft.put("driver.cuda_version", cuda.group(1), line, PROSE)
            heard = True
        label = _BUILD_LABEL.search(text)
        if label:
            draft.distribution("torch", f"{label.group(2)}+{label.group(3).lower()}", line, PROSE)
            heard = True
        for found in list(_NAMED.finditer(text))[:40]:
            name = known_distribution(found.group(1))
            if name is None or (label and name == "torch"):
                continue
            if found.group(3) or found.group(2).endswith("+"):
                draft.distribution(
                    name, None, line, PROSE, constraint=f">={found.group(2).rstrip('.+')}"
                )
            else:
                draft.distribution(name, found.group(2).rstrip(".+"), line, PROSE)
            heard = True
        libc = _GLIBC.search(text)
        if libc:
            draft.put("glibc.version", libc.group(1), line, PROSE)
            heard = True
        toolkit = _TOOLKIT.search(text)
        if toolkit:
            draft.put("toolkit.version", next(filter(None, toolkit.groups())), line, PROSE)
            heard = True
        if re.search(r"\bWSL ?2\b", text):
            draft.put("os.wsl", True, line, PROSE)
            heard = True
        python = _PYTHON.search(text)
        if python:
            draft.put("python.version", python.group(1), line, PROSE)
            heard = True
        if (
            _GPU_NAME.fullmatch(re.sub(r"\s*[(,].*$", "", text))
            or re.match(r"\d{1,3}\s*[x×*]\s*", text)
            or _GPU_COUNT_AFTER.search(text)
            or re.match(r"NVIDIA |Tesla ", text)
        ):
            heard |= _devices(text, line, draft, PROSE)
        return heard


def _devices(value: str, line: Line, draft: Draft, rank: int) -> bool:
    if re.search(r"\bnone\b|\bno GPU", value, re.IGNORECASE):
        return False
    found = parse_gpus(value)
    for count, device in found:
        draft.devices(count, device, line, rank)
    return bool(found)


def _driver(value: str, line: Line, draft: Draft) -> bool:
    release = driver_release(value)
    if release:
        draft.put("driver.release", release, line, LABEL)
    cuda = _DRIVER_CUDA.search(value)
    if cuda:
        draft.put("driver.cuda_version", cuda.group(1), line, PROSE)
    if release and cuda:  # the rest of the line may name torch
        return False
    return bool(release or cuda)


def _distribution(plain: str, value: str, line: Line, draft: Draft) -> bool:
    for ending in (" info", " wheel", " build", " package"):
        plain = plain[: -len(ending)] if plain.endswith(ending) else plain
    name = known_distribution(plain)
    if name is None:
        return False
    claim = claimed_version(value)
    variant = re.match(r"(cu\d{2,3})\b", value)
    if claim is not None and (claim.constraint or "." in (claim.version or "")):
        draft.distribution(
            canonicalize_name(name), claim.version, line, LABEL, constraint=claim.constraint
        )
    elif name == "torch":
        if variant:
            draft.put("torch.cuda", f"{variant.group(1)[2:-1]}.{variant.group(1)[-1]}", line, PROSE)
    elif variant:
        draft.distribution(name, None, line, PROSE, build=variant.group(1))
    return True
