"""Changing one setting of a workload, in the framework's own words or in ours, and what becomes of
the plan.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

from ...errors import InputError, suggest
from ...model.evidence import Evidence, Known
from ...model.sizes import GIB, parse_size
from ...model.workload import WORKLOAD_FIELDS, Workload
from .state import STRATEGIES

__all__ = ["change_workload", "setting_text", "spelled", "with_values"]

#: Byte fields that the frameworks themselves count in GiB.
_IN_GIB = frozenset(["rollout.swap_space", "rollout.mm_cache"])
#: A key that says true where its field, a size, is 0.
_OPPOSITE = "disable_mm_preprocessor_cache"
_TRUE = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def spelled(field: str, value: Any) -> str:
    """Return a value as the framework's key takes it."""
    if field in _IN_GIB and isinstance(value, int):
        return f"{value / GIB:g}"
    if field.endswith(".strategy") and str(value).startswith("zero"):
        return str(value)[4:]  # --zero_stage 3
    return str(value)


def setting_text(workload: Workload, field: str, value: Any) -> str:
    """Return a setting as one writes it for the framework: ``key=value``, or a switch of argparse
    that is there or is left out.
    """
    key = workload.key_of(field)
    if key.endswith(_OPPOSITE):
        return f"{key}={value == 0}"
    if (
        workload.value("framework") == "openrlhf"
        and isinstance(value, bool)
        and key.startswith("--")
    ):
        return key if value else f"no {key}"
    return f"{key}={spelled(field, value)}"


def change_workload(workload: Workload, text: str) -> Tuple[Workload, str]:
    """Apply ``key=value`` and return the new workload and the field that it sets.

    The key is the framework's own or one of ``WORKLOAD_FIELDS``. Raises :class:`InputError` where
    it is neither, or the value is none.
    """
    key, equals, value = text.strip().partition("=")
    key, value = key.strip(), value.strip().strip("\"'")
    if key.startswith("export "):
        raise InputError(
            f"--what-if {text}: the shell refuses this ('{key[7:]}' is not a valid identifier); "
            f"give '{key[7:]}={value}' as an argument"
        )
    if not equals or not key:
        raise InputError(f"--what-if {text}: expected KEY=VALUE, such as rollout.swap_space=4")
    key = key.lstrip("+~-").replace(" ", "")
    if key.endswith(_OPPOSITE) and value.lower() in _TRUE:
        value = "0" if _TRUE[value.lower()] else "4"  # GiB, vllm's default from 0.8.3 on
    own: Dict[str, str] = {}
    for field, name in workload.keys.items():
        if name:
            own.setdefault(_plain(name), field)
    fields = [
        field for field, name in workload.keys.items() if name and _plain(name) == _plain(key)
    ] or [field for field in WORKLOAD_FIELDS if field == key]
    if not fields:
        words = [name for name in workload.keys.values() if name]
        hint = suggest(key, [*words, *WORKLOAD_FIELDS], 0.5, 2)
        framework = workload.value("framework", "this framework")
        raise InputError(
            f"--what-if {text}: {framework} has no key '{key}' that memory depends on{hint}"
        )
    evidence = Evidence("--what-if", f"{key}={value}")
    stated = key not in WORKLOAD_FIELDS or key in workload.keys.values()
    values: Dict[str, Any] = {}
    for field in fields:
        if field == "rollout.sleep_level" and len(fields) > 1 and value.lower() in _TRUE:
            asleep = 1 if workload.value("rollout.cpu_weights") is not True else 0
            values[field] = asleep if _TRUE[value.lower()] else 0
        else:
            values[field] = _parsed(field, value, text, stated)
    return with_values(workload, values, evidence), fields[0]


def _plain(name: str) -> str:
    return name.lstrip("+~-").replace("-", "_").lower()


def _parsed(field: str, value: str, text: str, own_key: bool) -> Any:
    kind = WORKLOAD_FIELDS[field].type
    if kind == "bool":
        if value.lower() not in _TRUE:
            raise InputError(f"--what-if {text}: expected true or false, found {value!r}")
        return _TRUE[value.lower()]
    if kind == "float":
        try:
            number = float(value)
        except ValueError:
            raise InputError(f"--what-if {text}: expected a number, found {value!r}") from None
        if "utilization" in field and not 0 < number <= 1:
            raise InputError(
                f"--what-if {text}: expected a share above 0 and up to 1, found {value!r}"
            )
        return number
    if kind == "int":
        size = parse_size(value, binary=True)
        if size is None:
            raise InputError(f"--what-if {text}: expected a number, found {value!r}")
        in_gib = field in _IN_GIB and (own_key or size < 1 << 20)
        return parse_size(value, binary=True, unit=GIB if in_gib else 1)
    if field.endswith(".strategy"):
        value = f"zero{value}" if value.isdecimal() else value.lower()
        if value not in STRATEGIES:
            raise InputError(
                f"--what-if {text}: expected one of {', '.join(STRATEGIES)}, found {value!r}"
            )
    return value


def with_values(workload: Workload, values: Mapping[str, Any], place: Evidence) -> Workload:
    """Return the workload with these fields set."""
    return workload.updated({field: Known(value, place) for field, value in values.items()})
