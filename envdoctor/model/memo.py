"""``functools.lru_cache`` as far as this package needs it: importing functools costs 3 ms of each
start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Tuple, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["remembered"]

_NOTHING = object()


def remembered(most: int) -> Callable[[Function], Function]:
    """Return a decorator by which a function of hashable arguments remembers so many results; past
    that it begins anew.
    """

    def decorate(function: Any) -> Any:
        known: Dict[Tuple[Any, ...], Any] = {}

        def look_up(*arguments: Any) -> Any:
            found = known.get(arguments, _NOTHING)
            if found is _NOTHING:
                if len(known) >= most:
                    known.clear()
                found = known[arguments] = function(*arguments)
            return found

        look_up.__name__, look_up.__doc__, look_up.__module__ = (
            function.__name__,
            function.__doc__,
            function.__module__,
        )
        return look_up

    return decorate
