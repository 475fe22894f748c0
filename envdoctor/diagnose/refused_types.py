"""Data types that an exception refuses by its own words (``"op" not implemented for 'BFloat16'``,
``only fp32 and fp16 are supported``): on which device, which setting asks for them, and what to
load the model in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, FrozenSet, Mapping, Sequence, Tuple

from ..model.finding import Remedy
from ..model.log import Raised
from ..rules.rule import Context

if TYPE_CHECKING:
    from .logged_run import LoggedRun
    from .trace_draft import TraceDraft

__all__ = ["tell_refused_types"]

_LONGEST = 400  # characters of a message
_ONLY = re.compile(
    r"(?i)\bonly (?:supports? )?(?P<types>[\w.]+(?:(?:, |/| and | or |, and )[\w.]+){0,4})"
    r"(?: (?:is|are) supported| (?:data ?)?types?\b|$|[.,;)])"
)
_NO_KERNEL = re.compile(r"\"\w{1,80}\" not implemented for '(?P<type>\w{1,30})'")
_INPUT_TYPE = re.compile(
    r"(?i)(?:input|data|(?<!unsupported )scalar) ?type:? '?(?P<type>[\w.]{3,30})|\bdtype\b"
)
#: Names of types, as torch, its C++ and the engines print them.
_TYPES: Mapping[str, str] = {
    "bf16": "bfloat16", "bfloat16": "bfloat16", "dt_bfloat16": "bfloat16",
    "fp16": "float16", "float16": "float16", "half": "float16", "dt_float16": "float16",
    "fp32": "float32", "float32": "float32", "float": "float32",
    "fp64": "float64", "float64": "float64", "double": "float64",
    "int64": "int64", "long": "int64",
}  # fmt: skip
#: The types that a model is loaded in.
_OF_MODELS = frozenset(("bfloat16", "float16", "float32"))
_SETTINGS_OF_TYPE = ("dtype", "torch_dtype", "bf16", "fp16", "precision")
#: By what a message or the place of the exception says of a device.
_DEVICES = (
    (re.compile(r"(?i)(?<![a-z])mps(?![a-z])"), "Apple's GPU (MPS)"),
    (re.compile(r"(?i)(?<![a-z])xpu(?![a-z])|xe_(?:addons|linear|batch)"), "Intel's GPUs (XPU)"),
    (re.compile(r"(?i)(?<![a-z])npu(?![a-z])"), "NPUs"),
    (re.compile(r"(?i)(?<![a-z])hpu(?![a-z])"), "Gaudi (HPU)"),
    (re.compile(r"(?i)(?<![a-z])cpu(?![a-z])"), "the CPU"),
)


def tell_refused_types(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Add to the exception that a run failed with, and that no signature knows, the type that it
    refuses, what asks for that here, and what to change.
    """
    for draft in drafts:
        own = draft.exception(run.exception)
        if own is None or draft.signature is not None or _is_answered(draft):
            continue
        refused, is_left = _refused(own.message.partition("\n\n")[0][:_LONGEST])
        if refused:
            _tell(draft, refused, is_left, own, run.context)


#: What a GradScaler does with gradients (torch/amp/grad_scaler.py).
_OF_SCALER = re.compile(r"_amp_foreach_non_finite_check")


def _is_answered(draft: TraceDraft) -> bool:
    """Tell whether packages, builds or the device are known to be the cause."""
    finding = draft.finding
    return bool(finding.packages) or any(remedy.safety for remedy in finding.remedies)


def _refused(message: str) -> Tuple[str, bool]:
    """Return the type that a message refuses, and whether that only follows from its being the one
    that is left of those that models are loaded in.
    """
    if _OF_SCALER.search(message):
        return "", False  # of mixed precision, not of a type that the model may be put into
    about = _NO_KERNEL.search(message) or _INPUT_TYPE.search(message)
    if about is None:
        return "", False
    refused = _type_of(about.group("type") or "")
    only = _ONLY.search(message)
    if refused or only is None:
        return refused, False
    left = _OF_MODELS - _types_of(only.group("types"))
    return ("bfloat16", True) if left == {"bfloat16"} else ("", False)


def _type_of(word: str) -> str:
    return _TYPES.get(word.lower().rpartition(".")[2], "")


def _types_of(words: str) -> FrozenSet[str]:
    return frozenset(_type_of(word) for word in re.findall(r"[\w.]+", words))


def _tell(draft: TraceDraft, refused: str, is_left: bool, own: Raised, context: Context) -> None:
    device = _device_of(own, context)
    where = f" on {device}" if device else ""
    lead = (
        f"Of the types that models are loaded in only {refused} is left that it does not take"
        if is_left
        else f"What runs there{where} does not take {refused}"
    )
    stated = _stated(refused, context)
    asks = f": {stated}" if stated else ""
    if not stated and refused in _OF_MODELS:
        asks = "; nothing that was read sets another type for the model"
    finding = draft.finding
    draft.finding = finding._replace(
        message=f"{finding.message.rstrip('.')}. {lead}{asks}.",
        remedies=finding.remedies or (_way(refused, device),),
    )


def _stated(refused: str, context: Context) -> str:
    """Return the setting that asks for a type, in words."""
    request = context.facts.value("request")
    settings = request.settings() if request is not None else {}
    for name in _SETTINGS_OF_TYPE:
        value = settings.get(name, "")
        is_on = value.lower() in ("true", "1") and _TYPES.get(name) == refused
        if is_on or _type_of(value) == refused:
            return f"{name} is {value}"
    return ""


def _way(refused: str, device: str) -> Remedy:
    if refused == "bfloat16":
        text = "Load the model in float16: --dtype float16, torch_dtype=torch.float16 or "
        text += "dtype=float16 among the arguments of the model, and fp16 in the place of bf16."
    elif refused == "float16":
        text = "Load the model in float32 or bfloat16"
        text += ", or run it on a GPU." if "CPU" in device else "."
    else:
        text = "Keep that model or step on the CPU (device='cpu'), or cast its input to a smaller "
        text += "type"
        is_other = device and "CPU" not in device
        text += "; newer releases of torch have more types there." if is_other else "."
    return Remedy(text, (), "safe")


def _device_of(raised: Raised, context: Context) -> str:
    """Return the device that the message or the innermost line of source names, else the one that
    the run was told to use.
    """
    code = raised.frames[-1].code if raised.frames else ""
    request = context.facts.value("request")
    setting = request.settings().get("device", "") if request is not None else ""
    for text in (raised.message[:_LONGEST], code, setting):
        for expression, name in _DEVICES:
            if expression.search(text.replace("_", " ")) or expression.search(text):
                return name
    return ""
