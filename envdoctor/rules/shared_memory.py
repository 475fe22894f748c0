"""ED502: who needs how much of /dev/shm (NCCL, Ray's object store, PyTorch's workers).

Loaded where /dev/shm may be too small: a start does without it elsewhere.
"""

from __future__ import annotations

from ..model.evidence import Absent, Known
from ..model.facts import Facts
from ..model.finding import Finding, Remedy, severity_rank
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.sizes import GIB, MIB, size_text
from ..model.versions import parse_version, try_version
from .rule import field_evidence, is_installed, visible_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, Optional, Sequence, Tuple

    from ..model.versions import Version

__all__ = ["NCCL_MEMORY", "find_shortage"]


NCCL_MEMORY = Source(
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html",
    "If insufficient shared memory is available, NCCL will fail to initialize … --shm-size=1g "
    "--ulimit memlock=-1",
)
_NCCL_SEGMENTS = Source(
    "https://github.com/NVIDIA/nccl/issues/342",
    "64 MB under Docker; segment of 9637888 bytes: No space left on device",
)
_VLLM_DOCKER = Source(
    "https://docs.vllm.ai/en/latest/deployment/docker.html",
    "use the ipc=host flag or --shm-size; vLLM uses PyTorch, which uses shared memory, "
    "particularly for tensor parallel inference",
)
_TORCH_DOCKER = Source(
    "https://github.com/pytorch/pytorch#docker-image",
    "the default shared memory segment size … is not enough: --ipc=host or --shm-size",
)
_RAY_STORE = Source(
    "https://github.com/ray-project/ray/blob/master/python/ray/_private/services.py",
    "The object store is using /tmp instead of /dev/shm … more than 30% of available RAM",
)

_NCCL_WHEELS = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")
#: The smallest NCCL segment in reports (nccl-tests#166: 5967872; nccl#342: 9637888): one per GPU at
#: the least.
_NCCL_SEGMENT = 5_967_872
#: From 2.24 on NCCL may take cuMem host allocations in place of /dev/shm (NCCL_CUMEM_HOST_ENABLE).
_NCCL_CUMEM_HOST = parse_version("2.24")


class _Reason(NamedTuple):
    severity: str
    text: str
    wanted: int
    sources: Tuple[Source, ...]


def find_shortage(facts: Facts, size: int, users: Optional[bool]) -> Iterator[Finding]:
    """Yield the finding about a /dev/shm that is too small, or too full, for what will use it.

    Args:
        facts: What is known of the target.
        size: Its size in bytes.
        users: Whether something is installed that uses it; None where that is not known.
    """
    available = facts.value("shm.available", size)
    needs = (
        _nccl_reason(facts, size, users),
        _store_reason(facts, available),
        _worker_reason(facts, size, users),
    )
    reasons = [reason for reason in needs if reason is not None]
    contents = _contents_reason(facts, size, available, short=bool(reasons))
    if contents is not None:
        reasons.append(contents)
    if not reasons:
        return
    reasons.sort(key=lambda reason: severity_rank(reason.severity))
    wanted = max(GIB, *(reason.wanted for reason in reasons))
    yield Finding(
        "ED502",
        "/dev/shm",
        "shm-too-small",
        reasons[0].severity,
        f"/dev/shm has {size_text(size)}: " + "; ".join(reason.text for reason in reasons) + ".",
        evidence=field_evidence(facts, "shm.size", "shm.available", "shm.files", "gpus"),
        sources=tuple(dict.fromkeys(source for reason in reasons for source in reason.sources)),
        remedies=_shm_remedies(facts, wanted),
    )


def _contents_reason(facts: Facts, size: int, available: int, *, short: bool) -> Optional[_Reason]:
    """Name what fills a /dev/shm that is too small, or that is large enough and nearly full."""
    contents = _shm_contents(facts)
    if short:
        return _Reason("advice", contents, 0, ()) if contents and available < size // 2 else None
    if size < GIB or available >= 64 * MIB or (visible_count(facts) or 0) < 2:
        return None
    filling = (
        contents or "files of dead jobs (nccl-*, plasma*, psm_*) stay until somebody removes them"
    )
    text = f"only {size_text(available)} of {size_text(size)} are free; {filling}"
    return _Reason("warning", text, 0, (NCCL_MEMORY,))


def _shm_contents(facts: Facts) -> str:
    """Return in words what takes the space and who holds it, "" where nothing is known."""
    files = facts.value("shm.files", ())
    parts = []
    left = [file for file in files if file.holders == ()]
    if left:
        parts.append(
            f"{size_text(sum(file.memory_size for file in left))} in files that no process visible "
            f"here holds ({_few([f.name for f in left])})"
        )
    by_holder: Dict[str, int] = {}
    for file in files:
        if file.holders:
            by_holder[file.holders[0]] = by_holder.get(file.holders[0], 0) + file.memory_size
    largest = sorted(by_holder.items(), key=lambda pair: -pair[1])[:2]
    parts += [f"{size_text(size)} held by process {holder}" for holder, size in largest]
    return ", ".join(parts)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _nccl_reason(facts: Facts, size: int, users: Optional[bool]) -> Optional[_Reason]:
    count = visible_count(facts)
    disabled = facts.variable("NCCL_SHM_DISABLE")
    if count is None or count < 2 or size >= GIB:
        return None
    if isinstance(disabled, Known) and disabled.value == "1":
        return None
    needs = count * _NCCL_SEGMENT
    version = _nccl_version(facts)
    if size < needs and version is not None and version < _NCCL_CUMEM_HOST:
        text = (
            f"NCCL {version} needs a segment of several MiB there for each of {count} GPUs, "
            f"at least {size_text(needs)}, and will fail to start"
        )
        return _Reason("error", text, GIB, (NCCL_MEMORY, _NCCL_SEGMENTS))
    text = f"NCCL keeps its segments for {count} GPUs there, and NVIDIA advises 1 GiB"
    if users is None and size == 64 * MIB:
        # Docker's default, which a dump of any container shows; llama.cpp has neither NCCL nor
        # workers.
        return _Reason("advice", f"where NCCL is used, it {text[5:]}", GIB, (NCCL_MEMORY,))
    return _Reason("warning", text, GIB, (NCCL_MEMORY, _NCCL_SEGMENTS))


def _nccl_version(facts: Facts) -> Optional[Version]:
    versions = (try_version(facts.version_of(name)) for name in _NCCL_WHEELS)
    return next((version for version in versions if version is not None), None)


def _store_reason(facts: Facts, available: int) -> Optional[_Reason]:
    """Ray's resolve_object_store_memory and determine_plasma_store_config, with its defaults."""
    if not is_installed(facts, "ray"):
        return None
    belief, used = facts.value("memory.ray_belief"), facts.value("memory.ray_usage")
    if belief is None:
        return None
    if used is None:
        free = facts.value("memory.available")
        used = belief - free if free is not None and free < belief else 0
    wanted = min(int((belief - used) * 0.3), 200 * 10**9, max(10**10, int(available * 0.95)))
    if wanted <= available:
        return None
    text = f"Ray wants {size_text(wanted)} there for its object store and will put it below /tmp"
    return _Reason("warning", text, int(wanted * 1.1), (_RAY_STORE,))


def _worker_reason(facts: Facts, size: int, users: Optional[bool]) -> Optional[_Reason]:
    count = visible_count(facts)
    if size >= GIB or (count is not None and count > 1):
        return None
    if users is None and count is None and size > 64 * MIB:
        return None
    text = (
        "PyTorch's DataLoader workers and vLLM's processes share tensors there, and NCCL its "
        "buffers where there are several GPUs"
    )
    return _Reason("advice", text, GIB, (_TORCH_DOCKER, _VLLM_DOCKER))


def _shm_remedies(facts: Facts, wanted: int) -> Tuple[Remedy, ...]:
    gib = max(1, -(-wanted // GIB))
    runtime = facts.value("container.runtime")
    docker = Remedy(
        "Start the container with more shared memory, or with the host's.",
        (f"docker run --shm-size={gib}g …", "docker run --ipc=host …"),
        "changes-host",
    )
    pod = Remedy(
        f"Mount an emptyDir with medium: Memory and sizeLimit: {gib}Gi at /dev/shm; it counts "
        "against the memory limit.",
        (),
        "changes-host",
    )
    host = Remedy(
        "Raise the size of the tmpfs.", (f"mount -o remount,size={gib}G /dev/shm",), "changes-host"
    )
    if runtime == "kubernetes":
        return (pod,)
    if runtime in ("docker", "podman"):
        return (docker,)
    if isinstance(facts.get("container.runtime"), Absent):
        return (host,)
    return (docker, pod, host)
