"""No child that crashes leaves a core file in somebody's folder; which limit it was started with
stays known to the probe that reports it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

__all__ = ["inherited_limit", "leave_no_core"]

_INHERITED: List[int] = []


def leave_no_core() -> None:
    """Have no crash of this process, a child, write a core file."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        # 1, not 0: core(5), a piped core_pattern ignores 0 but not 1.
        resource.setrlimit(resource.RLIMIT_CORE, (1, hard) if hard else (0, 0))
    except (ImportError, OSError, ValueError):
        return  # Debian's python3-minimal has no resource module
    if not _INHERITED:
        _INHERITED.append(soft)


def inherited_limit() -> Optional[int]:
    """Return the limit in bytes (-1: none) that this process had before it was to leave no core;
    None where it is as it was.
    """
    return _INHERITED[0] if _INHERITED else None
