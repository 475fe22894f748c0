"""ED4xx: compiled extensions against the torch, the C++ library, the C library and the CUDA libraries that they meet.

Three kinds of evidence, the surest first: the symbols of the installed files, the label in a version
(``2.8.3+cu12torch2.7cxx11abiFALSE``), and what a release was built for. Where the files were read and every symbol is
there, a label or a table no longer makes an error.
"""

from __future__ import annotations

from ..matrix.kernel_torch import exact_pins, minor_of, pinned_torch
from ..model.evidence import Absent, Evidence
from ..model.facts import Binary, Distribution
from ..model.finding import Finding, Remedy
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import Version, try_version
from .rule import Context, Rule, is_unindexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

__all__ = ["RULES_HERE"]

_ABI_CHANGE = Source("https://github.com/pytorch/pytorch/issues/152790", "the C++ ABI of the wheels changed with 2.6.0+cu126 and 2.7")
_EXTENSIONS = Source(
    "https://pytorch.org/docs/stable/notes/libtorch_stable_abi.html",
    "an extension that links libtorch's C++ API is bound to the release it was built with",
)
_FLASH = Source("https://github.com/Dao-AILab/flash-attention/releases", "one wheel for each torch minor, CUDA major, C++ ABI and Python")
_DUAL_ABI = Source("https://gcc.gnu.org/onlinedocs/libstdc++/manual/using_dual_abi.html")
_SYMBOL_VERSIONS = Source("https://man7.org/linux/man-pages/man8/ld.so.8.html", "version `GLIBC_2.32' not found (required by …)")

#: Distributions whose extensions link libtorch's C++ API. Builds for the stable ABI (torchao, torchaudio from 2.9) carry no torch in the matrix.
_LINKED = (
    "vllm",
    "flash-attn",
    "flash-attn-3",
    "vllm-flash-attn",
    "sgl-kernel",
    "sglang-kernel",
    "xformers",
    "torchvision",
    "torchaudio",
    "causal-conv1d",
    "mamba-ssm",
    "flashinfer",
    "flashinfer-python",
    "transformer-engine-torch",
    "apex",
    "auto-gptq",
    "deep-ep",
    "deep-gemm",
    "exllamav2",
    "fbgemm-gpu",
    "grouped-gemm",
    "natten",
    "sageattention",
    "torch-cluster",
    "torch-scatter",
    "torch-sparse",
    "torch-spline-conv",
)
#: Of these a build by the user is common: a release without a fitting wheel may still be right.
_BUILT_BY_HAND = ("flash-attn", "flash-attn-3", "causal-conv1d", "mamba-ssm", "transformer-engine-torch", "apex", "grouped-gemm")

_TORCH_LABEL = pattern(r"(?:torch|pt)(\d)(?:\.(\d+)|(\d{1,2}))")
_ABI_LABEL = pattern(r"(?i)cxx11abi(true|false)")
_CUDA_LIBRARY = pattern(
    r"lib(cudart|cublas|cublasLt|cudnn\w*|nccl|nvrtc|cufft|curand|cusolver|cusparse|cusparseLt|nvJitLink|cupti|cufile|nvshmem_host|nvToolsExt)\.so\.(\d+)"
)
_TORCH_LIBRARY = pattern(r"lib(torch\w*|c10\w*)\.so\Z")
# The file without which a distribution cannot be imported, or without which it has no kernels at all.
_MAIN_FILE = pattern(
    r"(_C|_raylet|libtriton|libtorch_cpu|libtorch_cuda|flash_attn_2_cuda|common_ops|causal_conv1d_cuda|selective_scan_cuda)[.\w-]*\.so\Z"
)


class _Torch(NamedTuple):
    """The installed torch: version as text, minor ("2.7"), CUDA and C++ ABI where they are known."""

    text: str
    version: Version
    minor: str
    cuda: Optional[str]
    abi: Optional[bool]

    def __str__(self) -> str:
        return f"torch {self.text}"


def _torch(context: Context) -> Optional[_Torch]:
    text = context.facts.value("torch.version")
    installed = context.distributions.get("torch")
    if text is None and installed is not None:
        text = installed.version
    version = try_version(text)
    if text is None or version is None or len(version.release) < 2:
        return None
    cuda = context.facts.value("torch.cuda")
    abi = context.facts.value("torch.cxx11abi")
    attributes = context.target.environment("torch").attributes if context.target.environment is not None else {}
    if abi is None and attributes.get("cxx11abi") in ("true", "false"):
        abi = attributes["cxx11abi"] == "true"
    if cuda is None and attributes.get("cuda") is not None:
        cuda = str(attributes["cuda"])
    return _Torch(text, version, minor_of(version), cuda, abi)


def _binaries(context: Context) -> Mapping[str, List[Binary]]:
    """The files that were read, by distribution."""
    found: Dict[str, List[Binary]] = {}
    for binary in context.facts.value("binaries", ()):
        found.setdefault(binary.distribution, []).append(binary)
    return found


def _links_torch(binary: Binary) -> bool:
    return any(_TORCH_LIBRARY.match(name) for name in binary.needed)


def _is_main(binary: Binary, others: Sequence[Binary]) -> bool:
    """Whether a distribution is of no use without this file."""
    name = binary.path.rsplit("/", 1)[-1]
    return len(others) == 1 or _MAIN_FILE.match(name) is not None


def _short(path: str) -> str:
    """The path below site-packages."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rsplit(folder, 1)[1]
    return path


def _label(found: Distribution) -> Tuple[Optional[str], Optional[bool]]:
    """Torch minor and C++ ABI that the local part of a version names: ``cu12torch2.7cxx11abiFALSE``, ``pt24cu121``."""
    local = (found.version or "").partition("+")[2].lower()
    match = _TORCH_LABEL.search(local)
    minor = None
    if match is not None:
        digits = match.group(2) or match.group(3)
        # torch240 is 2.4.0, pt24 is 2.4, torch210 is 2.10.
        if match.group(3) and len(digits) == 2 and digits[1] == "0" and digits != "10":
            digits = digits[0]
        minor = f"{match.group(1)}.{digits}"
    abi = _ABI_LABEL.search(local)
    return minor, None if abi is None else abi.group(1) == "true"


def _attributes(context: Context, name: str) -> Mapping[str, object]:
    return context.target.environment(name).attributes if context.target.environment is not None else {}


def _reinstall(name: str, torch: _Torch) -> Tuple[Remedy, ...]:
    if name == "flash-attn":
        cuda = (torch.cuda or "12").split(".")[0]
        return (
            Remedy(f"Install the flash-attn wheel for torch {torch.minor} and CUDA {cuda} from its release page, if there is one."),
            Remedy(
                "Or build it against this torch.",
                ("FLASH_ATTENTION_FORCE_BUILD=TRUE pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps flash-attn",),
            ),
        )
    if name in _BUILT_BY_HAND:
        return (Remedy("Build it against this torch.", (f"pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps {name}",)),)
    if name in ("torchvision", "torchaudio"):
        return (
            Remedy(
                f"Install the {name} that belongs to torch {torch.text}, from the index that torch came from.",
                (f"pip install --upgrade {name} torch=={torch.version.public}",),
            ),
        )
    return (
        Remedy(
            f"Install the {name} release that is built for torch {torch.minor}, or the torch that {name} is built for; let one command choose both.",
            (f"pip install {name} torch",),
        ),
    )


# Built against another torch


class _Mismatch(NamedTuple):
    code: str
    severity: str
    message: str
    evidence: Tuple[Evidence, ...]
    sources: Tuple[Source, ...]
    subject: str = ""
    kind: str = "abi-mismatch"


def check_built_for_torch(context: Context) -> Iterator[Finding]:
    """An extension was built against another torch than the one installed.

    What it checks:
        For each package that links libtorch's C++ interface: which torch it was built for (symbols of its files, the label in its version,
        its release) against the installed torch.

    Why it matters:
        torch's C++ interface changes with every minor. Python binds all symbols of an extension when it imports it, so one that is missing
        ends in "ImportError: … undefined symbol: _ZN3c10…" or "operator … does not exist".

    How to fix:
        Install the build for this torch, or build the package against it (``--no-build-isolation``), or take the torch that it was built for.

    References:
        https://pytorch.org/docs/stable/notes/libtorch_stable_abi.html
        https://github.com/Dao-AILab/flash-attention/releases
    """
    yield from _mismatches(context, "ED401")


def check_cxx11_abi(context: Context) -> Iterator[Finding]:
    """An extension and torch were compiled for different ABIs of std::string.

    What it checks:
        The C++ ABI (``_GLIBCXX_USE_CXX11_ABI``) of the installed torch against that of each extension, from symbols or from its label.

    Why it matters:
        Every function of torch that takes a string has another name in the other ABI: "undefined symbol: _ZN3c105ErrorC2E…Ss" (old) or
        "…NSt7__cxx1112basic_string…" (new). torch's wheels changed from the old to the new ABI with 2.6.0+cu126 and 2.7.

    How to fix:
        Install the other build of the package (cxx11abiTRUE or cxx11abiFALSE), or build it against this torch.

    References:
        https://github.com/pytorch/pytorch/issues/152790
        https://gcc.gnu.org/onlinedocs/libstdc++/manual/using_dual_abi.html
    """
    yield from _mismatches(context, "ED402")


def check_undefined_symbols(context: Context) -> Iterator[Finding]:
    """An extension asks for torch symbols that the installed torch does not define.

    What it checks:
        The undefined libtorch and libc10 symbols of installed extensions against what the installed torch exports, without importing either.

    Why it matters:
        The import of such a file fails for certain: "undefined symbol".

    How to fix:
        Reinstall or rebuild the package against this torch. Where torch itself was replaced by hand, reinstall torch.

    References:
        https://man7.org/linux/man-pages/man3/dlopen.3.html
    """
    yield from _mismatches(context, "ED405")


def _mismatches(context: Context, code: str) -> List[Finding]:
    """Return the findings of one code; all codes are judged in one pass."""
    return [finding for finding in context.once("abi-mismatches", lambda: list(_all_mismatches(context))) if finding.code == code]


def _all_mismatches(context: Context) -> Iterator[Finding]:
    torch = _torch(context)
    if torch is None:
        return
    read = _binaries(context)
    for name in dict.fromkeys((*_LINKED, *read)):
        if name == "torch":
            continue
        installed = context.distributions.get(name)
        found = _judge(context, name, installed, torch, read.get(name, []))
        if found is None:
            continue
        yield Finding(
            code=found.code,
            component=name,
            kind=found.kind,
            severity=found.severity,
            message=found.message,
            subject=found.subject,
            evidence=(*found.evidence, *context.evidence("torch.version")),
            sources=found.sources,
            remedies=_reinstall(name, torch),
        )


def _judge(context: Context, name: str, installed: Optional[Distribution], torch: _Torch, files: Sequence[Binary]) -> Optional[_Mismatch]:
    """Return the one finding about a package and torch: what its files prove, else what its label or release says."""
    title = f"{name} {installed.version}" if installed is not None and installed.version else name
    built_for, labelled = _built_for(context, name, installed)
    linked = [binary for binary in files if _links_torch(binary)]
    proof = _from_symbols(title, torch, built_for, linked)
    if proof is not None:
        return proof
    if installed is None or installed.version is None:
        return None
    proven_fine = bool(linked) and any(_is_main(binary, linked) for binary in linked)
    evidence = context.installed(name)
    if labelled and built_for != torch.minor and built_for is not None:
        tail = (
            " All symbols that it needs are there, but its layouts may differ." if proven_fine else " It will fail to load with an undefined symbol."
        )
        return _Mismatch(
            "ED401",
            "warning" if proven_fine else "error",
            f"{title} is built for torch {built_for}, but {torch} is installed.{tail}",
            evidence,
            (_FLASH,),
        )
    abi = _label(installed)[1]
    if abi is not None and torch.abi is not None and abi is not torch.abi and not proven_fine and _abi_label_counts(name, installed, abi, built_for):
        message = (
            f"{title} is built for the {_abi_name(abi)} C++ ABI, but {torch} is built with the {_abi_name(torch.abi)} one: it will fail to load."
        )
        return _Mismatch("ED402", "error", message, evidence, (_ABI_CHANGE, _DUAL_ABI))
    if proven_fine or is_unindexed(installed) or is_unindexed_torch(context, torch):
        return None
    if built_for is not None and not labelled and built_for != torch.minor and name not in _BUILT_BY_HAND:
        message = (
            f"{title} is compiled for torch {built_for}, but {torch} is installed: its extension will not load or its operators will be missing."
        )
        return _Mismatch("ED401", "error", message, evidence, (_EXTENSIONS,))
    if name in _BUILT_BY_HAND and not labelled:
        return _without_wheel(context, name, installed, torch, title)
    return None


def is_unindexed_torch(context: Context, torch: _Torch) -> bool:
    """Tell whether torch is a build of its own kind (NGC, nightly, source), to which everything else in the image was built."""
    installed = context.distributions.get("torch")
    if installed is not None and is_unindexed(installed):
        return True
    return is_unindexed(Distribution("torch", torch.text))


def _abi_name(new: bool) -> str:
    return "new (cxx11abiTRUE)" if new else "old (cxx11abiFALSE)"


def _abi_label_counts(name: str, installed: Distribution, abi: bool, built_for: Optional[str]) -> bool:
    """Whether a label can be believed: flash-attn's "FALSE" only means "as torch's wheel", which is the new ABI since torch 2.7.

    Its releases from 2.8 on are labelled FALSE and built with the new ABI for torch 2.6 too (Dao-AILab/flash-attention issue 1783).
    """
    if abi or name != "flash-attn":
        return True
    version, minor = try_version(installed.version), try_version(built_for)
    return version is not None and version.release < (2, 8) and (minor is None or minor.release < (2, 7))


def _built_for(context: Context, name: str, installed: Optional[Distribution]) -> Tuple[Optional[str], bool]:
    """The torch minor that a package was built for, and whether its own label says so."""
    if installed is None:
        return None, False
    minor, _ = _label(installed)
    if minor is not None:
        return minor, True
    told = _attributes(context, name).get("torch")
    if isinstance(told, Version):
        return minor_of(told), False
    own = exact_pins(installed.requires or ()).get("torch") if name in _LINKED and name not in _BUILT_BY_HAND else None
    if own is not None:
        return minor_of(own), False
    if installed.direct_url or installed.installer == "conda" or installed.editable:
        return None, False
    version, package = try_version(installed.version), context.matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    # Another index may carry builds for a CUDA that the matrix does not list; all builds of one release have one torch.
    minors = {build.torch for build in release.builds if build.torch} if release is not None else set()
    if len(minors) == 1 and name not in _BUILT_BY_HAND:
        return minors.pop(), False
    return pinned_torch(context.matrix.package, name)(version) if version is not None else None, False


def _from_symbols(title: str, torch: _Torch, built_for: Optional[str], files: Sequence[Binary]) -> Optional[_Mismatch]:
    broken = [binary for binary in files if binary.undefined]
    lost = [binary for binary in files for name in binary.missing if _TORCH_LIBRARY.match(name)]
    if not broken and not lost:
        return None
    first = next((binary for binary in broken or lost if _is_main(binary, files)), (broken or lost)[0])
    main = _is_main(first, files) or len(broken or lost) == len(files)
    severity = "error" if main else "warning"
    path = _short(first.path)
    if not broken:
        library = next(name for name in first.missing if _TORCH_LIBRARY.match(name))
        evidence = (Evidence(first.path, f"NEEDED {library}"),)
        kind = "it is built for another kind of torch (CUDA, ROCm or CPU)"
        message = f"{title} needs {library}, which {torch} does not have: {kind} and {path} will not load."
        return _Mismatch("ED401", severity, message, evidence, (_EXTENSIONS,), path)
    symbol = first.undefined[0]
    evidence = (Evidence(first.path, f"undefined symbol {symbol}"),)
    consequence = f"{path} will not load (undefined symbol {symbol})."
    if first.cxx11abi is not None and torch.abi is not None and first.cxx11abi is not torch.abi:
        message = f"{title} is built for the {_abi_name(first.cxx11abi)} C++ ABI, {torch} with the {_abi_name(torch.abi)} one: {consequence}"
        return _Mismatch("ED402", severity, message, evidence, (_ABI_CHANGE, _DUAL_ABI), path)
    if built_for is not None and built_for != torch.minor:
        return _Mismatch(
            "ED401", severity, f"{title} is built for torch {built_for}, but {torch} is installed: {consequence}", evidence, (_EXTENSIONS,), path
        )
    message = f"{title} asks for symbols that {torch} does not define, so it was built against another torch: {consequence}"
    return _Mismatch("ED405", severity, message, evidence, (_EXTENSIONS,), path)


def _without_wheel(context: Context, name: str, installed: Distribution, torch: _Torch, title: str) -> Optional[_Mismatch]:
    """No prebuilt wheel of this release is for this torch: it is a build of the user's, or a wheel for another torch."""
    version = try_version(installed.version)
    package = context.matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    if release is None or installed.direct_url or installed.installer == "conda":
        return None
    # Official wheels only: those that others build carry a label.
    minors = sorted(
        {build.torch for build in release.builds if build.torch and build.index_name in ("github", "pypi")},
        key=lambda text: tuple(map(int, text.split("."))),
    )
    if not minors or torch.minor in minors:
        return None
    listed = minors[0] if len(minors) == 1 else f"{minors[0]} to {minors[-1]}"
    message = (
        f"{title} has prebuilt wheels for torch {listed} only, and {torch} is installed: a wheel fails to load with an undefined symbol; "
        "a build from source against this torch works."
    )
    return _Mismatch("ED401", "warning", message, context.installed(name), (_FLASH,) if name.startswith("flash") else (_EXTENSIONS,))


# C library, C++ library


def check_glibc(context: Context) -> Iterator[Finding]:
    """A binary asks for a newer C or C++ library than the machine has.

    What it checks:
        The highest GLIBC version that installed extensions ask for (read from the files, else from the release's wheel) against the
        machine's glibc, and the highest GLIBCXX against the libstdc++ that is loaded.

    Why it matters:
        The loader refuses the file: "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found". Wheel tags do not always tell: a
        wheel tagged linux_x86_64 installs anywhere.

    How to fix:
        Take a newer image or operating system, or a release (or a source build) that asks for less. glibc cannot be upgraded alone.

    References:
        https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    glibc, glibcxx = context.fact_version("glibc.version"), context.fact_version("glibcxx.version")
    read = _binaries(context)
    if glibc is not None:
        for name, files in read.items():
            over = [(binary, needed) for binary in files for needed in [try_version(binary.glibc)] if needed is not None and needed > glibc]
            if over:
                yield _too_old(context, "glibc", "GLIBC", name, files, over, str(glibc))
        for name in context.distributions if context.target.environment is not None else ():
            needed = _attributes(context, name).get("glibc") if name in _READ_FROM_WHEELS and name not in read else None
            if isinstance(needed, Version) and needed > glibc:
                found = context.distributions[name]
                yield Finding(
                    code="ED403",
                    component="glibc",
                    kind="too-old",
                    severity="error",
                    subject=name,
                    message=f"{name} {found.version} asks for glibc {needed}, and this system has {glibc}: it will not load.",
                    evidence=(*context.evidence("glibc.version"), *context.installed(name)),
                    sources=(_SYMBOL_VERSIONS,),
                    remedies=_newer_system(name),
                )
    if glibcxx is not None:
        for name, files in read.items():
            over = [(binary, needed) for binary in files for needed in [try_version(binary.glibcxx)] if needed is not None and needed > glibcxx]
            if over:
                yield _too_old(context, "libstdc++", "GLIBCXX", name, files, over, str(glibcxx))


_READ_FROM_WHEELS = frozenset(["torch", "vllm", "flash-attn", "xformers", "sgl-kernel", "sglang-kernel", "torchao", "bitsandbytes", "triton"])


def _newer_system(name: str) -> Tuple[Remedy, ...]:
    return (
        Remedy("Use an image or operating system with a newer glibc.", (), "changes-host"),
        Remedy(f"Or install a release of {name} that asks for less, or build it on this system."),
    )


def _too_old(
    context: Context, component: str, prefix: str, name: str, files: Sequence[Binary], over: Sequence[Tuple[Binary, Version]], present: str
) -> Finding:
    binary, needed = max(over, key=lambda pair: pair[1])
    main = any(_is_main(entry, files) for entry, _ in over)
    field = "glibc.version" if component == "glibc" else "glibcxx.version"
    remedies = _newer_system(name)
    if component != "glibc":
        remedies = (
            Remedy(
                "Make a newer libstdc++ come first: that of the environment, not of an old folder on LD_LIBRARY_PATH.",
                ("conda install -c conda-forge libstdcxx-ng",),
            ),
            Remedy("Or use an image with a newer GCC runtime.", (), "changes-host"),
        )
    installed = context.distributions.get(name)
    title = f"{name} {installed.version}" if installed is not None and installed.version else name
    what = f"{title}: {_short(binary.path)} asks for {prefix}_{needed}, and this system has {present}"
    return Finding(
        code="ED403",
        component=component,
        kind="too-old",
        severity="error" if main else "warning",
        subject=name,
        message=f"{what}: it will not load." if main else f"{what}: what uses this file fails, the rest works.",
        evidence=(Evidence(binary.path, f"{prefix}_{needed}"), *context.evidence(field)),
        sources=(_SYMBOL_VERSIONS,),
        remedies=remedies,
    )


# CUDA sonames


def check_cuda_sonames(context: Context) -> Iterator[Finding]:
    """A binary needs a CUDA library that would not be found.

    What it checks:
        The CUDA libraries that torch and installed extensions are linked to (``libcudart.so.12``) against what the loader finds in a process
        that has imported torch.

    Why it matters:
        "ImportError: libcudart.so.12: cannot open shared object file". It is the usual look of a package for CUDA 12 beside a torch for
        CUDA 13, or of NVIDIA wheels that were removed.

    How to fix:
        Install the build for torch's CUDA; where the wheels of torch's own CUDA are missing, reinstall them.

    References:
        https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    torch = _torch(context)
    major = (torch.cuda or "").split(".")[0] if torch is not None else ""
    for name, files in _binaries(context).items():
        lost = [(binary, match) for binary in files for soname in binary.missing for match in [_CUDA_LIBRARY.match(soname)] if match]
        if not lost:
            continue
        binary, match = next((pair for pair in lost if _is_main(pair[0], files)), lost[0])
        main = any(_is_main(entry, files) for entry, _ in lost)
        runtime = next((other.group(2) for _, other in lost if other.group(1) == "cudart"), None)
        differs = bool(major) and runtime is not None and runtime != major and name != "torch"
        installed = context.distributions.get(name)
        title = f"{name} {installed.version}" if installed is not None and installed.version else name
        others = sorted({other.group(0) for _, other in lost} - {match.group(0)})
        tail = f" (also {', '.join(others[:4])})" if others else ""
        why = f" {name} is built for CUDA {runtime}, {torch} for CUDA {torch.cuda}." if differs and torch is not None else ""
        yield Finding(
            code="ED404",
            component=name if name != "torch" else match.group(0).split(".so")[0],
            kind="cuda-major-mismatch" if differs else "missing",
            severity="error" if main else "warning",
            subject=_short(binary.path),
            message=f"{title} needs {match.group(0)}{tail}, which the loader does not find.{why}",
            evidence=(Evidence(binary.path, f"NEEDED {match.group(0)}"), *context.evidence("torch.cuda")),
            sources=(_SYMBOL_VERSIONS,),
            remedies=_soname_remedies(name, torch, differs),
        )


def _soname_remedies(name: str, torch: Optional[_Torch], differs: bool) -> Tuple[Remedy, ...]:
    if differs and torch is not None:
        return (
            Remedy(f"Install the build of {name} for CUDA {(torch.cuda or '').split('.')[0]}."),
            Remedy(f"Or install a torch for the CUDA of {name}."),
        )
    if name == "torch":
        return (
            Remedy(
                "Reinstall torch with its NVIDIA wheels.",
                (f"pip install --force-reinstall torch=={torch.version.public}",) if torch is not None else (),
            ),
        )
    return (Remedy("Install the wheel that brings this library (nvidia-…), or put its folder on the loader's path."),)


# Python


_PYTHON_FILE = pattern(r"\.cpython-(\d)(\d+)(t?)-")


def check_python_tag(context: Context) -> Iterator[Finding]:
    """An extension was compiled for another Python.

    What it checks:
        The Python in the names of a package's extension files (``.cpython-310-…``) against the interpreter.

    Why it matters:
        Python does not even look at a file with another tag: "ModuleNotFoundError: No module named 'flash_attn_2_cuda'". It happens where a
        folder is copied, or shared by interpreters of several minors.

    How to fix:
        Reinstall the package with this interpreter.

    References:
        https://peps.python.org/pep-3149/
    """
    abi = context.facts.value("python.abi")
    if not isinstance(abi, str) or not abi.startswith("cp"):
        return
    for name, files in _binaries(context).items():
        tags = [_PYTHON_FILE.search(binary.path) for binary in files if name != "torch" or "/torch/_C." in binary.path]
        named = {f"cp{match.group(1)}{match.group(2)}{match.group(3)}" for match in tags if match is not None}
        if not named or abi in named or len([match for match in tags if match is not None]) < len(tags):
            continue
        tag = sorted(named)[0]
        yield Finding(
            code="ED406",
            component=name,
            kind="abi-mismatch",
            severity="error",
            message=f"{name} is compiled for Python {tag[2]}.{tag[3:]} ({tag}), but the interpreter is "
            f"{context.facts.value('python.version') or abi}: its extension will not be found.",
            evidence=(Evidence(files[0].path), *context.evidence("python.abi")),
            sources=(Source("https://peps.python.org/pep-3149/"),),
            remedies=(Remedy("Reinstall it with this interpreter.", (f"python -m pip install --force-reinstall --no-deps {name}",)),),
        )


def check_linked_runtime(context: Context) -> Iterator[Finding]:
    """A release is linked to another CUDA runtime than the one torch brings.

    What it checks:
        The libcudart that a release's wheel is linked to (from the matrix, where the installed files were not read) against torch's CUDA.

    Why it matters:
        The wheel on the default index has one CUDA; beside a torch for another CUDA major its import fails: "libcudart.so.13: cannot open
        shared object file".

    How to fix:
        Install the package's build for torch's CUDA, or the torch for the package's CUDA.

    References:
        https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html
    """
    torch = _torch(context)
    if torch is None or torch.cuda is None or isinstance(context.facts.get("torch.cuda"), Absent):
        return
    major = torch.cuda.split(".")[0]
    read = _binaries(context)
    for name in _LINKED:
        installed = context.distributions.get(name)
        if installed is None or name in read or is_unindexed(installed) or "+" in (installed.version or ""):
            continue
        sonames = _attributes(context, name).get("sonames")
        runtimes = (
            {match.group(2) for soname in sonames for match in [_CUDA_LIBRARY.match(soname)] if match and match.group(1) == "cudart"}
            if isinstance(sonames, frozenset)
            else set()
        )
        if not runtimes or major in runtimes:
            continue
        runtime = sorted(runtimes)[0]
        yield Finding(
            code="ED404",
            component=name,
            kind="cuda-major-mismatch",
            severity="warning",
            message=f"The {name} {installed.version} of the default index needs libcudart.so.{runtime}, and {torch} brings CUDA {torch.cuda}: "
            "it fails to load unless another CUDA runtime is on the loader's path.",
            evidence=(*context.installed(name), *context.evidence("torch.cuda", "torch.version")),
            sources=(_SYMBOL_VERSIONS,),
            remedies=_soname_remedies(name, torch, True),
        )


RULES_HERE: Tuple[Rule, ...] = (
    Rule("ED401", "built-for-torch", "abi-mismatch", "An extension is built against another torch", check_built_for_torch),
    Rule("ED402", "cxx11-abi", "abi-mismatch", "An extension and torch have different C++ ABIs", check_cxx11_abi),
    Rule("ED403", "glibc", "too-old", "A binary asks for a newer glibc or libstdc++", check_glibc),
    Rule("ED404", "cuda-sonames", "cuda-major-mismatch", "A CUDA library that a binary needs is not found", check_cuda_sonames),
    Rule("ED404", "linked-runtime", "cuda-major-mismatch", "A release is linked to another CUDA runtime than torch", check_linked_runtime),
    Rule("ED405", "undefined-symbols", "abi-mismatch", "An extension asks for symbols that torch does not define", check_undefined_symbols),
    Rule("ED406", "python-tag", "abi-mismatch", "An extension is compiled for another Python", check_python_tag),
)
