"""What people write by hand: ``GPU: 8x H100``, ``driver 535.129.03``, ``vllm 0.6.3``.

What could mean two things stays unknown.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

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
_GPU_KEY = re.compile(r"gpus? ?(?:type|model|name)?s?(?: on \w+)?")
_LIBC_VERSION = re.compile(r"(?:glibc[- ]?)?(\d\.\d{1,2})\b")
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
#: What leaves no doubt wherever it stands: a mark that such a line holds (in small letters), the
#: expression whose group is the value, its field and the weight of the claim.
_FACTS = (
    ("fabric", _FABRIC, "driver.fabric_manager", LABEL),
    (
        "/compat",
        re.compile(r"(/usr/local/cuda[\w.-]*/compat(?:/lib)?)"),
        "compat.path",
        LABEL,
    ),
    ("cudnn", _SYSTEM_CUDNN, "cudnn.system_version", PROSE),
    (
        "nvml",
        re.compile(rf"\bNVML(?: library)?(?: version)?\s*[:=]?\s*{_RELEASE}", re.IGNORECASE),
        "driver.nvml_release",
        PROSE,
    ),
    ("libcuda", re.compile(rf"\blibcuda\.so\.{_RELEASE}"), "driver.libcuda_release", PROSE),
    (
        "kernel module",
        re.compile(rf"\bkernel module(?: version)?\s*[:=]?\s*{_RELEASE}", re.IGNORECASE),
        "driver.release",
        PROSE,
    ),
    ("-packages", _PYTHON_PATH, "python.version", INTENT),
    ("cd ", _HOST_DIRECTORY, "python.working_directory", PROSE),
)
_MEMORY_LIMIT = re.compile(r"\bmemory\.(?:max|limit_in_bytes)\b\D{0,6}(\d{7,18})\b")
#: What a sentence says of the installed software: expression and field.
_SENTENCES = (
    (_GLIBC, "glibc.version"),
    (_TOOLKIT, "toolkit.version"),
    (_PYTHON, "python.version"),
)
_WSL = re.compile(r"\bWSL ?2\b")
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
_SYSTEM_KEYS = phrases(
    "os, operating system, host os, system, linux distribution, linux, distro, os platform"
)
_PLATFORM_KEYS = phrases(
    "platform, environment, env, cluster, deployment, running on, orchestration"
)
_ARCHITECTURE_KEYS = phrases("arch, architecture, cpu arch, cpu architecture, machine")
_IMAGE_KEYS = phrases("image, docker image, container image, container, docker, base image")

#: Reads the value of a labelled line; False leaves it to the others.
_PairReader = Callable[[str, Line, Draft], bool]


class ClaimedVersion(NamedTuple):
    """What a text says of a version: the version itself, or the range that it leaves."""

    version: Optional[str] = None
    constraint: str = ""


def claimed_version(text: str) -> Optional[ClaimedVersion]:
    """Read ``0.7.3 (PyPI)``, ``>=0.16.0``, ``0.16.0+`` or ``2.x`` at the start of a text."""
    text = text.strip().strip("\"'")
    match = _RANGE.match(text)
    if match:
        constraint = re.sub(r"\s+|(?<=[<>=~!])v", "", match.group()).strip(",")
        exact = re.fullmatch(r"==([0-9][\w.+]*)", constraint)
        return ClaimedVersion(exact.group(1)) if exact else ClaimedVersion(None, constraint)
    match = _VERSION.match(text)
    if match is None:
        return None
    version, rest = match.group(1).rstrip("."), text[match.end() :]
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
    """Read devices and their counts: ``8x H100 80GB``, ``RTX PRO 6000 + RTX 6000 Ada``."""
    devices = []
    for part in re.split(r"\s+(?:\+|and|&)\s+|\s*;\s*", text[:300]):
        entry = _gpu(part)
        if entry is not None:
            devices.append(entry)
    return devices


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
    match = re.match(
        r"\d{1,15}(?:\.\d{1,3})?\s?(?:[KMGTPkmgtp]i?)?[Bb]?\b", value.strip().strip("\"'")
    )
    return parse_size(match.group(), binary=binary) if match else None


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
        if label and _read_pair(label, text, line, draft):
            return True
        _read_facts(text, line, draft)
        parts = _PARTS.split(text)[:40]
        if _read_leading_pair(text, parts, line, draft):
            return True
        if len(parts) > 1:
            return sum(_read_part(part, line, draft) for part in parts) > 0
        if _read_table_row(text, line, draft):
            return True
        if re.fullmatch(r"[A-Za-z][\w -]{1,40}(?: version)?:?", text):
            self._label = text.rstrip(":")  # the value may stand on the next line
        return _read_sentence(text, line, draft)


def _read_leading_pair(text: str, parts: List[str], line: Line, draft: Draft) -> bool:
    """Read ``key: value`` at the start of a line, then what follows ``/``, ``;`` or a comma."""
    pair = _PAIR.match(text)
    # The value of these keys may have parts itself.
    if pair and len(parts) > 1 and plain_label(pair.group(1)) not in _GPU_KEYS | _DRIVER_KEYS:
        pair = _PAIR.match(parts[0])
    if pair is None or not _read_pair(pair.group(1), pair.group(2), line, draft):
        return False
    for part in parts[1:]:
        _read_part(part, line, draft)
    return True


def _read_part(text: str, line: Line, draft: Draft) -> bool:
    pair = _PAIR.match(text)
    if pair and _read_pair(pair.group(1), pair.group(2), line, draft):
        return True
    return _read_sentence(text, line, draft)


def _read_table_row(text: str, line: Line, draft: Draft) -> bool:
    row = _TABLE_ROW.fullmatch(text)
    if row is None or not known_distribution(row.group(1)) or try_version(row.group(2)) is None:
        return False
    draft.distribution(row.group(1), row.group(2), line, LABEL)
    return True


# ``key: value``


def _read_pair(key: str, value: str, line: Line, draft: Draft) -> bool:
    plain = plain_label(key)
    reader = _PAIRS.get(plain)
    if reader is not None:
        return reader(value, line, draft)
    if _GPU_KEY.fullmatch(plain):
        return _labelled_devices(value, line, draft)
    if plain.endswith("driver") or plain.startswith("nvidia driver"):
        return _driver(value, line, draft)
    if plain.startswith("python "):
        return _python(value, line, draft)
    return _distribution(plain, value, line, draft)


def _labelled_devices(value: str, line: Line, draft: Draft) -> bool:
    return _devices(value, line, draft, LABEL + 5)


def _device_count(value: str, line: Line, draft: Draft) -> bool:  # noqa: ARG001
    if not value.isdigit() or len(value) > 3:
        return False
    draft.device_count = int(value)
    return True


def _device_memory(value: str, line: Line, draft: Draft) -> bool:
    total = value.split(",")[0].replace(" total", "").split(" / ")[-1]
    size = parse_size(total, binary=True)  # torch counts GiB, and tools print "GB"
    if size:
        draft.device(0, Gpu(memory_total=size), line, PROSE + 9)
    return size is not None


def _host_memory(value: str, line: Line, draft: Draft) -> bool:
    return _put_size("memory.total", _leading_size(value), line, draft)


def _shm_size(value: str, line: Line, draft: Draft) -> bool:
    # Docker, df and Kubernetes count /dev/shm in powers of two, also where they print "MB".
    return _put_size("shm.size", _leading_size(value, binary=True), line, draft)


def _put_size(field: str, size: Optional[int], line: Line, draft: Draft) -> bool:
    if size is None or size < 1 << 20:
        return False
    draft.put(field, size, line, PROSE)
    return True


def _memory_limit(value: str, line: Line, draft: Draft) -> bool:
    size = _leading_size(value)
    if size is not None:
        draft.put("memory.limit", size, line, PROSE)
    return size is not None


def _directory(value: str, line: Line, draft: Draft) -> bool:
    if not value.startswith(("/", "~", ".")):
        return False
    draft.put("python.working_directory", value.split(" ")[0], line)
    return True


def _operating_system(value: str, line: Line, draft: Draft) -> bool:
    operating_system(value, line, draft, PROSE)
    return True


def _platform(value: str, line: Line, draft: Draft) -> bool:
    platform_words(value, line, draft)
    return False


def _architecture(value: str, line: Line, draft: Draft) -> bool:
    machine = architecture(value)
    capability = _CAPABILITY.search(value)
    if machine:
        draft.put("os.architecture", machine, line)
    elif capability:
        device = Gpu(compute_capability=".".join(capability.groups()))
        draft.device(0, device, line, PROSE + 9)
    return True


def _kernel(value: str, line: Line, draft: Draft) -> bool:
    if not re.match(r"\d+\.\d+", value):
        return False
    draft.put("os.kernel", value.split()[0], line)
    return True


def _libc(value: str, line: Line, draft: Draft) -> bool:
    match = _LIBC_VERSION.match(value)
    if match:
        draft.put("glibc.version", match.group(1), line)
    return match is not None


def _limit(field: str, unit: int) -> _PairReader:
    def read(value: str, line: Line, draft: Draft) -> bool:
        number = parse_limit(value.split()[0], unit=unit)
        if number is not None:
            draft.put(field, number, line, PROSE)
        return number is not None

    return read


def _torch_cuda(value: str, line: Line, draft: Draft) -> bool:
    match = re.match(r"(?:cu|CUDA )?(\d{2})\.?(\d)", value)
    if match:
        draft.put("torch.cuda", f"{match.group(1)}.{match.group(2)}", line)
    return True


def _toolkit(value: str, line: Line, draft: Draft) -> bool:
    version = re.search(r"(?<![\d.])(\d{1,2}\.\d{1,2}(?:\.\d{1,4})?)(?![\d.])", value)
    path = re.search(r"(/[\w./-]+)", value)
    if version and path:
        draft.toolkit(path.group(1), version.group(1), line, "report")
    elif version:
        draft.put("toolkit.version", version.group(1), line, PROSE)
    return True


def _python(value: str, line: Line, draft: Draft) -> bool:
    version = python_version(value)
    if version and not _MORE.match(value[len(version) :]):
        draft.put("python.version", version, line, LABEL)
    return version is not None


def _image(value: str, line: Line, draft: Draft) -> bool:
    image = image_of_words(value)
    if image:
        draft.image(image, line)
    return image is not None


def _cuda_home(value: str, line: Line, draft: Draft) -> bool:
    if not value.startswith("/"):
        return False
    draft.variable("CUDA_HOME", value, line)
    return True


# sentences


def _read_facts(text: str, line: Line, draft: Draft) -> None:
    """Read what leaves no doubt wherever it stands in a line."""
    lowered = text.lower()
    for mark, pattern, field, rank in _FACTS:
        match = pattern.search(text) if mark in lowered else None
        if match:
            draft.put(field, match.group(1), line, rank)
    if "sm_" in lowered and any(word in lowered for word in ("[", "arch", "supports")):
        _read_arch_list(text, line, draft)
    if "cuda-compat" in lowered:
        _read_compat_package(text, line, draft)
    limit = _MEMORY_LIMIT.search(text) if "memory." in lowered else None
    if limit and int(limit.group(1)) < 1 << 60:
        draft.put("memory.limit", int(limit.group(1)), line)


def _read_arch_list(text: str, line: Line, draft: Draft) -> None:
    architectures = _ARCH_LIST.findall(text)[:40]
    if len(architectures) > 1:
        draft.put("torch.arch_list", tuple(architectures), line)


def _read_compat_package(text: str, line: Line, draft: Draft) -> None:
    package = _COMPAT.search(text)
    if package is None:
        return
    draft.put("compat.cuda_version", f"{package.group(1)}.{package.group(2)}", line)
    if package.group(3):
        draft.put("compat.release", package.group(3), line)


def _read_sentence(text: str, line: Line, draft: Draft) -> bool:
    if read_range(text, line, draft):
        return True
    if _WANTS.search(text.split("(")[0]):
        return False
    readers = (_said_driver, _said_distributions, _said_software, _said_devices)
    return sum(reader(text, line, draft) for reader in readers) > 0


def _said_driver(text: str, line: Line, draft: Draft) -> bool:
    release = _DRIVER.search(text)
    if release is None:
        return False
    draft.put("driver.release", release.group(1), line, PROSE)
    cuda = _DRIVER_CUDA.search(text[release.end() :])
    if cuda:
        draft.put("driver.cuda_version", cuda.group(1), line, PROSE)
    return True


def _said_distributions(text: str, line: Line, draft: Draft) -> bool:
    build = _BUILD_LABEL.search(text)
    if build:
        draft.distribution("torch", f"{build.group(2)}+{build.group(3).lower()}", line, PROSE)
    heard = build is not None
    for match in list(_NAMED.finditer(text))[:40]:
        name = known_distribution(match.group(1))
        if name is None or (build and name == "torch"):
            continue
        version = match.group(2).rstrip(".+")
        if match.group(3) or match.group(2).endswith("+"):
            draft.distribution(name, None, line, PROSE, constraint=f">={version}")
        else:
            draft.distribution(name, version, line, PROSE)
        heard = True
    return heard


def _said_software(text: str, line: Line, draft: Draft) -> bool:
    heard = False
    for pattern, field in _SENTENCES:
        match = pattern.search(text)
        if match:
            draft.put(field, next(filter(None, match.groups())), line, PROSE)
            heard = True
    if _WSL.search(text):
        draft.put("os.wsl", True, line, PROSE)
        heard = True
    return heard


def _said_devices(text: str, line: Line, draft: Draft) -> bool:
    if (
        _GPU_NAME.fullmatch(re.sub(r"\s*[(,].*$", "", text))
        or re.match(r"\d{1,3}\s*[x×*]\s*|NVIDIA |Tesla ", text)
        or _GPU_COUNT_AFTER.search(text)
    ):
        return _devices(text, line, draft, PROSE)
    return False


def _devices(value: str, line: Line, draft: Draft, rank: int) -> bool:
    if re.search(r"\bnone\b|\bno GPU", value, re.IGNORECASE):
        return False
    devices = parse_gpus(value)
    for count, device in devices:
        draft.devices(count, device, line, rank)
    return bool(devices)


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


#: How the value behind each label is read.
_PAIRS: Dict[str, _PairReader] = {
    **dict.fromkeys(_GPU_KEYS, _labelled_devices),
    **dict.fromkeys(_COUNT_KEYS, _device_count),
    "gpu memory": _device_memory,
    **dict.fromkeys(_DRIVER_KEYS, _driver),
    **dict.fromkeys(_MEMORY_KEYS, _host_memory),
    **dict.fromkeys(_SHM_KEYS, _shm_size),
    **dict.fromkeys(_MEMORY_LIMIT_KEYS, _memory_limit),
    **dict.fromkeys(_DIRECTORY_KEYS, _directory),
    **dict.fromkeys(_SYSTEM_KEYS, _operating_system),
    **dict.fromkeys(_PLATFORM_KEYS, _platform),
    **dict.fromkeys(_ARCHITECTURE_KEYS, _architecture),
    **dict.fromkeys(("kernel", "linux kernel", "kernel release"), _kernel),
    **dict.fromkeys(("glibc", "libc", "gnu libc"), _libc),
    **dict.fromkeys(("memlock", "max locked memory"), _limit("rlimit.memlock", 1024)),
    **dict.fromkeys(("nofile", "open files"), _limit("rlimit.nofile", 1)),
    "nproc": _limit("rlimit.nproc", 1),
    **dict.fromkeys(_TORCH_CUDA_KEYS, _torch_cuda),
    **dict.fromkeys(_TOOLKIT_KEYS, _toolkit),
    **dict.fromkeys(("python", "python3"), _python),
    **dict.fromkeys(_IMAGE_KEYS, _image),
    "cuda_home": _cuda_home,
}
