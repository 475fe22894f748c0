"""ED108 to ED123: the GPUs that a process sees, their health, and builds without code for them.

What follows from tables (the code in a build against a GPU) is a row of the matrix and not repeated
here.
"""

from __future__ import annotations

from ..model.evidence import Absent, Known, Unknown
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.sizes import whole_number
from ..model.versions import Version, parse_version, try_version
from .rule import Context, Rule, device_names, model_kinds, needs_cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional, Sequence, Tuple

    from ..matrix.tables import Capability
    from ..model.facts import Gpu

__all__ = ["RULES_HERE"]

_TOOLKIT = Source(
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
)
_MOUNTED_DRIVER = "/usr/local/nvidia/lib64"


_EXPOSE_GPUS = (
    Remedy(
        "Start the container with the GPUs: 'docker run --gpus all', '--device "
        "nvidia.com/gpu=all' for podman, 'nvidia.com/gpu' in Kubernetes, '--nv' for apptainer."
    ),
    Remedy(
        "On the host, check that the NVIDIA container toolkit is set up.",
        ("nvidia-ctk runtime configure --runtime=docker", "nvidia-smi"),
        "changes-host",
    ),
)

_CPU_BUILDS = Remedy(
    "Without an NVIDIA GPU install builds for the processor (torch from the index …/whl/cpu, vllm "
    "for its target cpu)."
)


def check_gpu_exposed(context: Context) -> Iterator[Finding]:
    """The GPUs of the host are not visible here.

    What it checks:
        A CUDA build of torch that sees no device although something shows that there are some: the
        host's kernel module, a container, NVIDIA_VISIBLE_DEVICES, NVIDIA_DRIVER_CAPABILITIES, GPUs
        that the report names.

    Why it matters:
        Engines fall back to the CPU or stop with "failed to infer device type" or "no CUDA GPUs are
        available".

    How to fix:
        Start the container with --gpus all (or the NVIDIA runtime, or a GPU resource request), with
        capabilities compute and utility.

    References:
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    needing = needs_cuda(context)
    if not needing:
        return
    finding = _runtime_told_to_hide(context, needing[0])
    if finding is None and _sees_no_gpu(context):
        finding = _gpus_missing(context, needing[0])
    if finding is not None:
        yield finding


def _runtime_told_to_hide(context: Context, needing: str) -> Optional[Finding]:
    """Judge an NVIDIA_VISIBLE_DEVICES that makes NVIDIA's container runtime expose nothing."""
    setting = context.facts.variable("NVIDIA_VISIBLE_DEVICES")
    if not isinstance(setting, Known) or context.facts.value("gpus"):
        return None
    value = setting.value.strip()
    if value not in ("", "void", "none"):
        return None
    if value == "" and context.facts.value("container.runtime") is None:
        return None  # empty outside a container means nothing
    return Finding(
        code="ED108",
        component="container-gpu",
        kind="not-exposed",
        severity="warning" if context.facts.value("driver.loaded") is not True else "error",
        message=f"NVIDIA_VISIBLE_DEVICES is {value or 'empty'}, so the NVIDIA runtime exposes no "
        f"GPU to this container, and {needing} finds none.",
        evidence=(setting.evidence, *context.evidence("container.runtime", "driver.loaded")),
        sources=(_TOOLKIT,),
        remedies=_EXPOSE_GPUS,
    )


def _sees_no_gpu(context: Context) -> bool:
    """Tell whether no device is visible, for no reason that another code stands for."""
    devices = context.facts.get("gpus")
    if not isinstance(devices, Absent) and not (isinstance(devices, Known) and not devices.value):
        return False
    available = context.facts.value("torch.cuda_available")
    if available is not False and context.facts.value("driver.exposed") is not False:
        return False
    if context.facts.value("driver.loaded") is False:
        return False  # ED107
    return context.facts.value("driver.init_error") in (None, 0, 100)  # others make cuInit fail


def _proof_of_gpus(context: Context) -> str:
    """Return in words how it is known that there are GPUs, "" where it is not."""
    expected = context.facts.value("gpus.expected")
    if expected:
        return f"the host has {', '.join(expected)}"
    if context.facts.value("driver.loaded") is True:
        return "the host's NVIDIA kernel module is loaded"
    if context.facts.value("container.gpus_requested") is True:
        return "GPUs were requested"
    return ""


def _gpus_missing(context: Context, needing: str) -> Optional[Finding]:
    """Judge a process that sees no GPU: an error only where there are some for certain."""
    proof = _proof_of_gpus(context)
    if (
        not proof
        and context.facts.value("container.runtime") is None
        and context.facts.value("torch.cuda_available") is None
    ):
        return None
    reason = proof or f"{needing} {'is a CUDA build' if needing == 'torch' else 'needs one'}"
    torch = context.facts.value("torch.version")
    tail = (
        ": either this machine has no NVIDIA GPU, and needs builds for its processor, or its GPUs "
        "are not exposed to this process."
    )
    return Finding(
        code="ED108",
        component="container-gpu",
        kind="not-exposed",
        severity="error" if proof else "warning",
        message=f"No GPU is visible here, although {reason}{f' (torch {torch})' if torch else ''}"
        + ("." if proof else tail),
        evidence=context.evidence(
            "gpus",
            "torch.cuda_available",
            "driver.exposed",
            "driver.loaded",
            "container.runtime",
            "gpus.expected",
        ),
        sources=(_TOOLKIT,),
        remedies=_EXPOSE_GPUS if proof else (_CPU_BUILDS, *_EXPOSE_GPUS),
    )


#: What compute needs, by the capability that mounts it into a container.
_LIBRARY_OF_CAPABILITY = {"compute": "libcuda", "utility": "libnvidia-ml"}


def check_capabilities(context: Context) -> Iterator[Finding]:
    """NVIDIA_DRIVER_CAPABILITIES leaves out what compute needs.

    What it checks:
        Whether the variable in a container names "compute" (libcuda) and "utility" (libnvidia-ml,
        nvidia-smi), or "all".

    Why it matters:
        Without compute there is no libcuda; without utility NVML is missing, which vLLM and others
        use to find the platform.

    How to fix:
        Set NVIDIA_DRIVER_CAPABILITIES=compute,utility when the container is started.

    References:
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    setting = context.facts.variable("NVIDIA_DRIVER_CAPABILITIES")
    if not isinstance(setting, Known) or not setting.value.strip() or not needs_cuda(context):
        return
    named = {part.strip() for part in setting.value.split(",")}
    lacking = [part for part in _LIBRARY_OF_CAPABILITY if part not in named]
    if "all" in named or not lacking or _has_driver_libraries(context):
        return
    libraries = " and no ".join(_LIBRARY_OF_CAPABILITY[part] for part in lacking)
    yield Finding(
        code="ED116",
        component="container-gpu",
        kind="not-exposed",
        severity="warning",
        subject="NVIDIA_DRIVER_CAPABILITIES",
        message=f"NVIDIA_DRIVER_CAPABILITIES={setting.value} lacks {' and '.join(lacking)}, so the "
        f"container gets no {libraries}.",
        evidence=(setting.evidence,),
        sources=(_TOOLKIT,),
        remedies=(
            Remedy(
                "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
                ("docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",),
            ),
        ),
    )


def _has_driver_libraries(context: Context) -> bool:
    """Tell whether libcuda and libnvidia-ml are there by another way."""
    fields = ("driver.libcuda_path", "driver.nvml_release")
    return all(context.facts.value(field) is not None for field in fields)


def check_nvml_found(context: Context) -> Iterator[Finding]:
    """NVML is not on the loader's path, although the driver works.

    What it checks:
        In a container whose platform mounts the driver at /usr/local/nvidia (GKE and other
        Kubernetes device plugins), whether LD_LIBRARY_PATH names /usr/local/nvidia/lib64, where
        NVML cannot be used or no device is listed.

    Why it matters:
        vLLM and others find their platform through NVML: "Failed to infer device type", although
        torch sees the GPU.

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
    if not (_driver_works(context) and _lacks_nvml(context) and _is_contained(context)):
        return
    yield Finding(
        code="ED117",
        component="libnvidia-ml",
        kind="missing",
        severity="warning",
        message="The driver works, but NVML (libnvidia-ml.so.1) is not found: LD_LIBRARY_PATH "
        f"is {setting.value}, without {_MOUNTED_DRIVER}, "
        "where Kubernetes platforms such as GKE mount the driver's libraries.",
        evidence=(
            setting.evidence,
            *context.evidence(
                "driver.nvml_error", "torch.cuda_available", "kubernetes.pod", "image.name"
            ),
        ),
        sources=(
            Source(
                "https://github.com/vllm-project/vllm/issues/19184",
                "LD_LIBRARY_PATH of the image no longer lists /usr/local/nvidia/lib64",
            ),
        ),
        remedies=(
            Remedy(
                "Put the mounted driver libraries back on the loader's path.",
                (
                    (
                        "export LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
                        ":$LD_LIBRARY_PATH"
                    ),
                ),
                "safe",
            ),
        ),
    )


def _driver_works(context: Context) -> bool:
    """Tell whether something has shown a driver; that nothing has is no sign of one."""
    return (
        context.facts.value("driver.loaded") is True
        or context.facts.value("driver.release") is not None
        or context.facts.value("torch.cuda_available") is True
    )


def _lacks_nvml(context: Context) -> bool:
    """Tell whether NVML said so itself, or torch reaches a driver that NVML does not show."""
    if "libnvidia-ml" in (context.facts.value("driver.nvml_error") or ""):
        return True
    return (
        context.facts.value("torch.cuda_available") is True
        and not context.facts.value("gpus")
        and context.facts.value("driver.release") is None
        and context.facts.value("driver.nvml_release") is None
    )


def _is_contained(context: Context) -> bool:
    return (
        context.facts.value("kubernetes.pod") is True
        or isinstance(context.facts.get("container.runtime"), Known)
        or context.facts.value("image.name") is not None
    )


class _DeviceFault(NamedTuple):
    severity: str
    what: str
    fix: str


_LOOK_FOR_XID = "Look for Xid 79 or 119 in the kernel log, then reset the GPU or reboot."


#: What NVML says of a device that is out of order, in lower case.
_NVML_FAULTS = (
    ("is lost", "a GPU has fallen off the bus"),
    ("requires reset", "a GPU needs a reset"),
    ("reset required", "a GPU needs a reset"),
)


_MEMORY_ERRORS = Source("https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html")


def check_device_faults(context: Context) -> Iterator[Finding]:
    """A device reports a fault.

    What it checks:
        Row remapping that failed or is waiting for a reset, uncorrected ECC errors, and NVML's
        answers "GPU is lost" and "reset required".

    Why it matters:
        Jobs die with Xid errors or "CUDA error: uncorrectable ECC error encountered"; a device with
        failed remapping has to be replaced.

    How to fix:
        Drain the node and reset the GPU; replace it where remapping failed.

    References:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
    """
    for index, device in enumerate(context.facts.value("gpus", ())):
        fault = _fault_of(device)
        if fault is None:
            continue
        reset = (f"nvidia-smi --gpu-reset -i {index}",) if fault.severity != "error" else ()
        yield Finding(
            code="ED110",
            component="gpu",
            kind="hardware-fault",
            severity=fault.severity,
            subject=device.uuid or device.pci_bus or f"index {index}",
            message=f"GPU {index} ({device.name or device.pci_bus or 'unknown model'}) reports a "
            f"fault: {fault.what}.",
            evidence=context.evidence("gpus"),
            sources=(_MEMORY_ERRORS,),
            remedies=(Remedy(fault.fix, reset, "changes-host"),),
        )
    yield from _nvml_fault(context)


def _nvml_fault(context: Context) -> Iterator[Finding]:
    error = context.facts.value("driver.nvml_error") or ""
    for sign, what in _NVML_FAULTS:
        if sign in error.lower():
            yield Finding(
                code="ED110",
                component="gpu",
                kind="hardware-fault",
                severity="error",
                subject="nvml",
                message=f"NVML reports that {what}: {error}.",
                evidence=context.evidence("driver.nvml_error"),
                sources=(_MEMORY_ERRORS,),
                remedies=(Remedy(_LOOK_FOR_XID, ("dmesg | grep -i xid",), "changes-host"),),
            )
            return


def _fault_of(device: Gpu) -> Optional[_DeviceFault]:
    """Return the gravest fault that a device reports, or None."""
    if device.fault:
        return _DeviceFault("error", device.fault, _LOOK_FOR_XID)
    if device.remapped_failed:
        fix = "Take the GPU out of service and have it replaced."
        return _DeviceFault("error", "row remapping failed", fix)
    if device.remapped_pending:
        fix = "Drain the node and reset the GPU."
        return _DeviceFault("warning", "row remapping is waiting for a reset", fix)
    count = device.ecc_uncorrected
    if count:
        fix = "Look for Xid 48, 63, 64, 94 or 95 in the kernel log, and reset the GPU."
        what = f"{count} uncorrected ECC error{'s' if count != 1 else ''} counted"
        return _DeviceFault("warning", what, fix)
    return None


def check_driver_settings(context: Context) -> Iterator[Finding]:
    """Driver settings that cost time or devices.

    What it checks:
        Persistence mode of data-centre GPUs, and MIG mode where several GPUs are to work together.

    Why it matters:
        Without persistence the driver initialises each GPU anew (some seconds per device and
        start). With MIG a process sees one slice only, and NCCL connects no slices.

    How to fix:
        Run nvidia-persistenced; switch MIG off where whole GPUs are wanted.

    References:
        https://docs.nvidia.com/deploy/driver-persistence/
    """
    kinds = model_kinds(context)
    idle = [
        device
        for device, kind in kinds
        if kind == "datacenter" and device.persistence_mode is False
    ]
    if idle:
        yield Finding(
            code="ED111",
            component="nvidia-driver",
            kind="unsupported",
            severity="advice",
            subject="persistence-mode",
            message=f"Persistence mode is off on {len(idle)} of {len(kinds)} GPUs "
            f"({device_names(idle)}), "
            "so the driver initialises them anew at each start.",
            evidence=context.evidence("gpus"),
            sources=(Source("https://docs.nvidia.com/deploy/driver-persistence/index.html"),),
            remedies=(
                Remedy(
                    "Run the persistence daemon.",
                    ("sudo systemctl enable --now nvidia-persistenced",),
                    "changes-host",
                ),
            ),
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
            message=f"MIG is on ({device_names(sliced)}) and tensor_parallel_size is {asked}: NCCL "
            "cannot connect MIG slices of one GPU.",
            evidence=context.evidence("gpus", "request"),
            sources=(
                Source(
                    "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html",
                    "no GPU to GPU P2P, and NCCL is not supported between instances",
                ),
            ),
            remedies=(
                Remedy(
                    "Use one slice per process, or switch MIG off.",
                    ("sudo nvidia-smi -mig 0",),
                    "changes-host",
                ),
            ),
        )


def check_peer_access(context: Context) -> Iterator[Finding]:
    """PCIe ACS or the IOMMU redirects traffic between GPUs.

    What it checks:
        Whether ACS or the IOMMU is known to redirect peer traffic, where several GPUs work
        together.

    Why it matters:
        Peer-to-peer copies go through the root complex: they are slow, return wrong data, or hang
        NCCL.

    How to fix:
        Switch ACS and the IOMMU off in the BIOS or on the kernel's command line; until then
        NCCL_P2P_DISABLE=1.

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
        sources=(
            Source(
                "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
                "PCI Access Control Services (ACS)",
            ),
        ),
        remedies=(
            Remedy(
                "Disable ACS and the IOMMU in the BIOS or on the kernel's command line "
                "(amd_iommu=off, intel_iommu=off, or iommu=pt).",
                (),
                "changes-host",
            ),
            Remedy(
                "Until then, keep NCCL from using peer-to-peer.",
                ("export NCCL_P2P_DISABLE=1",),
                "safe",
            ),
        ),
    )


_VISIBLE_DEVICES = Source(
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables"
)


def check_visible_devices(context: Context) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides devices or names some that do not exist.

    What it checks:
        An empty or negative value, an index beyond the last device, a device named twice, a UUID
        that no device has.

    Why it matters:
        CUDA uses the devices before the first entry that it cannot resolve, and none where that is
        the first one.

    How to fix:
        Name existing devices, or unset the variable.

    References:
        https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
    """
    setting = context.facts.variable("CUDA_VISIBLE_DEVICES")
    devices = context.facts.value("gpus")
    if not isinstance(setting, Known) or devices is None:
        return
    if setting.value.strip() in ("", "-1", "NoDevFiles"):
        finding = _all_hidden(context, setting, devices)
    elif any(device.mig_mode for device in devices):
        return
    else:
        finding = _first_misnamed(context, setting, devices)
    if finding is not None:
        yield finding


def _all_hidden(context: Context, setting: Known[str], devices: Sequence[Gpu]) -> Optional[Finding]:
    needing = needs_cuda(context)
    if not devices or not needing:
        return None
    return Finding(
        code="ED114",
        component="CUDA_VISIBLE_DEVICES",
        kind="not-exposed",
        severity="warning",
        message=f"CUDA_VISIBLE_DEVICES is {setting.value if setting.value.strip() else 'empty'}, "
        f"which hides all {len(devices)} GPUs from {needing[0]}.",
        evidence=(setting.evidence, *context.evidence("gpus")),
        sources=(_VISIBLE_DEVICES,),
        remedies=(
            Remedy(
                "Unset the variable, or name the devices to use.",
                ("unset CUDA_VISIBLE_DEVICES",),
                "safe",
            ),
        ),
    )


def _unresolved(entry: str, devices: Sequence[Gpu]) -> str:
    """Return in words why CUDA cannot resolve an entry, "" where it can."""
    number = whole_number(entry)
    if number is not None and number >= len(devices):
        return f"device {entry} of {len(devices)} (they count from 0)"
    uuids = [device.uuid for device in devices if device.uuid]
    if (
        entry.startswith("GPU-")
        and len(uuids) == len(devices)
        and not any(uuid.startswith(entry) for uuid in uuids)
    ):
        return f"{entry}, which no device has"
    return ""


def _first_misnamed(
    context: Context, setting: Known[str], devices: Sequence[Gpu]
) -> Optional[Finding]:
    """Judge the first entry that CUDA cannot resolve, or that stands there twice."""
    entries = [entry.strip() for entry in setting.value.split(",")]
    for place, entry in enumerate(entries):
        unresolved = _unresolved(entry, devices)
        if not unresolved and entry not in entries[:place]:
            continue
        none_left = bool(unresolved) and place == 0
        wrong = unresolved or f"device {entry} twice"
        rest = (
            "finds no device" if none_left or not unresolved else f"uses only the {place} before it"
        )
        return Finding(
            code="ED114",
            component="CUDA_VISIBLE_DEVICES",
            kind="exceeds-gpu-count" if unresolved else "unsupported",
            severity="error" if none_left else "warning",
            message=f"CUDA_VISIBLE_DEVICES={setting.value} names {wrong}, so CUDA {rest}.",
            evidence=(setting.evidence, *context.evidence("gpus")),
            sources=(_VISIBLE_DEVICES,),
            remedies=(
                Remedy(
                    f"Name devices from 0 to {max(len(devices) - 1, 0)}, each once.", (), "safe"
                ),
            ),
        )
    return None


def check_generation_dropped(context: Context) -> Iterator[Finding]:
    """The CUDA that torch is built with no longer supports this GPU.

    What it checks:
        The CUDA version of torch against the last CUDA that compiles for each visible GPU's compute
        capability, where the code in the build itself was not read. Where it was, rows of the
        matrix compare it with the GPU.

    Why it matters:
        A compiler that dropped a generation leaves neither machine code nor PTX for it: "no kernel
        image is available for execution on the device". CUDA 13 dropped Maxwell, Pascal and Volta.

    How to fix:
        Install a build for the last CUDA that supports the GPU, whatever the driver supports.

    References:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
    """
    return _generations_dropped(context, "ED120", ["torch"])


def check_package_generation_dropped(context: Context) -> Iterator[Finding]:
    """A package beside torch is built with a CUDA that no longer supports this GPU.

    What it checks:
        The CUDA version of vllm, sgl-kernel, flash-attn and xformers against the last CUDA that
        compiles for each visible GPU's compute capability, where the code in the build itself was
        not read. Where it was, rows of the matrix compare it with the GPU.

    Why it matters:
        "no kernel image is available for execution on the device", at the first kernel of this
        package, while torch itself may work.

    How to fix:
        Install a build for the last CUDA that supports the GPU, whatever the driver supports.

    References:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
    """
    names = ("vllm", "sgl-kernel", "sglang-kernel", "flash-attn", "xformers")
    return _generations_dropped(
        context, "ED121", [name for name in names if name in context.distributions]
    )


def _generations_dropped(context: Context, code: str, names: Sequence[str]) -> Iterator[Finding]:
    for device in context.visible_gpus():
        capability = _capability_of(context, device)
        last = try_version(capability.last_cuda) if capability is not None else None
        if capability is None or last is None:
            continue
        for name in names:
            cuda = _cuda_of_unread_build(context, name)
            if cuda is None or cuda.release[:2] <= last.release[:2]:
                continue
            sm = f"sm_{capability.capability.replace('.', '')}"
            yield Finding(
                code=code,
                component=name,
                kind="arch-missing",
                severity="error",
                subject=sm,
                message=f"{name} is built with CUDA {cuda}, which compiles no code for "
                f"{device.name or 'a GPU'} ({sm}, {capability.architecture}); the last CUDA that "
                f"does is {last}.",
                evidence=(*context.evidence("torch.cuda", "gpus"), *context.installed(name)),
                sources=(capability.source,),
                remedies=(Remedy(f"Install a build of {name} for CUDA {last} or older."),),
                packages=(name,),
            )


def _capability_of(context: Context, device: Gpu) -> Optional[Capability]:
    """Return what the matrix says of a device's compute capability, None where it is not known."""
    model = context.matrix.gpu(device.name, device.pci_id)
    number = device.compute_capability or (model.compute_capability if model is not None else None)
    return context.matrix.capabilities.get(number or "")


def _cuda_of_unread_build(context: Context, name: str) -> Optional[Version]:
    """Return the CUDA version of a build, None where the code in it was read: rows judge that."""
    if context.target.environment is None:
        return None
    attributes = context.target.environment(name).attributes
    if "code" in attributes:
        return None
    cuda = attributes.get("cuda")
    if not cuda and name == "torch":
        cuda = context.fact_version("torch.cuda")
    return cuda if isinstance(cuda, Version) else None


_NEED_CUDA_BUILDS = ("vllm", "sglang", "sgl-kernel", "flash-attn", "xformers")


def check_cpu_build(context: Context) -> Iterator[Finding]:
    """A CPU build of torch on a machine with an NVIDIA GPU.

    What it checks:
        torch/version.py names no CUDA (and no ROCm) version, while NVIDIA devices are visible.

    Why it matters:
        torch.cuda.is_available() is False and everything runs on the CPU; engines that link against
        libtorch_cuda cannot be imported.

    How to fix:
        Install a CUDA build. On aarch64 the default index has CUDA builds from torch 2.11 on;
        earlier ones are on PyTorch's own index.

    References:
        https://pytorch.org/get-started/locally/
    """
    devices = context.visible_gpus()
    version = _cpu_build(context) if devices else None
    if version is None:
        return
    needing = [name for name in _NEED_CUDA_BUILDS if name in context.distributions]
    consequence = (
        f"; {needing[0]} needs a CUDA build." if needing else ": nothing will run on the GPU."
    )
    yield Finding(
        code="ED123",
        component="torch",
        kind="arch-missing",
        severity="error" if needing else "warning",
        subject="cpu-build",
        message=f"torch {version} is a CPU build, but this machine has "
        f"{device_names(list(devices))}{consequence}",
        evidence=(
            *context.evidence("torch.version", "torch.cuda"),
            *context.installed("torch"),
            *context.evidence("gpus"),
        ),
        sources=(Source("https://pytorch.org/get-started/locally/"),),
        remedies=(
            Remedy("Install a CUDA build of the same torch release that the driver supports."),
        ),
        packages=("torch", *needing[:1]),
    )


def _cpu_build(context: Context) -> Optional[str]:
    """Return the version of a torch that is built for no GPU at all, or None."""
    cuda = context.facts.get("torch.cuda")
    version: Optional[str] = context.facts.value("torch.version")
    if not version and "torch" in context.distributions:
        version = context.distributions["torch"].version
    if isinstance(cuda, Known) or version is None:
        return None
    if isinstance(cuda, Unknown) and not version.endswith("+cpu"):
        return None
    if context.facts.value("torch.hip") is not None or "rocm" in version or "xpu" in version:
        return None
    return version


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED108",
        "gpu-not-exposed",
        "not-exposed",
        "The host's GPUs are not visible here",
        check_gpu_exposed,
    ),
    Rule(
        "ED116",
        "driver-capabilities",
        "not-exposed",
        "NVIDIA_DRIVER_CAPABILITIES leaves out what compute needs",
        check_capabilities,
    ),
    Rule(
        "ED117", "nvml-not-found", "missing", "NVML is not on the loader's path", check_nvml_found
    ),
    Rule("ED110", "device-fault", "hardware-fault", "A GPU reports a fault", check_device_faults),
    Rule(
        "ED111",
        "driver-settings",
        "unsupported",
        "Persistence mode is off, or MIG is on",
        check_driver_settings,
    ),
    Rule(
        "ED112",
        "peer-access",
        "p2p-blocked",
        "ACS or the IOMMU redirects peer traffic",
        check_peer_access,
    ),
    Rule(
        "ED114",
        "visible-devices",
        "exceeds-gpu-count",
        "CUDA_VISIBLE_DEVICES hides or misnames devices",
        check_visible_devices,
    ),
    Rule(
        "ED120",
        "generation-dropped",
        "arch-missing",
        "torch has no code for this GPU",
        check_generation_dropped,
    ),
    Rule(
        "ED121",
        "package-generation-dropped",
        "arch-missing",
        "A package beside torch has no code for this GPU",
        check_package_generation_dropped,
    ),
    Rule(
        "ED123",
        "cpu-build",
        "arch-missing",
        "A CPU build of torch on a GPU machine",
        check_cpu_build,
    ),
)
