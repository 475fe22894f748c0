"""Lines of a pasted text that state nothing of an environment, by their form.

They are no lines that were not understood: frames and messages of tracebacks (which the reader of
logs takes), code, pictures and links, the legend of a topology, what ``lscpu`` says of a processor.
Settings and numbers in any other form are left for their readers, and count where none takes them.
"""

from __future__ import annotations

import re
from typing import Tuple

from .clean_text import is_sentence

__all__ = ["states_nothing"]

_LONGEST = 4096  # characters of a line
#: What stands before a title, and before lines of one rank or process of a run.
_BEFORE = re.compile(
    r"^(?:#{1,6} |\[[A-Za-z][A-Za-z /-]{1,30}\]:?\s*|\[?(?:rank ?\d+|\w+/\d+)\]?:\s?"
    r"|\([^()]{1,80}pid=\d+[^()]{0,80}\)\s?|\([\w.-]{1,40}\) \[?[\w-]+@[^\]$#]{1,80}\]?[$#] )+"
)
_FORMS: Tuple[re.Pattern[str], ...] = tuple(
    re.compile(form)
    for form in (
        # nvidia-smi topo -m: its legend, and the heads of its columns
        r"^(?:X|SYS|NODE|PHB|PXB|PIX|NV#|NIC\d{1,2})\s{1,4}= ",
        r"^(?:GPU|NIC)0?\d*(?:\s+(?:GPU|NIC)\d+)*\s+CPU Affinity\b",
        r"^(?:GPU|NIC)\d+(?:\s+(?:GPU|NIC)\d+){2,}$",
        # lscpu
        r"^(?:Vulnerabilit(?:y|ies)\b|NUMA node\d* ?|NUMA:|Flags:|Caches? \(|L\d[di]? cache:)",
        r"^(?:BogoMIPS|Stepping|Byte Order|Address sizes|CPU family|Virtualization|Model):\s",
        # a traceback: its frames, marks and last line, in Python, in C++ and of the loader
        r"^(?:File \"|Traceback \(most recent|\.\.\. \d+ more frames|frame #\d+:|#\d+ +0x|\^+$)",
        r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit)\b(?:$|[:(])",
        r"^\S+:\d+: (?:[A-Z]\w*Warning|error|warning|note): ",
        r"^(?:terminate called|what\(\):|\[repeated \d+x|During handling of|The above exception)",
        r"^(?:.{0,120}\s)?\S+\.so[\d.]*: cannot open shared object file",
        # numpy 2.0 numpy/core/_multiarray_umath.py: what it prints above the name of a module
        (
            r"^(?:versions of NumPy, modules must be compiled with|downgrade to 'numpy<2'|"
            r"Some module may need to rebuild instead|We expect that some modules will need time)"
        ),
        # a picture, a link, a heading that is one, a tag
        r"^(?:!?\[[^\]]{0,300}\]\(\S{0,2000}?\)?[\s.,;:]*)+$",
        r"^<(?:img|a|video|div|sup|sub|details|summary|/\w+)\b[^>]{0,2000}/?>?.{0,80}$",
        r"^(?:https?|ftp)://\S+$",
        # a record of a program: logfmt, the kernel, llama.cpp
        r"^time=\S+ level=\w+ ",
        r"^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}\] ",
        r"^(?:llama|llm|ggml|clip|gguf|print_info|load_tensors|common|srv|slot|sched)\w*\s*: ",
        # what a trainer prints of its parameters, bars and counts of progress, numbers alone
        r"^(?:trainable params: |(?:.{0,80}\s)?\d{1,3}%\|)",
        r"^.{0,80}(?:\b\d+it \[|[\u2501\u2588]{3})",
        r"^[\d\s.,:;%|()\[\]{}+-]+$",
        # apt and dpkg at work, pip's frame around another program, an excerpt of a Dockerfile
        r"^(?:Get|Hit|Ign):\d+ |^Fetched \d|^\(Reading database|^Processing triggers for ",
        r"^(?:Selecting previously unselected package|Preparing to unpack|Unpacking) ",
        r"^[\u2500-\u257f\s>]*(?:exit code: \d+|\[\d+ lines of output\])$",
        r"^A new release of pip is available",
        r"^(?:Downloading|Downloaded) \S+ \([\d.]+ ?[kKMG]?i?B\)$",
        r"^(?:\d{1,4} \|(?:$| >>> )|(?:\S*/)?Dockerfile\S*:\d+$)",
        # a message to a model
        r"^[\"']?(?:content|role|prompt)[\"']?\s?:\s?[\"']",
        # progress of docker, a list of files, a value that is not there
        r"^(?:\[\+\] (?:Running|Building|Pulling)|=>|[\u2800-\u28ff\u2714\u2718] )",
        r"^(?:[dl-](?:[r-][w-][xsStT-]){3}[.+@]?\s|total \d+$)",
        r"^[^:]{1,60}:\s.{0,200}?(?:\bN/A\b|\bNot affected$|\bMitigation[:;].*$)",
        r"^(?:[a-z][a-z0-9_]{1,30} ){8,}[a-z0-9_]*$",
        # a program that is started without any setting
        r"^(?:\S{0,200}/)?python\d?(?:\.\d+)? (?:-m )?[\w./-]+[:：]?$",
    )
)
#: Code: definitions, control flow, calls, a value that a call or another name gives, a bracket.
_CODE: Tuple[re.Pattern[str], ...] = tuple(
    re.compile(form)
    for form in (
        r"^(?:async )?(?:def|class) \w+.*:?$",
        r"^(?:if|elif|while|for|with|except|try|else|finally)\b.*:$",
        r"^(?:return|raise|yield|await|assert|print|logger\.\w+) ?[\w.\[\"'(].{0,400}$",
        r"^(?:\w+\.)*\w+ ?[+|:]?= ?(?:not |await )?[A-Za-z_][\w.]*[\[(].{0,400}$",
        r"^(?:\w+\.)*\w+ ?= ?[a-z_]\w*\.[\w.\[\]()]+,?$",
        r"^\w+(?:\.\w+)+(?:\(| / ).{0,400}$",
        r"^(?:import [\w.]+(?: as \w+)?|from [\w.]+ import .{1,300})$",
        r"^\w+ ?= ?[a-z]+,$",
        r"^\w+ ?= ?[\w.]+\)+,?$",
        r"^(?:\w+\.)*\w+ ?= ?.{1,200} if .{1,200} else \S",
        r"^[\w \"']{1,60} ?[:=] ?[\[{(],?$",
    )
)
#: What of a line says nothing of an environment: links, pictures, issues, people, revisions.
_ASIDE = re.compile(
    r"!?\[[^\]\n]{0,300}\]\([^)\s]{0,2000}\)?|<[/a-z][^<>]{0,2000}/?>|\bhttps?://\S+"
    r"|(?<![\w&/])#\d{1,6}\b|(?<![\w.])@[\w-]{1,40}\b|\b(?=[0-9a-f]{0,39}[a-f])(?=[0-9a-f]{0,39}\d)"
    r"[0-9a-f]{7,40}\b|(?<!\w)\d+(?:st|nd|rd|th)\b|\b[12]\d{3}-\d\d-\d\d\b"
)
#: What a trainer or a server prints of each step: a loss, a rate, a throughput.
_METRIC = re.compile(
    r"(?:^|[\W_])(?:loss|lr|learning_rate|grad_norm|epoch|step|iter|acc(?:uracy)?|ppl|reward\w*|"
    r"mfu|entropy|tok/s(?:ec)?|dt|iter_dt|samples_per_second|steps_per_second|runtime)"
    r"[\"']?\s?[:=]?\s?[\"'(]?-?(?:\d|nan\b|inf\b)",
    re.IGNORECASE,
)
_FEW = 2  # metrics of a step
_STATES = re.compile(r"\d|\w\s*[:=]\s*\S")
_NUMBER = re.compile(r"\d")


def _is_of_step(text: str) -> bool:
    """Tell whether a line holds the metrics of a step of training."""
    return any(sign in text for sign in ":=|") and len(_METRIC.findall(text)) >= _FEW


def states_nothing(text: str) -> bool:
    """Tell whether a line is of a form that states nothing of an environment.

    text: The line without bullets and prompts (``Line.text``).
    """
    text = _BEFORE.sub("", text[:_LONGEST]).strip()
    if any(form.match(text) for form in _FORMS) or _is_of_step(text):
        return True
    rest = _ASIDE.sub(" ", text)
    if is_sentence(rest):
        return _NUMBER.search(rest) is None  # a colon there is its author's, and no field's
    return _STATES.search(rest) is None or any(form.match(text) for form in _CODE)
