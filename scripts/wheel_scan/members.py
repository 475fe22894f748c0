"""Which members of which package's wheels are read, and how.

=========
==============================================================================================
``code``   a library: its ELF header parts, and every fat binary in it ``elf``    a library of which
only the ELF header parts are wanted ``archs``  ``libtorch_python.so``: as ``elf``, and the
architectures that ``torch.cuda.get_arch_list()`` prints ``tool``   ``ptxas``: its version and the
architectures that it knows ``text``   a small text from which ``record`` takes values
=========
==============================================================================================
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

__all__ = ["ARCHITECTURES", "PROFILES", "Profile", "bundled", "choose_wheel", "wanted"]

#: Of which machines wheels are read.
ARCHITECTURES = ("x86_64", "aarch64")


class Profile(NamedTuple):
    """What is read of a package: (pattern of the member's path, how); ``deep``: what is so large
    that only the newest releases are read for it.

    ``alternatives``: the package loads one of several libraries, by GPU or by CUDA version; what
    they need is no union. ``main``: the libraries without which the package is of no use; None: all
    of them. ``cubins``: the package holds machine code as files of its own, whose names tell the
    architecture. ``brief``: a library of so many kinds of fat binaries that only their union is
    kept.
    """

    patterns: Tuple[Tuple[str, str], ...]
    deep: Tuple[Tuple[str, str], ...] = ()
    alternatives: bool = False
    cubins: bool = False
    main: Optional[str] = None
    brief: bool = False

    @property
    def has_code(self) -> bool:
        """Whether the package holds machine code for GPUs."""
        return self.cubins or any(how == "code" for _, how in (*self.patterns, *self.deep))


_TORCH = Profile(
    (
        (r"torch/version\.py", "text"),
        (r"torch/share/cmake/Torch/TorchConfig\.cmake", "text"),
        (r"torch/lib/libc10(?:_cuda)?\.so", "elf"),
        (r"torch/lib/libtorch_python\.so", "archs"),
    ),
    deep=((r"torch/lib/libtorch_cuda(?:_linalg|_cu|_cpp)?\.so", "code"),),
)

#: NVIDIA's own libraries that run kernels: each a distribution by itself for every major of CUDA.
_LIBRARIES_OF_CUDA = (
    *("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "cusparselt", "nccl"),
)

PROFILES: Mapping[str, Profile] = {
    **{
        f"nvidia-{library}-cu12": Profile(
            ((r"(?:.+/)?lib[^/]+\.so(?:\.\d+)*", "code"),), brief=True
        )
        for library in _LIBRARIES_OF_CUDA
    },
    "torch": _TORCH,
    "vllm": Profile(
        ((r"vllm/(?:.+/)?[^/]+\.so", "code"),), main=r"vllm/_C(?:_stable_libtorch)?\..*"
    ),
    "sgl-kernel": Profile(
        ((r"sgl_kernel/(?:.+/)?[^/]+\.so", "code"),), main=r"sgl_kernel/(?:.+/)?common_ops\..*"
    ),
    "sglang-kernel": Profile(
        ((r"sgl_kernel/(?:.+/)?[^/]+\.so", "code"),), main=r"sgl_kernel/(?:.+/)?common_ops\..*"
    ),
    "xformers": Profile(
        ((r"xformers/(?:.+/)?[^/]+\.so", "code"), (r"xformers/cpp_lib\.json", "text"))
    ),
    "bitsandbytes": Profile(
        ((r"bitsandbytes/libbitsandbytes_cuda\d+(?:_nocublaslt)?\.so", "code"),), alternatives=True
    ),
    "torchao": Profile(((r"torchao/(?:.+/)?[^/]+\.so", "code"),)),
    "torchvision": Profile(((r"torchvision/_C(?:_stable)?\.so", "code"),)),
    "triton": Profile(((r"triton/(?:.+/)?bin/ptxas(?:-\w+)?", "tool"),)),
    "flashinfer-cubin": Profile((), cubins=True),
    "flashinfer-jit-cache": Profile(((r"flashinfer_jit_cache/(?:.+/)?[^/]+\.so", "code"),)),
}


def wanted(profile: Profile, names: Iterable[str], deep: bool) -> Iterator[Tuple[str, str]]:
    """Yield (member, how), those that are read shortly first, so that a run that ends has read
    something of every kind.
    """
    patterns = [*profile.patterns, *(profile.deep if deep else ())]
    for name in sorted(names):
        for pattern, how in patterns:
            if re.fullmatch(pattern, name):
                yield name, how
                break


_VERSIONED = re.compile(
    r"(?:^|/)((lib[A-Za-z0-9_+]+)(?:-[0-9a-f]{8})?\.so\.[0-9.]+|(lib[A-Za-z0-9_+]+)"
    r"-[0-9a-f]{6,}\.so(?:\.[0-9.]+)?)$"
)


def bundled(names: Iterable[str]) -> List[str]:
    """Return the libraries of other projects in a wheel, as file names that tell a version or were
    renamed by a wheel repairer.
    """
    return sorted({match.group(1) for match in map(_VERSIONED.search, names) if match is not None})


_WHEEL = re.compile(
    r"[^-]+-(?P<version>[^-]+)(?:-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)"
    r"\.whl"
)


def choose_wheel(names: Iterable[str], architecture: str) -> Optional[str]:
    """Return the wheel of a release to read: Linux of that architecture, abi3 first, else of the
    middle Python; "any" where there is no other.
    """
    fitting = []
    for name in names:
        match = _WHEEL.fullmatch(name)
        if match is None:
            continue
        platform = match.group("platform")
        if "linux" in platform and platform.endswith(architecture):
            rank = 0
        elif platform == "any":
            rank = 1
        else:
            continue
        number = re.search(r"cp3(\d+)", match.group("python"))
        minor = int(number.group(1)) if number else 99
        stable = 0 if match.group("abi") == "abi3" else 1
        threads = match.group("abi").endswith("t")
        fitting.append((rank, stable, threads, abs(minor - 12) if minor != 99 else 0, name))
    return min(fitting)[-1] if fitting else None
