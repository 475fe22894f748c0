"""ED4xx: compiled extensions against torch, the C and C++ libraries and CUDA's.

Which torch an extension was built for, and how surely that is known: ``torch_extensions``.
"""

from __future__ import annotations

from ..model.calls import InstallerCall, reinstall
from ..model.evidence import Evidence
from ..model.facts import Binary, Distribution
from ..model.finding import Finding, Remedy
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import Version, try_version
from .rule import Context, Rule, is_unindexed
from .torch_extensions import (
    Torch,
    attributes_of,
    find_mismatches,
    group_binaries,
    installed_torch,
    is_main,
    short_path,
    title_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Optional, Sequence, Tuple

__all__ = ["RULES_HERE"]

_SYMBOL_VERSIONS = Source(
    "https://man7.org/linux/man-pages/man8/ld.so.8.html",
    "version `GLIBC_2.32' not found (required by …)",
)

_CUDA_LIBRARY = pattern(
    r"lib(cudart|cublas|cublasLt|cudnn\w*|nccl|nvrtc|cufft|curand|cusolver|cusparse|cusparseLt"
    r"|nvJitLink|cupti|cufile|nvshmem_host|nvToolsExt)\.so\.(\d+)"
)


def check_built_for_torch(context: Context) -> Iterator[Finding]:
    """An extension was built against another torch than the one installed.

    What it checks:
        For each package that links libtorch's C++ interface: which torch it was built for (symbols
        of its files, the label in its version, its release) against the installed torch.

    Why it matters:
        torch's C++ interface changes with every minor. Python binds all symbols of an extension
        when it imports it, so one that is missing ends in "ImportError: … undefined symbol:
        _ZN3c10…" or "operator … does not exist".

    How to fix:
        Install the build for this torch, or build the package against it
        (``--no-build-isolation``), or take the torch that it was built for.

    References:
        https://pytorch.org/docs/stable/notes/libtorch_stable_abi.html
        https://github.com/Dao-AILab/flash-attention/releases
        https://github.com/vllm-project/vllm/issues/3147
    """
    yield from find_mismatches(context, "ED401")


def check_cxx11_abi(context: Context) -> Iterator[Finding]:
    """An extension and torch were compiled for different ABIs of std::string.

    What it checks:
        The C++ ABI (``_GLIBCXX_USE_CXX11_ABI``) of the installed torch against that of each
        extension, from symbols or from its label.

    Why it matters:
        Every function of torch that takes a string has another name in the other ABI: "undefined
        symbol: _ZN3c105ErrorC2E…Ss" (old) or "…NSt7__cxx1112basic_string…" (new). torch's wheels
        changed from the old to the new ABI with 2.6.0+cu126 and 2.7.

    How to fix:
        Install the other build of the package (cxx11abiTRUE or cxx11abiFALSE), or build it against
        this torch.

    References:
        https://github.com/pytorch/pytorch/issues/152790
        https://gcc.gnu.org/onlinedocs/libstdc++/manual/using_dual_abi.html
    """
    yield from find_mismatches(context, "ED402")


def check_undefined_symbols(context: Context) -> Iterator[Finding]:
    """An extension needs torch symbols that the installed torch does not define.

    What it checks:
        The undefined libtorch and libc10 symbols of installed extensions against what the installed
        torch exports, without importing either.

    Why it matters:
        The import of such a file fails for certain: "undefined symbol".

    How to fix:
        Reinstall or rebuild the package against this torch. Where torch itself was replaced by
        hand, reinstall torch.

    References:
        https://man7.org/linux/man-pages/man3/dlopen.3.html
    """
    yield from find_mismatches(context, "ED405")


# C library, C++ library


class _Runtime(NamedTuple):
    """A library whose symbol versions binaries ask for, and where both sides stand."""

    component: str
    prefix: str  # of its symbol versions
    field: str  # the fact that says which is here
    needed: Callable[[Binary], Optional[str]]


_GLIBC = _Runtime("glibc", "GLIBC", "glibc.version", lambda binary: binary.glibc)


_LIBSTDCXX = _Runtime("libstdc++", "GLIBCXX", "glibcxx.version", lambda binary: binary.glibcxx)


def check_glibc(context: Context) -> Iterator[Finding]:
    """A binary needs a newer C or C++ library than the machine has.

    What it checks:
        The highest GLIBC version that installed extensions ask for (read from the files, else from
        the release's wheel) against the machine's glibc, and the highest GLIBCXX against the
        libstdc++ that is loaded.

    Why it matters:
        The loader refuses the file: "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not
        found". Wheel tags do not always tell: a wheel tagged linux_x86_64 installs anywhere.

    How to fix:
        Take a newer image or operating system, or a release (or a source build) that needs an older
        glibc, which cannot be upgraded alone.

    References:
        https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    yield from _files_too_new(context, _GLIBC)
    yield from _releases_too_new(context)
    yield from _files_too_new(context, _LIBSTDCXX)


def _files_too_new(context: Context, runtime: _Runtime) -> Iterator[Finding]:
    """Judge the files that were read, with one finding for each package."""
    present = context.fact_version(runtime.field)
    if present is None:
        return
    for name, files in group_binaries(context).items():
        needs = [(binary, try_version(runtime.needed(binary))) for binary in files]
        over = [
            (binary, needed) for binary, needed in needs if needed is not None and needed > present
        ]
        if over:
            yield _too_old(context, runtime, name, files, over)


def _releases_too_new(context: Context) -> Iterator[Finding]:
    """Judge by what the matrix read from a release's wheel, where no file was read."""
    glibc = context.fact_version("glibc.version")
    if glibc is None:
        return
    read = group_binaries(context)
    for name in context.distributions:
        if name not in _READ_FROM_WHEELS or name in read:
            continue
        needed = attributes_of(context, name).get("glibc")
        if isinstance(needed, Version) and needed > glibc:
            is_taken = _is_taken_here(context, name)
            consequence = (
                "it will not load"
                if is_taken
                else "pip takes none of its wheels here, so it was built from its sources, or was "
                "brought here from another system, and will not load then"
            )
            yield Finding(
                code="ED403",
                component="glibc",
                kind="too-old",
                severity="error" if is_taken else "warning",
                subject=name,
                message=f"{name} {context.distributions[name].version} needs glibc {needed}, but "
                f"this system has {glibc}: {consequence}.",
                evidence=(*context.evidence("glibc.version"), *context.installed(name)),
                sources=(_SYMBOL_VERSIONS,),
                remedies=_newer_system(name),
                packages=(name,),
            )


def _is_taken_here(context: Context, name: str) -> bool:
    """Tell whether pip installs a wheel of the installed release here, by the tags of all."""
    from .wheel_tags import serves_platform

    version, package = context.version(name), context.matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    return release is None or serves_platform(release, context.facts)


_READ_FROM_WHEELS = frozenset(
    [
        "torch",
        "vllm",
        "flash-attn",
        "xformers",
        "sgl-kernel",
        "sglang-kernel",
        "torchao",
        "bitsandbytes",
        "triton",
    ]
)


def _newer_system(name: str) -> Tuple[Remedy, ...]:
    return (
        Remedy("Use an image or operating system with a newer glibc.", (), "changes-host"),
        Remedy(
            f"Or install a release of {name} that needs an older one, or build it on this system."
        ),
    )


_NEWER_LIBSTDCXX = (
    Remedy(
        "Make a newer libstdc++ come first: the environment's, not one from an old folder on "
        "LD_LIBRARY_PATH.",
        ("conda install -c conda-forge libstdcxx-ng",),
    ),
    Remedy("Or use an image with a newer GCC runtime.", (), "changes-host"),
)


def _too_old(
    context: Context,
    runtime: _Runtime,
    name: str,
    files: Sequence[Binary],
    over: Sequence[Tuple[Binary, Version]],
) -> Finding:
    """Word the file that asks for most; an error where a main file is among them."""
    binary, needed = max(over, key=lambda pair: pair[1])
    fatal = any(is_main(entry, files) for entry, _ in over)
    consequence = "it will not load" if fatal else "what uses this file fails, the rest works"
    return Finding(
        code="ED403",
        component=runtime.component,
        kind="too-old",
        severity="error" if fatal else "warning",
        subject=name,
        message=f"{title_of(context, name)}: {short_path(binary.path)} needs "
        f"{runtime.prefix}_{needed}, but this system has {context.fact_version(runtime.field)}: "
        f"{consequence}.",
        evidence=(
            Evidence(binary.path, f"{runtime.prefix}_{needed}"),
            *context.evidence(runtime.field),
        ),
        sources=(_SYMBOL_VERSIONS,),
        remedies=_newer_system(name) if runtime is _GLIBC else _NEWER_LIBSTDCXX,
        packages=(name,),
    )


# CUDA sonames


class _Lost(NamedTuple):
    """A CUDA library that a file needs and the loader does not find: libcudart.so.12."""

    binary: Binary
    soname: str
    library: str  # cudart
    major: str  # 12


def _lost_libraries(files: Sequence[Binary]) -> List[_Lost]:
    matches = [
        (binary, _CUDA_LIBRARY.match(soname)) for binary in files for soname in binary.missing
    ]
    return [_Lost(binary, match[0], match[1], match[2]) for binary, match in matches if match]


def check_cuda_sonames(context: Context) -> Iterator[Finding]:
    """A binary needs a CUDA library that would not be found.

    What it checks:
        The CUDA libraries that torch and installed extensions are linked to (``libcudart.so.12``)
        against what the loader finds in a process that has imported torch.

    Why it matters:
        "ImportError: libcudart.so.12: cannot open shared object file". This is what a
        package for CUDA 12 beside a torch for CUDA 13 looks like, and NVIDIA wheels that were
        removed.

    How to fix:
        Install the build for torch's CUDA; where the wheels of torch's own CUDA are missing,
        reinstall them.

    References:
        https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    torch = installed_torch(context)
    for name, files in group_binaries(context).items():
        lost = _lost_libraries(files)
        if lost:
            yield _sonames_lost(context, name, files, lost, torch)


def _sonames_lost(
    context: Context,
    name: str,
    files: Sequence[Binary],
    lost: Sequence[_Lost],
    torch: Optional[Torch],
) -> Finding:
    """Word the libraries that one package misses; an error where a main file needs one."""
    fatal = [entry for entry in lost if is_main(entry.binary, files)]
    first = (fatal or lost)[0]
    runtimes = [entry.major for entry in lost if entry.library == "cudart"]
    why = _other_major(name, torch, runtimes)
    others = sorted({entry.soname for entry in lost} - {first.soname})
    also = f" (also {', '.join(others[:4])})" if others else ""
    return Finding(
        code="ED404",
        component=name if name != "torch" else f"lib{first.library}",
        kind="cuda-major-mismatch" if why else "missing",
        severity="error" if fatal else "warning",
        subject=short_path(first.binary.path),
        message=f"{title_of(context, name)} needs {first.soname}{also}, which the loader does not "
        f"find.{why}",
        evidence=(
            Evidence(first.binary.path, f"NEEDED {first.soname}"),
            *context.evidence("torch.cuda"),
        ),
        sources=(_SYMBOL_VERSIONS,),
        remedies=_soname_remedies(name, torch, bool(why)),
        packages=(name, "torch") if why else (name,),
    )


def _other_major(name: str, torch: Optional[Torch], runtimes: Sequence[str]) -> str:
    """Return a sentence where a package needs the CUDA runtime of another major than torch's."""
    if name == "torch" or torch is None or not torch.cuda or not runtimes:
        return ""
    if torch.cuda.split(".")[0] == runtimes[0]:
        return ""
    return f" {name} is built for CUDA {runtimes[0]}, {torch} for CUDA {torch.cuda}."


def _soname_remedies(name: str, torch: Optional[Torch], differs: bool) -> Tuple[Remedy, ...]:
    if differs and torch is not None:
        return (
            Remedy(f"Install the build of {name} for CUDA {(torch.cuda or '').split('.')[0]}."),
            Remedy(f"Or install a torch for the CUDA of {name}."),
        )
    if name == "torch":
        return (
            Remedy(
                "Reinstall torch with its NVIDIA wheels.",
                (
                    InstallerCall(
                        "install", (f"torch=={torch.version.public}",), ("--force-reinstall",)
                    ),
                )
                if torch is not None
                else (),
            ),
        )
    return (
        Remedy(
            "Install the wheel that brings this library (nvidia-…), or put its folder on the "
            "loader's path."
        ),
    )


# Python


_PYTHON_FILE = pattern(r"\.cpython-(\d)(\d+)(t?)-")


def check_python_tag(context: Context) -> Iterator[Finding]:
    """An extension was compiled for another Python.

    What it checks:
        The Python in the names of a package's extension files (``.cpython-310-…``) against the
        interpreter.

    Why it matters:
        Python does not even look at a file with another tag: "ModuleNotFoundError: No module named
        'flash_attn_2_cuda'". It happens where a folder is copied, or shared by interpreters of
        several minors.

    How to fix:
        Reinstall the package with this interpreter.

    References:
        https://peps.python.org/pep-3149/
    """
    abi = context.facts.value("python.abi")
    if not isinstance(abi, str) or not abi.startswith("cp"):
        return
    for name, files in group_binaries(context).items():
        tags = _python_tags(name, files)
        if not tags or abi in tags:
            continue
        tag = tags[0]
        yield Finding(
            code="ED406",
            component=name,
            kind="abi-mismatch",
            severity="error",
            message=f"{name} is compiled for Python {tag[2]}.{tag[3:]} ({tag}), but the "
            f"interpreter is {context.facts.value('python.version') or abi}: its extension will "
            "not be found.",
            evidence=(Evidence(files[0].path), *context.evidence("python.abi")),
            sources=(Source("https://peps.python.org/pep-3149/"),),
            remedies=(
                Remedy(
                    "Reinstall it with this interpreter.",
                    (reinstall(name),),
                ),
            ),
            packages=(name,),
        )


def _python_tags(name: str, files: Sequence[Binary]) -> List[str]:
    """Return the Pythons in a package's file names; empty where a file has none and fits every one.

    Of torch only its module counts.
    """
    paths = [binary.path for binary in files if name != "torch" or "/torch/_C." in binary.path]
    matches = [_PYTHON_FILE.search(path) for path in paths]
    tags = {f"cp{match[1]}{match[2]}{match[3]}" for match in matches if match is not None}
    return [] if None in matches else sorted(tags)


def _is_of_default_index(installed: Distribution) -> bool:
    return not is_unindexed(installed) and "+" not in (installed.version or "")


#: Whose wheels on the default index are linked to libtorch_cuda and its kind on x86_64.
_OF_CUDA_TORCH = ("torchvision", "vllm", "xformers", "sgl-kernel")
#: Without a build for the CPU anywhere: its extension needs libtorch_cuda
#: (https://github.com/Dao-AILab/flash-attention/blob/v2.7.4/setup.py).
_WITHOUT_CPU = "flash-attn"


def check_cpu_torch(context: Context) -> Iterator[Finding]:
    """A package is compiled for a torch with CUDA, and torch is a build without.

    What it checks:
        Packages of the default index that are linked to the CUDA libraries of torch, beside a torch
        whose version says ``+cpu``, on x86_64; a torchvision ``+cpu`` beside a torch for CUDA.

    Why it matters:
        The library that they need, libc10_cuda.so or libtorch_cuda.so, is not there: "operator
        torchvision::nms does not exist", "libc10_cuda.so: cannot open shared object file".

    How to fix:
        Take both from one index: https://download.pytorch.org/whl/cpu, or that of a CUDA version.

    References:
        https://pytorch.org/get-started/locally/
    """
    torch = installed_torch(context)
    machine = [context.facts.value(field) for field in ("os.platform", "os.architecture")]
    if torch is None or {*machine} - {None, "linux", "x86_64"}:
        return
    if torch.version.local != "cpu":
        yield from _without_kernels(context, torch)
        return
    read = group_binaries(context)
    if _WITHOUT_CPU in context.distributions and _WITHOUT_CPU not in read:
        yield _without_cpu_build(context, torch)
    for name in _OF_CUDA_TORCH:
        installed = context.distributions.get(name)
        if installed is None or not installed.version or name in read:
            continue
        if not (_is_of_default_index(installed) and installed.may_be_of_index) or installed.build:
            continue
        yield _of_another_kind(
            context,
            name,
            f"The {name} {installed.version} of the default index is compiled for a torch with "
            f"CUDA, but {torch} is a build without: its extension will not load.",
            "Or install a torch with CUDA, where the machine has an NVIDIA GPU.",
        )


def _without_cpu_build(context: Context, torch: Torch) -> Finding:
    finding = _of_another_kind(
        context,
        _WITHOUT_CPU,
        f"{title_of(context, _WITHOUT_CPU)} is compiled for a torch with CUDA, but {torch} is a "
        "build without: its extension will not load.",
        "Or install a torch with CUDA, where the machine has an NVIDIA GPU.",
    )
    uninstall = InstallerCall("uninstall", (_WITHOUT_CPU,))
    first = Remedy(
        "Uninstall flash-attn where no GPU is used: transformers then takes another attention.",
        (uninstall,),
    )
    return finding._replace(remedies=(first, *finding.remedies[1:]))


def _without_kernels(context: Context, torch: Torch) -> Iterator[Finding]:
    """Judge a torchvision for the CPU beside a torch with CUDA, which has the operators and no
    kernels of theirs for a GPU.
    """
    vision = context.distributions.get("torchvision")
    local = (vision.version or "").partition("+")[2] if vision is not None else ""
    if vision is not None and local == "cpu" and torch.cuda is not None:
        yield _of_another_kind(
            context,
            "torchvision",
            f"torchvision {vision.version} is a build for the CPU, but {torch} is one for CUDA: "
            "\"Could not run 'torchvision::nms' with arguments from the 'CUDA' backend\".",
            "Or install the torch for the CPU, too, where no GPU is used.",
        )


def _of_another_kind(context: Context, name: str, message: str, other: str) -> Finding:
    return Finding(
        code="ED408",
        component=name,
        kind="abi-mismatch",
        severity="warning",
        effect="may-block",
        message=message,
        evidence=(*context.installed(name), *context.evidence("torch.version")),
        sources=(Source("https://pytorch.org/get-started/locally/"),),
        remedies=(
            Remedy(f"Install the {name} of the index that torch came from."),
            Remedy(other),
        ),
        packages=(name, "torch"),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED401",
        "built-for-torch",
        "abi-mismatch",
        "An extension is built against another torch",
        check_built_for_torch,
        half="environment",
    ),
    Rule(
        "ED402",
        "cxx11-abi",
        "abi-mismatch",
        "An extension and torch have different C++ ABIs",
        check_cxx11_abi,
        half="environment",
    ),
    Rule(
        "ED403",
        "glibc",
        "too-old",
        "A binary needs a newer glibc or libstdc++",
        check_glibc,
        half="environment",
    ),
    Rule(
        "ED404",
        "cuda-sonames",
        "cuda-major-mismatch",
        "A CUDA library that a binary needs is not found",
        check_cuda_sonames,
        half="environment",
    ),
    Rule(
        "ED405",
        "undefined-symbols",
        "abi-mismatch",
        "An extension needs symbols that torch does not define",
        check_undefined_symbols,
        half="environment",
    ),
    Rule(
        "ED406",
        "python-tag",
        "abi-mismatch",
        "An extension is compiled for another Python",
        check_python_tag,
        half="environment",
    ),
    Rule(
        "ED408",
        "cpu-torch",
        "abi-mismatch",
        "A package is compiled for a torch with CUDA, torch is a CPU build",
        check_cpu_torch,
        half="environment",
    ),
)
