"""ED102 to ED107, ED113, ED115: the NVIDIA driver, its libraries, cuda-compat, the Fabric Manager.

What follows from tables (a build's CUDA major or PTX against the driver, a GPU against a branch or
a build) is a row of the matrix and not repeated here.
"""

from __future__ import annotations

from ..matrix.derive import driver_branch, forward_compat_verdict
from ..model.evidence import Known
from ..model.finding import Finding, Remedy
from ..model.row import Source
from ..model.versions import Version, parse_version, try_version
from .images import compat_sources, image_cuda
from .rule import Context, Rule, device_names, model_kinds, needs_cuda, torch_cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional, Tuple

    from ..model.facts import Facts

__all__ = ["RULES_HERE", "gpu_sign"]

_FORWARD = Source(
    "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
    "forward compatibility is only for data-centre GPUs (and select NGC-ready RTX and Jetson "
    "boards) on the listed base branches",
)
_ERRORS = Source(
    "https://docs.nvidia.com/deploy/cuda-compatibility/index.html",
    "803: system driver mismatch; 804: compatibility not supported on device",
)
_FABRIC = Source(
    "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
    "the Fabric Manager has to be of the same release as the driver; CUDA initialisation fails "
    "with 802 while it does not run",
)

_PTX_HOLDERS = frozenset(
    [
        "vllm",
        "sgl-kernel",
        "sglang-kernel",
        "flash-attn",
        "xformers",
        "flashinfer-python",
        "flashinfer-jit-cache",
    ]
)


def _driver_cuda(context: Context) -> Optional[Version]:
    """Return the CUDA version that the kernel driver's own libcuda reports: by its branch, else as
    read where no compat hides it.
    """
    release = context.facts.value("driver.release")
    if isinstance(release, str):
        branch = context.matrix.driver_branches.get(driver_branch(release))
        if branch is not None:
            return try_version(branch.cuda)
    if context.facts.value("compat.path") is None:
        return context.fact_version("driver.cuda_version")
    return None


def check_image_driver(context: Context) -> Iterator[Finding]:
    """A container image whose CUDA is newer than the driver.

    What it checks:
        The CUDA version of the container image (CUDA_VERSION, the image's name) against the CUDA
        version of the kernel driver.

    Why it matters:
        An image of a newer CUDA major cannot start work on an older driver without cuda-compat.
        Within a major, minor-version compatibility carries a data-centre GPU; on a GeForce the
        image's cuda-compat is refused with error 804.

    How to fix:
        Update the host's driver, or take an image of the driver's CUDA version.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    driver = context.facts.value("driver.release")
    served = _driver_cuda(context)
    text, how, source = image_cuda(context)
    image = try_version(text)
    if driver is None or served is None or image is None or image <= served:
        return
    consumers = [device for device, kind in model_kinds(context) if kind in ("geforce", "mobile")]
    major = image.release[0] > served.release[0]
    if not major and not consumers:
        return
    verdict = forward_compat_verdict(context.facts, context.matrix)
    if verdict is True:
        return
    unit = f" on {device_names(consumers)}" if consumers else ""
    yield Finding(
        code="ED115",
        component="nvidia-driver",
        kind="too-old",
        severity="warning",
        message=f"Driver {driver} serves CUDA {served}, older than the image's CUDA {image}{unit} "
        f"({how}).",
        evidence=context.evidence("driver.release", "image.cuda_version", "image.name"),
        sources=(_FORWARD, source) if source is not None else (_FORWARD,),
        trust="reported" if source is not None else "established",
        remedies=(
            Remedy(
                f"Update the host's driver to a branch that reports CUDA {image} or newer.",
                (),
                "changes-host",
            ),
            Remedy(f"Or use an image built on CUDA {served} or older."),
        ),
    )


def check_minor_version(context: Context) -> Iterator[Finding]:
    """A build of a newer CUDA minor than the driver's runs by minor-version compatibility, PTX
    excepted.

    What it checks:
        The CUDA minor of torch's build against the newest one whose PTX the driver compiles, within
        one CUDA major.

    Why it matters:
        Machine code runs on any driver of the major, so this is no fault. But kernels that a
        package holds as PTX alone, or that are compiled at run time to PTX by the newer toolkit,
        fail: "the provided PTX was compiled with an unsupported toolchain".

    How to fix:
        Nothing while it works; else update the driver, use cuda-compat on a data-centre GPU, or
        builds of the driver's CUDA.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    cuda = torch_cuda(context)
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
        # Rows speak for what is known to hold PTX; a partial list without any of it leaves open
        # what else is there.
        severity="advice"
        if context.facts.value("distributions.complete")
        or _PTX_HOLDERS & set(context.distributions)
        else "warning",
        message=f"torch is built with CUDA {cuda}, driver {driver} compiles PTX up to CUDA {ptx}: "
        "machine code runs by minor-version compatibility, "
        "but a kernel that is only there as newer PTX fails.",
        evidence=context.evidence("torch.version", "torch.cuda", "driver.release"),
        sources=(
            Source(
                "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
                "PTX is not covered",
            ),
        ),
        remedies=(
            Remedy(
                "Where 'unsupported toolchain' appears: update the driver to one that reports "
                f"CUDA {cuda} or newer.",
                (),
                "changes-host",
            ),
            Remedy(f"Or install builds made with CUDA {ptx} or older."),
        ),
        packages=("torch",),
    )


def check_forward_compatibility(context: Context) -> Iterator[Finding]:
    """Forward compatibility is attempted where it cannot work (error 804).

    What it checks:
        A cuda-compat libcuda that the loader would take, or an image newer than the driver that
        brings one, against the class of each visible GPU.

    Why it matters:
        cuInit fails with 804, "forward compatibility was attempted on non supported HW", and no
        device is usable.

    How to fix:
        Update the host's driver, or remove cuda-compat from the loader's path, or use an image of
        the driver's CUDA version.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    driver = context.facts.value("driver.release")
    release = context.fact_version("compat.release")
    compat = context.facts.value("compat.cuda_version")
    consumers = [device for device, kind in model_kinds(context) if kind in ("geforce", "mobile")]
    refused = context.facts.value("driver.init_error") == 804
    remedies = (
        Remedy("Update the host's driver, so that cuda-compat is not needed.", (), "changes-host"),
        Remedy(
            "Or take cuda-compat out of the loader's path (LD_LIBRARY_PATH, /etc/ld.so.conf.d), "
            "and use builds of the driver's CUDA."
        ),
    )
    evidence = context.evidence(
        "compat.path",
        "compat.release",
        "compat.cuda_version",
        "driver.release",
        "driver.init_error",
        "gpus",
        "image.name",
    )
    if (
        driver is not None
        and release is not None
        and parse_version(str(release)) <= (try_version(driver) or parse_version("0"))
    ):
        return  # the driver is not older: ED104
    if compat is not None or release is not None or refused:
        named = context.facts.value("compat.release")
        shown = f"cuda-compat{f' {named}' if named else ''}{f' (CUDA {compat})' if compat else ''}"
        if consumers:
            reason = f"{device_names(consumers)} is not a data-centre GPU"
        elif refused:
            reason = "cuInit answered 804"
        else:
            return
        yield Finding(
            code="ED103",
            component="cuda-compat",
            kind="forward-compat-unsupported",
            severity="error",
            message=f"{shown} cannot work here: {reason}, so CUDA initialisation fails with error "
            "804.",
            evidence=evidence,
            sources=(_FORWARD, _ERRORS),
            remedies=remedies,
        )
        return
    # An image that brings cuda-compat and is newer than the driver: NVIDIA's framework images and
    # those on nvidia/cuda do.
    served = _driver_cuda(context)
    text, _, _ = image_cuda(context)
    image = try_version(text)
    if consumers and served is not None and image is not None and image > served:
        yield Finding(
            code="ED103",
            component="cuda-compat",
            kind="forward-compat-unsupported",
            severity="warning",
            message=f"The image's cuda-compat for CUDA {image} cannot lift driver {driver} (CUDA "
            f"{served}) on {device_names(consumers)}, "
            "which is not a data-centre GPU: "
            "where it is loaded, CUDA initialisation fails with error 804.",
            evidence=evidence,
            sources=(_FORWARD,),
            remedies=remedies,
        )


def check_compat_shadow(context: Context) -> Iterator[Finding]:
    """A cuda-compat libcuda that is not newer than the driver lies in front of the driver's own
    (error 803).

    What it checks:
        The release (or the CUDA version) of the cuda-compat library that the loader would take
        against the kernel driver's.

    Why it matters:
        libcuda and kernel module have to be of one release unless compat is the newer one: cuInit
        fails with 803, or the environment runs with an older libcuda than the driver brings.

    How to fix:
        Take the compat folder out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, or use an image that is
        newer than the driver.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    path = context.facts.value("compat.path")
    release = context.fact_version("compat.release")
    driver = context.fact_version("driver.release")
    # As written: 575.57.08 is a release, 575.57.8 its order.
    shown_release, shown_driver = (
        context.facts.value("compat.release"),
        context.facts.value("driver.release"),
    )
    refused = context.facts.value("driver.init_error") == 803
    loaded = context.facts.value("driver.libcuda_path")
    if loaded is not None and path is not None and "compat" not in loaded and not refused:
        return  # another copy wins, so this one only lies there
    image_sources = compat_sources(context)
    if path is None and release is None and not refused and not image_sources:
        return
    served = _driver_cuda(context)
    compat_text = context.facts.value("compat.cuda_version")
    how = ""
    if compat_text is None:
        compat_text, how, _ = image_cuda(context)
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
        why = (
            f"cuda-compat for CUDA {compat}{f' ({how})' if how else ''} is not newer than driver "
            f"{shown_driver} (CUDA {served})"
        )
    elif refused:
        why = "cuInit answered 803: libcuda and the kernel driver do not match"
    else:
        return
    where = (
        path
        or context.facts.value("driver.libcuda_path")
        or ("The image's cuda-compat" if image_sources else "A cuda-compat")
    )
    yield Finding(
        code="ED104",
        component="libcuda",
        kind="shadowed",
        severity="error" if certain or refused else "warning",
        message=f"{where} {'is' if certain or refused else 'may be'} loaded in place of the "
        f"driver's own libcuda, but {why}: "
        "CUDA initialisation fails with error 803.",
        evidence=context.evidence(
            "compat.path",
            "compat.release",
            "compat.cuda_version",
            "driver.libcuda_path",
            "driver.release",
            "driver.init_error",
            "image.name",
        ),
        sources=(_FORWARD, _ERRORS, *image_sources),
        remedies=(
            Remedy(
                "Take the cuda-compat folder out of the loader's path: the driver's own libcuda is "
                "the newer one.",
                ("rm -f /etc/ld.so.conf.d/*compat*.conf && ldconfig",),
                "changes-host",
            ),
            Remedy(
                "Or, where LD_LIBRARY_PATH names it, remove that entry; or use an image that is "
                "newer than the driver."
            ),
        ),
    )


def check_user_space_driver(context: Context) -> Iterator[Finding]:
    """The driver's libraries are of another release than the kernel module (NVML 18,
    "Driver/library version mismatch").

    What it checks:
        The releases of libnvidia-ml and libcuda against the release of the loaded kernel module.

    Why it matters:
        Every call into the driver is refused until both are of one release: nvidia-smi and CUDA
        fail.

    How to fix:
        After an upgrade, reload the kernel module or reboot. In a container, remove driver
        libraries that the image ships itself.

    References:
        https://github.com/NVIDIA/nvidia-docker/issues/584
    """
    if context.facts.value("os.wsl"):
        return  # the libraries belong to the Windows driver and name no release
    module = context.fact_version("driver.release")
    source = Source(
        "https://github.com/NVIDIA/nvidia-docker/issues/584",
        "Failed to initialize NVML: Driver/library version mismatch",
    )
    remedies = (
        Remedy(
            "Reboot, or stop all users of the GPUs and reload the kernel module.",
            ("sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia",),
            "changes-host",
        ),
        Remedy(
            "In a container: remove libnvidia-ml and libcuda that the image ships itself, and "
            "driver folders from LD_LIBRARY_PATH."
        ),
    )
    for field, library in (
        ("driver.nvml_release", "libnvidia-ml"),
        ("driver.libcuda_release", "libcuda"),
    ):
        user = context.fact_version(field)
        if (
            user is None
            or module is None
            or user == module
            or context.evidence(field)[0].source == context.evidence("driver.release")[0].source
        ):
            continue
        path = context.facts.value("driver.libcuda_path") or ""
        if library == "libcuda" and (
            context.facts.value("compat.path") is not None or "compat" in path
        ):
            continue  # meant to differ: ED103 and ED104
        newer = (
            "the driver was upgraded without reloading the kernel module"
            if user > module
            else "an older copy of the library is in front"
        )
        yield Finding(
            code="ED105",
            component="nvidia-driver",
            kind="version-mismatch",
            severity="error",
            message=f"{library} is of driver release {context.facts.value(field)}, the loaded "
            "kernel module of "
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
            message=(
                f"NVML refuses to start ({error}): the library is of another driver release "
                "than the loaded kernel module"
            )
            + (f" {context.facts.value('driver.release')}." if module else "."),
            evidence=context.evidence("driver.nvml_error", "driver.release"),
            sources=(source,),
            remedies=remedies,
        )


def check_fabric_manager(context: Context) -> Iterator[Finding]:
    """The Fabric Manager is of another release than the driver, or does not run (error 802).

    What it checks:
        The release of nvidia-fabricmanager against the driver's, whether it runs, and the fabric
        state of each GPU.

    Why it matters:
        On NVSwitch systems (HGX, DGX) CUDA initialisation fails with 802, "system not yet
        initialized", until the Fabric Manager has set up the fabric; it refuses to start with
        another driver release than its own.

    How to fix:
        Install the nvidia-fabricmanager package of exactly the driver's release, then enable and
        start it.

    References:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    """
    manager = context.facts.value("driver.fabric_manager")
    driver = context.facts.value("driver.release")
    devices = context.visible_gpus()
    states = {device.fabric_state for device in devices if device.fabric_state is not None}
    without_fabric = bool(devices) and (
        (bool(states) and states <= {"not supported"})
        or all(
            kind in ("geforce", "mobile", "workstation", "jetson")
            for _, kind in model_kinds(context)
        )
    )
    refused = context.facts.value("driver.init_error") == 802
    evidence = context.evidence(
        "driver.fabric_manager",
        "driver.fabric_manager_running",
        "driver.release",
        "driver.init_error",
        "gpus",
    )
    mine, its = try_version(driver), try_version(manager)
    if mine is not None and its is not None and mine != its:
        yield Finding(
            code="ED106",
            component="nvidia-fabricmanager",
            kind="version-mismatch",
            severity="advice" if without_fabric else "error",
            message=(
                f"nvidia-fabricmanager {manager} is not of the driver's release {driver}, so "
                "it refuses to start"
            )
            + (
                "; this machine has no NVSwitch that would need it."
                if without_fabric
                else " and CUDA on NVSwitch systems fails with error 802."
            ),
            evidence=evidence,
            sources=(_FABRIC,),
            remedies=(
                Remedy(
                    f"Install nvidia-fabricmanager of release {driver}, and start it.",
                    (
                        (
                            "sudo apt-get install "
                            f"nvidia-fabricmanager-{driver_branch(str(driver))}={driver}-1"
                        ),
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
    sign = (
        "CUDA initialisation answers 802"
        if refused
        else f"the fabric state of the GPUs is {' and '.join(pending)}"
    )
    yield Finding(
        code="ED106",
        component="nvidia-fabricmanager",
        kind="missing",
        severity="error" if refused else "warning",
        message=f"The Fabric Manager {what}: {sign}, so the GPUs of this NVSwitch system cannot be "
        f"used{'' if refused else ' yet'}.",
        evidence=evidence,
        sources=(_FABRIC,),
        remedies=(
            Remedy(
                f"Start the Fabric Manager{f' of release {driver}' if driver else ''} and look "
                "into its log.",
                (
                    "sudo systemctl enable --now nvidia-fabricmanager",
                    "journalctl -u nvidia-fabricmanager",
                ),
                "changes-host",
            ),
        ),
    )


def gpu_sign(facts: Facts) -> str:
    """Return what tells that an NVIDIA GPU is meant to be used although no driver shows one; "" on
    what may be a CPU machine.
    """
    if facts.value("driver.nouveau") is True:
        return "nouveau drives the GPU"
    expected = facts.value("gpus.expected")
    if expected:
        return f"the machine has {', '.join(expected)}"
    return "a GPU was asked for" if facts.value("container.gpus_requested") is True else ""


def check_driver_loaded(context: Context) -> Iterator[Finding]:
    """There are NVIDIA GPUs, but no NVIDIA driver is loaded.

    What it checks:
        Whether the kernel module is loaded, where GPUs are known to be in the machine: nouveau
        drives one, a GPU was asked for, or the report names one.

    Why it matters:
        Without the module there is no device for CUDA. A machine without any sign of a GPU is a CPU
        machine and no fault.

    How to fix:
        Install the driver, blacklist nouveau, rebuild the DKMS module for the running kernel, or
        sign it for Secure Boot.

    References:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    if (
        context.facts.value("driver.loaded") is not False
        or context.facts.value("driver.release") is not None
        or context.facts.value("gpus")
    ):
        return
    sign = gpu_sign(context.facts)
    if not sign:
        return
    needing = needs_cuda(context)
    yield Finding(
        code="ED107",
        component="nvidia-driver",
        kind="missing",
        severity="error" if needing else "warning",
        message=f"The NVIDIA kernel module is not loaded, although {sign}"
        + (f"; {needing[0]} finds no CUDA device." if needing else "."),
        evidence=context.evidence(
            "driver.loaded", "driver.nouveau", "gpus.expected", "container.gpus_requested"
        ),
        sources=(Source("https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"),),
        remedies=(
            Remedy(
                "Blacklist nouveau, install the NVIDIA driver and reboot."
                if context.facts.value("driver.nouveau") is True
                else "Install the NVIDIA driver on the host, or load its module.",
                ("sudo modprobe nvidia",),
                "changes-host",
            ),
        ),
    )


def check_unversioned_libcuda(context: Context) -> Iterator[Finding]:
    """Only libcuda.so.1 is found, not libcuda.so (WSL).

    What it checks:
        On WSL, whether the linker finds a libcuda.so without version suffix.

    Why it matters:
        Triton and what else links with -lcuda at run time fail with "libcuda.so cannot be found" or
        "cannot find -lcuda".

    How to fix:
        Add /usr/lib/wsl/lib to LD_LIBRARY_PATH, or make the link.

    References:
        https://github.com/microsoft/WSL/issues/8587
    """
    wsl = context.facts.value("os.wsl") is True or "/wsl/" in (
        context.facts.value("driver.libcuda_path") or ""
    )
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
        message="On WSL the loader knows libcuda.so.1 but no libcuda.so: what links with -lcuda at "
        "run time (Triton) does not find it.",
        evidence=context.evidence("driver.unversioned_libcuda", "driver.libcuda_path", "os.wsl"),
        sources=(Source("https://github.com/microsoft/WSL/issues/8587"),),
        remedies=(
            Remedy(
                "Put the folder of the WSL driver on the loader's path.",
                ("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",),
                "safe",
            ),
        ),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED115",
        "image-newer-than-driver",
        "too-old",
        "The container image's CUDA is newer than the driver",
        check_image_driver,
    ),
    Rule(
        "ED102",
        "minor-version",
        "too-old",
        "PTX of a newer CUDA minor than the driver's",
        check_minor_version,
    ),
    Rule(
        "ED103",
        "forward-compatibility",
        "forward-compat-unsupported",
        "cuda-compat cannot work on this GPU or driver (804)",
        check_forward_compatibility,
    ),
    Rule(
        "ED104",
        "compat-shadows-driver",
        "shadowed",
        "cuda-compat in front of a driver that is not older (803)",
        check_compat_shadow,
    ),
    Rule(
        "ED105",
        "driver-library-mismatch",
        "version-mismatch",
        "Driver libraries and kernel module differ (NVML 18)",
        check_user_space_driver,
    ),
    Rule(
        "ED106",
        "fabric-manager",
        "version-mismatch",
        "Fabric Manager of another release, or not running (802)",
        check_fabric_manager,
    ),
    Rule(
        "ED107",
        "driver-missing",
        "missing",
        "GPUs, but no NVIDIA driver loaded",
        check_driver_loaded,
    ),
    Rule(
        "ED113",
        "unversioned-libcuda",
        "missing",
        "libcuda.so is missing on WSL",
        check_unversioned_libcuda,
    ),
)
