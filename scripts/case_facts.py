"""The ``facts`` of a case (cases/README.md) as envdoctor's Facts.

Keys vary; what is not understood is left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from envdoctor.intake.clean_text import Line
from envdoctor.intake.collect_env import architecture, operating_system, platform_words
from envdoctor.intake.container_spec import image_of_words
from envdoctor.intake.draft import EXACT, LABEL, Draft
from envdoctor.intake.names import known_distribution
from envdoctor.intake.nvidia_output import driver_release
from envdoctor.intake.prose import claimed_version, parse_gpus
from envdoctor.intake.word_lists import words
from envdoctor.model.facts import Facts, Gpu
from envdoctor.model.sizes import parse_limit, parse_size
from envdoctor.model.versions import canonicalize_name, cuda_of_variant, find_variant, try_version

LINE = Line(1, "", "", 0)
Handler = Callable[[Draft, str], None]

_CUDA = re.compile(r"(?<![\d.])(\d{1,2}\.\d{1,2}(?:\.\d{1,4})?)(?![\d])")
_DATE = re.compile(r"20\d{2}-\d{2}(?:-\d{2})?")
_ENABLED = ("enabled", "true", "on", "yes", "active")
# Launch settings and sizes that no distribution is named after.
_SETTINGS = words(
    """
    tensor_parallel pipeline_parallel data_parallel tensor_parallel_size pipeline_parallel_size
    data_parallel_size gpu_memory_utilization max_model_len kv_cache_dtype attention_backend
    zero_stage precision deepspeed_config optimizer_offload quantization dtype executor
    distributed_executor_backend swap_space block_size kv_tokens weights_gb model scheduler
    """
)


def case_facts(stated: Mapping[str, Any], matrix: Optional[Any] = None) -> Facts:
    """Return what the key/value pairs of one case say.

    ``matrix`` dates a release that is only given by its day.
    """
    draft = Draft("case")
    for key, value in stated.items():
        _read(draft, key, value, matrix)
    _memory_of_gpus(draft, stated)
    return draft.facts()


def _read(draft: Draft, key: str, value: Any, matrix: Optional[Any]) -> None:
    plain = re.sub(r"[\s-]+", "_", key.strip().lower())
    text = value if isinstance(value, str) else str(value)
    if key.isupper() or key.startswith(("LD_", "CUDA_", "NCCL_", "VLLM_", "RAY_", "PYTORCH_")):
        _variable(draft, key, text)
        return
    handler = _HANDLERS.get(plain)
    if handler is not None:
        handler(draft, text)
    elif plain in _SETTINGS:
        name = (
            plain
            if plain not in ("tensor_parallel", "pipeline_parallel", "data_parallel")
            else plain + "_size"
        )
        draft.request("distributed_executor_backend" if name == "executor" else name, text, LINE)
    elif plain.endswith("_engine"):
        draft.request("engine", text, LINE)
        name = known_distribution(plain[: -len("_engine")])
        if name:
            draft.distribution(name, None, LINE)
    elif plain.endswith("_cuda") and known_distribution(plain[:-5].replace("_", "-")):
        found = _CUDA.search(text)
        if found:
            major, minor = found.group(1).split(".")[:2]
            draft.distribution(plain[:-5], None, LINE, LABEL, build=f"cu{major}{minor}")
    elif plain.startswith("nvcc_") or plain.endswith("_headers"):
        found = _CUDA.search(text)
        if found:
            draft.distribution(
                "nvidia-cuda-nvcc" if plain.startswith("nvcc_") else "nvidia-cuda-runtime",
                found.group(1),
                LINE,
            )
    elif isinstance(value, str):
        _package(draft, key, text, matrix)


def _package(draft: Draft, key: str, text: str, matrix: Optional[Any]) -> None:
    """A distribution, where the key is one that is known or the value is a whole version."""
    name = known_distribution(re.sub(r"[-_]version$", "", key.replace("_", "-")))
    claim = claimed_version(text)
    if _DATE.fullmatch(text):
        version = newest_of_day(matrix, name, text) if name else None
        if name:
            draft.distribution(name, version, LINE)
        return
    if claim is not None and (claim.constraint or "." in (claim.version or "")):
        if name is None and (
            try_version(claim.version) is None or not re.fullmatch(r"[A-Za-z][\w.-]{1,60}", key)
        ):
            return
        draft.distribution(
            name or canonicalize_name(key), claim.version, LINE, constraint=claim.constraint
        )
        if name == "torch" and claim.version:
            draft.torch(claim.version, LINE)
    elif name == "torch" and find_variant(text.split()[0] if text else ""):
        cuda = cuda_of_variant(find_variant(text.split()[0]) or "")
        if cuda:
            draft.put("torch.cuda", cuda, LINE)
    elif name is not None:
        draft.distribution(name, None, LINE)


def newest_of_day(matrix: Optional[Any], name: Optional[str], day: str) -> Optional[str]:
    """Return the newest final release of a distribution on a day (``2026-02`` is the whole month),
    or None.
    """
    package = matrix.package(name) if matrix is not None and name is not None else None
    if package is None:
        return None
    found = [
        version
        for version in package.versions
        if not version.is_prerelease
        and (package.release(version).released or "9")[: len(day)] <= day
    ]
    return str(max(found)) if found else None


def _variable(draft: Draft, key: str, text: str) -> None:
    if key.startswith("LD_LIBRARY_PATH_"):  # LD_LIBRARY_PATH_cudnn: the version that lies there
        if "cudnn" in key.lower():
            draft.put("cudnn.system_version", text, LINE)
        return
    value = re.sub(r"\s+(?:first|last|lacks .*|\(.*)$", "", text.strip())
    if re.fullmatch(r"MIG[ -]?uuid", value, re.IGNORECASE):
        value = "MIG-00000000-0000-0000-0000-000000000000"
    draft.variable(key, value, LINE)
    if key == "CUDA_VERSION" and _CUDA.fullmatch(value):
        draft.put("image.cuda_version", value, LINE)


def _driver(draft: Draft, text: str) -> None:
    release = driver_release(text)
    if release:
        draft.put("driver.release", release, LINE, EXACT)


def _release(field: str) -> Handler:
    def handle(draft: Draft, text: str) -> None:
        release = driver_release(text)
        if release:
            draft.put(field, release, LINE)

    return handle


def _gpu(draft: Draft, text: str) -> None:
    if re.match(r"(?:none|no)\b", text, re.IGNORECASE):
        draft.device_list_is_empty(LINE, text)
        draft.put("driver.exposed", False, LINE, LABEL, text)
        return
    if text.isdigit():
        draft.device_count = int(text)
        return
    for count, device in parse_gpus(text):
        draft.devices(count, device, LINE, LABEL)


def _capability(draft: Draft, text: str) -> None:
    found = re.search(r"(\d{1,2})\.?(\d)[af]?\b", text)
    if found:
        draft.device(
            0, Gpu(compute_capability=f"{found.group(1)}.{found.group(2)}"), LINE, LABEL + 5
        )


def _memory_of_gpus(draft: Draft, stated: Mapping[str, Any]) -> None:
    total = stated.get("gpu_total", stated.get("gpu_memory_gib"))
    size = (
        parse_size(str(total) if isinstance(total, str) else f"{total}GiB")
        if total is not None
        else None
    )
    if size is None:
        return
    free = parse_size(str(stated.get("gpu_free", "")))
    draft.device(
        0,
        Gpu(memory_total=size, memory_used=None if free is None else max(0, size - free)),
        LINE,
        LABEL + 5,
    )


def _number(field: str, unit: int = 1) -> Handler:
    def handle(draft: Draft, text: str) -> None:
        limit = parse_limit(text, unit=unit)
        if limit is not None:
            draft.put(field, limit, LINE)

    return handle


def _shm(draft: Draft, text: str) -> None:
    size = parse_size(text, binary=True)
    if size is not None:
        draft.put("shm.size", size, LINE)


def _cuda(field: str) -> Handler:
    def handle(draft: Draft, text: str) -> None:
        found = _CUDA.search(text)
        if found:
            draft.put(field, found.group(1), LINE)

    return handle


def _version(field: str) -> Handler:
    def handle(draft: Draft, text: str) -> None:
        found = re.search(r"\d+(?:\.\d+)+(?:rc\d+|\.post\d+|\.dev\d+)?", text)
        if found:
            draft.put(field, found.group(), LINE)

    return handle


def _boolean(field: str) -> Handler:
    return lambda draft, text: draft.put(field, text.lower() in _ENABLED, LINE)


def _python(draft: Draft, text: str) -> None:
    found = re.match(r"(?:Python )?(\d\.\d{1,2}(?:\.\d{1,2})?)", text)
    if found:
        draft.put("python.version", found.group(1), LINE)


def _platform(draft: Draft, text: str) -> None:
    platform_words(text, LINE, draft)


def _architecture(draft: Draft, text: str) -> None:
    machine = architecture(text)
    if machine:
        draft.put("os.architecture", machine, LINE)
    elif re.search(r"\b(?:sm|compute)_?\d", text):
        _capability(draft, text)


def _image(draft: Draft, text: str) -> None:
    from envdoctor.intake.container_spec import image_hints

    name = image_of_words(text) or text.split()[0]
    draft.put("image.name", name, LINE)
    draft.put("container.runtime", "docker", LINE)
    for what, version in image_hints(name):
        if "." in what:
            draft.put(what, version, LINE, LABEL + 20)
        else:
            draft.distribution(what, version, LINE, LABEL + 20)


def _parallel(draft: Draft, text: str) -> None:
    """``TP+PP``: each that is named splits over at least two devices."""
    draft.request("parallel", text, LINE)
    for word, name in (
        ("TP", "tensor_parallel_size"),
        ("PP", "pipeline_parallel_size"),
        ("DP", "data_parallel_size"),
    ):
        found = re.search(rf"\b{word}\s*=?\s*(\d+)?", text)
        if found:
            draft.request(name, found.group(1) or "2", LINE)


def _ray_process(draft: Draft, text: str) -> None:
    draft.put("ray.process_version", text, LINE)
    draft.distribution("ray", text, LINE)


def _process_python(draft: Draft, text: str) -> None:
    draft.put("ray.process_python", text, LINE)
    draft.put("python.version", text, LINE)


def _torch_cuda(draft: Draft, text: str) -> None:
    found = _CUDA.search(text)
    if found:
        draft.put("torch.cuda", ".".join(found.group(1).split(".")[:2]), LINE)


def _architectures(draft: Draft, text: str) -> None:
    found = re.findall(r"\b(?:sm|compute)_\d{2,3}[af]?\b", text)
    if found:
        draft.put("torch.arch_list", tuple(found), LINE)


def _framework(draft: Draft, text: str) -> None:
    name = known_distribution(text)
    if name:
        draft.distribution(name, None, LINE)


def _system_cuda(draft: Draft, text: str) -> None:
    found = _CUDA.search(text)
    if found:
        draft.toolkit("/usr/local/cuda", found.group(1), LINE, "/usr/local", nvcc=True)


def _compat(draft: Draft, text: str) -> None:
    release = driver_release(text)
    if release:
        draft.put("compat.release", release, LINE)
    found = re.match(r"(?:cuda-compat-)?(\d{2})[-.](\d)\b", text)
    if found:
        draft.put("compat.cuda_version", f"{found.group(1)}.{found.group(2)}", LINE)


def _ldconfig(draft: Draft, text: str) -> None:
    if "libcuda.so.1" in text:
        draft.put(
            "driver.unversioned_libcuda", re.search(r"libcuda\.so(?!\.\d)", text) is not None, LINE
        )


_GIGABYTES = 10**9

_HANDLERS: Dict[str, Handler] = {
    **dict.fromkeys(
        ("driver", "nvidia_driver", "driver_version", "nvidia_driver_version", "driver_release"),
        _driver,
    ),
    **dict.fromkeys(
        ("driver_cuda", "cuda_driver", "driver_cuda_version"), _cuda("driver.cuda_version")
    ),
    **dict.fromkeys(
        ("gpu", "gpus", "gpu_name", "gpu_model", "gpu_type", "gpu_count", "num_gpus", "gpu_number"),
        _gpu,
    ),
    **dict.fromkeys(
        ("gpu_arch", "compute_capability", "sm", "gpu_compute_capability"), _capability
    ),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_toolkit", "nvcc", "toolkit", "cuda_nvcc", "nvcc_version"),
        _cuda("toolkit.version"),
    ),
    **dict.fromkeys(("system_cuda", "local_cuda"), _system_cuda),
    **dict.fromkeys(("torch_cuda", "pytorch_cuda"), _torch_cuda),
    **dict.fromkeys(
        ("cuda_available", "torch_cuda_available", "is_cuda_available"),
        _boolean("torch.cuda_available"),
    ),
    **dict.fromkeys(
        ("cxx11_abi", "cxx11abi", "torch_cxx11_abi", "glibcxx_use_cxx11_abi"),
        _boolean("torch.cxx11abi"),
    ),
    **dict.fromkeys(("arch_list", "torch_arch_list"), _architectures),
    **dict.fromkeys(("system_cudnn", "cudnn_system"), _version("cudnn.system_version")),
    **dict.fromkeys(("python", "python_version"), _python),
    **dict.fromkeys(("glibc", "libc"), _version("glibc.version")),
    **dict.fromkeys(
        ("os", "operating_system", "distro"),
        lambda draft, text: operating_system(text, LINE, draft),
    ),
    "kernel": lambda draft, text: draft.put("os.kernel", text, LINE),
    **dict.fromkeys(("platform", "cloud", "orchestrator"), _platform),
    **dict.fromkeys(("cpu_arch", "architecture", "arch", "machine"), _architecture),
    **dict.fromkeys(("dev_shm", "/dev/shm", "shm", "shm_size", "shared_memory"), _shm),
    **dict.fromkeys(
        ("nofile_soft", "nofile", "ulimit_n", "open_files", "nofile_limit"),
        _number("rlimit.nofile"),
    ),
    "nofile_hard": _number("rlimit.nofile_hard"),
    **dict.fromkeys(
        ("memlock_kb", "max_locked_memory_kb", "ulimit_l", "memlock_soft_kb"),
        _number("rlimit.memlock", 1024),
    ),
    "memlock": _number("rlimit.memlock"),
    **dict.fromkeys(
        ("nproc", "nproc_soft", "ulimit_u", "max_user_processes"), _number("rlimit.nproc")
    ),
    **dict.fromkeys(
        ("nvml", "nvml_version", "nvml_library", "user_driver", "user_space_driver"),
        _release("driver.nvml_release"),
    ),
    **dict.fromkeys(("libcuda", "libcuda_version"), _release("driver.libcuda_release")),
    **dict.fromkeys(("kernel_driver", "kernel_module", "host_driver"), _release("driver.release")),
    "wsl": _boolean("os.wsl"),
    "mig": lambda draft, text: draft.device(
        0, Gpu(mig_mode=text.lower() in _ENABLED), LINE, LABEL + 5
    ),
    "pids_limit": _number("pids.limit"),
    **dict.fromkeys(("host_memory_gb", "ram_gb", "memory_gb"), _number("memory.total", _GIGABYTES)),
    **dict.fromkeys(("host_memory", "ram", "memory", "system_memory"), _number("memory.total")),
    **dict.fromkeys(("memory_limit", "container_memory"), _number("memory.limit")),
    "memory_limit_gb": _number("memory.limit", _GIGABYTES),
    "cluster_ray": lambda draft, text: draft.put("ray.cluster_version", text, LINE),
    "cluster_python": lambda draft, text: draft.put("ray.cluster_python", text, LINE),
    "process_ray": _ray_process,
    "process_python": _process_python,
    **dict.fromkeys(
        ("fabricmanager", "fabric_manager", "nvidia_fabricmanager"),
        _version("driver.fabric_manager"),
    ),
    **dict.fromkeys(("cuda_compat", "compat"), _compat),
    **dict.fromkeys(("image", "docker_image", "container_image"), _image),
    **dict.fromkeys(
        ("cwd", "working_directory"),
        lambda draft, text: draft.put("python.working_directory", text, LINE),
    ),
    "parallel": _parallel,
    "pcie_acs_iommu": _boolean("pcie.acs_iommu"),
    **dict.fromkeys(("acs", "iommu", "pcie_acs"), _boolean("pcie.acs_iommu")),
    "framework": _framework,
    "ldconfig": _ldconfig,
    "nvml_error": lambda draft, text: draft.put("driver.nvml_error", text, LINE),
    "ipc_host": _boolean("container.ipc_host"),
    **dict.fromkeys(
        (
            "cudnn_build",
            "gpu_total",
            "gpu_free",
            "gpu_memory_gib",
            "gpu_gb_after_prepare",
            "gpu_gb_after_backward",
            "nccl",
        ),
        lambda _draft, _text: None,
    ),
}
