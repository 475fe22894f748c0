"""What a report is about, by its own words: a GPU or something else, which engines its commands,
imports and tracebacks run, and which hazards of a machine it shows to have been met.
"""

from __future__ import annotations

import re
from typing import FrozenSet

from ..model.log import EXCEPTION_NAME
from ..model.record import NamedTuple
from ..model.redaction import redact
from .distribution_names import COMMON_WORDS, known_distribution

__all__ = ["Complaint", "complaint_of", "engines_run", "hazards_not_met", "other_matter"]

_LONGEST = 200_000  # characters that are gone through
_SHOWN = 160  # of a line
#: A line of one's own words or a command, no row of an environment (``Is CUDA available: False``,
#: ``nvidia-cublas-cu12==12.1.3.1``), and the GPU in it.
_OWN_LINE = re.compile(
    r"^(?![\w \t.()/*-]{1,60}:(?:\s|\Z))(?!\s*(?:#|from\s|import\s))"
    r"(?!\W{0,6}[\w.-]+ ?(?:==|  +\d))(?=.*[a-z\u4e00-\u9fff]).{1,2000}",
    re.MULTILINE,
)
_GPU = re.compile(r"\b(?:gpus?|cuda|nvidia)\b|\bfalls? back\b|显卡|显存", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:[A-Za-z'’]{1,20}[,;]? ){4}|(?:[\u4e00-\u9fff][，、 ]?){6}")


def other_matter(text: str) -> str:
    """Return the first sentence of a report that speaks of no GPU in its own words, "" where one
    does, or where the report has no words of its own.
    """
    lines = _OWN_LINE.findall(text[:_LONGEST])
    if any(map(_GPU.search, lines)):
        return ""
    sentence = next((line.strip() for line in lines if _SENTENCE.search(line)), "")
    return redact(sentence)[:_SHOWN]


#: An engine that is started or imported, by its module: not what only installs or names it.
_RUN = re.compile(
    r"\b(vllm|sglang|lmdeploy) (?:serve|chat|complete|bench|run-batch|lite|generate)\b"
    r"|-m[ =](vllm|sglang|lmdeploy|tensorrt_llm|xinference)\."
    r"|^\W{0,8}(?:from|import) (vllm|sglang|lmdeploy|tensorrt_llm)\b"
    r"|/(vllm|sglang|lmdeploy|tensorrt_llm)/[\w/]{1,80}\.py\b",
    re.MULTILINE,
)
_AS_TOOL = ("collect_env", "check_env")


def engines_run(text: str) -> FrozenSet[str]:
    """Return the engines that the commands, imports and tracebacks of a report run."""
    return frozenset(
        [
            next(filter(None, match.groups())).replace("_", "-")
            for match in _RUN.finditer(text[:_LONGEST])
            if not text.startswith(_AS_TOOL, match.end())
        ]
    )


#: Hazards that most runs never meet, by code, the beginning of a row's id, what is raised, their
#: effect or their severity, and what a report of one that did says: messages of the driver, of
#: compilers, of the loader and of cuDNN, not the rows of collect_env.
_SHOWS_AS = {
    "ED108": re.compile(
        r"No CUDA GPUs|(?i:no nvidia (?:driver|gpu)|cuda.{0,20}not available|libcuda|\bNVML\b"
        r"|(?:gpus?|cuda|devices?) (?:is |are )?not (?:found|detected|visible|available|used)"
        r"|(?:not|cannot|can't|doesn't|unable to) (?:see|find|detect|recogni[sz]e|use)\b.{0,30}"
        r"(?:gpu|cuda|device)|without (?:an? |any )?gpu|infer device type"
        r"|falls? back to (?:the )?cpu"
        r"|--gpus|nvidia-smi|my gpus?\b)"
    ),
    "ED102": re.compile(
        r"\bPTX\b|unsupported toolchain|no kernel image|kernel image is invalid"
        r"|invalid device function|UnsupportedPtx|driver version is insufficient"
    ),
    "ED206": re.compile(
        r"\bnvcc\b(?! version)|\bninja\b|cpp_extension|\bptxas\b|build_ext|setup\.py|\bDS_BUILD_"
        r"|\bJIT\b|unsupported GNU version|CUDA toolkit"
        r"|(?i:compil\w+ (?:fail|error|the kernel|kernels?|ops?\b|extension)"
        r"|(?:fail\w*|error|unable) (?:to |while )?(?:build|compil)\w*)"
    ),
    "ED204": re.compile(
        r"\bninja\b|cpp_extension|nvcc (?:fatal|error|fail)|\bJIT\b|different minor|CCCL"
        r"|(?i:compil\w+ (?:fail|error)|(?:fail\w*|error|unable) (?:to |while )?(?:build|compil))"
    ),
    # Rows of one feature, by the beginning of their ids.
    "refuses-python-": re.compile(r"torch[._ ]?compile|[Dd]ynamo|[Ii]nductor"),
    # By the exception that it leads to.
    "UnpicklingError": re.compile(
        r"(?i:weights_only|unpickl|resum|(?:load|restor)\w*.{0,40}(?:checkpoint|state)"
        r"|(?:checkpoint|state)\w*.{0,40}(?:load|restor))"
    ),
    # Shared memory is what the processes of one machine meet in.
    "ED502": re.compile(
        r"/dev/shm|\bshm\b|--ipc|\bNCCL (?:WARN|error)|ncclSystemError|\bSIGBUS\b"
        r"|(?i:shared[ _-]?memory|bus error|dataloader|no space left|\bhang|\bstuck\b)"
    ),
    # What may fail is of interest where a report has something that does, or asks for it.
    "warning": re.compile(
        r"(?i)\b(?:\w*errors?|exceptions?|traceback|fail\w*|crash\w*|undefined|segfault\w*"
        r"|core dumped|abort\w*|broken|breaks?|cannot|can not|can[’']?t|unable|invalid|missing"
        r"|(?:not|n[’']t) (?:be )?(?:work|load|start|run|launch|import|install|compil)\w*"
        r"|in?compatib\w*|mismatch\w*|conflict\w*|hang\w*|stuck|kill\w*|warning\w*"
        r"|compatib\w*|upgrad\w*|downgrad\w*|which (?:\w+ )?(?:versions?|releases?)"
        r"|check (?:my|our|this))\b"
        r"|报错|失败|错误|无法|崩溃|卡住|不兼容|冲突"
    ),
    "ED207": re.compile(
        r"CUDNN_STATUS|cuDNN error|sublibrar|(?i:cudnn\w*\W+(?:\w+\W+){0,4}(?:mismatch|incompatib"
        r"|fail|not found|undefined|older|newer))"
        r"|libcudnn\S{0,20}(?:: | )(?:undefined|cannot|version)"
    ),
    "ED208": re.compile(
        r"nvJitLink|libcusparse\S{0,12}(?:: | )|undefined symbol|cannot open shared object"
    ),
    # By their effect, what raises nothing.
    "wrong-results": re.compile(
        r"(?i:\b(?:wrong|incorrect|differ\w*|mismatch\w*|nan|diverg\w*|converg\w*|loss|gradients?"
        r"|grad_norm|accura\w*|garbage|gibberish|nonsense|rewards?|log-?probs?|quality|repeat\w*"
        r"|degrad\w*|worse)\b)|乱码|不一致|重复|收敛|精度|梯度|损失"
    ),
}


_A_TEXT = 2  # sentences: a title says what was met, and not what else was


_WORD = re.compile(r"(?<![\w./-])[A-Za-z][\w-]{1,40}", re.ASCII)
_EXCEPTION = re.compile(f"{EXCEPTION_NAME} ?:")


_TITLE = re.compile(r"\s*# \S.*(?=\n)")


class Complaint(NamedTuple):
    """What the sentences of a report speak of: its distributions, and whether its title names what
    it is about, one of these or an exception.
    """

    distributions: FrozenSet[str] = frozenset()
    is_specific: bool = False


def complaint_of(text: str) -> Complaint:
    """Return what a report with a title complains of in its sentences: not what its lists, code
    and tables name.
    """
    title = _TITLE.match(text)
    if title is None:
        return Complaint()
    lines = [line for line in _OWN_LINE.findall(text[:_LONGEST]) if _SENTENCE.search(line)]
    words = {word for line in (title.group(), *lines) for word in _WORD.findall(line)}
    named = {known_distribution(word) for word in words} - {None, *COMMON_WORDS}
    distributions = frozenset(filter(None, named))
    of_title = not distributions.isdisjoint(map(known_distribution, _WORD.findall(title.group())))
    return Complaint(distributions, of_title or _EXCEPTION.search(title.group()) is not None)


#: What a form asks its writer to tick: its words are nobody's.
_BOXES = re.compile(r"^[ \t]*[-*] \[[ xX]\].*$", re.MULTILINE)

#: Companions of torch that few programs import: what a report of one that did holds.
_IMPORTED_AS = {
    name: re.compile(
        rf"/{name}/|import {name}|from {name}|{name}::|lib{name}|{name}\.\w+|\b{name} (?!\s*\d)"
    )
    for name in ("torchaudio", "torchtext", "torchvision")
}


def hazards_not_met(text: str) -> FrozenSet[str]:
    """Return the hazards, by code, exception or effect, that a report in somebody's own words does
    not show to have been met, and torch's companions that nothing in it imports; none where it is
    nothing but what tools print of an environment.
    """
    text = text[:_LONGEST]
    if sum(_SENTENCE.search(line) is not None for line in _OWN_LINE.findall(text)) < _A_TEXT:
        return frozenset()
    signs = {**_SHOWS_AS, **_IMPORTED_AS}
    if _TITLE.match(text) is None:  # perhaps an environment in sentences, to be judged
        del signs["warning"]
    own = _BOXES.sub("", text)
    return frozenset([name for name, shown in signs.items() if not shown.search(own)])
