"""ED808: distributions that write the files of the same module, two of them in one environment.

An installer does not see it: each name is a distribution of its own. The one that was installed
last has overwritten the files that both have, and to uninstall one takes files away from the
other. Namespace packages (``google``, ``nvidia``), and distributions that install each other as
parts, are none of these.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.requirement import parse_requirement
from ..model.row import Source
from .requirement_lines import meets
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional, Tuple

__all__ = ["RULES_HERE", "SharedModule", "one_of", "shared_module", "writers_here"]


class SharedModule(NamedTuple):
    """A module, the distributions that write it (a range: only these releases), and what says so.

    is_compiled: its Python files are generated with its library, so that those of one release do
    not go with the library of another.
    """

    module: str
    writers: Tuple[str, ...]
    source: str
    is_compiled: bool = False


_ONE_EACH = (
    SharedModule(
        "cv2",
        ("opencv-python-headless", "opencv-python", "opencv-contrib-python",
         "opencv-contrib-python-headless", "opencv-python-rolling"),
        "https://github.com/opencv/opencv-python#installation-and-usage",
        True,
    ),
    SharedModule(
        "cupy",
        ("cupy", *(f"cupy-cuda{cuda}" for cuda in (
            "92", "100", "101", "102", "110", "111", "112", "113", "114", "115", "116", "117",
            "11x", "12x", "13x")), "cupy-rocm-4-3", "cupy-rocm-5-0"),
        "https://docs.cupy.dev/en/stable/install.html",
        True,
    ),
    SharedModule(
        "onnxruntime",
        ("onnxruntime-gpu", "onnxruntime", "onnxruntime-directml", "onnxruntime-openvino",
         "onnxruntime-rocm", "ort-nightly", "ort-nightly-gpu"),
        "https://onnxruntime.ai/docs/install/",
        True,
    ),
    SharedModule(
        "faiss",
        ("faiss-gpu-cu12", "faiss-gpu-cu11", "faiss-gpu", "faiss-cpu"),
        "https://github.com/faiss-wheels/faiss-wheels",
        True,
    ),
    SharedModule(
        "tensorflow",
        ("tensorflow", "tensorflow-cpu", "tensorflow-gpu<2.12", "tensorflow-rocm", "tf-nightly"),
        "https://www.tensorflow.org/install/pip",
        True,
    ),
    SharedModule(
        "triton",
        ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-nightly", "triton-windows"),
        "https://github.com/triton-lang/triton",
        True,
    ),
    SharedModule(
        "sgl_kernel",
        ("sglang-kernel", "sgl-kernel"),
        "https://github.com/sgl-project/sglang/tree/main/sgl-kernel",
        True,
    ),
    SharedModule(
        "pynvml",
        ("nvidia-ml-py", "pynvml<12"),
        "https://github.com/gpuopenanalytics/pynvml",
    ),
    SharedModule("PIL", ("pillow", "pillow-simd"), "https://github.com/uploadcare/pillow-simd"),
    SharedModule(
        "Crypto",
        ("pycryptodome", "pycrypto"),
        "https://www.pycryptodome.org/src/installation",
    ),
    SharedModule("jwt", ("pyjwt", "jwt"), "https://pyjwt.readthedocs.io/en/stable/faq.html"),
    SharedModule("fitz", ("pymupdf", "fitz"), "https://pymupdf.readthedocs.io/en/latest/"),
)  # fmt: skip
_BY_MODULE = {entry.module: entry for entry in _ONE_EACH}


def shared_module(module: str) -> Optional[SharedModule]:
    """Return what is known of a top-level module that several distributions write."""
    return _BY_MODULE.get(module)


def writers_here(entry: SharedModule, context: Context) -> Tuple[str, ...]:
    """Return the distributions of this environment that write a module, in the table's order."""
    names = []
    for requirement in map(parse_requirement, entry.writers):
        name, specifier = requirement.name, requirement.specifier
        if name not in context.distributions:
            continue
        version = context.version(name)
        if not specifier or (version is not None and meets(version, specifier)):
            names.append(name)
    return tuple(names)


def one_of(entry: SharedModule, writers: Tuple[str, ...]) -> Remedy:
    """Return the way out: to uninstall all of them, and to install one again."""
    kept = writers[0] if writers else entry.writers[0]
    whole = [one.name for one in map(parse_requirement, entry.writers) if not one.specifier]
    others = writers or tuple(whole)
    return Remedy(
        f"Uninstall them all, remove what is left of the folder {entry.module}, and install one: "
        f"{kept}.",
        (InstallerCall("uninstall", others), InstallerCall("install", (kept,))),
    )


def check_shared_modules(context: Context) -> Iterator[Finding]:
    """Two distributions write the files of the same module.

    What it checks:
        Distributions of which only one may be installed, since each writes the whole module
        (cv2, cupy, onnxruntime, faiss and their like).

    Why it matters:
        The files of the one that was installed last have replaced those of the other; where only
        some are alike, Python files of one release meet the library of another: ImportError,
        AttributeError. To uninstall one breaks the other.

    How to fix:
        Uninstall them all, and install one.

    References:
        https://github.com/opencv/opencv-python#installation-and-usage
    """
    for entry in _ONE_EACH:
        writers = writers_here(entry, context)
        if len(writers) < 2:
            continue
        versions = [f"{name} {context.facts.version_of(name) or ''}".strip() for name in writers]
        yield Finding(
            code="ED808",
            component=writers[0],
            kind="two-copies",
            severity="advice",
            effect="may-block",
            subject=entry.module,
            message=f"{' and '.join(versions)} write the same module, {entry.module}: what was "
            "installed last has replaced files of the other.",
            evidence=tuple(evidence for name in writers for evidence in context.installed(name)),
            sources=(Source(entry.source),),
            remedies=(one_of(entry, writers),),
            packages=writers,
        )


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED808",
        "shared-module",
        "two-copies",
        "Two distributions write the files of the same module",
        check_shared_modules,
        half="environment",
    ),
)
