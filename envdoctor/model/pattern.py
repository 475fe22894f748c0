"""Regular expressions that are compiled at their first use.

A start compiles none of those that it does not need: all of them together cost 8 ms, of 60 that a
whole check may take.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, AnyStr, Tuple, Union

__all__ = ["UNSEEN", "pattern"]

#: The characters that no reader sees, or that turn the order of others round, as they stand in a
#: set of an expression: what Unicode ignores by default (DerivedCoreProperties.txt,
#: Default_Ignorable_Code_Point) but for the selectors of emoji, and every other format character.
UNSEEN = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

_METHODS = ("finditer", "findall", "fullmatch", "match", "search", "split", "sub", "subn")


def pattern(text: AnyStr, flags: Union[int, re.RegexFlag] = 0) -> re.Pattern[AnyStr]:
    """Return what ``re.compile`` would return, compiled when one of its methods is first asked for.

    For module level only. The object has a pattern's methods and is no pattern:
    ``re.sub(pattern(…), …)`` does not take it.
    """
    made: Any = _Pattern((text, flags))
    return made  # type: ignore[no-any-return]


class _Pattern:
    """Stands for a pattern; takes over its bound methods at the first call, so that later ones cost
    nothing more.
    """

    __slots__ = ("_given", *_METHODS)

    def __init__(self, given: Tuple[Any, Union[int, re.RegexFlag]]) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        import re

        compiled = re.compile(*self._given)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
