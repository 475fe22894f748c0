"""Compiled extensions of torch: which torch each was built for, told by its files, its label and
its release, and what is wrong with that.

Three kinds of evidence, the surest first: the symbols of the installed files, the label in a
version (``2.8.3+cu12torch2.7cxx11abiFALSE``), and what a release was built for. Where the files
were read and every symbol is there, a label or a table no longer makes an error.
"""

from __future__ import annotations

from ..matrix.kernel_torch import exact_pins, minor_of, pinned_torch
from ..model.evidence import Evidence
from ..model.facts import Binary, Distribution
from ..model.finding import Finding, Remedy
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import Version, try_version
from .requirement_lines import meets, unconditional
from .rule import Context, is_unindexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

__all__ = [
    "LINKED",
    "Torch",
    "attributes_of",
    "find_mismatches",
    "group_binaries",
    "installed_torch",
    "is_main",
    "short_path",
]

_ABI_CHANGE = Source(
    "https://github.com/pytorch/pytorch/issues/152790",
    "the C++ ABI of the wheels changed with 2.6.0+cu126 and 2.7",
)
_EXTENSIONS = Source(
    "https://pytorch.org/docs/stable/notes/libtorch_stable_abi.html",
    "an extension that links libtorch's C++ API is bound to the release it was built with",
)
_FLASH = Source(
    "https://github.com/Dao-AILab/flash-attention/releases",
    "one wheel for each torch minor, CUDA major, C++ ABI and Python",
)
_DUAL_ABI = Source("https://gcc.gnu.org/onlinedocs/libstdc++/manual/using_dual_abi.html")

#: Distributions whose extensions link libtorch's C++ API. Builds for the stable ABI (torchao,
#: torchaudio from 2.9) carry no torch in the matrix.
LINKED = (
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
_BUILT_BY_HAND = (
    "flash-attn",
    "flash-attn-3",
    "causal-conv1d",
    "mamba-ssm",
    "transformer-engine-torch",
    "apex",
    "grouped-gemm",
)

_TORCH_LABEL = pattern(r"(?:torch|pt)(\d)(?:\.(\d+)|(\d{1,2}))")
# The file without which a distribution cannot be imported, or without which it has no kernels at
# all.
_MAIN_FILE = pattern(
    r"(_C|_raylet|libtriton|libtorch_cpu|libtorch_cuda|flash_attn_2_cuda|common_ops|causal_conv1d_cuda|selective_scan_cuda)[.\w-]*\.so\Z"
)


class Torch(NamedTuple):
    """The installed torch: version as text, minor ("2.7"), CUDA and C++ ABI where they are
    known.
    """

    text: str
    version: Version
    minor: str
    cuda: Optional[str]
    abi: Optional[bool]

    def __str__(self) -> str:
        return f"torch {self.text}"


def installed_torch(context: Context) -> Optional[Torch]:
    """Return the torch that is installed, or None where there is none or its version is not
    known.
    """
    text = context.facts.value("torch.version")
    installed = context.distributions.get("torch")
    if text is None and installed is not None:
        text = installed.version
    version = try_version(text)
    if text is None or version is None or len(version.release) < 2:
        return None
    cuda = context.facts.value("torch.cuda")
    abi = context.facts.value("torch.cxx11abi")
    attributes = (
        context.target.environment("torch").attributes
        if context.target.environment is not None
        else {}
    )
    if abi is None and attributes.get("cxx11abi") in ("true", "false"):
        abi = attributes["cxx11abi"] == "true"
    if cuda is None and attributes.get("cuda") is not None:
        cuda = str(attributes["cuda"])
    return Torch(text, version, minor_of(version), cuda, abi)


def group_binaries(context: Context) -> Mapping[str, List[Binary]]:
    """Return the files that were read, by distribution."""
    found: Dict[str, List[Binary]] = {}
    for binary in context.facts.value("binaries", ()):
        found.setdefault(binary.distribution, []).append(binary)
    return found


def _links_torch(binary: Binary) -> bool:
    return any(_is_torch_library(name) for name in binary.needed)


def is_main(binary: Binary, others: Sequence[Binary]) -> bool:
    """Return whether a distribution is of no use without this file."""
    name = binary.path.rsplit("/", 1)[-1]
    return len(others) == 1 or _MAIN_FILE.match(name) is not None


def short_path(path: str) -> str:
    """Return the path below site-packages."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rsplit(folder, 1)[1]
    return path


def _is_torch_library(name: str) -> bool:
    return name.startswith(("libtorch", "libc10")) and name.endswith(".so")


def _label(found: Distribution) -> Tuple[Optional[str], Optional[bool]]:
    """Torch minor and C++ ABI that the local part of a version names:
    ``cu12torch2.7cxx11abiFALSE``, ``pt24cu121``.
    """
    local = (found.version or "").partition("+")[2].lower()
    match = _TORCH_LABEL.search(local) if "torch" in local or "pt" in local else None
    minor = None
    if match is not None:
        digits = match.group(2) or match.group(3)
        # torch240 is 2.4.0, pt24 is 2.4, torch210 is 2.10.
        if match.group(3) and len(digits) == 2 and digits[1] == "0" and digits != "10":
            digits = digits[0]
        minor = f"{match.group(1)}.{digits}"
    _, named, abi = local.partition("cxx11abi")
    return minor, abi.startswith("true") if named and abi.startswith(("true", "false")) else None


def attributes_of(context: Context, name: str) -> Mapping[str, object]:
    """Return what the matrix derived of an installed distribution; empty where the environment is
    not known.
    """
    return (
        context.target.environment(name).attributes
        if context.target.environment is not None
        else {}
    )


def _reinstall(context: Context, name: str, torch: Torch) -> Tuple[Remedy, ...]:
    if name == "flash-attn":
        cuda = (torch.cuda or "12").split(".")[0]
        return (
            Remedy(
                f"Install the flash-attn wheel for torch {torch.minor} and CUDA {cuda} from its "
                "release page, if there is one."
            ),
            Remedy(
                "Or build it against this torch.",
                (
                    (
                        "FLASH_ATTENTION_FORCE_BUILD=TRUE pip install --no-build-isolation "
                        "--no-cache-dir --force-reinstall --no-deps flash-attn"
                    ),
                ),
            ),
        )
    if name in _BUILT_BY_HAND:
        return (
            Remedy(
                "Build it against this torch.",
                (
                    (
                        "pip install --no-build-isolation --no-cache-dir --force-reinstall "
                        "--no-deps "
                        f"{name}"
                    ),
                ),
            ),
        )
    if name in ("torchvision", "torchaudio"):
        return (
            Remedy(
                f"Install the {name} that belongs to torch {torch.text}, from the index that torch "
                "came from.",
                (f"pip install --upgrade {name} torch=={torch.version.public}",),
            ),
        )
    installed = context.distributions.get(name)
    pin = _torch_pin(context, installed)
    if installed is None or pin is None or meets(torch.version, pin) is not False:
        return (Remedy(f"Let the resolver choose {name} and torch together.", ("envdoctor fix",)),)
    release = (installed.version or "").partition("+")[0]
    return (
        Remedy(
            f"Install the torch that {name} {release} is built for, together with it.",
            (f"pip install '{name}=={release}' 'torch{pin}'",),
        ),
        Remedy(
            f"Or keep torch {torch.minor}, and let the resolver choose a {name} for it.",
            ("envdoctor fix",),
        ),
    )


def _torch_pin(context: Context, installed: Optional[Distribution]) -> Optional[str]:
    """Return which torch a package is for: the exact pin of its metadata, else the minor that it
    was built for.
    """
    if installed is None or installed.version is None:
        return None
    for requirement in unconditional(installed, context.facts, context.matrix):
        pin = requirement.specifier.replace(" ", "")
        if requirement.name == "torch" and pin.startswith("=="):
            return pin
    built_for, _ = _built_for(context, installed.name, installed)
    return f"=={built_for}.*" if built_for is not None else None


# Built against another torch


class _Mismatch(NamedTuple):
    code: str
    severity: str
    message: str
    evidence: Tuple[Evidence, ...]
    sources: Tuple[Source, ...]
    subject: str = ""
    kind: str = "abi-mismatch"


def find_mismatches(context: Context, code: str) -> List[Finding]:
    """Return the findings of one code; all codes are judged in one pass."""
    return [
        finding
        for finding in context.once("abi-mismatches", lambda: list(_all_mismatches(context)))
        if finding.code == code
    ]


def _all_mismatches(context: Context) -> Iterator[Finding]:
    torch = installed_torch(context)
    if torch is None:
        return
    read = group_binaries(context)
    for name in dict.fromkeys((*LINKED, *read)):
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
            remedies=_reinstall(context, name, torch),
            packages=(name, "torch"),
        )


def _judge(
    context: Context,
    name: str,
    installed: Optional[Distribution],
    torch: Torch,
    files: Sequence[Binary],
) -> Optional[_Mismatch]:
    """Return the one finding about a package and torch: what its files prove, else what its label
    or release says.
    """
    title = f"{name} {installed.version}" if installed is not None and installed.version else name
    built_for, labelled = _built_for(context, name, installed)
    linked = [binary for binary in files if _links_torch(binary)]
    proof = _from_symbols(title, torch, built_for, linked)
    if proof is not None:
        return proof
    if installed is None or installed.version is None:
        return None
    proven_fine = bool(linked) and any(is_main(binary, linked) for binary in linked)
    evidence = context.installed(name)
    if labelled and built_for != torch.minor and built_for is not None:
        tail = (
            " All symbols that it needs are there, but its layouts may differ."
            if proven_fine
            else " It will fail to load with an undefined symbol."
        )
        return _Mismatch(
            "ED401",
            "warning" if proven_fine else "error",
            f"{title} is built for torch {built_for}, but {torch} is installed.{tail}",
            evidence,
            (_FLASH,),
        )
    abi = _label(installed)[1]
    if (
        abi is not None
        and torch.abi is not None
        and abi is not torch.abi
        and not proven_fine
        and _abi_label_counts(name, installed, abi, built_for)
    ):
        message = (
            f"{title} is built for the {_abi_name(abi)} C++ ABI, but {torch} is built with "
            f"the {_abi_name(torch.abi)} one: it will fail to load."
        )
        return _Mismatch("ED402", "error", message, evidence, (_ABI_CHANGE, _DUAL_ABI))
    if proven_fine or is_unindexed(installed) or _is_unindexed_torch(context, torch):
        return None
    if (
        built_for is not None
        and not labelled
        and built_for != torch.minor
        and name not in _BUILT_BY_HAND
    ):
        message = (
            f"{title} is compiled for torch {built_for}, but {torch} is installed: its "
            "extension will not load or its operators will be missing."
        )
        return _Mismatch("ED401", "error", message, evidence, (_EXTENSIONS,))
    if name in _BUILT_BY_HAND and not labelled:
        return _without_wheel(context, name, installed, torch, title)
    return None


def _is_unindexed_torch(context: Context, torch: Torch) -> bool:
    """Tell whether torch is a build of its own kind (NGC, nightly, source), to which everything
    else in the image was built.
    """
    installed = context.distributions.get("torch")
    if installed is not None and is_unindexed(installed):
        return True
    return is_unindexed(Distribution("torch", torch.text))


def _abi_name(new: bool) -> str:
    return "new (cxx11abiTRUE)" if new else "old (cxx11abiFALSE)"


def _abi_label_counts(
    name: str, installed: Distribution, abi: bool, built_for: Optional[str]
) -> bool:
    """Whether a label can be believed: flash-attn's "FALSE" only means "as torch's wheel", which is
    the new ABI since torch 2.7.

    Its releases from 2.8 on are labelled FALSE and built with the new ABI for torch 2.6 too
    (Dao-AILab/flash-attention issue 1783).
    """
    if abi or name != "flash-attn":
        return True
    version, minor = try_version(installed.version), try_version(built_for)
    return (
        version is not None
        and version.release < (2, 8)
        and (minor is None or minor.release < (2, 7))
    )


def _built_for(
    context: Context, name: str, installed: Optional[Distribution]
) -> Tuple[Optional[str], bool]:
    """The torch minor that a package was built for, and whether its own label says so."""
    if installed is None:
        return None, False
    minor, _ = _label(installed)
    if minor is not None:
        return minor, True
    told = attributes_of(context, name).get("torch")
    if isinstance(told, Version):
        return minor_of(told), False
    own = (
        exact_pins(installed.requires or ()).get("torch")
        if name in LINKED and name not in _BUILT_BY_HAND
        else None
    )
    if own is not None:
        return minor_of(own), False
    if installed.direct_url or installed.installer == "conda" or installed.editable:
        return None, False
    version, package = try_version(installed.version), context.matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    # Another index may carry builds for a CUDA that the matrix does not list; all builds of one
    # release have one torch.
    minors = (
        {build.torch for build in release.builds if build.torch} if release is not None else set()
    )
    if len(minors) == 1 and name not in _BUILT_BY_HAND:
        return minors.pop(), False
    return pinned_torch(context.matrix.package, name)(
        version
    ) if version is not None else None, False


def _from_symbols(
    title: str, torch: Torch, built_for: Optional[str], files: Sequence[Binary]
) -> Optional[_Mismatch]:
    broken = [binary for binary in files if binary.undefined]
    lost = [binary for binary in files for name in binary.missing if _is_torch_library(name)]
    if not broken and not lost:
        return None
    first = next(
        (binary for binary in broken or lost if is_main(binary, files)), (broken or lost)[0]
    )
    main = is_main(first, files) or len(broken or lost) == len(files)
    severity = "error" if main else "warning"
    path = short_path(first.path)
    if not broken:
        library = next(name for name in first.missing if _is_torch_library(name))
        evidence = (Evidence(first.path, f"NEEDED {library}"),)
        kind = "it is built for another kind of torch (CUDA, ROCm or CPU)"
        message = (
            f"{title} needs {library}, which {torch} does not have: {kind} and {path} will "
            "not load."
        )
        return _Mismatch("ED401", severity, message, evidence, (_EXTENSIONS,), path)
    symbol = first.undefined[0]
    evidence = (Evidence(first.path, f"undefined symbol {symbol}"),)
    consequence = f"{path} will not load (undefined symbol {symbol})."
    if first.cxx11abi is not None and torch.abi is not None and first.cxx11abi is not torch.abi:
        message = (
            f"{title} is built for the {_abi_name(first.cxx11abi)} C++ ABI, {torch} with the "
            f"{_abi_name(torch.abi)} one: {consequence}"
        )
        return _Mismatch("ED402", severity, message, evidence, (_ABI_CHANGE, _DUAL_ABI), path)
    if built_for is not None and built_for != torch.minor:
        return _Mismatch(
            "ED401",
            severity,
            f"{title} is built for torch {built_for}, but {torch} is installed: {consequence}",
            evidence,
            (_EXTENSIONS,),
            path,
        )
    message = (
        f"{title} asks for symbols that {torch} does not define, so it was built against "
        f"another torch: {consequence}"
    )
    return _Mismatch("ED405", severity, message, evidence, (_EXTENSIONS,), path)


def _without_wheel(
    context: Context, name: str, installed: Distribution, torch: Torch, title: str
) -> Optional[_Mismatch]:
    """No prebuilt wheel of this release is for this torch: it is a build of the user's, or a wheel
    for another torch.
    """
    version = try_version(installed.version)
    package = context.matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    if release is None or installed.direct_url or installed.installer == "conda":
        return None
    # Official wheels only: those that others build carry a label.
    minors = sorted(
        {
            build.torch
            for build in release.builds
            if build.torch and build.index_name in ("github", "pypi")
        },
        key=lambda text: tuple(map(int, text.split("."))),
    )
    if not minors or torch.minor in minors:
        return None
    listed = minors[0] if len(minors) == 1 else f"{minors[0]} to {minors[-1]}"
    message = (
        f"{title} has prebuilt wheels for torch {listed} only, and {torch} is installed: a wheel "
        "fails to load with an undefined symbol; "
        "a build from source against this torch works."
    )
    return _Mismatch(
        "ED401",
        "warning",
        message,
        context.installed(name),
        (_FLASH,) if name.startswith("flash") else (_EXTENSIONS,),
    )
