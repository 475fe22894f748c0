"""The day after which no release counts, and what is of another time than what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple

from ..errors import InputError
from ..model.versions import Version, try_version

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.request import Request, Root
    from ..model.resolution import Resolution

__all__ = ["check_date", "day_of", "much_newer", "of_its_time", "released_on"]

#: Days after a release within which its dependencies may have been released to count as of its
#: time: it was tested before it came out, and what it needed fixed came soon after (research: vllm
#: 0.8.5 with transformers of its month, 4.51.3, and of today, 5.23.0).
_GRACE = 30
_MUCH_NEWER = 365  # days


def of_its_time(as_of: Optional[str], matrix: Matrix) -> Callable[[Request], Request]:
    """Return what gives a request its as-of date; see :func:`.locking.lock`.

    What its maintainers tested counts like what it pins.
    """
    from ..model.request import Root

    def dated(request: Request) -> Request:
        tested = (Root(name, (), f"=={version}") for name, version in request.prefer.items())
        day, pinned = day_of(as_of, (*request.roots, *tested), matrix)
        return request._replace(as_of=day, of_the_time=bool(pinned))

    return dated


def day_of(
    as_of: Optional[str], roots: Sequence[Root], matrix: Matrix
) -> Tuple[Optional[str], str]:
    """Return the as-of date, and the pinned requirement that it follows from (empty where it is the
    user's own or there is none).
    """
    if as_of is None or as_of == "latest":
        return None, ""
    if as_of != "release":
        check_date(as_of)
        return as_of, ""
    dated = [
        (day, root.text)
        for root in roots
        if root.specifier.startswith("==")
        for day in [released_on(root.name, try_version(root.specifier.lstrip("=")), matrix)]
        if day
    ]
    if not dated:
        return None, ""
    newest, text = max(dated)
    day = _plus_days(newest, _GRACE)
    return (day, text) if day < str(matrix.date) else (None, "")


def released_on(name: str, version: Optional[Version], matrix: Matrix) -> Optional[str]:
    """Return the ISO date of a release, None where it is not known."""
    package = matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    return release.released if release is not None else None


def _plus_days(day: str, days: int) -> str:
    from datetime import date, timedelta

    return (date(*map(int, day.split("-"))) + timedelta(days)).isoformat()


def much_newer(resolution: Resolution, matrix: Matrix) -> List[str]:
    """Say where what is asked for is much older than what is taken with it: nobody has tested
    that.
    """
    asked = {root.name for root in resolution.request.roots}
    dated = [
        (day, pin)
        for pin in resolution.pins
        for day in [released_on(pin.name, pin.version, matrix)]
        if day
    ]
    old = max(((day, pin) for day, pin in dated if pin.name in asked), default=None)
    if old is None:
        return []
    limit = _plus_days(old[0], _MUCH_NEWER)
    newer = [pin for day, pin in dated if day > limit]
    if not newer:
        return []
    shown = ", ".join(f"{pin.name} {pin.version}" for pin in newer[:3]) + (
        " ..." if len(newer) > 3 else ""
    )
    advice = f"--as-of {_plus_days(old[0], _GRACE)} takes what there was then"
    return [
        (
            f"{old[1].name} {old[1].version} is of {old[0]}, but {shown} came more than a year "
            "later; "
            f"{advice}"
        )
    ]


def check_date(text: Optional[str]) -> None:
    """Raise :class:`InputError` for what is no ISO date; None is fine."""
    import time

    if text is None:
        return

    try:
        time.strptime(text, "%Y-%m-%d")
    except ValueError as error:
        raise InputError(f"--as-of: expected a date such as 2025-06-30, found {text!r}") from error
    if len(text) != 10:
        raise InputError(f"--as-of: expected a date such as 2025-06-30, found {text!r}")
