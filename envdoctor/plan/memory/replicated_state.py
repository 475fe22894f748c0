"""What a model trained with PyTorch's plain data parallelism keeps: all of it, on each GPU."""

from __future__ import annotations

from .model_state import Bounds, ModelState, width_text

__all__ = ["ReplicatedState"]

_AUTOCAST = "transformers Trainer; torch.autocast keeps a copy of the weights in half precision"


class ReplicatedState(ModelState):
    """A model of which each GPU has a copy."""

    def add_trained(self) -> None:
        """Plain data parallelism of PyTorch: each GPU has all parameters, gradients and moments in
        the type that the model was loaded in; autocast may keep a copy in half precision.
        """
        if self.role.ranks is None:
            return
        plain = self.inputs.width(f"{self.role.name}.param_dtype", (2, 4))
        param = self.packed(plain)
        copied = param[1] + (2 if plain[1] == 4 and param == plain else 0)
        self.resident(
            "weights",
            (param[0], copied),
            1,
            f"{width_text((param[0], copied))} B x P",
            _AUTOCAST,
            False,
            "param_dtype",
        )
        trained = plain if self.lora == 0 else (plain[0], 4)  # adapters are cast to fp32
        self.add(
            self.gpu,
            "gradients",
            self.freed(self.trained(trained)),
            1,
            f"{width_text(trained)} B x P",
            _AUTOCAST,
            ("update",),
        )
        moments = self.moments(trained)
        self.resident(
            "optimizer",
            self.trained(moments),
            1,
            f"{width_text(moments)} B x P",
            _AUTOCAST,
            False,
            "optimizer",
            load=False,
        )

        self._foreach(trained)
        if self.lora != 0 and self.get("trains_embedding"):
            root = self.role.size.root / self.role.size.high
            self.resident(
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
        self.add(
            self.gpu,
            "optimizer's temporaries",
            self.trained((0.0, trained[1])),
            1,
            f"0..{trained[1]:g} B x P where the optimizer is not fused",
            "torch.optim.AdamW, foreach: 'uses ~ sizeof(params) more peak memory'",
            ("update",),
            passing=True,
        )
