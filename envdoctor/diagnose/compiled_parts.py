"""Compiled modules that are parts of a package: where one is missing, no package of that name is to
be installed; the package that builds it is, with its extensions.
"""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from ..intake.distribution_names import known_distribution
from ..model.finding import Remedy, hint
from ..model.log import Frame
from ..model.pattern import pattern
from ..model.versions import canonicalize_name
from ..rules.rule import Context
from .code_owner import importing_frame, is_own, package_of
from .trace_draft import TraceDraft

__all__ = ["tell_compiled_module", "tell_compiled_part"]

#: How extensions of torch are named: ``_C``, ``amp_C``, ``flash_attn_2_cuda``, ``deform_conv_ext``.
_COMPILED = pattern(
    r"(?:^|_)_?C$|_cuda(?:_\w{1,30})?$|(?:^|_)(?:ext|cpp|kernels?)$|^cuda_\w{1,40}$"
)
#: Packages that build their extensions only where they are asked to, and how they are asked.
_ASKED_FOR = {
    "apex": "Build apex again from its sources (https://github.com/NVIDIA/apex), where nvcc of "
    "torch's CUDA release is: APEX_CPP_EXT=1 APEX_CUDA_EXT=1 pip install -v --no-build-isolation . "
    "there, older ones with --config-settings '--build-option=--cpp_ext' and the same with "
    "--cuda_ext (parts of apex.contrib have options of their own in its setup.py). The package "
    "apex of the index is another one.",
}


def tell_compiled_module(
    draft: TraceDraft,
    frames: Sequence[Frame],
    groups: Mapping[str, str],
    modules: Mapping[str, str],
    context: Context,
) -> None:
    """Name the package that a missing compiled module is of: by the table of modules, else by who
    imports it; of what the program's own code imports, that it is built from its sources.
    """
    module = groups.get("module", "")
    package = modules.get(module, "")
    is_part = _COMPILED.search(module) is not None or package in _ASKED_FOR
    if draft.is_dated or not is_part or canonicalize_name(module) == package:
        return
    frame = importing_frame(frames, module)
    importer = package_of(frame, modules) if frame is not None else ""
    if not package and not _is_a_package(module, context):
        package = importer
    if package:
        _tell_part(draft, module, package, frame if importer == package else None, context)
    elif frame is not None and is_own(frame) and not _is_a_package(module, context):
        draft.meaning = (
            "By its name it is a compiled extension, which the sources that the program came with "
            "build."
        )
        draft.finding = draft.finding._replace(
            remedies=(
                hint(
                    f"Look for {module} in a setup.py of the program, and build it there for this "
                    "Python, torch and CUDA: pip install --no-build-isolation -e ."
                ),
            )
        )


def tell_compiled_part(draft: TraceDraft, groups: Mapping[str, str], context: Context) -> None:
    """Say of a compiled module inside a package that is known that its extensions are missing."""
    package, part = groups.get("@module", ""), groups.get("part", "").rpartition(".")[2]
    if draft.is_dated or not _COMPILED.search(part) or package not in context.matrix.packages_known:
        return
    _tell_part(draft, f"{groups['module']}.{groups['part']}", package, None, context, is_here=True)


def _is_a_package(module: str, context: Context) -> bool:
    name = canonicalize_name(module)
    return known_distribution(module) is not None or name in context.matrix.packages_known


def _tell_part(
    draft: TraceDraft,
    module: str,
    package: str,
    frame: Optional[Frame],
    context: Context,
    is_here: bool = False,
) -> None:
    version = context.facts.version_of(package) or ""
    named = f"{package} {version}".rstrip()
    why = (
        f"{named} is here without its extensions, or they are of another Python or platform"
        if is_here or version or frame is not None
        else f"{package} is not installed here, or without its extensions"
    )
    place = f" ({frame.within}, line {frame.line} imports it)" if frame is not None else ""
    again = (
        f"No package {module} is to be installed: install {package} again so that its extensions "
        "are there, as a wheel for this Python, torch and CUDA, else from its sources where a "
        "compiler and nvcc are (pip install --no-build-isolation --no-deps --force-reinstall "
        f"--no-cache-dir {package})."
    )
    draft.meaning = ""
    draft.finding = draft.finding._replace(
        component=package,
        kind="missing",
        message=f"{module} is a compiled part of {package}, and was not found{place}: {why}.",
        remedies=(Remedy(_ASKED_FOR.get(package, again)),),
    )
