"""What copies of a model's weights a load makes on the host: how many ranks read it, and what each
of them holds while it does. Pages of mapped files are none: the kernel takes them back.

* verl, its forks, SkyRL: rank 0 loads and the others get it, with tied embeddings each rank loads.
* from_pretrained on each rank is what transformers' trainers do, also with FSDP unless accelerate
  is told that one rank loads, and prime-rl's with models that have buffers of their own.
* NeMo-RL with FSDP: rank 0, or each its own part.
* torchtune: each rank maps the files; queries and keys of Llama's are copied in another order.
* Megatron: each rank makes its own part, and one may read the whole.
"""

from __future__ import annotations

from typing import List, Tuple

from ...model.memory_plan import MemoryTerm
from .inputs import Inputs, Role
from .megatron_state import MegatronState

__all__ = ["load_terms"]

#: Trainers that hand the type in which weights are kept to from_pretrained; others load fp32 and
#: make it smaller later (DeepSpeed-Chat utils/model/model_utils.py).
_LOAD_AS_KEPT = frozenset(["trl", "axolotl", "ms-swift", "openrlhf", "areal"])
#: Of these, those that need a transformers which maps files of weights, safetensors and .bin
#: (modeling_utils.py load_state_dict, torch.load(mmap=True), 4.35): TRL 0.14 asks for 4.46.
_MAPS_FILES = frozenset(["trl", "axolotl", "areal"])
_SHARD = 10 * 10**9  # of a checkpoint, the largest that transformers wrote by default (4.x)
_OF_VERL = "verl/utils/fsdp_utils.py get_init_weight_context_manager"
_VERL = frozenset(["verl", "easyr1", "tinyzero", "simplerl", "verl-sft", "skyrl"])
_NEMO_RL = (
    "NeMo-RL models/policy/workers/dtensor_policy_worker.py@7ea279abf:339: rank 0 loads, the "
    "others get it; models/automodel/setup.py: each its own part"
)
_RAM_EFFICIENT = (
    "transformers modeling_utils.py@v4.49.0:892, :4889: other ranks get meta tensors of what is "
    "not quantised (is_fsdp_enabled, cpu_ram_efficient_loading)"
)
_OF_PARTS = (
    "Megatron-Bridge models/hf_pretrained/state.py@067f987d:591: a rank reads what it holds; verl "
    "utils/model.py@b178a3cd:424: one rank reads all of it"
)
_MAPPED = (
    "torchtune training/checkpointing/_utils.py@bd2a0fc7 safe_torch_load maps files; "
    "models/convert_weights.py hf_to_tune"
)
#: Queries and keys as a share of a model, at the most (Qwen3-0.6B: 0.2).
_REORDERED = 0.25
_FROM_PRETRAINED = (
    "transformers from_pretrained on each rank: 2 B where the type is stated, 4 B else (seen "
    "with 4.40 to 4.53; Baichuan2#250: 62 GB for 26 GB of weights, of which it states none)"
)


def load_terms(inputs: Inputs, role: Role) -> List[MemoryTerm]:
    """Return the copies that a load makes on the host."""
    if not role.trainable or role.gpus is None:
        return []
    low, high, text, source = _copies(inputs, role, role.gpus)
    fields = ("model", "rank0_init", "param_dtype")
    used = inputs.used(*(f"{role.name}.{field}" for field in fields))
    return [MemoryTerm("loading", low, high, text, source, ("load",), role.name, used)]


def _copies(inputs: Inputs, role: Role, gpus: int) -> Tuple[int, int, str, str]:
    """Return the bytes of all copies on one node (low, high), in words, and who says so."""
    whole = 4 * role.size.high
    if role.strategy == "megatron":
        parts = MegatronState(inputs, role).cut()[1] * gpus
        return (
            0,
            int(whole * (parts + 1)),
            f"up to 4 B x P x {parts + 1:.3g}: the part of each GPU, and one copy",
            _OF_PARTS,
        )
    if inputs.framework == "torchtune":
        return (
            0,
            int(_REORDERED * whole * gpus),
            f"up to {4 * _REORDERED:g} B x P x {gpus} processes: queries and keys in another order",
            _MAPPED,
        )
    if role.strategy.startswith("fsdp"):
        if inputs.framework in _VERL:
            return _of_verl(inputs, role, gpus)
        if inputs.framework == "nemo-rl":
            return 0, whole, "up to 4 B x P, on one rank or in parts", _NEMO_RL
        packed = inputs.get(f"{role.name}.quantization") or "none"
        if inputs.get(f"{role.name}.rank0_init") is True and packed == "none":
            return 0, whole, "up to 4 B x P on one rank", _RAM_EFFICIENT
    if role.strategy == "zero3":
        source = "DeepSpeed deepspeed/runtime/zero/stage3.py@edaa72212:3744, without zero.Init"
        return 0, 6 * role.size.high * gpus, f"up to 4 B x P x {gpus} processes x 1.5", source
    return _on_each_rank(inputs, role, gpus)


def _of_verl(inputs: Inputs, role: Role, gpus: int) -> Tuple[int, int, str, str]:
    whole, rank0 = 4 * role.size.high, inputs.get(f"{role.name}.rank0_init")
    if not role.size.tied or rank0 is True:
        return 0, whole, "up to 4 B x P on one rank", f"{_OF_VERL}: the others get it"
    # get_init_weight_context_manager(use_meta_tensor=not tie_word_embeddings)
    is_sure = rank0 is False or inputs.framework in ("verl", "tinyzero", "simplerl")
    low = 4 * role.size.low * gpus if is_sure and role.name == "actor" else 0
    text = f"4 B x P x {gpus} ranks: tied embeddings are loaded on every rank"
    return low, whole * gpus, text, _OF_VERL


def _on_each_rank(inputs: Inputs, role: Role, gpus: int) -> Tuple[int, int, str, str]:
    """As fp32 where the type is not stated; with a file at a time beside it, where it is not
    mapped.
    """
    _, width = (
        inputs.width(f"{role.name}.param_dtype", (2, 4))
        if inputs.framework in _LOAD_AS_KEPT
        else (4, 4)
    )
    whole = width * role.size.high
    file = min(_SHARD, whole) if width < 4 and inputs.framework not in _MAPS_FILES else 0
    text = f"up to {width} B x P x {gpus} processes"
    if file:
        text += ", with a file of up to 10 GB each"
    return 0, (whole + file) * gpus, text, _FROM_PRETRAINED
