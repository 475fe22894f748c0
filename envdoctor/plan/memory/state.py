"""What a trainer keeps of each model: weights, gradients, master weights, optimizer; on the GPU
and, offloaded, on the host.

Bytes for each parameter (P) and how they are spread (N ranks):

* mixed precision with Adam: 2 + 2 + 12 (arXiv:1910.02054, section 3); ZeRO-1, 2, 3 spread 12, 14
  and 16 of them.
* DeepSpeed adds fp32 gradients (4): 2 P + 18 P/N for ZeRO-2
  (deepspeed/runtime/zero/stage_1_and_2.py@edaa72212, line 3081).
* FSDP keeps its parameters in one type and the gradients and Adam's moments in the same: 16 P/N in
  fp32, 8 P/N in bf16 (verl and EasyR1, fsdp_workers.py); offloaded are parameters and moments, 12
  P/N (6 P/N), pinned and so rounded (:mod:`.pinned`).
* DeepSpeed's Adam on the CPU, ZeRO-1 and 2: master weights, two moments and fp32 gradients, 16 P,
  whatever ``grad_accum_dtype`` is (the gradients on the host have the type of the master weights:
  initialize_optimizer_states in stage_1_and_2.py@v0.12.6:635, @v0.13.2:670, @edaa72212:840).
  Between passes of one step the sums of the gradients lie there too, in the type of the weights, 2
  P (async_accumulate_grad_in_cpu_via_gpu); from 0.17.0 on a bf16 copy of the weights, 2 P
  (@17c8be070).
* ZeRO-3: the same 16 P (initialize_optimizer_states in stage3.py), and the sums of the gradients in
  grad_accum_dtype, 2 or 4 P (grad_partitions_flat_buffer, stage3.py@v0.13.2:500); parameters are 2
  P more. The upper bound is DeepSpeed's own: 16 P and 18 P with parameters, and half as much again
  in buffers (stage3.py@edaa72212, line 3744).
"""

from __future__ import annotations

import math
from typing import List, Mapping, Optional, Tuple

from ...model.memory_plan import PHASES, MemoryTerm
from ...model.sizes import whole_number
from ...model.versions import parse_version, try_version
from .inputs import Inputs, Role
from .pinned import SOURCE as PINNED
from .pinned import rounded, rounded_shards, rounded_weights

__all__ = ["STRATEGIES", "state_terms"]

_ZERO = "arXiv:1910.02054 section 3"
_DEEPSPEED = "DeepSpeed deepspeed/runtime/zero/stage_1_and_2.py@edaa72212:3081"
_STAGE3 = "DeepSpeed deepspeed/runtime/zero/stage3.py@edaa72212:3744"
_FSDP = "verl/workers/fsdp_workers.py (EasyR1@v0.3.2, verl@8d9e350ea)"
_OFFLOAD = "verl/utils/fsdp_utils.py (EasyR1@v0.3.2; verl@1dda039:187,249)"
_MEGATRON = "Megatron-LM docs/source/api-guide/dist_optimizer.md: 6 + 12/d bytes for each parameter"
#: What the terms below know.
STRATEGIES = ("ddp", "fsdp", "fsdp2", "zero1", "zero2", "zero3", "megatron", "none")
_COPIED = parse_version("0.17.0")
_COPIED_WHOLE = parse_version("0.14.1")
_AUTOCAST = "transformers Trainer; torch.autocast keeps a copy of the weights in half precision"
_ALWAYS = PHASES
_TRAINING = ("update", "save")

Bounds = Tuple[float, float]

#: Bytes of what a quantised weight is stored in, with its scales (bitsandbytes: a block of 64 has
#: one fp32 scale, itself quantised or not); embedding, head and norms stay as they were.
_PACKED: Mapping[str, Bounds] = {"int4": (0.5, 0.6), "int8": (1.0, 1.1)}
#: Bytes of AdamW's two moments, where the type of the parameters does not give them.
_MOMENTS: Mapping[str, Bounds] = {"adamw_bf16": (4, 4), "adamw_8bit": (2, 2.3), "none": (0, 0)}


def state_terms(inputs: Inputs, role: Role) -> Tuple[List[MemoryTerm], List[MemoryTerm]]:
    """Return the terms of one model: on one of its GPUs, and on the host of one node."""
    builder = _Builder(inputs, role)
    if role.strategy == "ddp" and role.trainable and inputs.traits.plain:
        builder.replicated()
    elif role.strategy.startswith("zero") or role.strategy == "ddp":
        builder.zero() if role.trainable else builder.frozen()
    elif role.strategy.startswith("fsdp"):
        builder.fsdp() if role.trainable else builder.frozen()
    elif role.strategy == "megatron":
        builder.megatron() if role.trainable else builder.frozen()
    elif not role.trainable or role.strategy == "none":
        builder.frozen()
    return builder.gpu, builder.host


_BUCKET = 5 * 10**8  # reduce_bucket_size and allgather_bucket_size, elements


class _Builder:
    def __init__(self, inputs: Inputs, role: Role) -> None:
        self.inputs, self.role = inputs, role
        self.gpu: List[MemoryTerm] = []
        self.host: List[MemoryTerm] = []
        self.lora = inputs.lora(role.name) if role.trainable else 0

    def _get(self, field: str) -> Optional[bool]:
        value = self.inputs.get(f"{self.role.name}.{field}")
        return None if value is None else bool(value)

    def _add(
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

    def _trained(self, per: Bounds) -> Bounds:
        """Return bytes of what exists for trained parameters only: adapters have little of it, and
        where LoRA is not known it may be either.
        """
        if self.lora == 0:
            return per
        return (0.0, per[1] if self.lora is None else per[1] * min(1.0, self._adapter_share()))

    def _moments(self, param: Bounds) -> Bounds:
        """Return the bytes of the optimizer's state: as it is named, else AdamW's in the type of
        the parameters; of another optimizer that is the upper bound.
        """
        optimizer = self.inputs.get(f"{self.role.name}.optimizer")
        unknown = (0.0, 8.0)  # two moments in fp32 are the most that is kept
        own = (2 * param[0], 2 * param[1])
        return _MOMENTS.get(str(optimizer), unknown if optimizer is None else own)

    def _packed(self, plain: Bounds) -> Bounds:
        """Return the bytes of a weight: ``plain``, or what quantised weights below adapters take
        on the average of the model.
        """
        packed = _PACKED.get(str(self.inputs.get(f"{self.role.name}.quantization")))
        if packed is None or self.lora == 0:
            return plain
        size = self.role.size
        root = size.root / size.high if size.vocabulary and not size.rough else 0.0
        most = min(size.root / size.low, 0.5) if size.vocabulary else 0.3
        return (
            packed[0] * (1 - root) + min(plain[0], 2) * root,
            packed[1] * (1 - most) + 4 * most,
        )

    def _freed(self, per: Bounds) -> Bounds:
        """Return the bytes of gradients: of one layer at a time where the optimizer steps inside
        of the backward pass.
        """
        return (0.0, per[1] / 2) if self._get("fused_backward") else per

    def _adapter_share(self) -> float:
        size, rank = self.role.size, self.lora or 0
        whole = size.root / size.high if self._get("trains_embedding") else 0.0
        if not (size.hidden and size.layers and size.intermediate):
            return 0.1 + whole
        # An adapter on every linear layer: rank times (inputs + outputs).
        return (
            rank
            * size.layers
            * (8 * size.hidden + 3 * (size.hidden + size.intermediate))
            / size.high
        ) + whole

    def _resident(
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
        self._add(
            self.gpu,
            name,
            per,
            share,
            formula,
            source,
            _TRAINING,
            *fields,
            passing=offloaded is not False,
        )
        between = ("load", "rollout") if load else ("rollout",)
        if offloaded is not True:
            self._add(
                self.gpu,
                name,
                (per[0] if offloaded is False else 0, per[1]),
                share,
                formula,
                source,
                between,
                *fields,
            )

    def frozen(self) -> None:
        """A model that is only asked: weights on its GPUs, or on the host where FSDP's CPUOffload
        keeps them.
        """
        role = self.role
        width = self.inputs.width(f"{role.name}.param_dtype", (2, 2))
        offloaded = self._get("cpu_offload")
        if offloaded is None:
            offloaded = self._get("offload_params")
        stays = role.strategy == "none"
        if offloaded is not True:
            self._frozen_on_gpu(width, is_sure=stays or offloaded is False)
        if offloaded is not False and not stays:
            self._frozen_on_host(width, is_sure=offloaded is True)

    def _frozen_on_gpu(self, width: Tuple[int, int], *, is_sure: bool) -> None:
        role = self.role
        is_spread = role.strategy in ("fsdp", "fsdp2", "zero3")
        ranks = role.ranks or 1 if is_spread else 1
        if role.strategy == "megatron":
            ranks = self._model_parallel()
        self._add(
            self.gpu,
            "weights",
            (width[0] if is_sure else 0, width[1]),
            1 / ranks,
            f"{width[1]} B x P" + (f" / {ranks} GPUs" if ranks > 1 else ""),
            _FSDP,
            _ALWAYS,
            "cpu_offload",
        )

    def _model_parallel(self) -> int:
        """Return the GPUs that Megatron cuts one copy of the model over."""
        sizes = (
            self.inputs.get(f"{self.role.name}.{name}")
            for name in ("tensor_parallel", "pipeline_parallel")
        )
        return math.prod(int(size or 1) for size in sizes)

    def _frozen_on_host(self, width: Tuple[int, int], *, is_sure: bool) -> None:
        role = self.role
        high = rounded_shards(role.size, max(role.ranks or 1, 1), width[1]) / role.size.high
        self._add(
            self.host,
            "reference model" if role.name == "ref" else "reward model",
            (width[0] if is_sure else 0, high),
            role.share,
            f"{width[1]} B x P, pinned shards rounded to powers of two",
            f"{_FSDP}: CPUOffload of the reference; {PINNED}",
            _ALWAYS,
            "cpu_offload",
        )

    def fsdp(self) -> None:
        """Parameters, gradients and moments sharded over all ranks; parameters and moments may go
        to pinned host memory between phases.
        """
        role, name = self.role, self.role.name
        param: Bounds = self._packed(self.inputs.width(f"{name}.param_dtype", (2, 4)))
        moments = self._moments(param)
        if role.ranks is not None:
            if self._get("cpu_offload") is not True:
                self._fsdp_shards(param, moments, role.ranks)
            self._gathered()
        rounding = rounded_shards(role.size, role.ranks or 1, param[1]) / (
            param[1] * role.size.high
        )
        if self._get("cpu_offload") is True:
            self._fsdp_on_host(param, moments, rounding)
        else:
            self._fsdp_offloaded(param, moments, rounding)

    def _fsdp_shards(self, param: Bounds, moments: Bounds, ranks: int) -> None:
        """Add what a GPU holds between the steps of a layer."""
        over = f"P / {ranks} GPUs"
        self._resident(
            "weights",
            param,
            1 / ranks,
            f"{_width(param)} B x {over}",
            _FSDP,
            self._get("offload_params"),
            "param_dtype",
            "offload_params",
        )
        self._add(
            self.gpu,
            "gradients",
            self._freed(self._trained(param)),
            1 / ranks,
            f"{_width(param)} B x {over}",
            _FSDP,
            ("update",),
            "param_dtype",
        )
        self._resident(
            "optimizer",
            self._trained(moments),
            1 / ranks,
            f"{_width(moments)} B x {over}",
            _FSDP,
            self._get("offload_optimizer"),
            "optimizer",
            "offload_optimizer",
            load=False,
        )

    def _fsdp_on_host(self, param: Bounds, moments: Bounds, rounding: float) -> None:
        """Add what FSDP's CPUOffload keeps on the host for good."""
        trained = self._trained(moments)
        self._add(
            self.host,
            "state on the host",
            (param[0] + trained[0], (rounding + 1) * param[1] + trained[1]),
            self.role.share,
            "CPUOffload: parameters (pinned), gradients and moments live on the host, which takes "
            "the optimizer's step",
            f"{_FSDP}; {PINNED}",
            _ALWAYS,
            "cpu_offload",
        )

    def _fsdp_offloaded(self, param: Bounds, moments: Bounds, rounding: float) -> None:
        """Add what goes to pinned memory of the host between phases, and stays there."""
        exact = rounded_up = low = 0.0
        for away, per in (
            (self._get("offload_params"), param),
            (self._get("offload_optimizer"), self._trained(moments)),
        ):
            if away is not False:
                exact += per[1]
                low += per[0] if away else 0
                rounded_up += per[1] * rounding
        if not exact:
            return
        formula = (
            f"{exact:g} B x P offloaded; pinned shards rounded to powers of two make it "
            f"{rounded_up:.3g} B, and stay"
        )
        for phases, least in ((("rollout",), low), (_TRAINING, 0)):
            self._add(
                self.host,
                "state on the host",
                (least, rounded_up),
                self.role.share,
                formula,
                f"{_OFFLOAD}; {PINNED}",
                phases,
                "offload_params",
                "offload_optimizer",
                "param_dtype",
                "optimizer",
            )

    def _gathered(self) -> None:
        """One layer at a time is whole on each GPU, in bf16, with the next one; so is the root."""
        size, role = self.role.size, self.role
        if not size.layers:
            return
        layer = max(size.high - size.root, 0) // size.layers * (2 if size.rough else 1)
        self.gpu.append(
            MemoryTerm(
                "gathered layer",
                0 if role.present is None or size.rough else 2 * layer,
                2 * 3 * layer + 2 * 2 * size.root,
                "2 B x (one layer .. three layers, embedding and head, their gradients)",
                "PyTorch FSDP: limit_all_gathers, at most two all-gathers ahead",
                ("update",),
                role.name,
                self.inputs.used(f"{role.name}.model"),
                passing=True,
            )
        )

    def replicated(self) -> None:
        """Plain data parallelism of PyTorch: each GPU has all parameters, gradients and moments in
        the type that the model was loaded in; autocast may keep a copy in half precision.
        """
        if self.role.ranks is None:
            return
        plain = self.inputs.width(f"{self.role.name}.param_dtype", (2, 4))
        param = self._packed(plain)
        copied = param[1] + (2 if plain[1] == 4 and param == plain else 0)
        self._resident(
            "weights",
            (param[0], copied),
            1,
            f"{_width((param[0], copied))} B x P",
            _AUTOCAST,
            False,
            "param_dtype",
        )
        trained = plain if self.lora == 0 else (plain[0], 4)  # adapters are cast to fp32
        self._add(
            self.gpu,
            "gradients",
            self._freed(self._trained(trained)),
            1,
            f"{_width(trained)} B x P",
            _AUTOCAST,
            ("update",),
        )
        moments = self._moments(trained)
        self._resident(
            "optimizer",
            self._trained(moments),
            1,
            f"{_width(moments)} B x P",
            _AUTOCAST,
            False,
            "optimizer",
            load=False,
        )

        self._foreach(trained)
        if self.lora != 0 and self._get("trains_embedding"):
            root = self.role.size.root / self.role.size.high
            self._resident(
                "trained embedding",
                (0.0, 4 * root),
                1,
                "up to 4 B x what is trained beside adapters",
                _AUTOCAST,
                False,
            )

    def _foreach(self, trained: Bounds) -> None:
        """AdamW over lists of tensors (foreach, PyTorch's own choice) makes temporaries as large as
        the parameters; the fused form makes none.
        """
        self._add(
            self.gpu,
            "optimizer's temporaries",
            self._trained((0.0, trained[1])),
            1,
            f"0..{trained[1]:g} B x P where the optimizer is not fused",
            "torch.optim.AdamW, foreach: 'uses ~ sizeof(params) more peak memory'",
            ("update",),
            passing=True,
        )

    def zero(self) -> None:
        """DeepSpeed's ZeRO, or plain data parallelism, in mixed precision."""
        digits = self.role.strategy[4:]
        stage = (whole_number(digits) or 0) if self.role.strategy != "ddp" else 0
        optimizer_away = self._get("offload_optimizer") if stage else False
        params_away = self._get("offload_params") if stage == 3 else False
        if self.role.ranks is not None:
            self._zero_gpu(stage, self.role.ranks, optimizer_away, params_away)
        if optimizer_away is not False:
            self._deepspeed_host(stage, optimizer_away, params_away)

    def _zero_gpu(
        self,
        stage: int,
        ranks: int,
        optimizer_away: Optional[bool],
        params_away: Optional[bool],
    ) -> None:
        spread = f"P / {ranks} GPUs" if ranks > 1 else "P"
        if params_away is not True:
            self._zero_weights(spread if stage == 3 else "P", 1 / ranks if stage == 3 else 1)
        if optimizer_away is not False and stage in (1, 2):
            self._master_copy(ranks, optimizer_away)
        if optimizer_away is True:
            self._add(
                self.gpu,
                "gradients",
                self._trained((0, 2 / ranks if stage < 3 else 0)),
                1,
                f"up to 2 B x {spread} before they go to the host",
                _DEEPSPEED,
                ("update",),
            )
        else:
            self._zero_optimizer(stage, ranks, spread, is_here=optimizer_away is False)
        if stage:
            self._bucket()
        if stage == 3:
            self._gathered()

    def _zero_optimizer(self, stage: int, ranks: int, spread: str, is_here: bool) -> None:
        """Add gradients, master weights and moments; the latter two count for the upper bound only
        where nothing says that they are on the GPU.
        """
        sums = self.inputs.width(f"{self.role.name}.grad_dtype", (2, 4))[1]
        fp32 = 4 if stage and sums == 4 else 0
        kept = 2 / ranks if stage >= 2 else 2.0
        self._add(
            self.gpu,
            "gradients",
            self._trained((kept, kept + fp32 / ranks)),
            1,
            f"2 B x {'P' if stage < 2 else spread}, and {fp32} B x {spread} where they are "
            "summed in fp32",
            _DEEPSPEED,
            ("update",),
        )
        for name, width, phases in (
            ("master weights", 4, _ALWAYS),
            ("optimizer", 8, ("rollout", *_TRAINING)),
        ):
            self._add(
                self.gpu,
                name,
                self._trained((width if is_here else 0, width)),
                1 / ranks if stage else 1,
                f"{width} B x {spread if stage else 'P'}",
                _ZERO,
                phases,
                "offload_optimizer",
            )

    def _bucket(self) -> None:
        self.gpu.append(
            MemoryTerm(
                "bucket",
                0,
                2 * 2 * _BUCKET,
                "2 buckets of up to 5e8 elements x 2 B",
                "DeepSpeed config reduce_bucket_size, 5e8 by default",
                ("update",),
                self.role.name,
            )
        )

    def _zero_weights(self, spread: str, share: float) -> None:
        width = self._packed(self.inputs.width(f"{self.role.name}.param_dtype", (2, 4)))
        self._add(
            self.gpu,
            "weights",
            width,
            share,
            f"{_width(width)} B x {spread}",
            _ZERO,
            _ALWAYS,
            "param_dtype",
        )

    def _deepspeed_host(
        self, stage: int, away: Optional[bool], params_away: Optional[bool]
    ) -> None:
        role, name = self.role, self.role.name
        sums = self.inputs.width(f"{name}.grad_dtype", (2, 4)) if stage == 3 else (0, 0)
        per = self._trained((16.0 + sums[0], 1.5 * (12 + sums[1]) if stage == 3 else 16.0))
        low, high = (per[0] if away else 0.0), per[1]
        formula = (
            f"{16 + sums[1]} B x P (master weights 4, moments 8, gradients "
            f"4{f', their sums {sums[1]}' if sums[1] else ''})"
        )
        source = "DeepSpeed stage_1_and_2.py@v0.12.6:635 initialize_optimizer_states"
        if stage == 3:
            if params_away is not False:
                high += 3
                low += 2 if params_away else 0
                formula += " + 2 B of the parameters"
            source = f"{_STAGE3}; stage3.py@v0.13.2:500 grad_partitions_flat_buffer"
            formula += (
                "; the upper bound is DeepSpeed's, 1.5 times that without one copy of the gradients"
            )
        elif self.inputs.get(f"{name}.pin_offload") is not False:
            # Flat fp32 partitions of each rank, master weights and gradients: pinned, so rounded;
            # the moments are not.
            ranks = role.ranks or 1
            block = 4 * role.size.high // ranks
            extra = (rounded(block) - block) * ranks / role.size.high
            high += self._trained((0, extra * 2))[1]
            formula += "; pinned partitions rounded to powers of two"
            source += f"; {PINNED}"
        if stage < 3:
            self._between_passes(away)
        self._add(
            self.host,
            "state on the host",
            (low, high),
            role.share,
            formula,
            source,
            ("rollout", *_TRAINING),
            "offload_optimizer",
            "offload_params",
            "grad_dtype",
            "pin_offload",
        )

    def _between_passes(self, away: Optional[bool]) -> None:
        """What ZeRO-1 and 2 keep on the host beside their optimizer: sums of gradients where a step
        has several passes, and a copy of the weights.
        """
        pinned = self._get("pin_offload") is not False
        passes = self.inputs.passes(self.role)
        if passes != 1:
            self._gradient_sums(passes, pinned, is_sure=bool(passes and away))
        version = try_version(self.inputs.facts.version_of("deepspeed"))
        if version is None or version >= _COPIED:
            self._copied_weights(pinned, is_sure=bool(version is not None and away))

    def _gradient_sums(self, passes: Optional[int], pinned: bool, *, is_sure: bool) -> None:
        size = self.role.size
        high = max(2.0, rounded_weights(size, 1, 2) / size.high) if pinned else 2.0
        where = f" over {passes} passes" if passes else ", where a step has several passes"
        self._add(
            self.host,
            "gradients between passes",
            self._trained((2.0 if is_sure else 0.0, high)),
            self.role.share,
            f"2 B x P: sums of gradients{where}",
            "DeepSpeed stage_1_and_2.py@v0.13.2 copy_grads_in_partition, "
            "async_accumulate_grad_in_cpu_via_gpu",
            _TRAINING,
            "mini_batch",
            "micro_batch",
        )

    def _copied_weights(self, pinned: bool, *, is_sure: bool) -> None:
        self._add(
            self.host,
            "copy of the weights",
            self._trained((2.0 if is_sure else 0.0, 4.0 if pinned else 2.0)),
            self.role.share,
            "2 B x P: bf16 copy of the weights, from DeepSpeed 0.17.0 on",
            "DeepSpeed stage_1_and_2.py@17c8be070 param_buffer_of_bit16_for_cpu_offload_groups",
            ("rollout", *_TRAINING),
        )

    def _master_copy(self, ranks: int, away: Optional[bool]) -> None:
        """What the step brings back in fp32 before it is rounded on the GPU: DeepSpeed 0.14.1
        (@7b5b06602) up to 0.17.0 (@17c8be070).
        """
        version = try_version(self.inputs.facts.version_of("deepspeed"))
        if version is not None and not _COPIED_WHOLE <= version < _COPIED:
            return
        text = (
            f"4 B x P / {ranks} GPUs, DeepSpeed 0.14.1 to 0.16: the step's result comes back in "
            "fp32"
        )
        source = "DeepSpeed stage_1_and_2.py@7b5b06602; PR#7309: about three times the weights"
        low = 4.0 if version is not None and away else 0.0
        self._add(
            self.gpu,
            "copy of the master weights",
            self._trained((low, 4.0)),
            1 / ranks,
            text,
            source,
            ("update",),
            passing=True,
        )

    def megatron(self) -> None:
        """Megatron: bf16 weights, gradients in fp32 or bf16, and 12 bytes spread over the
        data-parallel ranks by its distributed optimizer (``shard_ranks`` of one copy of the model:
        by none). Experts are cut by their own number of GPUs.
        """
        role = self.role
        params_away, moments_away = self._get("offload_params"), self._get("offload_optimizer")
        cut = self._cut()
        over = self._cut_text()
        if role.ranks is not None:
            weights: Bounds = self._packed((2, 2))
            self._resident(
                "weights",
                (weights[0] * cut[0], weights[1] * cut[1]),
                1,
                f"{_width(weights)} B x P / {over}",
                _MEGATRON,
                params_away,
                "tensor_parallel",
                "pipeline_parallel",
                "expert_parallel",
            )
            gradients = self._trained(
                {2: (2.0, 2.0)}.get(self.inputs.width(f"{role.name}.grad_dtype", (2, 4))[1], (2, 4))
            )
            self._add(
                self.gpu,
                "gradients",
                (gradients[0] * cut[0], gradients[1] * cut[1]),
                1,
                f"{_width(gradients)} B x P / {over}",
                _MEGATRON,
                ("update",),
                "grad_dtype",
            )
            if self._get("host_optimizer") is not True:
                moments = self._trained(self._master_and_moments())
                spread = self._spread(cut)
                self._resident(
                    "optimizer",
                    (moments[0] * spread[0], moments[1] * spread[1]),
                    1,
                    f"{_width(moments)} B x P over {role.ranks} GPUs",
                    _MEGATRON,
                    moments_away,
                    "offload_optimizer",
                    load=False,
                )
        if self._get("host_optimizer") is True:
            self._add(
                self.host,
                "optimizer on the host",
                self._trained((12, 2 * 16)),
                role.share,
                "12 B x P (fp32 weights, two moments), gradients on their way; pinned",
                "Megatron-LM megatron/core/optimizer/cpu_offloading; " + PINNED,
                ("rollout", *_TRAINING),
                "host_optimizer",
            )
            moments_away = False
        # Each replica of the weights goes to the host by itself; pinned, so up to twice.
        copies = max(1, (role.ranks or 1) // self._model_parallel())
        high = (0 if params_away is False else 2 * 2 * copies) + (
            0 if moments_away is False else 2 * 12
        )
        low = (2 if params_away else 0) + (self._trained((12, 12))[0] if moments_away else 0)
        if high:
            self._add(
                self.host,
                "state on the host",
                (low, high),
                role.share,
                "2 B and 12 B x P offloaded, pinned",
                "verl PR#6193; " + PINNED,
                ("rollout",),
                "offload_params",
                "offload_optimizer",
            )

    def _master_and_moments(self) -> Bounds:
        """fp32 weights and two moments; a precision-aware optimizer keeps less of them."""
        named = self.inputs.get(f"{self.role.name}.optimizer")
        return (12.0, 12.0) if named == "adamw" else (4.0, 12.0)

    def _cut(self) -> Bounds:
        """Return the share of the model on the fullest GPU: layers by pipeline stage, and of these
        experts by their own tensor and expert parallelism; embedding and head on the outer stages.
        """
        size = self.role.size
        tensor, stages, experts = (
            int(self.inputs.get(f"{self.role.name}.{name}") or 1)
            for name in ("tensor_parallel", "pipeline_parallel", "expert_parallel")
        )
        fewest = 1 / tensor / stages
        root = min(1.0, size.root / size.high) if size.vocabulary else 0.0
        ways = experts if experts > 1 else tensor
        if size.experts:
            inside = min(size.experts / size.high, 1.0)
            even = (1 - inside) / tensor + inside / ways
        elif experts > 1:
            even = min(fewest * stages, 1 / experts)  # how much of it are experts is not known
            return even / stages, max(1 / tensor, 1 / experts) / stages + root / tensor
        else:
            even = 1 / tensor
        uneven = 1.0 if stages == 1 else 1.2  # layers do not always divide
        return even / stages, min(even, uneven * even / stages + (stages > 1) * root / tensor)

    def _spread(self, cut: Bounds) -> Bounds:
        """Return the share of the optimizer's state on a GPU: the distributed optimizer spreads it
        over all GPUs, that of experts over those that hold the same ones; without it each GPU
        keeps what it trains.
        """
        role = self.role
        if not role.ranks or self.inputs.get(f"{role.name}.shard_ranks"):
            return cut
        return 1 / role.ranks, max(cut[1] / cut[0], 1.0) / role.ranks

    def _cut_text(self) -> str:
        ways = self._model_parallel()
        experts = self.inputs.get(f"{self.role.name}.expert_parallel")
        return f"{ways}" + (f" (experts / {experts})" if experts and int(experts) > 1 else "")


def _width(per: Bounds) -> str:
    return f"{per[0]:g}" if per[0] == per[1] else f"{per[0]:g}..{per[1]:g}"
