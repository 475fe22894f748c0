"""What a model keeps in memory, whatever trains it: the means to say it, and the terms of a model
that is only asked.
"""

from __future__ import annotations

import math
import re
from typing import List, Mapping, Optional, Tuple

from ...model.evidence import Known
from ...model.memory_plan import PHASES, MemoryTerm
from .inputs import Inputs, Role
from .pinned import SOURCE as PINNED
from .pinned import rounded_shards

__all__ = ["ALWAYS", "FSDP", "TRAINING", "Bounds", "ModelState", "width_text"]

FSDP = "verl/workers/fsdp_workers.py (EasyR1@v0.3.2, verl@8d9e350ea)"
ALWAYS = PHASES
TRAINING = ("update", "save")

Bounds = Tuple[float, float]

#: Bytes of what a quantised weight is stored in, with its scales (bitsandbytes: a block of 64 has
#: one fp32 scale, itself quantised or not); embedding, head and norms stay as they were.
_PACKED: Mapping[str, Bounds] = {"int4": (0.5, 0.6), "int8": (1.0, 1.1)}
#: Of a model that sees and whose tower nobody here knows: Qwen2-VL-2B's is 0.30 of it.
_LARGEST_TOWER = 0.35
#: The largest rank that vLLM has slots for (vllm/config/lora.py, MaxLoRARanks).
_LARGEST_RANK = 512
#: Moments that an optimizer keeps of each parameter, by how its name begins.
_COUNTS = {"adamw": 2, "one_moment": 1, "three_moments": 3}
#: Bytes of a moment, by how the name ends; without such an end they are the parameters' own. Of
#: quantised ones blocks of 128 to 2,048 share an fp32 scale.
_WIDTHS: Mapping[str, Bounds] = {
    "bf16": (2, 2),
    "fp32": (4, 4),
    "8bit": (1, 1.15),
    "4bit": (0.5, 0.65),
}
#: Rows and columns of each matrix in fp32, and what is no matrix.
_FACTORED: Bounds = (0, 0.1)
_STATE_NAME = re.compile(r"(paged_)?(adamw|one_moment|three_moments)(?:_(bf16|fp32|8bit|4bit))?")


class ModelState:
    """Collects the terms of one model: on one of its GPUs, and on the host of one node."""

    def __init__(self, inputs: Inputs, role: Role) -> None:
        self.inputs, self.role = inputs, role
        self.gpu: List[MemoryTerm] = []
        self.host: List[MemoryTerm] = []
        self.lora = inputs.lora(role.name) if role.trainable else 0

    def get(self, field: str) -> Optional[bool]:
        """Return a switch of this model, None where it is not known."""
        value = self.inputs.get(f"{self.role.name}.{field}")
        return None if value is None else bool(value)

    def add(
        self,
        place: List[MemoryTerm],
        name: str,
        per: Bounds,
        share: float,
        formula: str,
        source: str,
        phases: Tuple[str, ...],
        *fields: str,
        passing: bool = False,
    ) -> None:
        """Add ``per`` bytes for each parameter; of a model that may not be there only the upper
        bound.
        """
        size, role = self.role.size, self.role
        low = 0 if role.present is None else int(per[0] * size.low * share)
        known = tuple(f"{role.name}.{field}" for field in ("model", "strategy", *fields))
        if per[1] > 0:
            place.append(
                MemoryTerm(
                    name,
                    low,
                    int(per[1] * size.high * share),
                    formula,
                    source,
                    phases,
                    role.name,
                    self.inputs.used(*known),
                    passing=passing or name == "gradients",
                )
            )

    def trained(self, per: Bounds) -> Bounds:
        """Return bytes of what exists for trained parameters only: adapters have little of it, and
        where LoRA is not known it may be either, and below weights that are packed adapters of any
        rank.
        """
        if self.lora == 0:
            least, most = self._frozen_share()
            return (per[0] * (1 - most), per[1] * (1 - least))
        whole = self.lora is None and self._packing() is None
        return (0.0, per[1] if whole else per[1] * min(1.0, self.adapter_share()))

    def _frozen_share(self) -> Bounds:
        """Return the share of the parameters that a full update leaves as they are: the tower of
        images, where it is frozen or may be.
        """
        size, frozen = self.role.size, self.get("frozen_vision")
        if frozen is False:
            return 0.0, 0.0
        share = size.vision / size.high if size.high else 0.0
        if frozen and not size.vision and self.inputs.multimodal:
            return 0.0, _LARGEST_TOWER
        return (share if frozen else 0.0), share

    def moments(self, param: Bounds) -> Bounds:
        """Return the bytes of the optimizer's state: as it is named, in the type of the parameters
        where that says no other; of an optimizer that is not known that is the upper bound.
        """
        named = str(self.inputs.get(f"{self.role.name}.optimizer") or "")
        if named in ("none", "adafactor"):
            return (0, 0) if named == "none" else _FACTORED
        match = _STATE_NAME.fullmatch(named)
        if match is None:
            own = (2 * param[0], 2 * param[1])
            return own if named else (0.0, 8.0)  # two moments in fp32 are the most that is usual
        paged, kind, width = match.groups()
        each = _WIDTHS.get(width, param)
        low, high = (_COUNTS[kind] * one for one in each)
        if width == "8bit" and self.inputs.traits.embedding:
            high += _COUNTS[kind] * 3 * self._root_share()
        return self._projected((0 if paged else low, high))

    def _root_share(self) -> float:
        size = self.role.size
        return min(1.0, size.root / size.high) if size.vocabulary and size.high else 0.0

    def _projected(self, state: Bounds) -> Bounds:
        """Return the bytes of state that is kept at a rank: of a matrix the rank x its longer side
        for each moment, and a projector of the rank x the shorter one in fp32 at the most; of
        what is no linear layer all (GaLore, arXiv:2403.03507 section 4; APOLLO, arXiv:2412.05270).
        """
        rank, size = self.inputs.get(f"{self.role.name}.optimizer_rank"), self.role.size
        if not rank:
            return state
        if not size.adapted_width:
            return 0.0, state[1]
        share = rank * size.adapted_width / size.high
        most = share * (state[1] + 2) + self._root_share() * state[1]
        return min(state[0], state[0] * share / 2), min(state[1], most)

    def packed(self, plain: Bounds) -> Bounds:
        """Return the bytes of a weight: ``plain``, or what quantised weights below adapters take
        on the average of the model.
        """
        packed = self._packing()
        if packed is None or self.lora == 0:
            return plain
        size = self.role.size
        root = 0.0 if size.rough else self._root_share()
        most = min(size.root / size.low, 0.5) if size.vocabulary else 0.3
        return (
            packed[0] * (1 - root) + min(plain[0], 2) * root,
            packed[1] * (1 - most) + 4 * most,
        )

    def _packing(self) -> Optional[Bounds]:
        return _PACKED.get(str(self.inputs.get(f"{self.role.name}.quantization")))

    def freed(self, per: Bounds) -> Bounds:
        """Return the bytes of gradients: of one layer at a time where the optimizer steps inside
        of the backward pass.
        """
        inside = self.inputs.may(f"{self.role.name}.fused_backward")
        if inside is None:
            return (0.0, per[1])
        return (0.0, per[1] / 2) if inside else per

    def adapter_share(self) -> float:
        """Return adapters as a share of the model, where every linear layer has one; of a rank that
        is not known the largest that is usual.
        """
        size, rank = self.role.size, _LARGEST_RANK if self.lora is None else self.lora
        embeds = self.get("trains_embedding")
        embeds = self.lora is None if embeds is None else embeds
        whole = size.root / size.high if embeds else 0.0
        if not size.adapted_width:
            return (0.1 if self.lora is not None else 0.5) + whole
        side_by_side = int(self.inputs.get(f"{self.role.name}.adapters") or 1)
        # A magnitude for each output is less than one rank more.
        rank += self.inputs.may(f"{self.role.name}.dora") is not False
        return side_by_side * rank * size.adapted_width / size.high + whole

    def resident(
        self,
        name: str,
        per: Bounds,
        share: float,
        formula: str,
        source: str,
        offloaded: Optional[bool],
        *fields: str,
        load: bool = True,
    ) -> None:
        """Add what is on the GPU in training, and between phases where it is not offloaded."""
        self.add(
            self.gpu,
            name,
            per,
            share,
            formula,
            source,
            TRAINING,
            *fields,
            passing=offloaded is not False,
        )
        between = ("load", "rollout") if load else ("rollout",)
        if offloaded is not True:
            self.add(
                self.gpu,
                name,
                (per[0] if offloaded is False else 0, per[1]),
                share,
                formula,
                source,
                between,
                *fields,
            )

    def gathered(self, width: Bounds) -> None:
        """Weights that are gathered for a pass: a layer at a time, or all of them, which then stay
        from the forward to the backward pass, and behind a pass without gradients until the next.
        """
        kept = self.inputs.may(f"{self.role.name}.keeps_gathered")
        self._gathered_layer(is_sure=kept is False)
        if kept is False:
            return
        for phases, low in ((("update",), min(width[0], 2) if kept else 0), (("rollout",), 0)):
            self.add(
                self.gpu,
                "gathered weights",
                (low, width[1]),
                1,
                f"{width_text((min(width[0], 2), width[1]))} B x P stay until the backward pass",
                "PyTorch FSDP: ShardingStrategy.SHARD_GRAD_OP, reshard_after_forward=False",
                phases,
                "keeps_gathered",
                passing=True,
            )

    def _gathered_layer(self, *, is_sure: bool) -> None:
        """One layer at a time is whole on each GPU, in bf16, with the next one; so is the root.
        Experts that are spread over GPUs need not be gathered at all.
        """
        size, role = self.role.size, self.role
        if not size.layers:
            return
        layer = max(size.high - size.root, 0) // size.layers * (2 if size.rough else 1)
        stay = size.experts // size.layers if size.experts and self._spreads_experts() else 0
        self.gpu.append(
            MemoryTerm(
                "gathered layer",
                2 * max(layer - stay, 0) if is_sure and role.present and not size.rough else 0,
                2 * 3 * layer + 2 * 2 * size.root,
                "2 B x (one layer .. three layers, embedding and head, their gradients)",
                "PyTorch FSDP: limit_all_gathers, at most two all-gathers ahead",
                ("update",),
                role.name,
                self.inputs.used(f"{role.name}.model"),
                passing=True,
            )
        )

    def _spreads_experts(self) -> bool:
        """Tell whether experts lie on several GPUs, or may do so."""
        ways = self.inputs.workload.get(f"{self.role.name}.expert_parallel")
        return ways is not None and not (isinstance(ways, Known) and ways.value == 1)

    def add_trained(self) -> None:
        """Add what training keeps: of a strategy without a class nothing is known."""

    def add_frozen(self) -> None:
        """Add a model that is only asked: weights on its GPUs, or on the host where FSDP's
        CPUOffload keeps them.
        """
        role = self.role
        width = self.inputs.width(f"{role.name}.param_dtype", (2, 2))
        offloaded = self.get("cpu_offload")
        if offloaded is None:
            offloaded = self.get("offload_params")
        stays = role.strategy == "none"
        if offloaded is not True:
            self._frozen_on_gpu(width, is_sure=stays or offloaded is False)
        if offloaded is not False and not stays:
            self._frozen_on_host(width, is_sure=offloaded is True)
        if offloaded is True and role.strategy == "megatron":
            self._frozen_on_gpu(width, is_sure=False, visits=True)

    def _frozen_on_gpu(
        self, width: Tuple[int, int], *, is_sure: bool, visits: bool = False
    ) -> None:
        """Add weights on the GPU. visits: they come whole for each pass, and go again (verl's
        megatron_workers.py, load_megatron_model_to_gpu); FSDP's offload brings them by layers.
        """
        role = self.role
        is_spread = role.strategy in ("fsdp", "fsdp2", "zero3")
        ranks = role.ranks or 1 if is_spread else 1
        if role.strategy == "megatron":
            ranks = self.model_parallel()
        self.add(
            self.gpu,
            "weights",
            (width[0] if is_sure else 0, width[1]),
            1 / ranks,
            f"{width[1]} B x P" + (f" / {ranks} GPUs" if ranks > 1 else ""),
            FSDP,
            ("update",) if visits else ALWAYS,
            "cpu_offload",
            passing=visits,
        )
        if self.inputs.may(f"{role.name}.keeps_gathered") is not False and is_spread:
            self.gathered(width)

    def model_parallel(self) -> int:
        """Return the GPUs that Megatron cuts one copy of the model over."""
        sizes = (
            self.inputs.get(f"{self.role.name}.{name}")
            for name in ("tensor_parallel", "pipeline_parallel")
        )
        return math.prod(int(size or 1) for size in sizes)

    def _frozen_on_host(self, width: Tuple[int, int], *, is_sure: bool) -> None:
        role = self.role
        high = rounded_shards(role.size, max(role.ranks or 1, 1), width[1]) / role.size.high
        self.add(
            self.host,
            "reference model" if role.name == "ref" else "reward model",
            (width[0] if is_sure else 0, high),
            role.share,
            f"{width[1]} B x P, pinned shards rounded to powers of two",
            f"{FSDP}: CPUOffload of the reference; {PINNED}",
            ALWAYS,
            "cpu_offload",
        )


def width_text(per: Bounds) -> str:
    """Return bytes for each parameter as text, "2" or "2..4"."""
    return f"{per[0]:g}" if per[0] == per[1] else f"{per[0]:g}..{per[1]:g}"
