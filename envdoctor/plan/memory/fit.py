"""``plan --fit``: settings with which a run fits, each found by trying the levers on the plan.

One lever after the other is taken, the cheapest that solves most first, until nothing is short or
nothing helps. Texts are not made shorter: that changes what is trained.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ...errors import InputError
from ...model.evidence import Known
from ...model.facts import Facts
from ...model.memory_plan import VERDICTS, Lever, MemoryPlan
from ...model.workload import Workload
from .estimate import make_plan, sizes_of
from .levers import find_levers
from .setting_change import changed_by, fields_of_key

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["find_fit", "overrides_of", "pasted"]

_MOST_STEPS = 12
_LENGTHS = frozenset(
    ["data.max_prompt_length", "data.max_response_length", "rollout.max_model_len"]
)

#: Frameworks whose settings a command cannot state as ``key=value``: ROLL's starters take the name
#: of a file (examples/start_rlvr_pipeline.py), axolotl's command the file itself.
_READ_FILES = frozenset(["axolotl", "roll"])
#: Sections of the files that DeepSpeed and accelerate read.
_SECTIONS = ("zero_optimization.", "deepspeed_config.", "fsdp_config.", "data_types.")
_FILE = re.compile(r"(.+\.(?:ya?ml|toml|json)):\d+")


def find_fit(
    workload: Workload,
    facts: Optional[Facts],
    matrix: Matrix,
    configs: Mapping[str, Mapping[str, object]] = {},
) -> Tuple[Tuple[Lever, ...], MemoryPlan]:
    """Return the levers that were taken, and the plan with all of them."""
    taken: List[Lever] = []
    sizes = sizes_of(workload, matrix, configs)
    plan = make_plan(workload, sizes, facts, matrix)
    refused: Set[Tuple[str, ...]] = set()
    for _ in range(_MOST_STEPS):
        if plan.verdict == "fits":
            break
        step = _best(find_levers(workload, sizes, plan, facts, matrix), refused)
        if step is None:
            break
        refused.add(step.settings)
        try:
            changed = changed_by(workload, step.settings)
        except InputError:
            continue  # a switch that is there or is not has no form with a value
        after = make_plan(changed, sizes, facts, matrix)
        if after.verdict == "cannot tell" != plan.verdict:
            continue
        workload, plan = changed, after
        taken.append(step)
    return tuple(taken), plan


def overrides_of(levers: Sequence[Lever]) -> Tuple[str, ...]:
    """Return the settings of levers to paste; of a key that was set twice the last."""
    settings = (setting for lever in levers for setting in lever.settings)
    return tuple({setting.partition("=")[0]: setting for setting in settings}.values())


def pasted(workload: Workload, overrides: Sequence[str]) -> Tuple[str, ...]:
    """Return where settings go, in sentences: those that a command states, and those of each file
    that the framework reads them from.
    """
    by_file: Dict[str, List[str]] = {}
    for setting in overrides:
        by_file.setdefault(_file_of(workload, setting), []).append(setting)
    stated = by_file.pop("", [])
    return (
        *([f"To paste: {' '.join(stated)}"] if stated else []),
        *(
            f"In {file}: {', '.join(map(_as_entry, settings))}"
            for file, settings in by_file.items()
        ),
    )


def _as_entry(setting: str) -> str:
    """Return ``key=value`` as an entry of a file; the parts of a dotted key are its sections."""
    key, _, value = setting.partition("=")
    return f"{key}: {value.lower() if value in ('True', 'False') else value}"


def _file_of(workload: Workload, setting: str) -> str:
    """Return the file that a setting has to stand in; "" where a command may state it, or no file
    of the run is known.
    """
    key = setting.partition("=")[0]
    is_section = key.startswith(_SECTIONS)
    if not is_section and workload.value("framework") not in _READ_FILES:
        return ""
    own = _files(workload, [*fields_of_key(workload, key), *(["actor.strategy"] * is_section)])
    return next(iter(own or (_files(workload, []) if not is_section else [])), "")


def _files(workload: Workload, fields: Iterable[str]) -> List[str]:
    """Return the files that facts stand in, the one with most of them first; of no fields, of all
    that are known.
    """
    wanted = set(fields)
    places = [
        _FILE.fullmatch(fact.evidence.source)
        for field, fact in workload
        if isinstance(fact, Known) and (not wanted or field in wanted)
    ]
    return [file for file, _ in Counter(one.group(1) for one in places if one).most_common()]


def _best(levers: Sequence[Lever], refused: Set[Tuple[str, ...]]) -> Optional[Lever]:
    """Return the next lever: none that was tried in the same form, none that shortens texts."""
    open_to = [
        lever
        for lever in levers
        if not _LENGTHS.intersection(lever.fields) and lever.settings not in refused
    ]
    return min(
        open_to,
        key=lambda lever: (VERDICTS.index(lever.verdict), lever.cost, lever.after[1]),
        default=None,
    )
