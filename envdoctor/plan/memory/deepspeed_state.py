"""What a model trained with DeepSpeed keeps.

* mixed precision with Adam: 2 + 2 + 12 (arXiv:1910.02054, section 3); ZeRO-1, 2, 3 spread 12, 14
  and 16 of them.
* DeepSpeed adds fp32 gradients (4): 2 P + 18 P/N for ZeRO-2
  (deepspeed/runtime/zero/stage_1_and_2.py@edaa72212, line 3081).
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

from typing import Optional

from ...model.memory_plan import MemoryTerm
from ...model.sizes import whole_number
from ...model.versions import parse_version, try_version
from .model_state import ALWAYS, TRAINING, ModelState, width_text
from .pinned import SOURCE as PINNED
from .pinned import rounded, rounded_weights

__all__ = ["DeepspeedState"]

_ZERO = "arXiv:1910.02054 section 3"
_DEEPSPEED = "DeepSpeed deepspeed/runtime/zero/stage_1_and_2.py@edaa72212:3081"
_STAGE3 = "DeepSpeed deepspeed/runtime/zero/stage3.py@edaa72212:3744"
_COPIED = parse_version("0.17.0")
_COPIED_WHOLE = parse_version("0.14.1")
_BUCKET = 5 * 10**8  # reduce_bucket_size and allgather_bucket_size, elements


class DeepspeedState(ModelState):
    """A model trained with DeepSpeed's ZeRO, or data parallelism in mixed precision."""

    def add_trained(self) -> None:
        """DeepSpeed's ZeRO, or plain data parallelism, in mixed precision."""
        digits = self.role.strategy[4:]
        stage = (whole_number(digits) or 0) if self.role.strategy != "ddp" else 0
        optimizer_away = self.get("offload_optimizer") if stage else False
        params_away = self.get("offload_params") if stage == 3 else False
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
            self.add(
                self.gpu,
                "gradients",
                self.trained((0, 2 / ranks if stage < 3 else 0)),
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
            self.gathered((2, 2))

    def _zero_optimizer(self, stage: int, ranks: int, spread: str, is_here: bool) -> None:
        """Add gradients, master weights and moments; the latter two count for the upper bound only
        where nothing says that they are on the GPU.
        """
        sums = self.inputs.width(f"{self.role.name}.grad_dtype", (2, 4))[1]
        fp32 = 4 if stage and sums == 4 else 0
        kept = 2 / ranks if stage >= 2 else 2.0
        self.add(
            self.gpu,
            "gradients",
            self.trained((kept, kept + fp32 / ranks)),
            1,
            f"2 B x {'P' if stage < 2 else spread}, and {fp32} B x {spread} where they are "
            "summed in fp32",
            _DEEPSPEED,
            ("update",),
        )
        optimizer = self.inputs.workload.get(f"{self.role.name}.optimizer")
        is_stated = optimizer is not self.inputs.workload.missing
        moments = self.moments((4, 4)) if is_stated else (8, 8)
        for name, width, phases in (
            ("master weights", (4, 4), ALWAYS),
            ("optimizer", moments, ("rollout", *TRAINING)),
        ):
            self.add(
                self.gpu,
                name,
                self.trained((width[0] if is_here else 0, width[1])),
                1 / ranks if stage else 1,
                f"{width_text(width)} B x {spread if stage else 'P'}",
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
        width = self.packed(self.inputs.width(f"{self.role.name}.param_dtype", (2, 4)))
        self.add(
            self.gpu,
            "weights",
            width,
            share,
            f"{width_text(width)} B x {spread}",
            _ZERO,
            ALWAYS,
            "param_dtype",
        )

    def _deepspeed_host(
        self, stage: int, away: Optional[bool], params_away: Optional[bool]
    ) -> None:
        role, name = self.role, self.role.name
        sums = self.inputs.width(f"{name}.grad_dtype", (2, 4)) if stage == 3 else (0, 0)
        per = self.trained((16.0 + sums[0], 1.5 * (12 + sums[1]) if stage == 3 else 16.0))
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
            high += self.trained((0, extra * 2))[1]
            formula += "; pinned partitions rounded to powers of two"
            source += f"; {PINNED}"
        if stage < 3:
            self._between_passes(away)
        self.add(
            self.host,
            "state on the host",
            (low, high),
            role.share,
            formula,
            source,
            ("rollout", *TRAINING),
            "offload_optimizer",
            "offload_params",
            "grad_dtype",
            "pin_offload",
        )

    def _between_passes(self, away: Optional[bool]) -> None:
        """What ZeRO-1 and 2 keep on the host beside their optimizer: sums of gradients where a step
        has several passes, and a copy of the weights.
        """
        pinned = self.get("pin_offload") is not False
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
        self.add(
            self.host,
            "gradients between passes",
            self.trained((2.0 if is_sure else 0.0, high)),
            self.role.share,
            f"2 B x P: sums of gradients{where}",
            "DeepSpeed stage_1_and_2.py@v0.13.2 copy_grads_in_partition, "
            "async_accumulate_grad_in_cpu_via_gpu",
            TRAINING,
            "mini_batch",
            "micro_batch",
        )

    def _copied_weights(self, pinned: bool, *, is_sure: bool) -> None:
        self.add(
            self.host,
            "copy of the weights",
            self.trained((2.0 if is_sure else 0.0, 4.0 if pinned else 2.0)),
            self.role.share,
            "2 B x P: bf16 copy of the weights, from DeepSpeed 0.17.0 on",
            "DeepSpeed stage_1_and_2.py@17c8be070 param_buffer_of_bit16_for_cpu_offload_groups",
            ("rollout", *TRAINING),
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
        self.add(
            self.gpu,
            "copy of the master weights",
            self.trained((low, 4.0)),
            1 / ranks,
            text,
            source,
            ("update",),
            passing=True,
        )
