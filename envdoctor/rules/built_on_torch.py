"""What mends a package that is compiled against another torch than the one that is here: which
release belongs to that one; and where that is a vendor's build, or a nightly, that no index's
release of the package was compiled against any release of it.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.facts import is_unindexed
from ..model.finding import Remedy
from ..model.versions import try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    from ..model.facts import Facts
    from ..model.finding import Finding

__all__ = ["ways_by_torch"]

#: What says that a compiled package does not fit torch, whichever the two are.
_ABOUT_TORCH = frozenset(["ED304", "ED401", "ED402", "ED410", "ED495"])
#: Rows that say it of two packages.
_ROWS = frozenset(["ED309", "ED490"])
#: Labels of builds that torch's own index has (https://download.pytorch.org/whl/).
_OF_TORCH_INDEX = ("rocm", "xpu")
#: What each release of torch has one of, that asks for exactly it.
_COMPANIONS = frozenset(["torchaudio", "torchvision", "xformers"])
#: What vendors' images bring beside their torch, built with it
#: (https://docs.nvidia.com/deeplearning/frameworks/pytorch-release-notes/).
_OF_IMAGES = frozenset(["apex", "flash-attn", "torchvision", "transformer-engine", "triton"])
#: What a source tree wants first, to be built against the torch that is there
#: (https://docs.vllm.ai/en/v0.8.5/getting_started/installation/gpu.html).
_FIRST = {"vllm": " after python use_existing_torch.py there"}


def ways_by_torch(finding: Finding, facts: Facts) -> Optional[Tuple[Remedy, ...]]:
    """Return what mends a package that was compiled against another torch, where what a finding
    says is for any torch; None where nothing is known of the torch, or the finding knows it.
    """
    torch = facts.value("distributions", {}).get("torch")
    name = _built(finding)
    if torch is None or not torch.version or not name or not finding.remedies:
        return None
    release, _, label = torch.version.partition("+")
    if is_unindexed(torch) and not label.startswith(_OF_TORCH_INDEX):
        return _ways_of_no_index(name, torch.version)
    if try_version(release) is None or finding.code != "ED495" or name not in _COMPANIONS:
        return None
    call = InstallerCall("install", (name, f"torch=={release}"), ("--upgrade",))
    return (Remedy(f"Install the {name} that belongs to torch {torch.version}.", (call,)),)


def _built(finding: Finding) -> str:
    """Return what a finding says to be compiled against another torch, "" where it says no such."""
    is_row = (
        finding.code in _ROWS and finding.kind == "abi-mismatch" and "torch" in finding.packages
    )
    if finding.code not in _ABOUT_TORCH and not is_row:
        return ""
    if finding.component == "glibc":
        return ""  # no build against torch mends it
    names = (finding.component, *finding.packages)
    return next((name for name in names if name not in ("python", "torch")), "")


def _ways_of_no_index(name: str, torch: str) -> Tuple[Remedy, ...]:
    version = try_version(torch)
    if version is not None and version.is_devrelease:
        return (
            Remedy(
                f"torch {torch} is a nightly build: install the {name} of the same day from its "
                "index, or build it from source, without build isolation."
            ),
        )
    source = f"build {name} from its source against it{_FIRST.get(name, '')}"
    kept = f"keep the {name} that came with it, or " if name in _OF_IMAGES else ""
    return (
        Remedy(
            f"torch {torch} is a build of no index, and no wheel of {name} is compiled against it: "
            f"{kept}{source}, without build isolation."
        ),
        Remedy(f"Or install {name} in an environment of its own, with the torch that it asks for."),
    )
