"""Releases that running text names, wherever it does: the last word on a package, Python or
the driver, where no other statement tells the version.

The readers of statements leave out a whole clause that wishes, advises or denies. Here the words
right beside the name decide: ``I tried to run vllm 0.7.3`` and ``vllm 0.7.3 does not start`` name
what is there, ``needs torch 2.6``, ``works with torch 2.5`` and ``is torch 2.6 supported?`` do
not. Of several releases that a text names the one that fails is there, else this adds nothing.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from .clean_text import Line
from .distribution_names import COMMON_WORDS, known_distribution
from .draft import PROSE, Draft
from .values import Claim, state
from .vocabulary import Topic

__all__ = ["is_here", "read_mentions"]

_LONGEST = 600  # characters of a line that somebody wrote
_NAMED = re.compile(
    r"(?<![\w./\\@:=+-])([A-Za-z][A-Za-z0-9_-]{0,40}[A-Za-z]|[A-Za-z][\w-]{1,40})"
    r"(?:\s+(?:version|ver\.?|release))?(?:[@-]|\s+)v?"
    r"(\d+\.\d[\w.]*\w(?:\+\w+)?|\d+\.\d)(?![\w/%-]|\.\d)",
    re.IGNORECASE,
)
_SENTENCES = re.compile(
    r"(?<=[.;!?])\s+|[。；！？]|\s+(?=but\b|while\b|whereas\b|however\b|so\s+(?:I|we)\b)|;"
)
#: A question about releases in general.
_ASKED = re.compile(
    r"^\W*(?:does|do|did|can|could|will|would|is|are|was|should|which|what|has|have|any|when|how|"
    r"why (?:not|isn't|doesn't))\b",
    re.IGNORECASE,
)
_WORK = r"(?:works?|worked|working|ran|fine|okay|ok|good|successful\w*|fixed|solved|gone)"
#: Beside a name, before it: that it is asked for, offered, advised, denied, or somebody else's.
_NOT_HERE = re.compile(
    r"\b(?:requir\w+|needs?|needed|depend\w* on|expect\w*|should|must|have to|could(?! ?not)|"
    r"would(?! ?not)|wants?|instead of|rather than|recommend\w*|support\w*|suggest\w*|"
    r"(?<!not )compatible|tested|at least|minimum|until|till|before|prior to|than|below|above|"
    r"only (?:with|on|in|for)|up to|fix(?:e[sd])?|resolved?|solve[sd]?|releas\w+|"
    r"introduced|removed|added|deprecated|available|also tried|existing installation|uninstall\w*|"
    r"(?:up|down)grade|update|switch|revert|"
    r"move|migrate|bump|roll|going back|go back|to use|please|if|unless|"
    r"e\.g|such as|like|other|another|previous\w*|earlier|different|"
    r"README|docs?|documentation|changelog|notes|same as|they|he|she|someone|somebody|people|"
    r"authors?|paper|your?|others?|else|from|next|future|upcoming|plan\w*|either|or|"
    r"(?:trained|saved|created|exported|pickled) (?:with|by|in|under)|"
    r"(?:built|compiled|made|meant|wheels?|builds?) (?:for|with|against|on))\b"
    r"(?![^,]*\bbut\b)[^,:]{0,40}$"
    r"|(?:\b(?:not|never|no longer)|n't) (?:happen\w*|occur\w*|reproduc\w*|see|have|present|in|"
    r"with|on|for)\b[^,:]{0,40}$"
    r"|(?:^|\b(?:to|just|then|can|try|and|or|pip|uv) )(?:re)?install (?:the )?$"
    r"|[<>!~]=?\s*$|需要|要求|建议|推荐|支持|升级到|降级到|换成",
    re.IGNORECASE,
)
#: The same for what works.
_WORKS_BEFORE = re.compile(
    rf"\b(?:{_WORK}|no (?:issues?|problems?|errors?)|without errors?)\b(?: \w+){{0,3}} "
    r"(?:with|on|in|under|using|for|at|after|when|once)\b[^,]{0,35}$",
    re.IGNORECASE,
)
_NOT_HERE_BEHIND = re.compile(
    r"^\s*(?:\+\s*(?:$|[,;)])|(?:or|and) (?:later|newer|above|higher|older|lower|below|greater|"
    r"up|earlier|v?\d)|(?:to|->|=>|→|-)\s*v?\d|depends? on|instead\b|"
    r"(?:which |that |it |and )?(?:(?:still |also )?(?:works?|worked|ran)\b|"
    r"(?:is|was|are|were) (?:fine|ok|okay|good|required|needed|recommended|available|supported|"
    r"out|released|the (?:last|minimum))|supports?\b|should\b|(?:fixes|fixed|solve[sd]|"
    r"resolve[sd])\b)|[^,.;]{0,40}\b(?:gone|went away|disappear\w*|solved|fixed)\b|及?以上)",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"\b(?:fail\w*|crash\w*|break\w*|broken?|hang\w*|stuck|error\w*|exception|segfault\w*|bug|"
    r"issue|problem|(?:does|do|did|can|could|will|is|was) ?(?:not|n't)|cannot|unable|not work\w*|"
    r"no longer works?)\b|n't\b|报错|失败|无法|不能|出错",
    re.IGNORECASE,
)
#: What negates that something works: the release that it names is the one that fails.
_DENIED = re.compile(
    r"\b(?:not|cannot|never|no longer|unable to|fail\w* to)\b|n't\b", re.IGNORECASE
)


#: What is no distribution, by its name.
_TOPICS = {
    "python": Topic("python.version", "python"),
    "driver": Topic("driver.release", "release"),
}


class _Mention(NamedTuple):
    version: str
    line: Line
    fails: bool


def read_mentions(lines: Iterable[Line], draft: Draft) -> None:
    """Claim the releases that sentences name of packages without a known version.

    Args:
        lines: Those of the whole text.
        draft: What the other readers claimed; it is read and added to.
    """
    mentions: Dict[str, List[_Mention]] = {}
    seen: Set[str] = set()
    for line in lines:
        if len(line.text) <= _LONGEST and not line.prompt and line.text not in seen:
            seen.add(line.text)
            for name, mention in _mentions_of(line, draft):
                mentions.setdefault(name, []).append(mention)
                draft.keep_telling(name, mention.version, line, PROSE)
    for name, of_name in mentions.items():
        meant = _believed(of_name)
        if meant is None:
            continue
        if name in _TOPICS:
            state(Claim(_TOPICS[name], "said", meant.version, meant.line), draft)
        else:
            draft.mention_release(name, meant.version, meant.line)


def _mentions_of(line: Line, draft: Draft) -> Iterator[Tuple[str, _Mention]]:
    if _NAMED.search(line.text) is None:
        return
    for sentence in _SENTENCES.split(line.text):
        asked = line.text.rstrip().endswith("?") and _ASKED.search(sentence) is not None
        for match in () if asked else _NAMED.finditer(sentence):
            name = _open_name(match.group(1), draft)
            if name is None:
                continue
            before, behind = sentence[: match.start()], sentence[match.end() :]
            if is_here(before, behind):
                fails = _FAILS.search(sentence) is not None
                yield name, _Mention(match.group(2), line, fails)


def _open_name(word: str, draft: Draft) -> Optional[str]:
    """Return the distribution or topic of a name, None where another statement tells of it."""
    topic = _TOPICS.get(word.lower())
    if topic is not None:
        return word.lower() if draft.claimed(topic.name) is None else None
    name = known_distribution(word)
    return None if name is None or name in COMMON_WORDS or draft.states_release(name) else name


def is_here(before: str, behind: str) -> bool:
    """Tell from the words on both sides of a release whether it is one that the writer runs."""
    before = before[-90:]
    if _NOT_HERE.search(before) or _NOT_HERE_BEHIND.search(behind):
        return False
    works = _WORKS_BEFORE.search(before)
    return works is None or _DENIED.search(before) is not None


def _believed(mentions: List[_Mention]) -> Optional[_Mention]:
    """Return the one release that all name, or all that fail; ``2.6.0`` says ``2.6``, too."""
    for chosen in (mentions, [mention for mention in mentions if mention.fails]):
        if not chosen:
            continue
        longest = max(chosen, key=lambda mention: len(mention.version))
        if all(f"{longest.version}.".startswith(f"{other.version}.") for other in chosen):
            return longest
    return None
