"""ED1xx: the NVIDIA driver, its libraries and the devices, where two free values or a condition of the machine decide.

What follows from tables (a build's CUDA major or PTX against the driver, a GPU against a branch or a build) is a row of
the matrix and not repeated here.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from ..matrix.derive import driver_branch, forward_compat_verdict
from ..model.evidence import Absent, Known, Unknown
from ..model.facts import Gpu
from ..model.finding import Finding, Remedy
from ..model.row import Source
from ..model.versions import Version, VersionSet, parse_version, try_version
from .rule import Context, Rule

__all__ = ["RULES_HERE", "image_cuda"]

_FORWARD = Source(
    "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
    "forward compatibility is only for data-centre GPUs (and select NGC-ready RTX and Jetson boards) on the listed base branches",
)
_ERRORS = Source(
    "https://docs.nvidia.com/deploy/cuda-compatibility/index.html", "803: system driver mismatch; 804: compatibility not supported on device"
)
_FABRIC = Source(
    "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
    "the Fabric Manager has to be of the same release as the driver; CUDA initialisation fails with 802 while it does not run",
)
_TOOLKIT = Source("https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html")

#: CUDA versions of NVIDIA's monthly framework images (nvcr.io/nvidia/pytorch:YY.MM), from their release notes. An image built on
#: them (NeMo, vLLM, SGLang, Triton) has the one of its own month or of a month or two before.
_NGC_SOURCE = Source("https://docs.nvidia.com/deeplearning/frameworks/support-matrix/index.html")
_NGC_CUDA = (
    ("22.09", "11.8"),
    ("23.01", "12.0"),
    ("23.03", "12.1"),
    ("23.08", "12.2"),
    ("23.11", "12.3"),
    ("24.03", "12.4"),
    ("24.06", "12.5"),
    ("24.08", "12.6"),
    ("25.01", "12.8"),
    ("25.04", "12.9"),
    ("25.08", "13.0"),
    ("25.12", "13.1"),
)
# Patterns are compiled on first use: most targets name no image, and compiling these costs more than all rules of this file.
_NGC_IMAGE = r"^nvcr\.io/nvidia/[\w./-]+:(\d\d)\.(\d\d)"
_CUDA_IMAGE = r"(?:^|/)(?:nvidia/)?cuda:(\d+\.\d+)|[-_.:]cu(?:da)?[-_]?(\d{2}\.\d|\d{3})\b"
_VLLM_IMAGE = r"(?:^|/)vllm/vllm-openai:v?(\d+(?:\.\d+)+(?:\.post\d+)?)"


def _ngc_cuda(image: str) -> Optional[str]:
    """The oldest CUDA that an NVIDIA framework image can hold: that of two months before its tag."""
    found = re.match(_NGC_IMAGE, image)
    if found is None:
        return None
    months = int(found.group(1)) * 12 + int(found.group(2)) - 1 - 2
    tag = f"{months // 12:02d}.{months % 12 + 1:02d}"
    held = [cuda for first, cuda in _NGC_CUDA if first <= tag]
    return held[-1] if held else None


def image_cuda(context: Context) -> Tuple[Optional[str], str]:
    """Return the CUDA version of the container image and how it is known; for a framework image, the oldest that it can be."""
    stated = context.facts.value("image.cuda_version")
    if try_version(stated) is not None:
        return ".".join(str(stated).split(".")[:2]), "the image says so"
    image = context.facts.value("image.name") or ""
    monthly = _ngc_cuda(image)
    if monthly is not None:
        return monthly, f"image {image} is not older than CUDA {monthly}"
    found = re.search(_CUDA_IMAGE, image)
    if found is not None:
        text = found.group(1) or found.group(2)
        return (text if "." in text else f"{text[:2]}.{text[2]}"), f"image {image}"
    found = re.search(_VLLM_IMAGE, image)
    package = context.matrix.package("vllm") if found is not None else None
    version = try_version(found.group(1)) if found is not None else None
    if package is not None and version is not None:
        release = package.release(version)
        for build in release.builds if release is not None else ():
            if build.cuda is not None and build.index_name == "pypi":
                return build.cuda, f"image {image}, whose vllm is built with CUDA {build.cuda}"
    return None, ""


def _driver_cuda(context: Context) -> Optional[Version]:
    """Return the CUDA version that the kernel driver's own libcuda reports: by its branch, else as read where no compat hides it."""
    release = context.facts.value("driver.release")
    if isinstance(release, str):
        branch = context.matrix.driver_branches.get(driver_branch(release))
        if branch is not None:
            return try_version(branch.cuda)
    if context.facts.value("compat.path") is None:
        return context.fact_version("driver.cuda_version")
    return None


def _needs_cuda(context: Context) -> Tuple[str, ...]:
    """Return what in this environment needs a CUDA device: torch of a CUDA build, or an engine that is there for nothing else."""
    found = []
    if isinstance(context.facts.get("torch.cuda"), Known) or (_variant_cuda(context) is not None):
        found.append("torch")
    found.extend(name for name in ("vllm", "sglang", "sgl-kernel", "flash-attn", "deepspeed") if name in context.distributions)
    return tuple(found)


def _variant_cuda(context: Context) -> Optional[Version]:
    if context.target.environment is None:
        return None
    value = context.target.environment("torch").attributes.get("cuda")
    return value if isinstance(value, Version) else None


def _model_kinds(context: Context) -> List[Tuple[Gpu, Optional[str]]]:
    found = []
    for device in context.visible_gpus():
        model = context.matrix.gpu(device.name, device.pci_id)
        found.append((device, model.kind if model is not None else None))
    return found


def _names(devices: List[Gpu]) -> str:
    return ", ".join(sorted({device.name or device.pci_id or "GPU" for device in devices}))


def check_image_driver(context: Context) -> Iterator[Finding]:
    """A container image whose CUDA is newer than the driver.

    What it checks:
        The CUDA version of the container image (CUDA_VERSION, the image's name) against the CUDA version of the kernel driver.

    Why it matters:
        An image of a newer CUDA major cannot start work on an older driver without cuda-compat. Within a major, minor-version
        compatibility carries a data-centre GPU; on a GeForce the image's cuda-compat is refused with error 804.

    How to fix:
        Update the host's driver, or take an image of the driver's CUDA version.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    driver = context.facts.value("driver.release")
    served = _driver_cuda(context)
    text, how = image_cuda(context)
    image = try_version(text)
    if driver is None or served is None or image is None or image <= served:
        return
    consumers = [device for device, kind in _model_kinds(context) if kind in ("geforce", "mobile")]
    major = image.release[0] > served.release[0]
    if not major and not consumers:
        return
    verdict = forward_compat_verdict(context.facts, context.matrix)
    if verdict is True:
        return
    unit = f" on {_names(consumers)}" if consumers else ""
    yield Finding(
        code="ED101",
        component="nvidia-driver",
        kind="too-old",
        severity="warning",
        message=f"Driver {driver} serves CUDA {served}, older than the image's CUDA {image}{unit} ({how}).",
        evidence=context.evidence("driver.release", "image.cuda_version", "image.name"),
        sources=(_FORWARD, _NGC_SOURCE) if "not older" in how else (_FORWARD,),
        remedies=(
            Remedy(f"Update the host's driver to a branch that reports CUDA {image} or newer.", (), "changes-host"),
            Remedy(f"Or use an image built on CUDA {served} or older."),
        ),
    )


_PTX_HOLDERS = frozenset(["vllm", "sgl-kernel", "sglang-kernel", "flash-attn", "xformers", "flashinfer-python", "flashinfer-jit-cache"])


def check_minor_version(context: Context) -> Iterator[Finding]:
    """A build of a newer CUDA minor than the driver's runs by minor-version compatibility, PTX excepted.

    What it checks:
        The CUDA minor of torch's build against the newest one whose PTX the driver compiles, within one CUDA major.

    Why it matters:
        Machine code runs on any driver of the major, so this is no fault. But kernels that a package holds as PTX alone, or that are compiled
        at run time to PTX by the newer toolkit, fail: "the provided PTX was compiled with an unsupported toolchain".

    How to fix:
        Nothing while it works; else update the driver, use cuda-compat on a data-centre GPU, or builds of the driver's CUDA.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    cuda = _variant_cuda(context)
    ptx = context.target.host.attributes.get("ptx")
    driver = context.facts.value("driver.release")
    if cuda is None or not isinstance(ptx, Version) or driver is None or len(cuda.release) < 2:
        return
    if cuda.release[0] != ptx.release[0] or cuda <= ptx:
        return
    yield Finding(
        code="ED102",
        component="nvidia-driver",
        kind="too-old",
        # Rows speak for what is known to hold PTX; a partial list without any of it leaves open what else is there.
        severity="advice" if context.facts.value("distributions.complete") or _PTX_HOLDERS & set(context.distributions) else "warning",
        message=f"torch is built with CUDA {cuda}, driver {driver} compiles PTX up to CUDA {ptx}: machine code runs by minor-version compatibility, "
        "but a kernel that is only there as newer PTX fails.",
        evidence=context.evidence("torch.version", "torch.cuda", "driver.release"),
        sources=(Source("https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html", "PTX is not covered"),),
        remedies=(
            Remedy(f"Where 'unsupported toolchain' appears: update the driver to one that reports CUDA {cuda} or newer.", (), "changes-host"),
            Remedy(f"Or install builds made with CUDA {ptx} or older."),
        ),
    )


def check_forward_compatibility(context: Context) -> Iterator[Finding]:
    """Forward compatibility is attempted where it cannot work (error 804).

    What it checks:
        A cuda-compat libcuda that the loader would take, or an image newer than the driver that brings one, against the class of each
        visible GPU and the base branches that NVIDIA admits for that cuda-compat.

    Why it matters:
        cuInit fails with 804, "forward compatibility was attempted on non supported HW", and no device is usable.

    How to fix:
        Update the host's driver, or remove cuda-compat from the loader's path, or use an image of the driver's CUDA version.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    driver = context.facts.value("driver.release")
    release = context.fact_version("compat.release")
    compat = context.facts.value("compat.cuda_version")
    consumers = [device for device, kind in _model_kinds(context) if kind in ("geforce", "mobile")]
    refused = context.facts.value("driver.init_error") == 804
    remedies = (
        Remedy("Update the host's driver, so that cuda-compat is not needed.", (), "changes-host"),
        Remedy("Or take cuda-compat out of the loader's path (LD_LIBRARY_PATH, /etc/ld.so.conf.d), and use builds of the driver's CUDA."),
    )
    evidence = context.evidence("compat.path", "compat.release", "compat.cuda_version", "driver.release", "driver.init_error", "gpus", "image.name")
    if driver is not None and release is not None and parse_version(str(release)) <= (try_version(driver) or parse_version("0")):
        return  # the driver is not older: ED104
    if compat is not None or release is not None or refused:
        named = context.facts.value("compat.release")
        shown = f"cuda-compat{f' {named}' if named else ''}{f' (CUDA {compat})' if compat else ''}"
        if consumers:
            reason = f"{_names(consumers)} is not a data-centre GPU"
        elif compat is not None and forward_compat_verdict(context.facts, context.matrix) is False and driver is not None:
            allowed = context.matrix.forward_compat.get(compat)
            branches = ", ".join("R" + branch for branch in allowed.branches) if allowed is not None else "none known"
            reason = f"driver {driver} is of branch R{driver_branch(driver)}, and the admitted base branches are {branches}"
        elif refused:
            reason = "cuInit answered 804"
        else:
            return
        yield Finding(
            code="ED103",
            component="cuda-compat",
            kind="forward-compat-unsupported",
            severity="error",
            message=f"{shown} cannot work here: {reason}, so CUDA initialisation fails with error 804.",
            evidence=evidence,
            sources=(_FORWARD, _ERRORS),
            remedies=remedies,
        )
        return
    # An image that brings cuda-compat and is newer than the driver: NVIDIA's framework images and those on nvidia/cuda do.
    served = _driver_cuda(context)
    text, _ = image_cuda(context)
    image = try_version(text)
    if consumers and served is not None and image is not None and image > served:
        yield Finding(
            code="ED103",
            component="cuda-compat",
            kind="forward-compat-unsupported",
            severity="warning",
            message=f"The image's cuda-compat for CUDA {image} cannot lift driver {driver} (CUDA {served}) on {_names(consumers)}, "
            "which is not a data-centre GPU: "
            "where it is loaded, CUDA initialisation fails with error 804.",
            evidence=evidence,
            sources=(_FORWARD,),
            remedies=remedies,
        )


def check_generation_dropped(context: Context) -> Iterator[Finding]:
    """A package is built with a CUDA that no longer knows this GPU.

    What it checks:
        The CUDA version of torch and of what links against it against the last CUDA that compiles for each visible GPU's compute capability,
        where the code in the build itself was not read.

    Why it matters:
        A compiler that dropped a generation leaves neither machine code nor PTX for it: "no kernel image is available for execution on the
        device". CUDA 13 dropped Maxwell, Pascal and Volta.

    How to fix:
        Install a build for the last CUDA that knows the GPU, whatever the driver would serve.

    References:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
    """
    environment = context.target.environment
    if environment is None:
        return
    names = ["torch", *(name for name in ("vllm", "sgl-kernel", "sglang-kernel", "flash-attn", "xformers") if name in context.distributions)]
    for device in context.visible_gpus():
        model = context.matrix.gpu(device.name, device.pci_id)
        number = device.compute_capability or (model.compute_capability if model is not None else None)
        capability = context.matrix.capabilities.get(number or "")
        last = try_version(capability.last_cuda) if capability is not None else None
        if capability is None or last is None:
            continue
        for name in names:
            attributes = environment(name).attributes
            cuda = attributes.get("cuda") or (context.fact_version("torch.cuda") if name == "torch" else None)
            if not isinstance(cuda, Version) or "code" in attributes or cuda.release[:2] <= last.release[:2]:
                continue
            yield Finding(
                code="ED120" if name == "torch" else "ED121",
                component=name,
                kind="arch-missing",
                severity="error",
                subject=f"sm_{capability.capability.replace('.', '')}",
                message=f"{name} is built with CUDA {cuda}, which compiles no code for {device.name or 'a GPU'} "
                f"(sm_{capability.capability.replace('.', '')}, {capability.architecture}); the last CUDA that does is {last}.",
                evidence=(*context.evidence("torch.cuda", "gpus"), *context.installed(name)),
                sources=(capability.source,),
                remedies=(Remedy(f"Install a build of {name} for CUDA {last} or older."),),
            )


#: Images that put their cuda-compat on the loader's path (a file in /etc/ld.so.conf.d), whatever the driver.
_COMPAT_IMAGES = (
    (
        _VLLM_IMAGE,
        ">=0.15,<0.17",
        (
            Source("https://github.com/vllm-project/vllm/pull/33992", "fix of the compat path that the images since 0.15.0 set"),
            Source(
                "https://github.com/gpustack/gpustack/issues/4678",
                "0.15.0 or newer on driver 580 or newer: error 803 with the NVIDIA runtime or CDI, not with --gpus all",
            ),
        ),
    ),
)


def _compat_image(context: Context) -> Tuple[Source, ...]:
    """Return the sources for an image that is known to put its cuda-compat in front; empty for any other."""
    image = context.facts.value("image.name")
    if not image:
        return ()
    for pattern, versions, sources in _COMPAT_IMAGES:
        found = re.search(pattern, image)
        version = try_version(found.group(1)) if found is not None else None
        if version is not None and version in VersionSet.parse(versions):
            return sources
    return ()


def check_compat_shadow(context: Context) -> Iterator[Finding]:
    """A cuda-compat libcuda that is not newer than the driver lies in front of the driver's own (error 803).

    What it checks:
        The release (or the CUDA version) of the cuda-compat library that the loader would take against the kernel driver's.

    Why it matters:
        libcuda and kernel module have to be of one release unless compat is the newer one: cuInit fails with 803, or the
        environment runs with an older libcuda than the driver brings.

    How to fix:
        Take the compat folder out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, or use an image that is newer than the driver.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    path = context.facts.value("compat.path")
    release = context.fact_version("compat.release")
    driver = context.fact_version("driver.release")
    # As written: 575.57.08 is a release, 575.57.8 its order.
    shown_release, shown_driver = context.facts.value("compat.release"), context.facts.value("driver.release")
    refused = context.facts.value("driver.init_error") == 803
    loaded = context.facts.value("driver.libcuda_path")
    if loaded is not None and path is not None and "compat" not in loaded and not refused:
        return  # another copy wins, so this one only lies there
    image_sources = _compat_image(context)
    if path is None and release is None and not refused and not image_sources:
        return
    served = _driver_cuda(context)
    compat_text = context.facts.value("compat.cuda_version")
    how = ""
    if compat_text is None:
        compat_text, how = image_cuda(context)
    compat = try_version(compat_text)
    certain = False
    if release is not None and driver is not None:
        if driver < release:
            return
        certain = True
        why = f"cuda-compat {shown_release} is not newer than driver {shown_driver}"
    elif compat is not None and served is not None and driver is not None:
        if compat > served:
            return
        certain = not how and compat < served
        why = f"cuda-compat for CUDA {compat}{f' ({how})' if how else ''} is not newer than driver {shown_driver} (CUDA {served})"
    elif refused:
        why = "cuInit answered 803: libcuda and the kernel driver do not match"
    else:
        return
    where = path or context.facts.value("driver.libcuda_path") or ("The image's cuda-compat" if image_sources else "A cuda-compat")
    yield Finding(
        code="ED104",
        component="libcuda",
        kind="shadowed",
        severity="error" if certain or refused else "warning",
        message=f"{where} {'is' if certain or refused else 'may be'} loaded in place of the driver's own libcuda, but {why}: "
        "CUDA initialisation fails with error 803.",
        evidence=context.evidence(
            "compat.path", "compat.release", "compat.cuda_version", "driver.libcuda_path", "driver.release", "driver.init_error", "image.name"
        ),
        sources=(_FORWARD, _ERRORS, *image_sources),
        remedies=(
            Remedy(
                "Take the cuda-compat folder out of the loader's path: the driver's own libcuda is the newer one.",
                ("rm -f /etc/ld.so.conf.d/*compat*.conf && ldconfig",),
                "changes-host",
            ),
            Remedy("Or, where LD_LIBRARY_PATH names it, remove that entry; or use an image that is newer than the driver."),
        ),
    )


def check_user_space_driver(context: Context) -> Iterator[Finding]:
    """The driver's libraries are of another release than the kernel module (NVML 18, "Driver/library version mismatch").

    What it checks:
        The releases of libnvidia-ml and libcuda against the release of the loaded kernel module.

    Why it matters:
        Every call into the driver is refused until both are of one release: nvidia-smi and CUDA fail.

    How to fix:
        After an upgrade, reload the kernel module or reboot. In a container, remove driver libraries that the image ships itself.

    References:
        https://github.com/NVIDIA/nvidia-docker/issues/584
    """
    if context.facts.value("os.wsl"):
        return  # the libraries belong to the Windows driver and name no release
    module = context.fact_version("driver.release")
    source = Source("https://github.com/NVIDIA/nvidia-docker/issues/584", "Failed to initialize NVML: Driver/library version mismatch")
    remedies = (
        Remedy(
            "Reboot, or stop all users of the GPUs and reload the kernel module.",
            ("sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia",),
            "changes-host",
        ),
        Remedy("In a container: remove libnvidia-ml and libcuda that the image ships itself, and driver folders from LD_LIBRARY_PATH."),
    )
    for field, library in (("driver.nvml_release", "libnvidia-ml"), ("driver.libcuda_release", "libcuda")):
        user = context.fact_version(field)
        if user is None or module is None or user == module or context.evidence(field)[0].source == context.evidence("driver.release")[0].source:
            continue
        path = context.facts.value("driver.libcuda_path") or ""
        if library == "libcuda" and (context.facts.value("compat.path") is not None or "compat" in path):
            continue  # meant to differ: ED103 and ED104
        newer = "the driver was upgraded without reloading the kernel module" if user > module else "an older copy of the library is in front"
        yield Finding(
            code="ED105",
            component="nvidia-driver",
            kind="version-mismatch",
            severity="error",
            message=f"{library} is of driver release {context.facts.value(field)}, the loaded kernel module of "
            f"{context.facts.value('driver.release')}: {newer}.",
            evidence=context.evidence("driver.release", field, "driver.libcuda_path"),
            sources=(source,),
            remedies=remedies,
        )
        return
    error = context.facts.value("driver.nvml_error") or ""
    if "version mismatch" in error.lower():
        yield Finding(
            code="ED105",
            component="nvidia-driver",
            kind="version-mismatch",
            severity="error",
            message=f"NVML refuses to start ({error}): the library is of another driver release than the loaded kernel module"
            + (f" {context.facts.value('driver.release')}." if module else "."),
            evidence=context.evidence("driver.nvml_error", "driver.release"),
            sources=(source,),
            remedies=remedies,
        )


def check_fabric_manager(context: Context) -> Iterator[Finding]:
    """The Fabric Manager is of another release than the driver, or does not run (error 802).

    What it checks:
        The release of nvidia-fabricmanager against the driver's, whether it runs, and the fabric state of each GPU.

    Why it matters:
        On NVSwitch systems (HGX, DGX) CUDA initialisation fails with 802, "system not yet initialized", until the Fabric Manager has
        set up the fabric; it refuses to start with another driver release than its own.

    How to fix:
        Install the nvidia-fabricmanager package of exactly the driver's release, then enable and start it.

    References:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    """
    manager = context.facts.value("driver.fabric_manager")
    driver = context.facts.value("driver.release")
    devices = context.visible_gpus()
    states = {device.fabric_state for device in devices if device.fabric_state is not None}
    without_fabric = bool(devices) and (
        (bool(states) and states <= {"not supported"})
        or all(kind in ("geforce", "mobile", "workstation", "jetson") for _, kind in _model_kinds(context))
    )
    refused = context.facts.value("driver.init_error") == 802
    evidence = context.evidence("driver.fabric_manager", "driver.fabric_manager_running", "driver.release", "driver.init_error", "gpus")
    mine, its = try_version(driver), try_version(manager)
    if mine is not None and its is not None and mine != its:
        yield Finding(
            code="ED106",
            component="nvidia-fabricmanager",
            kind="version-mismatch",
            severity="advice" if without_fabric else "error",
            message=f"nvidia-fabricmanager {manager} is not of the driver's release {driver}, so it refuses to start"
            + ("; this machine has no NVSwitch that would need it." if without_fabric else " and CUDA on NVSwitch systems fails with error 802."),
            evidence=evidence,
            sources=(_FABRIC,),
            remedies=(
                Remedy(
                    f"Install nvidia-fabricmanager of release {driver}, and start it.",
                    (
                        f"sudo apt-get install nvidia-fabricmanager-{driver_branch(str(driver))}={driver}-1",
                        "sudo systemctl enable --now nvidia-fabricmanager",
                    ),
                    "changes-host",
                ),
            ),
        )
        return
    pending = sorted(states & {"not started", "in progress"})
    stopped = context.facts.value("driver.fabric_manager_running") is False
    if not refused and not (pending and not without_fabric):
        return
    what = "does not run" if stopped else "has not set up the fabric"
    sign = "CUDA initialisation answers 802" if refused else f"the fabric state of the GPUs is {' and '.join(pending)}"
    yield Finding(
        code="ED106",
        component="nvidia-fabricmanager",
        kind="missing",
        severity="error" if refused else "warning",
        message=f"The Fabric Manager {what}: {sign}, so the GPUs of this NVSwitch system cannot be used{'' if refused else ' yet'}.",
        evidence=evidence,
        sources=(_FABRIC,),
        remedies=(
            Remedy(
                f"Start the Fabric Manager{f' of release {driver}' if driver else ''} and look into its log.",
                ("sudo systemctl enable --now nvidia-fabricmanager", "journalctl -u nvidia-fabricmanager"),
                "changes-host",
            ),
        ),
    )


def check_driver_loaded(context: Context) -> Iterator[Finding]:
    """There are NVIDIA GPUs, but no NVIDIA driver is loaded.

    What it checks:
        Whether the kernel module is loaded, where GPUs are known to be in the machine: nouveau drives one, a GPU was asked for, or the
        report names one.

    Why it matters:
        Without the module there is no device for CUDA. A machine without any sign of a GPU is a CPU machine and no fault.

    How to fix:
        Install the driver, blacklist nouveau, rebuild the DKMS module for the running kernel, or sign it for Secure Boot.

    References:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    if context.facts.value("driver.loaded") is not False or context.facts.value("driver.release") is not None or context.facts.value("gpus"):
        return
    nouveau = context.facts.value("driver.nouveau") is True
    expected = context.facts.value("gpus.expected") or ()
    asked = context.facts.value("container.gpus_requested") is True
    if not (nouveau or expected or asked):
        return
    sign = "nouveau drives the GPU" if nouveau else f"the machine has {', '.join(expected)}" if expected else "a GPU was asked for"
    needing = _needs_cuda(context)
    yield Finding(
        code="ED107",
        component="nvidia-driver",
        kind="missing",
        severity="error" if needing else "warning",
        message=f"The NVIDIA kernel module is not loaded, although {sign}" + (f"; {needing[0]} finds no CUDA device." if needing else "."),
        evidence=context.evidence("driver.loaded", "driver.nouveau", "gpus.expected", "container.gpus_requested"),
        sources=(Source("https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"),),
        remedies=(
            Remedy(
                "Blacklist nouveau, install the NVIDIA driver and reboot."
                if nouveau
                else "Install the NVIDIA driver on the host, or load its module.",
                ("sudo modprobe nvidia",),
                "changes-host",
            ),
        ),
    )


def check_gpu_exposed(context: Context) -> Iterator[Finding]:
    """The GPUs of the host are not visible here.

    What it checks:
        A CUDA build of torch that sees no device, beside what tells that there are some: the host's kernel module, a container,
        NVIDIA_VISIBLE_DEVICES,
        NVIDIA_DRIVER_CAPABILITIES, GPUs that the report names.

    Why it matters:
        Engines fall back to the CPU or stop with "failed to infer device type" or "no CUDA GPUs are available".

    How to fix:
        Start the container with --gpus all (or the NVIDIA runtime, or a GPU resource request), with capabilities compute and utility.

    References:
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    remedies = (
        Remedy(
            "Start the container with the GPUs: 'docker run --gpus all', '--device nvidia.com/gpu=all' for podman, "
            "'nvidia.com/gpu' in Kubernetes, '--nv' for apptainer."
        ),
        Remedy(
            "On the host, check that the NVIDIA container toolkit is set up.",
            ("nvidia-ctk runtime configure --runtime=docker", "nvidia-smi"),
            "changes-host",
        ),
    )
    setting = context.facts.variable("NVIDIA_VISIBLE_DEVICES")
    needing = _needs_cuda(context)
    if isinstance(setting, Known) and setting.value.strip() in ("", "void", "none") and needing and not context.facts.value("gpus"):
        contained = context.facts.value("container.runtime") is not None
        if setting.value.strip() != "" or contained:
            yield Finding(
                code="ED108",
                component="container-gpu",
                kind="not-exposed",
                severity="warning" if context.facts.value("driver.loaded") is not True else "error",
                message=f"NVIDIA_VISIBLE_DEVICES is {setting.value.strip() or 'empty'}, so the NVIDIA runtime exposes no GPU to this container, "
                f"and {needing[0]} finds none.",
                evidence=(setting.evidence, *context.evidence("container.runtime", "driver.loaded")),
                sources=(_TOOLKIT,),
                remedies=remedies,
            )
            return
    devices = context.facts.get("gpus")
    none_seen = isinstance(devices, Absent) or (isinstance(devices, Known) and not devices.value)
    available = context.facts.value("torch.cuda_available")
    exposed = context.facts.value("driver.exposed")
    if not none_seen or not needing:
        return
    if available is not False and exposed is not False:
        return
    if context.facts.value("driver.loaded") is False or context.facts.value("driver.init_error") not in (None, 0, 100):
        return  # ED107, or what made cuInit fail
    expected = context.facts.value("gpus.expected") or ()
    asked = context.facts.value("container.gpus_requested") is True
    host_driver = context.facts.value("driver.loaded") is True
    contained = context.facts.value("container.runtime")
    certain = bool(expected) or asked or host_driver
    if not certain and contained is None and available is None:
        return
    if expected:
        reason = f"the host has {', '.join(expected)}"
    elif host_driver:
        reason = "the host's NVIDIA kernel module is loaded"
    elif asked:
        reason = "GPUs were asked for"
    else:
        reason = f"{needing[0]} is a CUDA build" if needing[0] == "torch" else f"{needing[0]} needs one"
    torch = context.facts.value("torch.version")
    yield Finding(
        code="ED108",
        component="container-gpu",
        kind="not-exposed",
        severity="error" if certain else "warning",
        message=f"No GPU is visible here, although {reason}{f' (torch {torch})' if torch else ''}"
        + ("." if certain else "; if this machine has NVIDIA GPUs, they are not exposed to this process."),
        evidence=context.evidence("gpus", "torch.cuda_available", "driver.exposed", "driver.loaded", "container.runtime", "gpus.expected"),
        sources=(_TOOLKIT,),
        remedies=remedies,
    )


def check_capabilities(context: Context) -> Iterator[Finding]:
    """NVIDIA_DRIVER_CAPABILITIES leaves out what compute needs.

    What it checks:
        The variable in a container names "compute" (libcuda) and "utility" (libnvidia-ml, nvidia-smi), or "all".

    Why it matters:
        Without compute there is no libcuda; without utility NVML is missing, which vLLM and others use to find the platform.

    How to fix:
        Set NVIDIA_DRIVER_CAPABILITIES=compute,utility when the container is started.

    References:
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    setting = context.facts.variable("NVIDIA_DRIVER_CAPABILITIES")
    if not isinstance(setting, Known) or not setting.value.strip():
        return
    given = {part.strip() for part in setting.value.split(",")}
    lacking = [part for part in ("compute", "utility") if part not in given]
    if "all" in given or not lacking or not _needs_cuda(context):
        return
    if context.facts.value("driver.libcuda_path") is not None and context.facts.value("driver.nvml_release") is not None:
        return  # both libraries are there by another way
    yield Finding(
        code="ED108",
        component="container-gpu",
        kind="not-exposed",
        severity="warning",
        subject="NVIDIA_DRIVER_CAPABILITIES",
        message=f"NVIDIA_DRIVER_CAPABILITIES={setting.value} lacks {' and '.join(lacking)}, so the container gets no "
        + " and no ".join({"compute": "libcuda", "utility": "libnvidia-ml"}[part] for part in lacking)
        + ".",
        evidence=(setting.evidence,),
        sources=(_TOOLKIT,),
        remedies=(
            Remedy(
                "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
                ("docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",),
            ),
        ),
    )


_MOUNTED_DRIVER = "/usr/local/nvidia/lib64"


def check_nvml_found(context: Context) -> Iterator[Finding]:
    """NVML is not on the loader's path, although the driver works.

    What it checks:
        In a container whose platform mounts the driver at /usr/local/nvidia (GKE and other Kubernetes device plugins), whether LD_LIBRARY_PATH
        names /usr/local/nvidia/lib64, where NVML cannot be used or no device is listed.

    Why it matters:
        vLLM and others find their platform through NVML: "Failed to infer device type", although torch sees the GPU.

    How to fix:
        Put /usr/local/nvidia/lib64 back into LD_LIBRARY_PATH, or into the loader's cache.

    References:
        https://github.com/vllm-project/vllm/issues/19184
    """
    setting = context.facts.variable("LD_LIBRARY_PATH")
    if not isinstance(setting, Known):
        return
    folders = [folder.rstrip("/") for folder in setting.value.split(":") if folder]
    if _MOUNTED_DRIVER in folders or "/usr/local/nvidia/lib" in folders:
        return
    devices = context.facts.get("gpus")
    error = context.facts.value("driver.nvml_error") or ""
    unusable = "libnvidia-ml" in error or (
        # torch reaches the driver, and what asks NVML or nvidia-smi does not
        context.facts.value("torch.cuda_available") is True
        and (not isinstance(devices, Known) or not devices.value)
        and context.facts.value("driver.release") is None
        and context.facts.value("driver.nvml_release") is None
    )
    contained = context.facts.value("kubernetes.pod") is True or isinstance(context.facts.get("container.runtime"), Known)
    contained = contained or context.facts.value("image.name") is not None
    if not unusable or not contained:
        return
    yield Finding(
        code="ED108",
        component="libnvidia-ml",
        kind="missing",
        severity="warning",
        message=f"The driver is usable but NVML (libnvidia-ml.so.1) is not found: LD_LIBRARY_PATH is {setting.value}, without {_MOUNTED_DRIVER}, "
        "where Kubernetes platforms such as GKE mount the driver's libraries.",
        evidence=(setting.evidence, *context.evidence("driver.nvml_error", "torch.cuda_available", "kubernetes.pod", "image.name")),
        sources=(
            Source("https://github.com/vllm-project/vllm/issues/19184", "LD_LIBRARY_PATH of the image no longer lists /usr/local/nvidia/lib64"),
        ),
        remedies=(
            Remedy(
                "Put the mounted driver libraries back on the loader's path.",
                ("export LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64:$LD_LIBRARY_PATH",),
                "safe",
            ),
        ),
    )


def check_device_faults(context: Context) -> Iterator[Finding]:
    """A device reports a fault.

    What it checks:
        Row remapping that failed or waits for a reset, uncorrected ECC errors, and NVML's answers "GPU is lost" and "reset required".

    Why it matters:
        Jobs die with Xid errors or "CUDA error: uncorrectable ECC error encountered"; a device with failed remapping has to be replaced.

    How to fix:
        Drain the node and reset the GPU; replace it where remapping failed.

    References:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
    """
    source = Source("https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html")
    for index, device in enumerate(context.facts.value("gpus", ())):
        name = f"GPU {index} ({device.name or device.pci_bus or 'unknown model'})"
        if device.fault:
            severity, what, fix = "error", device.fault, "Look into the kernel log for Xid 79 or 119, then reset the GPU or reboot."
        elif device.remapped_failed:
            severity, what, fix = "error", "row remapping failed", "Take the GPU out of service and have it replaced."
        elif device.remapped_pending:
            severity, what, fix = "warning", "row remapping waits for a reset", "Drain the node and reset the GPU."
        elif device.ecc_uncorrected:
            count = device.ecc_uncorrected
            severity, what, fix = (
                "warning",
                f"{count} uncorrected ECC error{'s' if count != 1 else ''} counted",
                "Look into the kernel log for Xid 48, 63, 64, 94, 95, and reset the GPU.",
            )
        else:
            continue
        yield Finding(
            code="ED110",
            component="gpu",
            kind="hardware-fault",
            severity=severity,
            subject=device.uuid or device.pci_bus or f"index {index}",
            message=f"{name} reports a fault: {what}.",
            evidence=context.evidence("gpus"),
            sources=(source,),
            remedies=(Remedy(fix, ("nvidia-smi --gpu-reset -i " + str(index),) if severity != "error" else (), "changes-host"),),
        )
    error = (context.facts.value("driver.nvml_error") or "").lower()
    for sign, what in (
        ("is lost", "a GPU has fallen off the bus"),
        ("requires reset", "a GPU has to be reset"),
        ("reset required", "a GPU has to be reset"),
    ):
        if sign in error:
            yield Finding(
                code="ED110",
                component="gpu",
                kind="hardware-fault",
                severity="error",
                subject="nvml",
                message=f"NVML reports that {what}: {context.facts.value('driver.nvml_error')}.",
                evidence=context.evidence("driver.nvml_error"),
                sources=(source,),
                remedies=(
                    Remedy("Look into the kernel log for Xid 79 or 119, then reset the GPU or reboot.", ("dmesg | grep -i xid",), "changes-host"),
                ),
            )
            return


def check_driver_settings(context: Context) -> Iterator[Finding]:
    """Driver settings that cost time or devices.

    What it checks:
        Persistence mode of data-centre GPUs, and MIG mode where several GPUs are to work together.

    Why it matters:
        Without persistence the driver initialises each GPU anew (some seconds per device and start). With MIG a process sees one
        slice only, and NCCL connects no slices.

    How to fix:
        Run nvidia-persistenced; switch MIG off where whole GPUs are wanted.

    References:
        https://docs.nvidia.com/deploy/driver-persistence/
    """
    kinds = _model_kinds(context)
    idle = [device for device, kind in kinds if kind == "datacenter" and device.persistence_mode is False]
    if idle:
        yield Finding(
            code="ED111",
            component="nvidia-driver",
            kind="unsupported",
            severity="advice",
            subject="persistence-mode",
            message=f"Persistence mode is off on {len(idle)} of {len(kinds)} GPUs ({_names(idle)}), so the driver sets them up anew at each start.",
            evidence=context.evidence("gpus"),
            sources=(Source("https://docs.nvidia.com/deploy/driver-persistence/index.html"),),
            remedies=(Remedy("Run the persistence daemon.", ("sudo systemctl enable --now nvidia-persistenced",), "changes-host"),),
        )
    sliced = [device for device, _ in kinds if device.mig_mode]
    asked = context.target.request("tensor_parallel_size").attributes.get("number")
    if sliced and isinstance(asked, Version) and asked > parse_version("1"):
        yield Finding(
            code="ED111",
            component="mig",
            kind="unsupported",
            severity="warning",
            subject="mig-mode",
            message=f"MIG is on ({_names(sliced)}) and tensor_parallel_size is {asked}: NCCL cannot connect MIG slices of one GPU.",
            evidence=context.evidence("gpus", "request"),
            sources=(
                Source(
                    "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html",
                    "no GPU to GPU P2P, and NCCL is not supported between instances",
                ),
            ),
            remedies=(Remedy("Use one slice per process, or switch MIG off.", ("sudo nvidia-smi -mig 0",), "changes-host"),),
        )


def check_peer_access(context: Context) -> Iterator[Finding]:
    """PCIe ACS or the IOMMU redirects traffic between GPUs.

    What it checks:
        Whether ACS or the IOMMU is known to redirect peer traffic, where several GPUs work together.

    Why it matters:
        Peer-to-peer copies go through the root complex: they are slow, return wrong data, or hang NCCL.

    How to fix:
        Switch ACS and the IOMMU off in the BIOS or on the kernel's command line; until then NCCL_P2P_DISABLE=1.

    References:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#pci-access-control-services-acs
    """
    if context.facts.value("pcie.acs_iommu") is not True:
        return
    devices = context.facts.value("gpus")
    if devices is not None and len(devices) < 2:
        return
    yield Finding(
        code="ED112",
        component="pcie-acs-iommu",
        kind="p2p-blocked",
        severity="warning" if devices is not None else "advice",
        message="PCIe ACS or the IOMMU redirects traffic between "
        + (f"the {len(devices)} GPUs" if devices is not None else "GPUs")
        + " through the root complex: NCCL may hang or be slow over PCIe.",
        evidence=context.evidence("pcie.acs_iommu", "gpus"),
        sources=(Source("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html", "PCI Access Control Services (ACS)"),),
        remedies=(
            Remedy(
                "Disable ACS and the IOMMU in the BIOS or on the kernel's command line (amd_iommu=off, intel_iommu=off, or iommu=pt).",
                (),
                "changes-host",
            ),
            Remedy("Until then, keep NCCL from using peer-to-peer.", ("export NCCL_P2P_DISABLE=1",), "safe"),
        ),
    )


def check_unversioned_libcuda(context: Context) -> Iterator[Finding]:
    """Only libcuda.so.1 is found, not libcuda.so (WSL).

    What it checks:
        On WSL, whether the linker finds a libcuda.so without version suffix.

    Why it matters:
        Triton and what else links with -lcuda at run time fail with "libcuda.so cannot be found" or "cannot find -lcuda".

    How to fix:
        Add /usr/lib/wsl/lib to LD_LIBRARY_PATH, or make the link.

    References:
        https://github.com/microsoft/WSL/issues/8587
    """
    wsl = context.facts.value("os.wsl") is True or "/wsl/" in (context.facts.value("driver.libcuda_path") or "")
    if not wsl or context.facts.value("driver.unversioned_libcuda") is not False:
        return
    setting = context.facts.variable("LD_LIBRARY_PATH")
    if isinstance(setting, Known) and "/usr/lib/wsl/lib" in setting.value:
        return
    yield Finding(
        code="ED113",
        component="libcuda.so",
        kind="missing",
        severity="warning",
        message="On WSL the loader knows libcuda.so.1 but no libcuda.so: what links with -lcuda at run time (Triton) does not find it.",
        evidence=context.evidence("driver.unversioned_libcuda", "driver.libcuda_path", "os.wsl"),
        sources=(Source("https://github.com/microsoft/WSL/issues/8587"),),
        remedies=(
            Remedy("Put the folder of the WSL driver on the loader's path.", ("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",), "safe"),
        ),
    )


def check_visible_devices(context: Context) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides devices or names some that do not exist.

    What it checks:
        An empty or negative value, an index beyond the last device, a device named twice, a UUID that no device has.

    Why it matters:
        CUDA uses the devices before the first entry that it cannot resolve, and none where that is the first one.

    How to fix:
        Name existing devices, or unset the variable.

    References:
        https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
    """
    setting = context.facts.variable("CUDA_VISIBLE_DEVICES")
    if not isinstance(setting, Known):
        return
    devices = context.facts.value("gpus")
    entries = [entry.strip() for entry in setting.value.split(",")]
    source = Source("https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables")
    evidence = (setting.evidence, *context.evidence("gpus"))
    needing = _needs_cuda(context)
    shown = setting.value if setting.value.strip() else "empty"
    if setting.value.strip() in ("", "-1", "NoDevFiles"):
        if devices and needing:
            yield Finding(
                code="ED114",
                component="CUDA_VISIBLE_DEVICES",
                kind="not-exposed",
                severity="warning",
                message=f"CUDA_VISIBLE_DEVICES is {shown}, which hides all {len(devices)} GPUs from {needing[0]}.",
                evidence=evidence,
                sources=(source,),
                remedies=(Remedy("Unset the variable, or name the devices to use.", ("unset CUDA_VISIBLE_DEVICES",), "safe"),),
            )
        return
    if devices is None or any(device.mig_mode for device in devices):
        return
    wrong = ""
    for place, entry in enumerate(entries):
        if entry.isdigit():
            if int(entry) >= len(devices):
                wrong = f"device {entry} of {len(devices)} (they count from 0)"
        elif entry.startswith("GPU-"):
            known = [device.uuid for device in devices if device.uuid]
            if len(known) == len(devices) and not any(uuid.startswith(entry) for uuid in known):
                wrong = f"{entry}, which no device has"
        if not wrong and entry in entries[:place]:
            wrong = f"device {entry} twice"
        if wrong:
            rest = "so CUDA finds no device" if place == 0 or "twice" in wrong else f"so CUDA uses only the {place} before it"
            yield Finding(
                code="ED114",
                component="CUDA_VISIBLE_DEVICES",
                kind="exceeds-gpu-count" if "twice" not in wrong else "unsupported",
                severity="error" if place == 0 and "twice" not in wrong else "warning",
                message=f"CUDA_VISIBLE_DEVICES={setting.value} names {wrong}, {rest}.",
                evidence=evidence,
                sources=(source,),
                remedies=(Remedy(f"Name devices from 0 to {max(len(devices) - 1, 0)}, each once.", (), "safe"),),
            )
            return


def check_cpu_build(context: Context) -> Iterator[Finding]:
    """A CPU build of torch on a machine with an NVIDIA GPU.

    What it checks:
        torch/version.py names no CUDA (and no ROCm) version, while NVIDIA devices are visible.

    Why it matters:
        torch.cuda.is_available() is False and everything runs on the CPU; engines that link against libtorch_cuda cannot be imported.

    How to fix:
        Install a CUDA build. On aarch64 the default index has CUDA builds from torch 2.11 on; before, they are on PyTorch's own.

    References:
        https://pytorch.org/get-started/locally/
    """
    devices = context.visible_gpus()
    if not devices or not isinstance(context.facts.get("torch.cuda"), (Absent, Unknown)):
        return
    version = context.facts.value("torch.version") or (context.distributions["torch"].version if "torch" in context.distributions else None)
    labelled = version is not None and version.endswith("+cpu")
    if isinstance(context.facts.get("torch.cuda"), Unknown) and not labelled:
        return
    if version is None or context.facts.value("torch.hip") is not None or "rocm" in version or "xpu" in version:
        return
    needing = [name for name in ("vllm", "sglang", "sgl-kernel", "flash-attn", "xformers") if name in context.distributions]
    yield Finding(
        code="ED120",
        component="torch",
        kind="arch-missing",
        severity="error" if needing else "warning",
        subject="cpu-build",
        message=f"torch {version} is a CPU build, but this machine has {_names(list(devices))}"
        + (f"; {needing[0]} needs a CUDA build." if needing else ": nothing will run on the GPU."),
        evidence=(*context.evidence("torch.version", "torch.cuda"), *context.installed("torch"), *context.evidence("gpus")),
        sources=(Source("https://pytorch.org/get-started/locally/"),),
        remedies=(Remedy("Install a CUDA build of the same torch release that the driver serves."),),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule("ED101", "image-newer-than-driver", "too-old", "The container image's CUDA is newer than the driver", check_image_driver),
    Rule("ED102", "minor-version", "too-old", "PTX of a newer CUDA minor than the driver's", check_minor_version),
    Rule(
        "ED103",
        "forward-compatibility",
        "forward-compat-unsupported",
        "cuda-compat cannot work on this GPU or driver (804)",
        check_forward_compatibility,
    ),
    Rule("ED104", "compat-shadows-driver", "shadowed", "cuda-compat in front of a driver that is not older (803)", check_compat_shadow),
    Rule("ED105", "driver-library-mismatch", "version-mismatch", "Driver libraries and kernel module differ (NVML 18)", check_user_space_driver),
    Rule("ED106", "fabric-manager", "version-mismatch", "Fabric Manager of another release, or not running (802)", check_fabric_manager),
    Rule("ED107", "driver-missing", "missing", "GPUs, but no NVIDIA driver loaded", check_driver_loaded),
    Rule("ED108", "gpu-not-exposed", "not-exposed", "The host's GPUs are not visible here", check_gpu_exposed),
    Rule("ED108", "driver-capabilities", "not-exposed", "NVIDIA_DRIVER_CAPABILITIES leaves out what compute needs", check_capabilities),
    Rule("ED108", "nvml-not-found", "missing", "NVML is not on the loader's path", check_nvml_found),
    Rule("ED110", "device-fault", "hardware-fault", "A GPU reports a fault", check_device_faults),
    Rule("ED111", "driver-settings", "unsupported", "Persistence mode and MIG", check_driver_settings),
    Rule("ED112", "peer-access", "p2p-blocked", "ACS or the IOMMU redirects peer traffic", check_peer_access),
    Rule("ED113", "unversioned-libcuda", "missing", "libcuda.so is missing on WSL", check_unversioned_libcuda),
    Rule("ED114", "visible-devices", "exceeds-gpu-count", "CUDA_VISIBLE_DEVICES hides or misnames devices", check_visible_devices),
    Rule("ED120", "generation-dropped", "arch-missing", "A build of a CUDA that no longer knows this GPU", check_generation_dropped),
    Rule("ED120", "cpu-build", "arch-missing", "A CPU build of torch on a GPU machine", check_cpu_build),
)
