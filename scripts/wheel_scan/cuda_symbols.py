"""What libraries of CUDA export and what others leave to them, read from wheels: cuBLAS, cuDNN,
NCCL and their kind, and the driver's ``cu…``.

Of a library whose table of symbols is whole at its beginning only that is read
(``dynamic_head.py``: 1 MB of 700); one that patchelf touched is inflated whole. Parts of cuDNN are
left out: it opens them itself, by name.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Mapping, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from envdoctor.probes.elf import ElfError

from .dynamic_head import symbols_in_head
from .symbols import unpacked
from .zip_range import RemoteZip

__all__ = ["CONSUMERS", "PROVIDERS", "read_cuda"]

#: What pip calls CUDA's libraries: those of CUDA 11 and 12 by their suffix, those of CUDA 13
#: mostly without one.
PROVIDERS: Tuple[str, ...] = (
    *(f"nvidia-{name}-cu{major}" for major in (11, 12) for name in (
        "cublas", "cuda-cupti", "cuda-nvrtc", "cuda-runtime", "cudnn", "cufft", "cufile", "curand",
        "cusolver", "cusparse", "cusparselt", "nccl", "nvjitlink", "nvshmem", "nvtx",
    ) if (name, major) not in (("cufile", 11), ("cusparselt", 11), ("nvjitlink", 11))),
    *(f"nvidia-{name}" for name in (
        "cublas", "cuda-cupti", "cuda-nvrtc", "cuda-runtime", "cufft", "cufile", "curand",
        "cusolver", "cusparse", "nvjitlink", "nvtx",
    )),
    *(f"nvidia-{name}-cu13" for name in ("cudnn", "cusparselt", "nccl", "nvshmem")),
)  # fmt: skip
#: Packages whose libraries are linked to them.
CONSUMERS: Tuple[str, ...] = (
    *("torch", "bitsandbytes", "onnxruntime-gpu", "transformer-engine-cu12"),
    *("transformer-engine-cu13", "sgl-kernel", "sglang-kernel", "vllm", "xformers", "torchcodec"),
    *("torch-tensorrt", "fbgemm-gpu", "torch-memory-saver", "lmcache", "torchvision"),
)
_MOST_MEMBER = 2 << 30
_MOST_HEAD = 3 << 20
_LIBRARY = re.compile(r"(?:.+/)?[^/]+\.so(?:\.\d+)*")
_PART_OF_CUDNN = re.compile(r"(?:.+/)?libcudnn_\w+\.so\.\d+")
#: Names that a library of CUDA, or its driver, may define.
_HEADER = re.compile(r"(?:.+/)?cuda\w*Typedefs\.h")
_MOST_HEADER = 4 << 20
#: ``PFN_cuCtxCreate_v11040)``: a type of a function of the driver, and with which CUDA it came.
_TYPEDEF = re.compile(r"\bPFN_cu\w+\)")
_OF_CUDA = re.compile(r"(?:__)?(?:cu|nv|nccl)[A-Za-z]\w*")


def read_cuda(archive: RemoteZip, record: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Read what ``cuda`` of a record lacks, yielding it after each library: ``exported``,
    ``undefined`` and ``needed``; ``typedefs``: of the driver's functions in the headers.
    """
    headers = [
        archive.content(name, _MOST_HEADER).decode("utf-8", "replace")
        for name in archive.members
        if _HEADER.fullmatch(name)
    ]
    record["typedefs"] = sorted({name for text in headers for name in _TYPEDEF.findall(text)})
    for name in sorted(archive.members, key=lambda name: archive.members[name].packed):
        if not _LIBRARY.fullmatch(name) or _PART_OF_CUDNN.fullmatch(name):
            continue
        if name in record.get("cuda", {}):
            continue
        try:
            entry = _in_head(archive, name) or _whole(archive, name)
        except ElfError as error:
            entry = {"fault": str(error)}
        record.setdefault("cuda", {})[name] = entry
        yield record


def _in_head(archive: RemoteZip, name: str) -> Mapping[str, Any]:
    """Read the beginning of a large library; nothing where its table of symbols is not whole in
    it.
    """
    if archive.members[name].size <= _MOST_HEAD:
        return {}
    head = b""
    for piece in archive.stream(name, _MOST_MEMBER):
        head += piece
        symbols = symbols_in_head(head)
        if symbols is not None:
            return _entry(symbols.exported, symbols.undefined, symbols.libraries)
        if len(head) > _MOST_HEAD:
            break
    return {}


def _whole(archive: RemoteZip, name: str) -> Mapping[str, Any]:
    with unpacked(archive, name) as file:
        return _entry(file.exported(), file.undefined(), file.needed)


def _entry(
    exported: Iterable[str], undefined: Iterable[str], needed: Iterable[str]
) -> Mapping[str, Any]:
    return {
        "exported": sorted(filter(_OF_CUDA.fullmatch, exported)),
        "undefined": sorted(filter(_OF_CUDA.fullmatch, undefined)),
        "needed": sorted(needed),
    }
