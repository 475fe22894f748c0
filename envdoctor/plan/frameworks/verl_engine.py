"""How verl and its forks start the engine that generates: what of it their code decides, by the
releases of verl and vllm.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

from ...model.evidence import Evidence, Fact, Known, Unknown
from ...model.record import NamedTuple
from ...model.sizes import GIB
from .configuration import Configuration, at_least, boolean, decimal
from .serving import packed_as

__all__ = [
    "ROLLOUT",
    "EngineReader",
    "adapters_from",
    "quantized_as",
    "switched_off",
    "under",
]

ROLLOUT = "actor_rollout_ref.rollout"


def under(prefix: str, *names: str) -> Tuple[str, ...]:
    """Return the keys of one section."""
    return tuple(f"{prefix}.{name}" for name in names)


#: Ranks of adapters that vllm has slots for (vllm/config/lora.py, MaxLoRARanks).
_SLOT_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def quantized_as(value: Any) -> Optional[str]:
    """Return what an engine's weights are stored in by the name of a quantisation."""
    kind = packed_as(str(value))
    return "unknown" if kind == "none" else kind


def _spellings(name: str) -> Tuple[str, ...]:
    return under(ROLLOUT, f"engine_kwargs.vllm.{name}", f"engine_kwargs.{name}", name)


def switched_off(fact: Fact[Any]) -> Optional[Evidence]:
    """Return where a setting is switched off; None where it is on or not known."""
    return fact.evidence if isinstance(fact, Known) and not fact.value else None


def adapters_from(rank: Fact[Any]) -> Optional[Evidence]:
    """Return where LoRA adapters are asked for; None where they are not, or it is not known."""
    return rank.evidence if isinstance(rank, Known) and rank.value > 0 else None


class EngineReader(NamedTuple):
    """Fills in ``fields`` and ``keys`` of the engine.

    forked: the code is that of a fork, with vllm's third-party copy. old: it is of verl before 0.3;
    None where that is not known.
    """

    configuration: Configuration
    fields: Dict[str, Fact[Any]]
    keys: Dict[str, str]
    forked: bool
    old: Optional[bool]

    def read(self, vllm: Optional[str]) -> None:
        """Read everything. vllm: its release, where the run states one."""
        code = self._code("verl/workers/rollout, verl/third_party/vllm")
        undecided = Unknown("it depends on the version of verl and vllm")
        self.fields["rollout.utilization_of"] = undecided
        if self.forked:
            self.fields["rollout.utilization_of"] = Known("free", code)
        elif self.configuration.since("0.5.0"):
            self.fields["rollout.utilization_of"] = Known("total", code)
        engine = self.fields["rollout.engine"]
        is_vllm = not isinstance(engine, Known) or engine.value == "vllm"
        self.fields["rollout.cpu_weights"] = undecided
        if self.forked and is_vllm:
            self.fields["rollout.cpu_weights"] = Known(True, code)
        elif self.old is False:
            self.fields["rollout.cpu_weights"] = Known(False, code)
        self._read_swap_space()
        self._read_image_cache()
        if is_vllm and not self.forked:
            self._read_adapter_slots()
        # Level 2 since 0.6 with vllm 0.8.5 or newer (verl/third_party/vllm/__init__.py@v0.6.0:49),
        # which 0.6.1 asks for; 1 with adapters.
        self.keys["rollout.sleep_level"] = self.keys["rollout.free_cache_engine"]
        self.fields["rollout.sleep_level"] = self._sleep_level(vllm)

    def _code(self, place: str) -> Evidence:
        return Evidence(f"code of {self.configuration.span}", place)

    def _read_swap_space(self) -> None:
        names = _spellings("swap_space")
        # vllm 0.18 has none
        self.keys["rollout.swap_space"] = self._key(names, "0.6.0", "0.8.0")
        swap = self.configuration.get(*names, convert=decimal)
        if isinstance(swap, Known):
            fact: Fact[Any] = Known(int(swap.value * GIB), swap.evidence)
        elif self.forked:
            fact = Known(4 * GIB, Evidence("default of vllm 0.6.3", "swap_space"))
        else:
            fact = Unknown("vllm's own default: 4 GiB per GPU with the V0 engine, none with V1")
        self.fields["rollout.swap_space"] = fact

    def _read_image_cache(self) -> None:
        sizes = _spellings("mm_processor_cache_gb")
        switches = _spellings("disable_mm_preprocessor_cache")
        cache = self.configuration.get(*sizes, convert=decimal)
        disabled = self.configuration.get(*switches, convert=boolean)
        if isinstance(cache, Known):
            self.fields["rollout.mm_cache"] = Known(int(cache.value * GIB), cache.evidence)
        elif isinstance(disabled, Known) and disabled.value:
            self.fields["rollout.mm_cache"] = Known(0, disabled.evidence)
        self.keys["rollout.mm_cache"] = self._key(switches) or self._key(sizes, "0.6.1")

    def _read_adapter_slots(self) -> None:
        """Of LoRA the engine has room for one adapter, of the next rank that vllm has slots for,
        unless it is merged (vllm_rollout/utils.py, get_vllm_max_lora_rank).
        """
        merged = self.configuration.get("actor_rollout_ref.model.lora.merge", convert=boolean)
        rank = self.fields["actor.lora_rank"]
        place = adapters_from(rank)
        if place is None or not isinstance(rank, Known):
            return
        is_merged = isinstance(merged, Known) and merged.value
        slots = next((size for size in _SLOT_RANKS if size >= rank.value), rank.value)
        self.fields["rollout.adapters"] = Known(0 if is_merged else 1, place)
        self.fields["rollout.adapter_rank"] = Known(slots, place)

    def _key(self, names: Sequence[str], since: str = "", until: str = "") -> str:
        """Return the key of an engine's own setting: as the version lists it, else with "+" from
        ``since`` to before ``until``, else none.

        Hydra refuses a key that is not in the configuration unless it is added with "+";
        engine_kwargs.vllm is empty from 0.6.0 on (verl/trainer/config/rollout/rollout.yaml).
        Whether vllm has the setting goes by the vllm that the version is tested with.
        """
        configuration = self.configuration
        newest = configuration.versions[-1] if configuration.versions else ""
        known_key = configuration.key(*names)
        if known_key in configuration.given or newest in configuration.table.versions_of(known_key):
            return known_key
        if not since or not at_least(newest, since) or (until and at_least(newest, until)):
            return ""
        return f"+{names[0]}"

    def _sleep_level(self, vllm: Optional[str]) -> Fact[Any]:
        code = self._code("verl/third_party/vllm, verl/workers/rollout")
        if self.forked:
            return Known(0, code)  # the third-party vllm has no sleep mode
        since = self.configuration.since
        keeps_cache = switched_off(self.fields["rollout.free_cache_engine"])
        if keeps_cache is not None and since("0.5.0"):
            return Known(0, keeps_cache)
        if since("0.6.0") is False and self.old is False:
            return Known(1, code)
        adapters = self.fields["actor.lora_rank"]
        knows_vllm = vllm is not None or since("0.6.1")
        if since("0.6.0") and knows_vllm and not isinstance(adapters, Unknown):
            is_older = vllm is not None and not at_least(vllm, "0.8.5")
            return Known(1 if is_older or adapters_from(adapters) is not None else 2, code)
        return Unknown(
            "level 1 before verl 0.6, 2 from then on (1 with LoRA adapters, or vllm before 0.8.5)"
        )
