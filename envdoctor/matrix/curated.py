"""Models, framework profiles and conda names: the curated tables that a check does not need.

Read on first use, never at start. The keys of each table (``?``: may be left out); every entry
also has source, date and trust, from ``[defaults]`` where it says none.

``models.toml``
    ``[[model]]``: name, repository, parameters, layers, hidden, heads, kv_heads, head_dim,
    vocabulary, intermediate? (0: no dense layer), tied?, aliases?, active?, experts?,
    experts_per_token?, expert_intermediate?, shared_intermediate?, dense_layers?, q_lora?,
    kv_lora?, nope_dim?, rope_dim?, v_dim? (latent attention), vision?, qkv_bias?, bias?, gated?,
    qk_norm?, norms? (a layer, 2), windowed? (layers that look at a window of the text only), note?
``conda.toml``
    ``[[conda]]``: distribution, package? (left out: there is none), channel?, note?
``profiles/<name>.toml``
    title, distribution, repository, on_index?, note?, source, date, trust
    ``[layout]``: files?, absent?, contains? (a list of { file, text }), direct_url?: how an
    installed tree is told from others of its name
    ``[[request]]``: name, title, requirements?, direct? (what comes from git), python?,
    prereleases?, overrides?, variables?, tested?
    ``[[tested]]``: name, packages, verdict? (good | bad), python?, tag?, commit?, image?, cuda?,
    driver?, gpu?, contradicts?, note?
    ``[[bad]]``: text, rows? (ids of the matrix rows that find it)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ..model.layout import Layout
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.requirement import requirement_fault, try_requirement
from ..model.versions import InvalidSpecifier, VersionSet, canonicalize_name, try_version

if TYPE_CHECKING:
    from .entries import Entry, Faults

__all__ = [
    "CondaPackage",
    "KnownBad",
    "Model",
    "NamedRequest",
    "Profile",
    "TestedSet",
    "find_model",
    "make_conda",
    "make_model",
    "make_profile",
    "parse_conda",
    "parse_models",
    "parse_profile",
    "read_tables",
]


class Model(NamedTuple):
    """Dimensions of a language model, from its config.json.

    context: longest sequence, tokens, 0 where that was not looked up. parameters: as published,
    vision tower included (``vision``: its share). active: used per token,
    as its makers give it. intermediate: of dense layers (0 where all layers have experts);
    expert_intermediate: of one expert, shared_intermediate: of all shared ones together.
    dense_layers: how many layers of a model with experts have none. q_lora, kv_lora, nope_dim,
    rope_dim, v_dim: latent attention (0: none).
    aliases: other names with the same dimensions.
    """

    name: str
    repository: str
    parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    intermediate: int
    tied: bool
    aliases: Tuple[str, ...]
    active: int
    experts: int
    experts_per_token: int
    expert_intermediate: int
    shared_intermediate: int
    dense_layers: int
    q_lora: int
    kv_lora: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    vision: int
    qkv_bias: bool
    bias: bool
    gated: bool
    qk_norm: bool
    norms: int
    windowed: bool
    note: str
    source: str
    date: str
    trust: str

    @property
    def cache_values(self) -> int:
        """Values in the KV cache for one token, over all layers; with sliding windows an upper
        bound for long texts.
        """
        per_layer = (
            self.kv_lora + self.rope_dim if self.kv_lora else 2 * self.kv_heads * self.head_dim
        )
        return self.layers * per_layer


class NamedRequest(NamedTuple):
    """What is asked of the resolver under a name.

    direct: requirements that come from git; they are installed without what they require, so that
    ``requirements`` has it, also what no file of ``packages/`` knows. tested: the set it stands
    for, by name.
    """

    name: str
    title: str
    requirements: Tuple[str, ...]
    direct: Tuple[str, ...]
    python: str
    prereleases: Tuple[str, ...]
    overrides: Tuple[str, ...]
    variables: Mapping[str, str]
    tested: Optional[str]
    source: str
    date: str
    trust: str


class TestedSet(NamedTuple):
    """A set of exact versions that maintainers shipped or measured. contradicts: metadata edges
    that it breaks ("vllm -> transformers").
    """

    name: str
    packages: Tuple[str, ...]
    good: bool
    python: str
    tag: str
    commit: str
    image: str
    cuda: str
    driver: str
    gpu: str
    contradicts: Tuple[str, ...]
    note: str
    source: str
    date: str
    trust: str


class KnownBad(NamedTuple):
    """A trap of this framework. rows: the matrix rows that find it, where versions decide it."""

    text: str
    rows: Tuple[str, ...]
    source: str
    date: str
    trust: str


class Profile(NamedTuple):
    """One framework. on_index: what the default index has under ``distribution`` is this code."""

    name: str
    title: str
    distribution: str
    repository: str
    on_index: bool
    note: str
    layout: Layout
    requests: Tuple[NamedRequest, ...]
    tested: Tuple[TestedSet, ...]
    bad: Tuple[KnownBad, ...]
    source: str
    date: str
    trust: str


class CondaPackage(NamedTuple):
    """The conda package of a distribution; ``package`` is None where there is none."""

    distribution: str
    package: Optional[str]
    channel: Optional[str]
    note: str
    source: str
    date: str
    trust: str


# --------------------------------------------------------------------------------------------------
# finding a model

#: Words that say how a model was tuned or packed, and leave its dimensions as they are.
_SUFFIXES = pattern(
    r"(?:-(?:instruct|chat|base|it|pt|hf|awq|gptq|gguf|fp8|bf16|fp16|dynamic|bnb|int4|int8|4bit"
    r"|8bit|w4a16|w8a8|quantized\.w\da\d+))+$"
)
_CACHED = pattern(r"(?:^|/)models--[^/]*?--([^/]+)")


def _model_key(name: str) -> str:
    text = name.strip().rstrip("/")
    cached = _CACHED.search(text)
    text = cached.group(1) if cached is not None else text.rpartition("/")[2]
    return _SUFFIXES.sub("", text.lower().replace("_", "-"))


def find_model(entries: Iterable[Mapping[str, Any]], name: str) -> Optional[Mapping[str, Any]]:
    """Return the entry of a model by repository (``Qwen/Qwen2.5-7B-Instruct``), name, alias or
    path, or None.

    The last part of a path is taken whole, but for words of tuning and packing:
    ``Qwen2.5-7B-Instruct-AWQ`` is ``Qwen2.5-7B``, and ``Qwen2.5-7B-mine`` is not known.
    """
    wanted = _model_key(name)
    for entry in entries:
        if wanted in (
            _model_key(known)
            for known in (entry["name"], entry["repository"], *entry.get("aliases", ()))
        ):
            return entry
    return None


# --------------------------------------------------------------------------------------------------
# from JSON values


def make_model(entry: Mapping[str, Any]) -> Model:
    """Make a model of its checked form."""
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key != "origin"
    }
    defaults: Dict[str, Any] = dict.fromkeys(_INTEGERS, 0)
    defaults.update(
        {
            "tied": False,
            "aliases": (),
            "qkv_bias": False,
            "bias": False,
            "gated": True,
            "qk_norm": False,
            "norms": 2,
            "windowed": False,
            "note": "",
        }
    )
    return Model(**{**defaults, **values})


def make_conda(entry: Mapping[str, Any]) -> CondaPackage:
    """Make a conda name of its checked form."""
    provenance = (entry["source"], entry["date"], entry["trust"])
    return CondaPackage(
        entry["distribution"],
        entry.get("package"),
        entry.get("channel"),
        entry.get("note", ""),
        *provenance,
    )


def make_profile(name: str, document: Mapping[str, Any]) -> Profile:
    """Make a profile of its checked form."""

    def listed(entry: Mapping[str, Any], key: str) -> Tuple[str, ...]:
        return tuple(entry.get(key, ()))

    def provenance(entry: Mapping[str, Any]) -> Tuple[str, str, str]:
        return entry["source"], entry["date"], entry["trust"]

    layout = document.get("layout", {})
    return Profile(
        name=name,
        title=document["title"],
        distribution=document["distribution"],
        repository=document["repository"],
        on_index=document.get("on_index", True),
        note=document.get("note", ""),
        layout=Layout(
            listed(layout, "files"),
            listed(layout, "absent"),
            tuple((item["file"], item["text"]) for item in layout.get("contains", ())),
            listed(layout, "direct_url"),
        ),
        requests=tuple(
            NamedRequest(
                entry["name"],
                entry["title"],
                listed(entry, "requirements"),
                listed(entry, "direct"),
                entry.get("python", ""),
                listed(entry, "prereleases"),
                listed(entry, "overrides"),
                entry.get("variables", {}),
                entry.get("tested"),
                *provenance(entry),
            )
            for entry in document.get("request", ())
        ),
        tested=tuple(
            TestedSet(
                entry["name"],
                listed(entry, "packages"),
                entry.get("verdict", "good") == "good",
                entry.get("python", ""),
                entry.get("tag", ""),
                entry.get("commit", ""),
                entry.get("image", ""),
                entry.get("cuda", ""),
                entry.get("driver", ""),
                entry.get("gpu", ""),
                listed(entry, "contradicts"),
                entry.get("note", ""),
                *provenance(entry),
            )
            for entry in document.get("tested", ())
        ),
        bad=tuple(
            KnownBad(entry["text"], listed(entry, "rows"), *provenance(entry))
            for entry in document.get("bad", ())
        ),
        source=document["source"],
        date=document["date"],
        trust=document["trust"],
    )


# --------------------------------------------------------------------------------------------------
# checking

_SIZES = ("parameters", "layers", "hidden", "heads", "kv_heads", "head_dim", "vocabulary")
_INTEGERS = (
    "context",
    "intermediate",
    "active",
    "experts",
    "experts_per_token",
    "expert_intermediate",
    "shared_intermediate",
    "dense_layers",
    "q_lora",
    "kv_lora",
    "nope_dim",
    "rope_dim",
    "v_dim",
    "vision",
)
_FLAGS = ("tied", "qkv_bias", "bias", "gated", "qk_norm", "windowed")
_DIRECT = re.compile(r"git\+https://\S+@\S+")
_EDGE = re.compile(r"[a-z0-9._-]+ -> [a-z0-9._-]+")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def parse_models(document: Mapping[str, Any], origin: str, faults: Faults) -> List[Dict[str, Any]]:
    """Check ``models.toml`` and return its models; what is left out stays left out."""

    def read(entry: Entry) -> Dict[str, Any]:
        model: Dict[str, Any] = {
            "name": entry.text("name"),
            "repository": entry.text("repository", pattern=_REPOSITORY),
        }
        for key in _SIZES:
            model[key] = entry.integer(key)
            if model[key] is not None and model[key] <= 0:
                entry.fault(key, f"expected a positive number, found {model[key]}")
        for key in _INTEGERS:
            model[key] = entry.integer(key, required=False) or None
        for key in _FLAGS:
            model[key] = _flag(entry, key)
        model["norms"] = entry.integer("norms", required=False)
        model["aliases"] = list(entry.strings("aliases"))
        model["note"] = entry.maybe("note")
        if model["experts"] and not (model["experts_per_token"] and model["expert_intermediate"]):
            entry.fault("experts", "needs experts_per_token and expert_intermediate")
        if not model["experts"] and not model["intermediate"]:
            entry.fault("intermediate", "is missing")
        if model["kv_lora"] and not (model["nope_dim"] and model["rope_dim"] and model["v_dim"]):
            entry.fault("kv_lora", "needs nope_dim, rope_dim and v_dim")
        return model

    models = read_tables(document, "model", origin, faults, read)
    known: Dict[str, str] = {}
    for model in models:
        for key in {
            _model_key(text)
            for text in (model["name"], model["repository"], *model.get("aliases", ()))
        }:
            if known.setdefault(key, model["name"]) != model["name"]:
                faults.add(
                    f"{origin}: model {model['name']!r}",
                    "aliases",
                    f"{key!r} is already {known[key]!r}",
                )
    return models


def parse_conda(document: Mapping[str, Any], origin: str, faults: Faults) -> List[Dict[str, Any]]:
    """Check ``conda.toml`` and return its entries."""

    def read(entry: Entry) -> Dict[str, Any]:
        package: Dict[str, Any] = {
            "distribution": entry.text("distribution"),
            "package": entry.maybe("package"),
            "channel": entry.maybe("channel"),
            "note": entry.maybe("note"),
        }
        if package["distribution"] != canonicalize_name(package["distribution"]):
            entry.fault(
                "distribution",
                f"expected {canonicalize_name(package['distribution'])!r}, found "
                f"{package['distribution']!r}",
            )
        if bool(package["package"]) != bool(package["channel"]):
            entry.fault("channel", "package and channel come together")
        return package

    return read_tables(document, "conda", origin, faults, read, key="distribution")


def parse_profile(document: Mapping[str, Any], origin: str, faults: Faults) -> Dict[str, Any]:
    """Check one ``profiles/<name>.toml`` and return it with the defaults written out; what is left
    out stays left out.
    """
    from .entries import Entry

    inherited = {key: document[key] for key in ("source", "date", "trust") if key in document}
    top = Entry(document, origin, faults)
    top.asked += ["layout", "request", "tested", "bad"]
    profile: Dict[str, Any] = {
        "title": top.text("title"),
        "distribution": top.text("distribution"),
        "repository": top.text("repository", pattern=_REPOSITORY),
        "on_index": _flag(top, "on_index"),
        "note": top.maybe("note"),
    }
    profile["source"], profile["date"], profile["trust"] = top.provenance()
    top.finish()
    layout = document.get("layout", {})
    if isinstance(layout, dict):
        profile["layout"] = _layout(Entry(layout, f"{origin}: layout", faults))
    else:
        faults.add(origin, "layout", "expected a table")
    for name, read in (("request", _request), ("tested", _tested), ("bad", _bad)):
        profile[name] = read_tables(
            {"defaults": inherited, name: document.get(name, [])},
            name,
            origin,
            faults,
            read,
            key="name",
        )
        for entry in profile[name]:
            del entry["origin"]
    sets = {entry["name"] for entry in profile["tested"]}
    for entry in profile["request"]:
        if entry.get("tested", None) is not None and entry["tested"] not in sets:
            faults.add(
                f"{origin}: request {entry['name']!r}",
                "tested",
                f"there is no tested set {entry['tested']!r}",
            )
    return {key: value for key, value in profile.items() if value not in (None, [], {})}


def _layout(entry: Entry) -> Dict[str, Any]:
    from .entries import Entry as Part

    layout: Dict[str, Any] = {
        key: list(entry.strings(key)) for key in ("files", "absent", "direct_url")
    }
    layout["contains"] = []
    for position, item in enumerate(entry.tables("contains"), 1):
        part = Part(item, f"{entry.where}: contains[{position}]", entry.faults)
        layout["contains"].append({"file": part.text("file"), "text": part.text("text")})
        part.finish()
    entry.finish()
    return {key: value for key, value in layout.items() if value}


def _request(entry: Entry) -> Dict[str, Any]:
    request: Dict[str, Any] = {"name": entry.text("name"), "title": entry.text("title")}
    request["requirements"] = _requirements(entry, "requirements")
    request["overrides"] = _requirements(entry, "overrides")
    request["direct"] = list(entry.strings("direct"))
    for text in request["direct"]:
        requirement = try_requirement(text)
        if requirement is None or not _DIRECT.fullmatch(requirement.url):
            entry.fault("direct", f"expected the form 'name @ git+https://…@tag', found {text!r}")
    request["python"] = entry.maybe("python")
    if request["python"]:
        _specifier(entry, "python", request["python"])
    request["prereleases"] = list(entry.strings("prereleases"))
    variables = entry.values.get("variables", {})
    entry.asked.append("variables")
    if not isinstance(variables, dict) or not all(
        isinstance(value, str) for value in variables.values()
    ):
        entry.fault("variables", f"expected a table of strings, found {variables!r}")
        variables = {}
    request["variables"] = dict(variables)
    request["tested"] = entry.maybe("tested")
    if not request["requirements"] and not request["direct"]:
        entry.fault("requirements", "a request asks for something")
    return request


def _tested(entry: Entry) -> Dict[str, Any]:
    tested: Dict[str, Any] = {
        "name": entry.text("name"),
        "verdict": entry.text("verdict", required=False, words=("good", "bad")) or None,
    }
    tested["packages"] = list(entry.strings("packages"))
    if not tested["packages"]:
        entry.fault("packages", "is missing or empty")
    names = [_exact_name(text) for text in tested["packages"]]
    for text, name in zip(tested["packages"], names):
        if name is None:
            entry.fault(
                "packages", f"expected an exact version such as 'torch==2.6.0', found {text!r}"
            )
    for name in sorted({name for name in names if name is not None and names.count(name) > 1}):
        entry.fault("packages", f"{name} stands twice")
    for key in ("python", "cuda", "driver"):
        tested[key] = entry.version(key, required=False) or None
    for key in ("tag", "commit", "image", "gpu", "note"):
        tested[key] = entry.maybe(key)
    tested["contradicts"] = list(entry.strings("contradicts"))
    for edge in tested["contradicts"]:
        if not _EDGE.fullmatch(edge):
            entry.fault("contradicts", f"expected 'vllm -> transformers', found {edge!r}")
    return tested


def _exact_name(text: str) -> Optional[str]:
    """Return the name in ``torch==2.6.0``, None where it is spelt otherwise or has no version."""
    requirement = try_requirement(text)
    if requirement is None or try_version(requirement.exact) is None:
        return None
    return requirement.name if text.startswith(requirement.name) else None


def _bad(entry: Entry) -> Dict[str, Any]:
    return {"text": entry.text("text"), "rows": list(entry.strings("rows"))}


def read_tables(
    document: Mapping[str, Any],
    name: str,
    origin: str,
    faults: Faults,
    read: Any,
    key: str = "name",
) -> List[Dict[str, Any]]:
    """Read the ``[[name]]`` entries of a file, each with its provenance; empty values are left
    out.
    """
    from .entries import Entry

    for other in document:
        if other not in ("defaults", name):
            faults.add(origin, other, f"no such table (known: defaults, {name})")
    defaults = document.get("defaults", {})
    if not isinstance(defaults, dict) or not set(defaults) <= {"source", "date", "trust"}:
        faults.add(origin, "defaults", "expected a table with source, date and trust only")
        defaults = {}
    entries = document.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(item, dict) for item in entries):
        faults.add(origin, name, f"expected [[{name}]] tables")
        return []
    result: List[Dict[str, Any]] = []
    names: List[str] = []
    for number, values in enumerate(entries, 1):
        entry = Entry(values, f"{origin}: {name} {values.get(key, number)!r}", faults, defaults)
        before = len(faults.found)
        made = read(entry)
        made["source"], made["date"], made["trust"] = entry.provenance()
        entry.finish()
        if made.get(key) in names:
            entry.fault(key, "stands twice")
        names += [made[key]] if made.get(key) else []
        if len(faults.found) == before:
            result.append(
                {
                    **{word: value for word, value in made.items() if value not in (None, [], {})},
                    "origin": origin,
                }
            )
    return result


def _flag(entry: Entry, key: str) -> Optional[bool]:
    entry.asked.append(key)
    value = entry.values.get(key)
    if value is not None and not isinstance(value, bool):
        entry.fault(key, f"expected true or false, found {value!r}")
        return None
    return value


def _requirements(entry: Entry, key: str) -> List[str]:
    texts = list(entry.strings(key))
    for text in texts:
        fault = requirement_fault(text)
        if fault:
            entry.fault(key, fault)
    return texts


def _specifier(entry: Entry, key: str, text: str) -> None:
    try:
        VersionSet.parse(text)
    except InvalidSpecifier as error:
        entry.fault(key, str(error))
