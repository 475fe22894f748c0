"""The labelled lines of collect_env (torch, vllm, sglang), ``transformers-cli env``, ``accelerate
env`` and ``ds_report``.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, Optional

from ..model.sizes import parse_limit, parse_size
from .clean_text import Line
from .draft import EXACT, LABEL, Draft
from .nvidia_output import driver_release
from .word_lists import phrases

__all__ = [
    "CollectEnvReader",
    "architecture",
    "operating_system",
    "plain_label",
    "platform_words",
    "python_platform",
    "python_version",
]

_LABELLED = re.compile(r"([A-Za-z][\w ./()?-]{0,60}?)\s*(?::|\.{4,}|=(?==?\s))\s*(.*)$")
_NOTHING = phrases(
    """
    , n/a, could not collect, none, not found, unknown, module not found, no cuda, not installed,
    not installed (na), na
    """
)
_PYTHON = re.compile(r"\b([23]\.\d{1,2}(?:\.\d{1,2})?(?:rc\d|a\d|b\d|\+)?)(?![\d.])")
_PLATFORM = re.compile(
    r"Linux-(\d+\.\d+\S*?)-(x86_64|aarch64|arm64|ppc64le)(?:-(?:x86_64|aarch64))?-with-glibc(\d+\.\d+)"
)
_CUDNN = re.compile(r"libcudnn\S{0,40}?\.so\.(\d+\.\d+\.\d+)")
_CUDA = re.compile(r"\d{1,2}\.\d{1,2}(?:\.\d{1,4})?")
_ARCHITECTURES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "x64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "ppc64le": "ppc64le",
}


def architecture(text: str) -> Optional[str]:
    """Return the machine architecture that a text names."""
    match = re.search(r"\b(x86_64|amd64|x64|aarch64|arm64|ppc64le)\b", text, re.IGNORECASE)
    return _ARCHITECTURES[match.group(1).lower()] if match else None


def python_version(text: str) -> Optional[str]:
    """Return the Python version at the start of a text (``3.10.12 (main, …)``)."""
    match = _PYTHON.match(text.strip().lstrip("v"))
    return match.group(1).rstrip("+") if match else None


def python_platform(text: str, line: Line, draft: Draft) -> bool:
    """Read what ``platform.platform()`` returns."""
    match = _PLATFORM.search(text)
    if match:
        draft.put("os.kernel", match.group(1), line, EXACT)
        draft.put("os.platform", "linux", line, EXACT)
        draft.put("os.architecture", _ARCHITECTURES[match.group(2)], line, EXACT)
        draft.put("glibc.version", match.group(3), line, EXACT + 1)
        if "microsoft" in match.group(1).lower():
            draft.put("os.wsl", True, line, EXACT)
        return True
    for beginning, name in (("Windows-", "win32"), ("macOS-", "darwin"), ("Linux-", "linux")):
        if text.strip().startswith(beginning):
            draft.put("os.platform", name, line, EXACT)
            return True
    return False


class CollectEnvReader:
    """Reads one labelled line at a time.

    Only ``GPU models``, ``Is CUDA available`` and the driver line are read together.
    """

    def __init__(self) -> None:
        self._gpus: Optional[Line] = None
        self._gpus_said = ""
        self._driver_said = ""
        self._handlers: Dict[str, Callable[[str, Line, Draft], Optional[bool]]] = {
            "pytorch": self._torch,
            "torch": self._torch,
            "cuda used to build pytorch": self._torch_cuda,
            "torch cuda": self._torch_cuda,
            "torch.version.cuda": self._torch_cuda,
            "pytorch cuda": self._torch_cuda,
            "rocm used to build pytorch": self._torch_hip,
            "torch hip": self._torch_hip,
            "os": self._os,
            "libc": self._libc,
            "python": self._python,
            "python platform": self._python_platform,
            "platform": self._platform,
            "is cuda available": self._available,
            "cuda available": self._available,
            "pytorch cuda available": self._available,
            "cuda runtime": self._toolkit,
            "nvcc": self._toolkit,
            "cuda compiler": self._toolkit,
            "cuda_module_loading set to": self._module_loading,
            "gpu models and configuration": self._gpu_models,
            "nvidia driver": self._driver,
            "cuda driver": self._driver,
            "driver": self._driver,
            "cudnn": self._cudnn,
            "shared memory /dev/shm size": self._shm,
            "system ram": self._memory,
            "ulimit soft": self._nofile,
            "working directory": self._directory,
            "cuda_home": self._cuda_home,
            "torch._c._glibcxx_use_cxx11_abi": self._abi,
            "hypervisor vendor": lambda value, line, draft: (
                draft.put("os.wsl", True, line)
                if value.startswith("Microsoft") and "WSL" in value
                else None
            ),
        }

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False leaves it to the others."""
        match = _LABELLED.match(line.text)
        if match is None:
            return "libcudnn" in line.text and self._cudnn_path(line.text, line, draft)
        label, value = match.groups()
        handler = self._handlers.get(plain_label(label))
        if handler is None:
            return False
        if re.match(r"[<>=~!]", value):
            return False
        first, more, _ = value.partition(" / ")
        # "OS: Ubuntu 22.04 / Python 3.10": the rest is left to the reader of prose.
        return handler(first.strip(), line, draft) is not False and not more

    def finish(self, draft: Draft) -> None:
        """Say what the empty answers mean together."""
        if self._gpus is None:
            return
        available = draft.claimed("torch.cuda_available")
        driver = draft.claimed("driver.release")
        if self._gpus_said == "no cuda" or (available is False and driver is None):
            draft.device_list_is_empty(
                self._gpus,
                f"{self._gpus_said or 'no device'}: nvidia-smi lists none and torch sees none",
            )
            if driver is None and self._driver_said in ("no cuda", "could not collect"):
                draft.put(
                    "driver.exposed",
                    False,
                    self._gpus,
                    LABEL,
                    "neither nvidia-smi nor torch reaches a device",
                )
        elif available is True and self._gpus_said == "could not collect":
            # collect_env runs "nvidia-smi -L"; torch reaches the device all the same.
            draft.put(
                "driver.nvml_error",
                "nvidia-smi could not list the GPUs, although torch sees CUDA",
                self._gpus,
            )
        else:
            draft.unknown("gpus", "the report could not collect them")

    def _torch(self, value: str, line: Line, draft: Draft) -> bool:
        if value.lower() in _NOTHING:
            draft.unknown("torch.version", "the report could not import torch")
            return True
        return draft.torch(value, line)

    def _torch_cuda(self, value: str, line: Line, draft: Draft) -> None:
        match = _CUDA.match(value)
        if match:
            draft.put("torch.cuda", match.group(), line, EXACT)
        elif value.lower() in ("none", "could not collect"):
            # collect_env prints torch.version.cuda; only a failed import gives "N/A".
            draft.absent("torch.cuda", line, EXACT, "torch.version.cuda is None")

    def _torch_hip(self, value: str, line: Line, draft: Draft) -> None:
        match = re.match(r"\d+\.\d+[\w.-]{0,40}", value)
        if match:
            draft.put("torch.hip", match.group(), line, EXACT)
        elif value in ("N/A", "None"):
            draft.absent("torch.hip", line, EXACT)

    def _os(self, value: str, line: Line, draft: Draft) -> None:
        operating_system(value, line, draft)

    def _libc(self, value: str, line: Line, draft: Draft) -> None:
        match = re.search(r"(?:glibc[- ]?)?(\d\.\d{1,2})\b", value)
        if match:
            draft.put("glibc.version", match.group(1), line, EXACT)

    def _python(self, value: str, line: Line, draft: Draft) -> None:
        version = python_version(value)
        if version:
            draft.put("python.version", version, line, EXACT)
            if "PyPy" in value:
                draft.put("python.implementation", "pypy", line, EXACT)

    def _python_platform(self, value: str, line: Line, draft: Draft) -> None:
        python_platform(value, line, draft)

    def _platform(self, value: str, line: Line, draft: Draft) -> None:
        if not python_platform(value, line, draft):
            platform_words(value, line, draft)

    def _available(self, value: str, line: Line, draft: Draft) -> None:
        if value.split(" ")[0] in ("True", "False"):
            draft.put("torch.cuda_available", value.startswith("True"), line, EXACT)

    def _toolkit(self, value: str, line: Line, draft: Draft) -> None:
        match = re.search(r"V(\d{1,2}\.\d{1,2}\.\d{1,4})", value) or re.search(
            r"(?<![\d.])(\d{1,2}\.\d{1,2}(?:\.\d{1,4})?)(?![\d.])", value
        )
        if match:
            draft.put("toolkit.version", match.group(1), line, EXACT)
        elif value.lower() in _NOTHING:
            draft.unknown("toolkit.version", "nvcc was not found on PATH")

    def _module_loading(self, value: str, line: Line, draft: Draft) -> None:
        if value in ("LAZY", "EAGER", "DEFAULT"):
            draft.variable("CUDA_MODULE_LOADING", value, line)

    def _gpu_models(self, value: str, line: Line, _draft: Draft) -> None:
        if value.lower() in ("no cuda", "could not collect", "n/a"):
            self._gpus, self._gpus_said = line, value.lower()

    def _driver(self, value: str, line: Line, draft: Draft) -> bool:
        self._driver_said = value.lower()
        release = driver_release(value)
        if release:
            draft.put("driver.release", release, line, EXACT)
        cuda = re.search(r"CUDA(?: Version)?:?\s*(\d{1,2}\.\d{1,2})", value) or re.fullmatch(
            r"(\d{1,2}\.\d{1,2})", value
        )
        if cuda:
            draft.put("driver.cuda_version", cuda.group(1), line, LABEL)
        return "," not in value  # the rest may name torch

    def _cudnn(self, value: str, line: Line, draft: Draft) -> None:
        self._cudnn_path(value, line, draft)

    def _cudnn_path(self, value: str, line: Line, draft: Draft) -> bool:
        match = _CUDNN.search(value)
        if match and "site-packages" not in value and "dist-packages" not in value:
            draft.put("cudnn.system_version", match.group(1), line, EXACT)
            return True
        return False

    def _shm(self, value: str, line: Line, draft: Draft) -> None:
        size = parse_size(value, binary=True)
        if size is not None:
            draft.put("shm.size", size, line, EXACT)

    def _memory(self, value: str, line: Line, draft: Draft) -> None:
        size = parse_size(value, binary=True)
        if size is not None:
            draft.put("memory.total", size, line, EXACT)

    def _nofile(self, value: str, line: Line, draft: Draft) -> None:
        limit = parse_limit(value)
        if limit is not None:
            draft.put("rlimit.nofile", limit, line, EXACT)

    def _directory(self, value: str, line: Line, draft: Draft) -> None:
        if value.startswith(("/", "~", ".")) or re.match(r"[A-Za-z]:\\", value):
            draft.put("python.working_directory", value, line)

    def _cuda_home(self, value: str, line: Line, draft: Draft) -> None:
        if "/" in value:
            draft.variable("CUDA_HOME", value, line)

    def _abi(self, value: str, line: Line, draft: Draft) -> None:
        if value in ("True", "False", "0", "1"):
            draft.put("torch.cxx11abi", value in ("True", "1"), line, EXACT)


def plain_label(label: str) -> str:
    """Strip what does not tell: ``PyTorch version (GPU?)`` gives ``pytorch``."""
    text = re.sub(r"\([^()]*\?\)", "", label.lower())
    text = re.sub(r"[()]", "", text)
    text = re.sub(r"\s+", " ", text).strip().replace(".__version__", "")
    return text[: -len(" version")] if text.endswith(" version") else text


def operating_system(value: str, line: Line, draft: Draft, rank: int = LABEL) -> None:
    """Read the name of an operating system."""
    if value.lower() in _NOTHING:
        return
    lowered = value.lower()
    machine = architecture(value)
    name = re.sub(r"\s*\((?:x86_64|amd64|aarch64|arm64)\)", "", value).strip()
    if "windows" in lowered and "wsl" not in lowered:
        draft.put("os.platform", "win32", line, rank)
    elif "macos" in lowered or "darwin" in lowered:
        draft.put("os.platform", "darwin", line, rank)
    elif re.search(
        r"linux|ubuntu|debian|centos|red hat|rhel|rocky|alma|suse|sles|fedora|arch linux|amazon|"
        r"tencentos|openeuler|euleros|anolis|pop!_os|mint|kylin|photon|nixos|alpine|wsl",
        lowered,
    ):
        draft.put("os.platform", "linux", line, rank)
    else:
        return
    if "wsl" in lowered:
        draft.put("os.wsl", True, line, rank)
    draft.put("os.name", name[:120], line, rank)
    if machine:
        draft.put("os.architecture", machine, line, rank)


def platform_words(value: str, line: Line, draft: Draft) -> None:
    """Read a prose platform: WSL2, GKE, Docker, an operating system."""
    if re.search(r"\bWSL ?[12]?\b", value):
        draft.put("os.wsl", True, line)
        draft.put("os.platform", "linux", line)
    if re.search(r"\b(?:GKE|EKS|AKS|k8s|kubernetes|helm|OpenShift)\b", value, re.IGNORECASE):
        draft.put("kubernetes.pod", True, line)
        draft.put("container.runtime", "kubernetes", line)
    operating_system(value, line, draft)
    machine = architecture(value)
    if machine:
        draft.put("os.architecture", machine, line)
