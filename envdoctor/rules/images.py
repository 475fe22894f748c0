"""What the names of container images say: their CUDA, and a cuda-compat before the driver."""

from __future__ import annotations

import re

from ..model.row import Source
from ..model.versions import VersionSet, try_version
from .rule import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    from ..matrix.tables import NgcImage

__all__ = ["compat_sources", "image_cuda"]

# Patterns are compiled on first use: most targets name no image, and compiling these costs more
# than all rules of this file.
_NGC_IMAGE = r"^nvcr\.io/nvidia/[\w./-]+:(\d\d)\.(\d\d)"
_CUDA_IMAGE = r"(?:^|/)(?:nvidia/)?cuda:(\d+\.\d+)|[-_.:]cu(?:da)?[-_]?(\d{2}\.\d|\d{3})\b"
_VLLM_IMAGE = r"(?:^|/)vllm/vllm-openai:v?(\d+(?:\.\d+)+(?:\.post\d+)?)"

#: Images that put their cuda-compat on the loader's path (a file in /etc/ld.so.conf.d), whatever
#: the driver.
_COMPAT_IMAGES = (
    (
        _VLLM_IMAGE,
        ">=0.15,<0.17",
        (
            Source(
                "https://github.com/vllm-project/vllm/pull/33992",
                "fix of the compat path that the images since 0.15.0 set",
            ),
            Source(
                "https://github.com/gpustack/gpustack/issues/4678",
                "0.15.0 or newer on driver 580 or newer: error 803 with the NVIDIA runtime or CDI, "
                "not with --gpus all",
            ),
        ),
    ),
)


def _framework_image(context: Context, image: str) -> Optional[NgcImage]:
    """Return the newest known month that an NVIDIA framework image is certainly not older than.

    An image built on one (NeMo, SGLang, Triton) has the CUDA of its own month or of a month or two
    before.
    """
    match = re.match(_NGC_IMAGE, image)
    if match is None:
        return None
    months = int(match[1]) * 12 + int(match[2]) - 1 - 2
    tag = f"{months // 12:02d}.{months % 12 + 1:02d}"
    older = [entry for entry in context.matrix.ngc_images if entry.month <= tag]
    return older[-1] if older else None


def image_cuda(context: Context) -> Tuple[Optional[str], str, Optional[Source]]:
    """Return the CUDA version of the container image, how it is known, and the source.

    For a framework image it is the oldest that it can be.
    """
    stated = context.facts.value("image.cuda_version")
    if try_version(stated) is not None:
        return ".".join(str(stated).split(".")[:2]), "the image says so", None
    image = context.facts.value("image.name")
    if not image:
        return None, "", None
    monthly = _framework_image(context, image)
    if monthly is not None:
        cuda = ".".join(monthly.cuda.split(".")[:2])
        return cuda, f"image {image} is not older than CUDA {cuda}", monthly.source
    match = re.search(_CUDA_IMAGE, image)
    if match is not None:
        text = match[1] or match[2]
        return (text if "." in text else f"{text[:2]}.{text[2]}"), f"image {image}", None
    built = _cuda_of_vllm_image(context, image)
    if built is not None:
        return built, f"image {image}, whose vllm is built with CUDA {built}", None
    return None, "", None


def _cuda_of_vllm_image(context: Context, image: str) -> Optional[str]:
    """Return the CUDA of the release that an image of vllm's own contains: that of the wheel."""
    match = re.search(_VLLM_IMAGE, image)
    version = try_version(match[1]) if match is not None else None
    package = context.matrix.package("vllm") if version is not None else None
    if package is None or version is None:
        return None
    release = package.release(version)
    for build in release.builds if release is not None else ():
        if build.cuda is not None and build.index_name == "pypi":
            return build.cuda
    return None


def compat_sources(context: Context) -> Tuple[Source, ...]:
    """Return the sources for an image known to put its cuda-compat in front; else nothing."""
    image = context.facts.value("image.name")
    if not image:
        return ()
    for pattern, versions, sources in _COMPAT_IMAGES:
        match = re.search(pattern, image)
        version = try_version(match[1]) if match is not None else None
        if version is not None and version in VersionSet.parse(versions):
            return sources
    return ()
