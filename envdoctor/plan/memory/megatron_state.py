"""What a model trained with Megatron keeps: cut over tensor, pipeline and expert ranks."""

from __future__ import annotations

from .model_state import TRAINING, Bounds, ModelState, width_text
from .pinned import SOURCE as PINNED

__all__ = ["MegatronState"]

_MEGATRON = "Megatron-LM docs/source/api-guide/dist_optimizer.md: 6 + 12/d bytes for each parameter"


class MegatronState(ModelState):
    """A model of which each GPU has a part."""

    def add_trained(self) -> None:
        """Megatron: bf16 weights, gradients in fp32 or bf16, and 12 bytes spread over the
        data-parallel ranks by its distributed optimizer (``shard_ranks`` of one copy of the model:
        by none). Experts are cut by their own number of GPUs.
        """
        role = self.role
        params_away, moments_away = self.get("offload_params"), self.get("offload_optimizer")
        cut = self.cut()
        over = self._cut_text()
        if role.ranks is not None:
            weights: Bounds = self.packed((2, 2))
            self.resident(
                "weights",
                (weights[0] * cut[0], weights[1] * cut[1]),
                1,
                f"{width_text(weights)} B x P / {over}",
                _MEGATRON,
                params_away,
                "tensor_parallel",
                "pipeline_parallel",
                "expert_parallel",
            )
            gradients = self.trained(
                {2: (2.0, 2.0)}.get(self.inputs.width(f"{role.name}.grad_dtype", (2, 4))[1], (2, 4))
            )
            self.add(
                self.gpu,
                "gradients",
                (gradients[0] * cut[0], gradients[1] * cut[1]),
                1,
                f"{width_text(gradients)} B x P / {over}",
                _MEGATRON,
                ("update",),
                "grad_dtype",
            )
            if self.get("host_optimizer") is not True:
                moments = self.trained(self._master_and_moments())
                spread = self._spread(cut)
                self.resident(
                    "optimizer",
                    (moments[0] * spread[0], moments[1] * spread[1]),
                    1,
                    f"{width_text(moments)} B x P over {role.ranks} GPUs",
                    _MEGATRON,
                    moments_away,
                    "offload_optimizer",
                    load=False,
                )
        if self.get("host_optimizer") is True:
            self.add(
                self.host,
                "optimizer on the host",
                self.trained((12, 2 * 16)),
                role.share,
                "12 B x P (fp32 weights, two moments), gradients on their way; pinned",
                "Megatron-LM megatron/core/optimizer/cpu_offloading; " + PINNED,
                ("rollout", *TRAINING),
                "host_optimizer",
            )
            moments_away = False
        # Each replica of the weights goes to the host by itself; pinned, so up to twice.
        copies = max(1, (role.ranks or 1) // self.model_parallel())
        high = (0 if params_away is False else 2 * 2 * copies) + (
            0 if moments_away is False else 2 * 12
        )
        low = (2 if params_away else 0) + (self.trained((12, 12))[0] if moments_away else 0)
        if high:
            self.add(
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

    def cut(self) -> Bounds:
        """Return the share of the model on the fullest GPU: layers by pipeline stage, and of these
        experts by their own tensor and expert parallelism; embedding and head on the outer stages.
        """
        size = self.role.size
        tensor, stages, experts = (
            int(self.inputs.get(f"{self.role.name}.{name}") or 0)
            for name in ("tensor_parallel", "pipeline_parallel", "expert_parallel")
        )
        tensor, stages = max(tensor, 1), max(stages, 1)
        fewest = 1 / tensor / stages
        root = min(1.0, size.root / size.high) if size.vocabulary else 0.0
        ways = experts or tensor  # 1: each GPU has all experts, however the rest is cut
        if size.experts:
            inside = min(size.experts / size.high, 1.0)
            even = (1 - inside) / tensor + inside / ways
        elif experts > 1 and (size.rough or size.own):
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
        ways = self.model_parallel()
        experts = self.inputs.get(f"{self.role.name}.expert_parallel")
        return f"{ways}" + (f" (experts / {experts})" if experts and int(experts) > 1 else "")
