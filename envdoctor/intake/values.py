"""What a statement says, as facts: one reader for each kind of value.

A reader takes a statement and puts what it understands into the draft; False where the value means
nothing for its subject. What could mean two things stays unknown.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, Mapping, NamedTuple, Optional

from ..model.facts import Gpu
from ..model.sizes import parse_limit, parse_size
from ..model.versions import cuda_of_variant, find_variant
from .claimed_version import MORE, claimed_version
from .clean_text import Line
from .container_spec import image_of_words
from .distribution_names import COMMON_WORDS, known_distribution
from .draft import EXACT, INTENT, LABEL, PROSE, Draft
from .gpu_names import ARCHITECTURES, CAPABILITY, COUNT, COUNTS, MIG, parse_gpus, plain_devices
from .nvidia_output import driver_release
from .platforms import architecture, operating_system, platform_words, python_platform
from .vocabulary import SETTINGS, Topic
from .word_lists import phrases

__all__ = ["Claim", "state"]

_BRANCH = re.compile(r"(?:R|r|branch |version )?([3-9]\d{2})(?:\.[xX]{1,3}|\+)?(?![\w.])")
_CUDA = re.compile(r"(?<![\d.])(\d{1,2}\.\d{1,2}(?:\.\d{1,4})?)(?![\d])")
_CUDA_SHORT = re.compile(r"(?:cu|CUDA )?(\d{2})\.?(\d)(?:\D|$)")
_PLAIN_CUDA = re.compile(
    r"\bCUDA(?: Version| runtime)?[: ]{0,2}(\d{1,2}\.\d{1,2})\b", re.IGNORECASE
)
_PYTHON = re.compile(r"(?:Python )?v?([23]\.\d{1,2}(?:\.\d{1,2})?(?:rc\d|a\d|b\d|\+)?)(?![\d.])")
_GLIBC = re.compile(r"(?:.*?\bglibc[- ]?|)(\d\.\d{1,2})\b", re.IGNORECASE)
#: ``2.26.2+cuda12.2``, as NCCL prints its own release.
_LIBRARY = re.compile(r"v?(\d+\.\d+(?:\.\d+){0,2})(?:[-+]cuda(\d{2})\.\d)?(?![\w.])")
_CUDNN = re.compile(r"libcudnn\S{0,40}?\.so\.(\d+\.\d+\.\d+)")
_CAPABILITY = re.compile(r"(?:sm_?|compute_|^\(?)?(\d{1,2})(?:\.|, ?)?(\d)[af]?\b", re.IGNORECASE)
_DAY = re.compile(r"20\d{2}-\d{2}(?:-\d{2})?$")
_TRUE = phrases("enabled, true, on, yes, active, 1, available, 是")
_FALSE = phrases("disabled, false, off, no, inactive, 0, unavailable, not available, 否")
#: What tools and people write where there is nothing, and where nothing could be learned.
_NONE = phrases(
    """
    none, not installed, not installed na, module not found, missing, not found, no, absent,
    uninstalled, 未安装, 没有安装, 无, 没有, not present, n/a na
    """
)
_UNLEARNED = phrases(
    ", n/a, na, could not collect, unknown, ?, -, n a, not set, unset, null, nan, no cuda"
)


class Claim(NamedTuple):
    """One thing that a text says: of what, how it says it, and where.

    ``relation``: "printed" (the label of a tool), "labelled", "said" (a sentence).
    """

    subject: Topic
    relation: str
    value: str
    line: Line

    @property
    def rank(self) -> int:
        """How much it weighs against another."""
        if self.relation == "said":
            return PROSE
        return EXACT if self.subject.printed else LABEL

    @property
    def name(self) -> str:
        """The field, distribution or setting that it is about."""
        return self.subject.name


_Reader = Callable[[Claim, Draft], bool]


def state(statement: Claim, draft: Draft) -> bool:
    """Put what a statement says into the draft; False where that means nothing."""
    value = " ".join(statement.value.lower().strip("()[]<>.").split())
    if value in _UNLEARNED or value in _NONE or value.startswith(("not installed", "未安装")):
        reader = _OF_NOTHING.get(statement.subject.kind)
        return reader(statement, draft) if reader is not None else True
    return KINDS[statement.subject.kind](statement, draft)


# --------------------------------------------------------------------------------------------------
# kinds of values


def _release(statement: Claim, draft: Draft) -> bool:
    """A driver's release, its branch alone, or the CUDA version that stands in its place."""
    value = statement.value
    release = driver_release(value)
    branch = None if release else _BRANCH.match(value)
    if release or branch:
        text = release or (branch.group(1) if branch else "")
        draft.put(statement.name, text, statement.line, statement.rank)
    cuda = _PLAIN_CUDA.search(value) or re.fullmatch(r"v?(\d{1,2}\.\d)(?:\.\d+)?", value)
    if cuda and statement.name == "driver.release":
        draft.put("driver.cuda_version", cuda.group(1), statement.line, max(LABEL, statement.rank))
    return bool(release or branch or cuda)


def _no_release(statement: Claim, draft: Draft) -> bool:
    draft.note(statement.name, statement.value.lower(), statement.line)
    return True


def _no_gpu_models(statement: Claim, draft: Draft) -> bool:
    """What collect_env says where nvidia-smi lists no device."""
    draft.note("gpus", statement.value.lower(), statement.line)
    return True


def _compat(statement: Claim, draft: Draft) -> bool:
    release = driver_release(statement.value)
    if release:
        draft.put("compat.release", release, statement.line, statement.rank)
    match = re.match(r"(?:cuda-compat-)?(\d{2})[-.](\d)\b", statement.value)
    if match:
        draft.put("compat.cuda_version", ".".join(match.groups()), statement.line, statement.rank)
    return bool(release or match)


def _cuda(statement: Claim, draft: Draft) -> bool:
    match = _CUDA.search(statement.value)
    if match:
        version = ".".join(match.group(1).split(".")[:2])
        draft.put(statement.name, version, statement.line, statement.rank)
    return match is not None


def _torch_cuda(statement: Claim, draft: Draft) -> bool:
    if statement.value.lower().startswith(("available", "not available")):  # xformers.info
        available = statement.value.lower().startswith("available")
        draft.put("torch.cuda_available", available, statement.line, LABEL)
        return True
    match = _CUDA.match(statement.value.lstrip("CUDAcuda ")) or _CUDA_SHORT.match(statement.value)
    if match is None:
        return False
    version = match.group(1) if match.re is _CUDA else ".".join(match.groups())
    short = version if statement.subject.printed else ".".join(version.split(".")[:2])
    draft.put("torch.cuda", short, statement.line, statement.rank)
    return True


def _no_torch_cuda(statement: Claim, draft: Draft) -> bool:
    # collect_env prints torch.version.cuda; only a failed import gives "N/A".
    if statement.value.lower() in ("none", "could not collect"):
        draft.absent("torch.cuda", statement.line, EXACT, "torch.version.cuda is None")
    return True


def _hip(statement: Claim, draft: Draft) -> bool:
    match = re.match(r"\d+\.\d+[\w.-]{0,40}", statement.value)
    if match:
        draft.put("torch.hip", match.group(), statement.line, EXACT)
    return match is not None


def _no_hip(statement: Claim, draft: Draft) -> bool:
    if statement.value in ("N/A", "None"):
        draft.absent("torch.hip", statement.line, EXACT)
    return True


def _toolkit(statement: Claim, draft: Draft) -> bool:
    value, line = statement.value, statement.line
    exact = re.search(r"V(\d{1,2}\.\d{1,2}\.\d{1,4})", value) or _CUDA.search(value)
    path = re.search(r"(/[\w./-]+)", value)
    if exact and path:
        draft.toolkit(path.group(1), exact.group(1), line, "report")
    elif exact:
        draft.put("toolkit.version", exact.group(1), line, statement.rank)
    return exact is not None


def _no_toolkit(_statement: Claim, draft: Draft) -> bool:
    draft.unknown("toolkit.version", "nvcc was not found on PATH")
    return True


def _cudnn(statement: Claim, draft: Draft) -> bool:
    value = statement.value
    match = _CUDNN.search(value)
    if match and "site-packages" not in value and "dist-packages" not in value:
        draft.put("cudnn.system_version", match.group(1), statement.line, EXACT)
        return True
    number = re.match(r"v?(\d+\.\d+(?:\.\d+){0,2})", value)
    text = statement.line.text.lower()
    said_of_system = "system" in statement.subject.unit or "system" in text
    said_of_system |= "install" in text and "pip" not in text
    if number and said_of_system:
        draft.put("cudnn.system_version", number.group(1), statement.line, PROSE)
    elif number:
        draft.library("nvidia-cudnn", number.group(1), "", statement.line)
    return True


def _library(statement: Claim, draft: Draft) -> bool:
    match = _LIBRARY.match(statement.value)
    if match is not None:
        draft.library(statement.name, match.group(1), match.group(2) or "", statement.line)
    return match is not None


def _python(statement: Claim, draft: Draft) -> bool:
    match = _PYTHON.match(statement.value)
    if match is None or MORE.match(statement.value[match.end() :]):
        return False
    draft.put("python.version", match.group(1).rstrip("+"), statement.line, statement.rank)
    if "PyPy" in statement.value:
        draft.put("python.implementation", "pypy", statement.line, EXACT)
    return True


def _interpreter_path(statement: Claim, draft: Draft) -> bool:
    match = re.search(r"\bpython(3\.\d{1,2})\b", statement.value)
    if match:
        draft.put("python.version", match.group(1), statement.line, INTENT)
    return True


def _glibc(statement: Claim, draft: Draft) -> bool:
    match = _GLIBC.match(statement.value)
    if match:
        draft.put("glibc.version", match.group(1), statement.line, statement.rank)
    return match is not None


def _kernel(statement: Claim, draft: Draft) -> bool:
    if not re.match(r"\d+\.\d+", statement.value):
        return False
    draft.put("os.kernel", statement.value.split()[0], statement.line, statement.rank)
    return True


def _leading_size(statement: Claim, *, binary: bool = False) -> Optional[int]:
    """Return the size at the start of a value (``64 GiB RAM``), or of a bare number whose key has
    the unit.
    """
    value = statement.value.strip().strip("\"'~≈约 ")
    match = re.match(r"(\d{1,15}(?:\.\d{1,3})?)\s?((?:[KMGTPkmgtp]i?)?[Bb]?)(?![\w.])", value)
    if match is None:
        return None
    unit = match.group(2) or statement.subject.unit
    return parse_size(match.group(1) + unit, binary=binary)


def _memory(statement: Claim, draft: Draft) -> bool:
    size = _leading_size(statement, binary=statement.subject.printed)
    if size is None or size < 1 << 20:
        return False
    rank = statement.rank if statement.rank == EXACT else PROSE
    draft.put(statement.name, size, statement.line, rank)
    return True


def _shm(statement: Claim, draft: Draft) -> bool:
    # Docker, df and Kubernetes count /dev/shm in powers of two, also where they print "MB".
    size = _leading_size(statement, binary=True)
    if size is None or size < 1 << 16:
        return False
    draft.put("shm.size", size, statement.line, min(statement.rank, LABEL))
    return True


def _limit_in(unit: int) -> _Reader:
    def read(statement: Claim, draft: Draft) -> bool:
        value = statement.value.split()[0] if statement.value.split() else ""
        bare = {"KiB": 1024}.get(statement.subject.unit, unit)
        size = parse_limit(value, unit=bare)
        if size is not None:
            draft.put(statement.name, size, statement.line, statement.rank)
        return size is not None

    return read


def _number(statement: Claim, draft: Draft) -> bool:
    match = re.match(r"\d{1,9}(?:\.\d{1,9})?", statement.value)
    if match:
        draft.put(statement.name, float(match.group()), statement.line, statement.rank)
    return match is not None


def _bool(statement: Claim, draft: Draft) -> bool:
    word = statement.value.lower().split(" ")[0].strip(",;.")
    if word not in _TRUE and word not in _FALSE:
        return False
    draft.put(statement.name, word in _TRUE, statement.line, statement.rank)
    return True


def _version(statement: Claim, draft: Draft) -> bool:
    match = re.search(r"\d+(?:\.\d+)+(?:rc\d+|\.post\d+|\.dev\d+)?", statement.value)
    if match:
        draft.put(statement.name, match.group(), statement.line, statement.rank)
    return match is not None


def _text(statement: Claim, draft: Draft) -> bool:
    draft.put(statement.name, statement.value[:200], statement.line, statement.rank)
    return True


def _strings(statement: Claim, draft: Draft) -> bool:
    values = tuple(part.strip() for part in statement.value.split(",") if part.strip())
    draft.put(statement.name, values, statement.line, statement.rank)
    return bool(values)


def _arch_list(statement: Claim, draft: Draft) -> bool:
    architectures = ARCHITECTURES.findall(statement.value)[:40]
    if architectures:
        draft.put("torch.arch_list", tuple(architectures), statement.line, statement.rank)
    return bool(architectures)


def _os(statement: Claim, draft: Draft) -> bool:
    rank = PROSE if not statement.subject.printed else LABEL
    return operating_system(statement.value, statement.line, draft, rank)


def _platform(statement: Claim, draft: Draft) -> bool:
    if python_platform(statement.value, statement.line, draft):
        return True
    return platform_words(statement.value, statement.line, draft)


def _hypervisor(statement: Claim, draft: Draft) -> bool:
    if statement.value.startswith("Microsoft") and "WSL" in statement.value:
        draft.put("os.wsl", True, statement.line)
    return True


def _architecture(statement: Claim, draft: Draft) -> bool:
    machine = architecture(statement.value)
    if machine:
        draft.put("os.architecture", machine, statement.line)
        return True
    return bool(CAPABILITY.search(statement.value)) and _capability(statement, draft)


def _directory(statement: Claim, draft: Draft) -> bool:
    value = statement.value
    if not value.startswith(("/", "~", ".")) and not re.match(r"[A-Za-z]:\\|[\w-]+/", value):
        return False
    draft.put("python.working_directory", value.split(" ")[0], statement.line)
    return True


def _variable_path(statement: Claim, draft: Draft) -> bool:
    if "/" not in statement.value:
        return False
    return draft.variable(statement.name, statement.value, statement.line)


def _module_loading(statement: Claim, draft: Draft) -> bool:
    if statement.value in ("LAZY", "EAGER", "DEFAULT"):
        draft.variable("CUDA_MODULE_LOADING", statement.value, statement.line)
    return True


def _image(statement: Claim, draft: Draft) -> bool:
    image = image_of_words(statement.value)
    if image:
        draft.image(image, statement.line)
    return image is not None


def _loader_cache(statement: Claim, draft: Draft) -> bool:
    if "libcuda.so.1" in statement.value:
        unversioned = re.search(r"libcuda\.so(?!\.\d)", statement.value) is not None
        draft.put(statement.name, unversioned, statement.line)
        return True
    return False


# devices


def _gpus(statement: Claim, draft: Draft) -> bool:
    value = statement.value
    if value.isdigit() and len(value) < 4:
        return _gpu_count(statement, draft)
    if re.match(r"(?:none|no|没有|无)\b", value, re.IGNORECASE):
        return _no_gpus(statement, draft)
    rank = PROSE if statement.relation == "said" else LABEL + 5
    devices = (
        parse_gpus(value)
        or parse_gpus(plain_devices(value))
        or parse_gpus(plain_devices(f"GPU {value}"))
    )
    draft.devices(devices, statement.line, rank)
    return bool(devices)


def _gpu_models(statement: Claim, draft: Draft) -> bool:
    # torch's ROCm builds name other makers' devices here, which are not judged.
    if "gfx" not in statement.value:
        return _gpus(statement, draft)
    match = _OF_ROCM.match(statement.value)
    if match is not None:
        draft.put("gpus.other", (match.group().rstrip(":") + ")",), statement.line)
    return True


#: ``AMD Instinct MI100 (gfx908:sramecc+:xnack-)``, up to what says how its memory is checked.
_OF_ROCM = re.compile(r"[\w /.-]{0,60}\(gfx\w{3,5}")


def _no_gpus(statement: Claim, draft: Draft) -> bool:
    if statement.value.lower() in _UNLEARNED or "collect" in statement.value.lower():
        return True
    if statement.relation != "said":
        draft.device_list_is_empty(statement.line, statement.value)
        draft.put("driver.exposed", False, statement.line, LABEL, statement.value)
    return True


def _gpu_count(statement: Claim, draft: Draft) -> bool:
    match = re.match(rf"({COUNT})(?![\w.])", statement.value.strip(), re.IGNORECASE)
    if match is not None and parse_gpus(statement.value):
        return _gpus(statement, draft)
    if match is None:
        return False
    word = match.group(1).lower()
    draft.device_count = int(word) if word.isdigit() else COUNTS[word]
    if draft.device_count == 0 and statement.relation != "said":
        draft.device_list_is_empty(statement.line, statement.value)
    draft.label_counts |= statement.relation != "said"
    return True


def _gpu_memory(statement: Claim, draft: Draft) -> bool:
    total = re.search(
        r"(?:/ ?|^|\s)(\d{1,7}(?:\.\d{1,4})?)\s?((?:[MG]i?)?B?)(?:\s+total)?(?:$|[\s,;(])",
        statement.value,
    )
    if total is None:
        return False
    unit = total.group(2) or statement.subject.unit.replace("GB", "GiB")
    size = parse_size(total.group(1) + unit, binary=True)  # torch counts GiB, tools print "GB"
    free = re.search(r"(\d{1,4}(?:\.\d{1,4})?\s?[MG]i?B) free", statement.value)
    if size and size >= 1 << 28:
        draft.device(0, Gpu(memory_total=size), statement.line, PROSE + 9)
        if free:
            draft.free_device_memory(parse_size(free.group(1), binary=True))
    return size is not None


def _gpu_memory_free(statement: Claim, draft: Draft) -> bool:
    draft.free_device_memory(_leading_size(statement, binary=True))
    return True


def _gpu_memory_used(statement: Claim, draft: Draft) -> bool:
    size = _leading_size(statement, binary=True)
    if size:
        draft.device(0, Gpu(memory_used=size), statement.line, PROSE + 9)
    return size is not None


def _capability(statement: Claim, draft: Draft) -> bool:
    match = CAPABILITY.search(statement.value) or _CAPABILITY.search(statement.value)
    if match:
        device = Gpu(compute_capability=".".join(match.groups()))
        draft.device(0, device, statement.line, PROSE + 9)
    return match is not None


def _mig(statement: Claim, draft: Draft) -> bool:
    enabled = statement.value.lower().split(" ")[0] in _TRUE or bool(MIG.search(statement.value))
    draft.device(0, Gpu(mig_mode=enabled), statement.line, PROSE + 9)
    return True


# distributions and settings


#: A release that is there and that nobody names.
_NEWEST = re.compile(r"(?:latest|nightly|newest)\b", re.IGNORECASE)


def _distribution(statement: Claim, draft: Draft) -> bool:
    """A version, a range, a build or a day; a name with anything else is there at least."""
    name, value, line = statement.name, statement.value, statement.line
    if (
        statement.relation != "said"
        and name == "torch"
        and draft.torch(value, line, statement.rank)
    ):
        return True
    claim = claimed_version(value)
    variant = re.match(r"\(?(cu\d{2,3})\b", value)
    if claim is not None and (claim.constraint or "." in (claim.version or "")):
        draft.distribution(name, claim.version, line, statement.rank, constraint=claim.constraint)
    elif _DAY.match(value):
        draft.distribution(name, None, line, statement.rank)
        draft.released(name, value)
    elif name == "torch":
        cuda = cuda_of_variant(find_variant(value.split()[0]) or "") if value.split() else None
        if cuda:
            draft.put("torch.cuda", cuda, line, PROSE)
            draft.distribution(name, None, line, PROSE)
    elif variant:
        draft.distribution(name, None, line, PROSE, build=variant.group(1))
    elif name not in COMMON_WORDS and (
        _NEWEST.match(value) if statement.relation == "said" else value
    ):
        draft.distribution(name, None, line, statement.rank)
    return True


def _no_distribution(statement: Claim, draft: Draft) -> bool:
    if " ".join(statement.value.lower().strip("()[]{}").split()) in _UNLEARNED:
        if statement.name == "torch":
            draft.unknown("torch.version", "the report could not import torch")
    else:
        draft.no_distribution(statement.name, statement.line, statement.rank)
    return True


def _build(statement: Claim, draft: Draft) -> bool:
    """The CUDA version that a distribution was built for."""
    whole = re.fullmatch(r"(\d{2})0(\d)", statement.value)  # CUDA's own number: 1208
    match = whole or _CUDA.search(statement.value) or _CUDA_SHORT.match(statement.value)
    if match is None:
        return False
    major, minor = match.groups() if len(match.groups()) == 2 else match.group(1).split(".")[:2]
    if statement.name == "torch":
        draft.put("torch.cuda", f"{major}.{minor}", statement.line, statement.rank)
    else:
        draft.distribution(
            statement.name, None, statement.line, statement.rank, build=f"cu{major}{minor}"
        )
    return True


def _built_with_torch(statement: Claim, draft: Draft) -> bool:
    """What a distribution's own extension was compiled with: it is loaded with no other torch."""
    claim = claimed_version(statement.value)
    if claim is not None and claim.version is not None:
        draft.requirement(statement.name, f"torch=={claim.version.split('+')[0]}")
    return claim is not None


def _nvcc_wheel(statement: Claim, draft: Draft) -> bool:
    match = _CUDA.search(statement.value)
    if match:
        draft.distribution("nvidia-cuda-nvcc", match.group(1), statement.line, statement.rank)
    return match is not None


def _framework(statement: Claim, draft: Draft) -> bool:
    name, _, rest = statement.value.partition(" ")
    known = known_distribution(name)
    if known is None:
        return False
    claim = claimed_version(rest)
    version = claim.version if claim is not None else None
    draft.distribution(known, version, statement.line, statement.rank)
    return True


def _engine(statement: Claim, draft: Draft) -> bool:
    match = re.match(r"[Vv]([01])\b", statement.value)
    if match:
        draft.request("engine", "V" + match.group(1), statement.line)
        if statement.name:
            draft.distribution(statement.name, None, statement.line)
    elif statement.name or known_distribution(statement.value.split(" ")[0]):
        named = statement._replace(subject=Topic(statement.name, "distribution"))
        return _distribution(named, draft) if statement.name else _framework(statement, draft)
    return match is not None


def _setting(statement: Claim, draft: Draft) -> bool:
    value = statement.value.strip().strip("\"'`,")
    match = re.match(r"[\w./+-][\w./+:@-]{0,200}", value)
    if match is None or (statement.relation == "said" and not re.match(r"\d", value)):
        return False
    if statement.name == "model" and not re.search(r"[A-Za-z]", match.group()):  # lscpu's
        return True
    draft.request(statement.name, match.group().rstrip(".,"), statement.line)
    return True


def _parallel(statement: Claim, draft: Draft) -> bool:
    """``TP+PP``: each that is named splits over at least two devices."""
    draft.request("parallel", statement.value, statement.line)
    for word in ("TP", "PP", "DP"):
        match = re.search(rf"\b{word}\s*=?\s*(\d+)?", statement.value)
        if match:
            draft.request(SETTINGS[word.lower()], match.group(1) or "2", statement.line)
    return True


def _ray_process(statement: Claim, draft: Draft) -> bool:
    draft.put("ray.process_version", statement.value, statement.line)
    draft.distribution("ray", statement.value, statement.line)
    return True


def _python_process(statement: Claim, draft: Draft) -> bool:
    draft.put("ray.process_python", statement.value, statement.line)
    draft.put("python.version", statement.value, statement.line)
    return True


#: How a value of each kind is read.
KINDS: Mapping[str, _Reader] = {
    "arch list": _arch_list,
    "architecture": _architecture,
    "bool": _bool,
    "build": _build,
    "built with torch": _built_with_torch,
    "capability": _capability,
    "compat": _compat,
    "cuda": _cuda,
    "cudnn": _cudnn,
    "directory": _directory,
    "distribution": _distribution,
    "engine": _engine,
    "framework": _framework,
    "glibc": _glibc,
    "gpu count": _gpu_count,
    "gpu memory": _gpu_memory,
    "gpu memory free": _gpu_memory_free,
    "gpu memory used": _gpu_memory_used,
    "gpu models": _gpu_models,
    "gpus": _gpus,
    "hip": _hip,
    "hypervisor": _hypervisor,
    "image": _image,
    "interpreter path": _interpreter_path,
    "kernel": _kernel,
    "kib": _limit_in(1024),
    "library": _library,
    "limit": _limit_in(1),
    "loader cache": _loader_cache,
    "memory": _memory,
    "mig": _mig,
    "module loading": _module_loading,
    "nothing": lambda _statement, _draft: True,
    "number": _number,
    "nvcc wheel": _nvcc_wheel,
    "os": _os,
    "parallel": _parallel,
    "platform": _platform,
    "python": _python,
    "python process": _python_process,
    "ray process": _ray_process,
    "release": _release,
    "setting": _setting,
    "shm": _shm,
    "strings": _strings,
    "text": _text,
    "toolkit": _toolkit,
    "torch cuda": _torch_cuda,
    "variable path": _variable_path,
    "version": _version,
}
#: What it means that a value is none or could not be learned; nothing for all other kinds.
_OF_NOTHING: Dict[str, _Reader] = {
    "distribution": _no_distribution,
    "gpu models": _no_gpu_models,
    "gpus": _no_gpus,
    "hip": _no_hip,
    "release": _no_release,
    "toolkit": _no_toolkit,
    "torch cuda": _no_torch_cuda,
}
