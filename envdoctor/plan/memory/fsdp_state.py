"""What a model trained with FSDP keeps.

* FSDP keeps its parameters in one type and the gradients and Adam's moments in the same: 16 P/N in
  fp32, 8 P/N in bf16 (verl and EasyR1, fsdp_workers.py); offloaded are parameters and moments, 12
  P/N (6 P/N), pinned and so rounded (:mod:`.pinned`).
"""

from __future__ import annotations

from .model_state import ALWAYS, FSDP, TRAINING, Bounds, ModelState, width_text
from .pinned import SOURCE as PINNED
from .pinned import rounded_shards

__all__ = ["FsdpState"]

_OFFLOAD = "verl/utils/fsdp_utils.py (EasyR1@v0.3.2; verl@1dda039:187,249)"


class FsdpState(ModelState):
    """A model whose parameters, gradients and moments are sharded."""

    def add_trained(self) -> None:
        """Parameters, gradients and moments sharded over all ranks; parameters and moments may go
        to pinned host memory between phases.
        """
        role, name = self.role, self.role.name
        param: Bounds = self.packed(self.inputs.width(f"{name}.param_dtype", (2, 4)))
        moments = self.moments(param)
        if role.ranks is not None:
            if self.get("cpu_offload") is not True:
                self._fsdp_shards(param, moments, role.ranks)
            self.gathered(param)
        rounding = rounded_shards(role.size, role.ranks or 1, param[1]) / (
            param[1] * role.size.high
        )
        if self.get("cpu_offload") is True:
            self._fsdp_on_host(param, moments, rounding)
        else:
            self._fsdp_offloaded(param, moments, rounding)

    def _fsdp_shards(self, param: Bounds, moments: Bounds, ranks: int) -> None:
        """Add what a GPU holds between the steps of a layer."""
        over = f"P / {ranks} GPUs"
        self.resident(
            "weights",
            param,
            1 / ranks,
            f"{width_text(param)} B x {over}",
            FSDP,
            self.get("offload_params"),
            "param_dtype",
            "offload_params",
        )
        self.add(
            self.gpu,
            "gradients",
            self.freed(self.trained(param)),
            1 / ranks,
            f"{width_text(param)} B x {over}",
            FSDP,
            ("update",),
            "param_dtype",
        )
        self.resident(
            "optimizer",
            self.trained(moments),
            1 / ranks,
            f"{width_text(moments)} B x {over}",
            FSDP,
            self.get("offload_optimizer"),
            "optimizer",
            "offload_optimizer",
            load=False,
        )

    def _fsdp_on_host(self, param: Bounds, moments: Bounds, rounding: float) -> None:
        """Add what FSDP's CPUOffload keeps on the host for good."""
        trained = self.trained(moments)
        self.add(
            self.host,
            "state on the host",
            (param[0] + trained[0], (rounding + 1) * param[1] + trained[1]),
            self.role.share,
            "CPUOffload: parameters (pinned), gradients and moments live on the host, which takes "
            "the optimizer's step",
            f"{FSDP}; {PINNED}",
            ALWAYS,
            "cpu_offload",
        )

    def _fsdp_offloaded(self, param: Bounds, moments: Bounds, rounding: float) -> None:
        """Add what goes to pinned memory of the host between phases, and stays there."""
        exact = rounded_up = low = 0.0
        for away, per in (
            (self.get("offload_params"), param),
            (self.get("offload_optimizer"), self.trained(moments)),
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
        for phases, least in ((("rollout",), low), (TRAINING, 0)):
            self.add(
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
