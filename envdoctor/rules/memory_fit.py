"""ED601 to ED605, ED607: findings about a memory plan.

An error is only what cannot fit; what may not fit is a warning that says so.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

from ..model.evidence import Evidence
from ..model.finding import Finding, Remedy
from ..model.memory_plan import CacheCheck, Lever, Limit, MemoryPlan, MemoryTerm, Pool
from ..model.row import Source
from ..model.sizes import GIB, gib_text
from ..model.workload import ConfigurationProblem, Workload
from .rule import Rule

__all__ = ["RULES_HERE", "findings_of", "problem_findings"]

_SEVERITY = {"does not fit": "error", "tight": "warning"}
_FEW_TERMS = 4
_FEW_REMEDIES = 3
_RAY = "Ray's monitor"
_RAY_OOM = Source(
    "https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html",
    "RAY_memory_usage_threshold, default 0.95",
)
_PINNED = Source(
    "https://github.com/pytorch/pytorch/issues/95823",
    "pinned memory is rounded up to a power of two",
)
_ZERO = Source("https://arxiv.org/abs/1910.02054", "2 + 2 + 12 bytes for each parameter")
_CACHE = Source(
    "https://github.com/vllm-project/vllm/issues/10517",
    "The model's max seq len is larger than the maximum number of tokens that can be stored in KV "
    "cache",
)
_STORE = Source(
    "https://github.com/ray-project/ray/blob/master/python/ray/_private/services.py",
    "The requested object store memory is larger than /dev/shm: ValueError above 10^10 bytes, /tmp "
    "below",
)
_SWAP = Source(
    "https://github.com/vllm-project/vllm/pull/36216",
    "swap_space: GiB for each GPU, pinned; removed in 0.18",
)
_RAY_STRICT = 10**10


def findings_of(
    workload: Workload, plan: MemoryPlan, levers: Sequence[Lever] = ()
) -> List[Finding]:
    """Return what is wrong with a plan, causes before what follows from them."""
    findings: List[Finding] = []
    for pool in plan.pools:
        own = [
            lever for lever in levers if (lever.pool, lever.subject) == (pool.name, pool.subject)
        ]
        if pool.name == "host":
            swap = list(check_swap_space(workload, pool, own))
            findings += [*swap, *check_host(pool, own, swap[-1].key if swap else None)]
        elif pool.name == "gpu":
            findings += check_gpu(pool, own)
        else:
            findings += check_shm(workload, pool, own)
    if plan.cache is not None:
        own = [lever for lever in levers if lever.pool == "cache"]
        findings += check_cache(workload, plan.cache, own)
    return findings


def check_host(pool: Pool, levers: Sequence[Lever], root: Optional[str]) -> Iterator[Finding]:
    """The run takes more host memory than its node, container or job has.

    What it checks:
        What stays on the host in the worst phase (load, rollout, update, save), from below and from
        above, against the smallest limit: the machine's memory, the control group's, the
        scheduler's, the script's own. With Ray 95 % of it, where its monitor begins to kill.

    Why it matters:
        Ray kills a worker ("Task was killed due to the node running low on memory",
        ActorDiedError), or the kernel does with SIGKILL, after minutes to hours: at the first
        checkpoint, or when an offload has filled the pinned pool.

    How to fix:
        The levers of "envdoctor plan", in the order of what they cost: swap space, sleep level 2,
        bf16 sums of gradients with ZeRO-3 (with ZeRO-1 and 2 they change nothing), no offload where
        the GPU has room, checkpoints without the optimizer, more memory. Python's garbage
        collection and torch.cuda.empty_cache() free none of it.

    References:
        arXiv:1910.02054; DeepSpeed stage_1_and_2.py; PyTorch CachingHostAllocator.h; Ray,
        out-of-memory prevention.
    """
    severity = _SEVERITY.get(pool.verdict)
    if severity is None or pool.limit is None:
        return
    yield _pool_finding(
        "ED601",
        "host-memory",
        "host-oom",
        "host memory",
        severity,
        pool,
        pool.limit,
        levers,
        (*((_RAY_OOM,) if _RAY in pool.limit.reason else ()), _ZERO, _PINNED),
        root,
    )


def check_swap_space(workload: Workload, pool: Pool, levers: Sequence[Lever]) -> Iterator[Finding]:
    """Swap space takes a large part of the host's memory.

    What it checks:
        What the engine pins as swap space for all GPUs of a node, where the host's memory does not
        suffice: more than a quarter of what may be used.

    Why it matters:
        It is pinned at the start, whether it is ever used or not, and cannot be swapped out.

    How to fix:
        Lower swap_space; 4 GiB for each GPU is vllm's default, and 0 works. From 0.18 on vllm has
        no such setting.

    References:
        https://github.com/vllm-project/vllm/pull/36216
    """
    severity = _SEVERITY.get(pool.verdict)
    if severity is None or pool.limit is None:
        return
    key = workload.key_of("rollout.swap_space")
    own = [lever for lever in levers if "rollout.swap_space" in lever.fields]
    lower = Remedy(f"Lower {key}; 4 GiB for each GPU is vllm's default, and 0 works.", (), "safe")
    for term in pool.term("swap space"):
        if term.low > pool.limit.usable // 4:
            yield Finding(
                "ED604",
                "swap-space",
                "swap-space-too-large",
                severity,
                f"{key} alone pins {gib_text(term.low)} GiB of host memory ({term.formula}), of "
                f"{gib_text(pool.limit.usable)} GiB that may be used.",
                evidence=_evidence(term),
                sources=(_SWAP, _PINNED),
                remedies=_remedies(own) or (lower,),
            )


def check_gpu(pool: Pool, levers: Sequence[Lever]) -> Iterator[Finding]:
    """The run takes more memory than a GPU has.

    What it checks:
        Weights, gradients, optimizer, activations and logits of the models that share a GPU, and
        the engine's share of it, in the worst phase.

    Why it matters:
        "CUDA out of memory" at the first optimizer step (its moments are made there) or at the
        first long batch.

    How to fix:
        Smaller micro batches and gradient checkpointing against activations and logits; more
        sharding or offload against state; a lower gpu_memory_utilization where the engine shares
        the GPU.

    References:
        arXiv:1910.02054, arXiv:2205.05198; vllm/config/cache.py.
    """
    severity = _SEVERITY.get(pool.verdict)
    if severity is not None and pool.limit is not None:
        what = f"the GPU of the {pool.subject}" if pool.subject else "each GPU"
        yield _pool_finding(
            "ED602",
            "gpu-memory",
            "gpu-oom",
            what,
            severity,
            pool,
            pool.limit,
            levers,
            (_ZERO,),
            None,
        )


def _not_known(unread: Sequence[str], *, fails: bool) -> str:
    """Return a sentence on the settings for which what cannot fit is no error."""
    if not unread or not fails:
        return ""
    names = ", ".join(unread[:_FEW_TERMS])
    more = " and others" if len(unread) > _FEW_TERMS else ""
    return f" It may take less by settings that are not known here: {names}{more}."


def _pool_finding(
    code: str,
    component: str,
    kind: str,
    what: str,
    severity: str,
    pool: Pool,
    limit: Limit,
    levers: Sequence[Lever],
    sources: Tuple[Source, ...],
    root: Optional[str],
) -> Finding:
    if severity == "error":
        phase, takes = pool.floor, f"takes at least {gib_text(pool.low)} GiB"
    else:
        phase = pool.peak
        takes = f"may take {gib_text(pool.low)} to {gib_text(pool.high)} GiB"
    held = [term for term in pool.terms if phase in term.phases]
    largest = sorted(held, key=lambda term: -(term.high + term.low))[:_FEW_TERMS]
    parts = ", ".join(
        f"{f'{term.role} {term.name}'.strip()} {_bounds(term.low, term.high)}" for term in largest
    )
    size = f"{gib_text(limit.size)} GiB"
    if limit.usable != limit.size:
        size = f"{gib_text(limit.usable)} of {size}"
    return Finding(
        code,
        component,
        kind,
        severity,
        f"The run {takes} of {what} (worst: {phase}), and {size} may be used "
        f"({limit.reason}). Largest: {parts}."
        f"{_not_known(pool.unread, fails=pool.low > limit.usable)}",
        subject=pool.subject,
        evidence=(*limit.evidence, *(evidence for term in largest for evidence in _evidence(term))),
        sources=sources,
        remedies=_remedies(levers),
        caused_by=root,
    )


def check_cache(
    workload: Workload, check: CacheCheck, levers: Sequence[Lever]
) -> Iterator[Finding]:
    """The KV cache of an engine cannot hold one sequence of the longest length.

    What it checks:
        Share of the GPU, less weights, less the activations of the engine's largest step, against
        the cache of one sequence of max_model_len.

    Why it matters:
        vllm refuses to start: "The model's max seq len (…) is larger than the maximum number of
        tokens that can be stored in KV cache".

    How to fix:
        Raise gpu_memory_utilization, lower max_model_len, or spread the engine over more GPUs.

    References:
        vllm issue 10517; vllm/config/cache.py.
    """
    severity = _SEVERITY.get(check.verdict)
    if severity is None or (severity == "warning" and check.high > 4 * check.need):
        return
    if severity == "error":
        left = f"at most {gib_text(check.high)} GiB are left"
        tokens = f"at most {check.high // check.per_token} tokens"
    else:
        left = f"{gib_text(check.low)} to {gib_text(check.high)} GiB are left"
        tokens = f"for certain only {check.low // check.per_token} tokens"
    if check.high < check.per_token:
        yield _nothing_left(workload, check)
        return
    lower = Remedy(
        f"Lower {workload.key_of('rollout.max_model_len')} to what fits, or raise "
        f"{workload.key_of('rollout.gpu_memory_utilization')}.",
        (),
        "safe",
    )
    need = (
        f"A sequence of {check.length} tokens needs {gib_text(check.need)} GiB of KV cache, but "
        if check.length
        else "Any sequence needs KV cache, but "
    )
    yield Finding(
        "ED603",
        "gpu-memory",
        "kv-cache-too-small",
        severity,
        f"{need}{left}, {tokens} ({check.formula}).{_less_than_counted(check)}",
        evidence=tuple(Evidence(entry.place) for entry in check.inputs if entry.place),
        sources=(_CACHE,),
        remedies=_remedies(levers) or (lower,),
    )


def _less_than_counted(check: CacheCheck) -> str:
    return _not_known(check.unread, fails=check.high < max(check.need, check.per_token))


def _nothing_left(workload: Workload, check: CacheCheck) -> Finding:
    """Return the finding of an engine whose weights and steps leave nothing to the cache, so that
    no sequence is short enough.
    """
    return Finding(
        "ED603",
        "gpu-memory",
        "kv-cache-too-small",
        _SEVERITY.get(check.verdict) or "warning",
        f"Nothing is left for the KV cache, however short the sequences are: {check.formula}."
        f"{_less_than_counted(check)}",
        evidence=tuple(Evidence(entry.place) for entry in check.inputs if entry.place),
        sources=(_CACHE,),
        remedies=(
            Remedy(
                f"Spread the engine over more GPUs ({workload.key_of('rollout.tensor_parallel')}), "
                "or take quantized weights (AWQ, GPTQ, FP8) or a smaller model.",
                (),
                "safe",
            ),
        ),
    )


def check_shm(workload: Workload, pool: Pool, levers: Sequence[Lever]) -> Iterator[Finding]:
    """The run asks for more of /dev/shm than there is.

    What it checks:
        The object store that a script asks Ray for, and weights that verl copies there (use_shm),
        against the size of /dev/shm.

    Why it matters:
        Above 10^10 bytes Ray refuses to start (ValueError) unless
        RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE=1; below, it goes to the disk under /tmp. Files in
        /dev/shm count against the memory limit too.

    How to fix:
        A smaller object store, or a larger /dev/shm (docker run --shm-size, an emptyDir of medium
        Memory).

    References:
        Ray python/ray/_private/services.py, PR 14629; TinyZero issue 58.
    """
    if pool.limit is None or pool.verdict not in _SEVERITY:
        return
    severity, outcome = _shm_outcome(workload, pool, pool.limit.size)
    gib = -(-int(pool.high * 1.05) // GIB)
    yield Finding(
        "ED605",
        "/dev/shm",
        "shm-too-small",
        severity,
        f"The run asks for {gib_text(pool.low)} GiB in /dev/shm, which has "
        f"{gib_text(pool.limit.size)} GiB: {outcome}.",
        subject="plan",
        evidence=(
            *pool.limit.evidence,
            *(evidence for term in pool.terms for evidence in _evidence(term)),
        ),
        sources=(_STORE,),
        remedies=(
            *_remedies(levers),
            Remedy(
                "Or give the container a larger /dev/shm; it counts against the memory limit.",
                (f"docker run --shm-size={gib}g ...",),
                "changes-host",
            ),
        ),
    )


def _shm_outcome(workload: Workload, pool: Pool, size: int) -> Tuple[str, str]:
    """Return severity and consequence of what is asked for in a /dev/shm of ``size`` bytes."""
    store = sum(term.low for term in pool.term("object store"))
    variables = dict(workload.value("variables") or {})
    slow = variables.get("RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE") == "1"
    if store > max(_RAY_STRICT, size) and not slow:
        return "error", "Ray refuses to start"
    if sum(term.low for term in pool.term("weights")) > size:
        return "error", "the copy fails"
    if store > size:
        return "warning", "Ray puts its object store below /tmp"
    return "warning", "it may not fit"


def check_configuration(workload: Workload) -> Iterator[Finding]:
    """A setting that the framework refuses, or silently ignores.

    What it checks:
        Keys that this framework and version does not have, impossible values, "export a.b=c" in
        a shell script.

    Why it matters:
        Hydra and argparse stop at an unknown key, but a value that the shell drops, or a key copied
        from another framework's instructions, changes nothing, and the run goes on with the
        default.

    How to fix:
        Use the key that is named.

    References:
        The framework's own configuration at that version.
    """
    yield from problem_findings(workload.problems)


def problem_findings(problems: Sequence[ConfigurationProblem]) -> Iterator[Finding]:
    """Return a finding for each problem of a configuration."""
    for problem in problems:
        remedy = (Remedy(f"Use {problem.nearest}.", (), "safe"),) if problem.nearest else ()
        yield Finding(
            "ED607",
            "configuration",
            "misconfigured",
            "error" if problem.certain else "warning",
            problem.message,
            subject=f"{problem.kind} {problem.key}",
            evidence=(problem.place,),
            remedies=remedy,
        )


def _evidence(term: MemoryTerm) -> Tuple[Evidence, ...]:
    return tuple(
        Evidence(entry.place, f"{entry.field} = {entry.value}")
        for entry in term.inputs
        if entry.place
    )


def _bounds(low: int, high: int) -> str:
    return "..".join(dict.fromkeys((gib_text(low), gib_text(high))))


def _remedies(levers: Sequence[Lever]) -> Tuple[Remedy, ...]:
    remedies = []
    for lever in levers[:_FEW_REMEDIES]:
        after = f"{_bounds(*lever.after)} GiB{' of cache' if lever.pool == 'cache' else ''}"
        text = f"{lever.text}: then {after}, {lever.verdict}. Price: {lever.price}."
        remedies.append(Remedy(text, (), "safe"))
    return tuple(remedies)


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED601",
        "host-memory-plan",
        "host-oom",
        "The run takes more host memory than there is",
        check_host,
    ),
    Rule(
        "ED602", "gpu-memory-plan", "gpu-oom", "The run takes more memory than a GPU has", check_gpu
    ),
    Rule(
        "ED603",
        "kv-cache-plan",
        "kv-cache-too-small",
        "The KV cache does not hold the longest sequence",
        check_cache,
    ),
    Rule(
        "ED604",
        "swap-space-plan",
        "swap-space-too-large",
        "Swap space takes a large part of the host's memory",
        check_swap_space,
    ),
    Rule(
        "ED605",
        "shared-memory-plan",
        "shm-too-small",
        "The run asks for more of /dev/shm than there is",
        check_shm,
    ),
    Rule(
        "ED607",
        "configuration-plan",
        "misconfigured",
        "The framework refuses a setting, or ignores it",
        check_configuration,
    ),
)
