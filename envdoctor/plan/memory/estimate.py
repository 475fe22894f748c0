"""From a workload, model sizes and facts to a memory plan: which terms stand in which pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...matrix.model_sizes import ModelSize, size_of
from ...model.facts import Facts
from ...model.memory_plan import PHASES, Limit, MemoryPlan, MemoryTerm, Pool
from ...model.sizes import GIB
from ...model.workload import ROLES, Workload
from .data import (
    activation_terms,
    batch_terms,
    checkpoint_terms,
    generation_terms,
    load_terms,
    process_terms,
    uses_ray,
)
from .inputs import Inputs, Role
from .pool_limits import gpu_limit, host_limit, shm_limit
from .rollout_engine import cache_check, engine_host_terms, engine_share
from .state import STRATEGIES, state_terms

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["make_plan", "sizes_of"]

_GPU_SLACK = 0.1


def sizes_of(
    workload: Workload, matrix: Optional[Matrix] = None, configs: Mapping[str, Any] = {}
) -> Dict[str, ModelSize]:
    """Return the sizes of the models that a workload names.

    Args:
        workload: The run.
        matrix: What is known of models.
        configs: ``config.json`` (and, under ``name + "#index"``, the safetensors index) of models
            that are at hand, by their name.
    """
    found: Dict[str, ModelSize] = {}
    for role in ROLES:
        # A critic or a reference without a name of its own is a copy of the actor's model.
        name = workload.value(f"{role}.model") or workload.value("actor.model")
        if not name:
            continue
        size = size_of(str(name), matrix, configs.get(name), configs.get(f"{name}#index"))
        if size is not None:
            found[role] = size
    return found


def make_plan(
    workload: Workload,
    sizes: Mapping[str, ModelSize],
    facts: Optional[Facts] = None,
    matrix: Optional[Matrix] = None,
) -> MemoryPlan:
    """Return what a run will take of each pool, and whether that fits.

    Args:
        workload: What the run asks for.
        sizes: Models by role, see :func:`sizes_of`.
        facts: The machine that it is to run on; without them no limit is known.
        matrix: Tells the nominal memory of a GPU of which only the name is known.
    """
    inputs = Inputs(workload, sizes, facts)
    roles = inputs.roles()
    gpu_size = gpu_limit(inputs, matrix)
    gpu_terms: Dict[str, List[MemoryTerm]] = {}
    gpu_missing: Dict[str, List[str]] = {}
    host_terms: List[MemoryTerm] = []
    missing: List[str] = []
    actor = sizes.get("actor")
    if actor is None:
        name = workload.value("actor.model")
        missing.append(f"the size of {name} (its config.json)" if name else "actor.model")
    for name in ROLES[1:]:
        named = workload.value(f"{name}.model")
        if (
            named
            and name not in sizes
            and workload.value(f"{name}.present") is not False
            and not inputs.serves
        ):
            missing.append(f"the size of {named} (its config.json)")
    for role in roles:
        key = role.name if inputs.separate else ""
        on_gpu, on_host = state_terms(inputs, role)
        wanted: List[str] = []
        if role.trainable:
            passing, wanted = activation_terms(inputs, role)
            generated, unknown = generation_terms(inputs, role)
            on_gpu += passing + generated
            wanted = wanted + unknown
            if role.strategy not in STRATEGIES:
                missing.append(f"{role.name}.strategy")
            if role.ranks is None:
                wanted.append("gpus_per_node")
        gpu_terms.setdefault(key, []).extend(on_gpu)
        gpu_missing.setdefault(key, []).extend(wanted)
        host_terms += on_host + load_terms(inputs, role) + checkpoint_terms(inputs, role)
        if inputs.separate and role.gpus:
            host_terms += process_terms(role.name, role.gpus)
    if inputs.generates and not inputs.serves and inputs.get("rollout.engine") is None:
        missing.append("rollout.engine")
    if inputs.gpus is None and not inputs.separate:
        missing.append("gpus_per_node")
    host_terms += _shared_host_terms(inputs, actor)
    pools = [
        Pool(
            "host",
            tuple(_apart(inputs, roles, host_terms)),
            host_limit(inputs),
            "",
            tuple(dict.fromkeys(missing)),
            _doubts(inputs, roles),
        )
    ]
    subjects = list(gpu_terms) or [""]
    if (
        inputs.separate
        and inputs.get("rollout.engine") not in (None, "hf")
        and "rollout" not in subjects
    ):
        subjects.append("rollout")
    for subject in subjects:
        terms = _one_at_a_time(gpu_terms.get(subject, []))
        pools.append(
            _gpu_pool(
                inputs, subject, terms, gpu_missing.get(subject, []) + missing, gpu_size, actor
            )
        )
    shm = _shm_pool(inputs, actor)
    if shm is not None:
        pools.append(shm)
    cache = None
    if actor is not None and inputs.get("rollout.engine"):
        cache = cache_check(inputs, actor, gpu_size.size if gpu_size is not None else None)
    return MemoryPlan(tuple(pools), cache, _notes(inputs, roles))


def _shared_host_terms(inputs: Inputs, actor: Optional[ModelSize]) -> List[MemoryTerm]:
    terms: List[MemoryTerm] = []
    if inputs.gpus and not inputs.separate:
        terms += process_terms("", inputs.gpus)
    if actor is not None and inputs.get("rollout.engine") not in (None, "hf"):
        terms += engine_host_terms(inputs, actor)
        if inputs.separate and inputs.engine_gpus:
            terms += process_terms("rollout", inputs.engine_gpus)
    ray = uses_ray(inputs)
    if ray is not False:
        source = "raylet, GCS, dashboard and driver: no document gives their size"
        terms.append(
            MemoryTerm(
                "driver and raylet",
                GIB // 2 if ray else 0,
                8 * GIB,
                "0.5..8 GiB, an allowance",
                source,
                PHASES,
            )
        )
    batches = batch_terms(inputs)
    terms += batches
    terms += _object_store(inputs, sum(term.high for term in batches))
    return terms


def _object_store(inputs: Inputs, batches: int) -> List[MemoryTerm]:
    """Return what Ray's object store may hold beyond the batches: all that was asked for, or with
    images all that Ray takes by itself.
    """
    asked, limit = inputs.get("ray.object_store"), host_limit(inputs)
    store, text = int(asked or 0), "up to what was asked for"
    if not store and inputs.multimodal and limit is not None and uses_ray(inputs):
        # What images make of a batch is not known beforehand; Ray's own default is what there can
        # be at the most.
        shm = shm_limit(inputs)
        store = min(
            int(0.3 * limit.size),
            200 * 10**9,
            max(10**10, int(0.95 * shm.size)) if shm is not None else 200 * 10**9,
        )
        text = "up to Ray's default: 30 % of memory, 200 GB, 95 % of /dev/shm"
    source = (
        "ray python/ray/_private/services.py@00432a91: what is put there stays until it is "
        "out of scope"
    )
    left = store - batches
    return (
        [
            MemoryTerm(
                "object store",
                0,
                left,
                text,
                source,
                ("rollout", "update", "save"),
                "",
                inputs.used("ray.object_store"),
            )
        ]
        if left > 0
        else []
    )


def _one_at_a_time(terms: Sequence[MemoryTerm]) -> List[MemoryTerm]:
    """Keep what passes only of the model that needs most of it."""
    need: Dict[str, int] = {}
    for term in terms:
        if term.passing:
            need[term.role] = need.get(term.role, 0) + term.high
    largest = max(need, key=lambda role: need[role]) if need else ""
    return [term for term in terms if not term.passing or term.role == largest]


def _apart(inputs: Inputs, roles: Sequence[Role], terms: List[MemoryTerm]) -> List[MemoryTerm]:
    """Where roles have GPUs of their own and more of them than a node has, only one role is sure to
    be on a node.
    """
    devices = inputs.facts.value("gpus")
    own = sum(role.gpus or 0 for role in roles) + (
        inputs.engine_gpus or 0 if inputs.get("rollout.engines") else 0
    )
    if not inputs.separate or own <= (len(devices) if devices else 8):
        return terms
    need: Dict[str, int] = {}
    for term in terms:
        need[term.role] = need.get(term.role, 0) + term.low
    largest = max(need, key=lambda role: need[role]) if need else ""
    return [term if term.role in ("", largest) else term._replace(low=0) for term in terms]


def _gpu_pool(
    inputs: Inputs,
    subject: str,
    terms: List[MemoryTerm],
    missing: Sequence[str],
    limit: Optional[Limit],
    actor: Optional[ModelSize],
) -> Pool:
    context = MemoryTerm(
        "context",
        int(0.4 * GIB),
        3 * GIB,
        "CUDA context, NCCL buffers: 0.4..3 GiB, an allowance",
        "no document gives their size",
        PHASES,
    )
    moving = sum(term.high for term in terms if term.phases == ("update",))
    if moving:
        terms.append(
            MemoryTerm(
                "allocator's slack",
                0,
                int(_GPU_SLACK * moving),
                "10 % of what comes and goes, an allowance",
                "fragmentation; no document gives its size",
                ("update",),
            )
        )
    hosts_engine = inputs.get("rollout.engine") not in (None, "hf") and subject in ("", "rollout")
    wanted = list(missing)
    if hosts_engine:
        resident = sum(term.high for term in terms if "rollout" in term.phases)
        taken = engine_share(
            inputs, limit.size if limit is not None else None, resident + context.low
        )
        asleep = _asleep(inputs)
        phases = ("rollout",) if asleep else PHASES
        if taken is not None:
            used = inputs.used(
                "rollout.gpu_memory_utilization",
                "rollout.utilization_of",
                "rollout.sleep_level",
                "rollout.free_cache_engine",
            )
            source = "vllm/config/cache.py@002f10e0; vllm_v_0_6_3/worker.py (of what is free)"
            terms.append(
                MemoryTerm(
                    "engine", taken[0], taken[1], taken[2], source, ("rollout",), "rollout", used
                )
            )
            if not asleep:
                low = taken[0] if asleep is False else 0
                terms.append(
                    MemoryTerm(
                        "engine",
                        low,
                        taken[1],
                        f"{taken[2]}, not asleep",
                        source,
                        ("update", "save"),
                        "rollout",
                        used,
                    )
                )
        elif actor is not None:
            low, high = (
                2 * actor.low // inputs.tensor_parallel,
                2 * actor.high // inputs.tensor_parallel,
            )
            used = inputs.used("actor.model", "rollout.tensor_parallel")
            terms.append(
                MemoryTerm(
                    "engine's weights",
                    low if asleep is not None else 0,
                    high,
                    f"2 B x P / {inputs.tensor_parallel}",
                    "bf16 weights",
                    phases,
                    "rollout",
                    used,
                )
            )
            wanted.append(
                "rollout.gpu_memory_utilization" if limit is not None else "the memory of the GPU"
            )
    if inputs.serves or subject == "rollout":  # vllm counts context and activations in its share
        context = context._replace(
            low=0, high=GIB, formula="0..1 GiB beside the engine's share, an allowance"
        )
    return Pool(
        "gpu",
        (*terms, context),
        limit,
        subject,
        tuple(dict.fromkeys(wanted)),
        _doubts(inputs, inputs.roles()),
    )


def _asleep(inputs: Inputs) -> Optional[bool]:
    """Tell whether the engine gives its memory back between generations; None is not known."""
    if inputs.serves or inputs.separate:
        return False
    level, free = inputs.get("rollout.sleep_level"), inputs.get("rollout.free_cache_engine")
    if level or free:
        return True
    return None if level is None and free is None else False


def _shm_pool(inputs: Inputs, actor: Optional[ModelSize]) -> Optional[Pool]:
    terms: List[MemoryTerm] = []
    store = inputs.get("ray.object_store")
    if store:
        source = "ray python/ray/_private/services.py@00432a91 determine_plasma_store_config"
        terms.append(
            MemoryTerm(
                "object store",
                int(store),
                int(store),
                "as asked for",
                source,
                PHASES,
                "",
                inputs.used("ray.object_store"),
            )
        )
    if inputs.get("rollout.use_shm") is True and actor is not None:
        used = inputs.used("rollout.use_shm", "actor.model")
        terms.append(
            MemoryTerm(
                "weights",
                2 * actor.low,
                2 * actor.high,
                "2 B x P below /dev/shm/verl-cache",
                "verl/utils/fs.py:141@1dda039",
                PHASES,
                "actor",
                used,
            )
        )
    gpus = inputs.gpus or 0
    if gpus > 1:
        terms.append(
            MemoryTerm(
                "NCCL",
                0,
                gpus * 10 * 10**6,
                f"{gpus} x up to 9.6 MB",
                "NCCL#342: segments of 9637888 bytes",
                PHASES,
            )
        )
    limit = (
        None
        if inputs.get("container.ipc_host") is True and not inputs.get("container.shm")
        else shm_limit(inputs)
    )
    return (
        Pool("shm", tuple(terms), limit)
        if terms and (store or limit is not None or inputs.get("rollout.use_shm"))
        else None
    )


def _doubts(inputs: Inputs, roles: Sequence[Role]) -> Tuple[str, ...]:
    """Return the inputs that would narrow the bounds, most telling first."""
    found = [
        f"the model's own config.json (the size is from its name: {role.size.name})"
        for role in roles
        if role.size.rough
    ]
    for role in roles:
        # ZeRO-1 and 2 have no parameters to offload.
        names = [
            name
            for name in ("strategy", "offload_params", "offload_optimizer", "param_dtype")
            if name != "offload_params" or role.strategy[:4] != "zero" or role.strategy == "zero3"
        ]
        wanted = [f"{role.name}.{name}" for name in names if role.trainable]
        found += [field for field in wanted if inputs.get(field) is None]
    if (
        inputs.get("rollout.engine") == "vllm"
        and inputs.get("rollout.v1") is None
        and inputs.get("rollout.version") is None
    ):
        found.append("rollout.version")
    return tuple(dict.fromkeys(found))


def _notes(inputs: Inputs, roles: Sequence[Role]) -> Tuple[str, ...]:
    notes = []
    for role in roles:
        if role.name == "actor":
            size = role.size
            notes.append(
                f"{size.name}: {size.parameters / 1e9:.2f} billion parameters, "
                f"{size.source}{' (rough)' if size.rough else ''}."
            )
    if (
        inputs.get("rollout.free_cache_engine") is True
        and (inputs.get("rollout.swap_space") or 0) > 8 * GIB
        and inputs.get("rollout.v1") is not True
    ):
        notes.append(
            "Growth from one generation to the next that users see with free_cache_engine is not "
            "explained by these terms: by its code, the engine "
            "that is made anew takes the pinned blocks of the old one. The plan says what a step "
            "takes, not what leaks."
        )
    if any(
        role.trainable
        and role.strategy in ("zero1", "zero2")
        and inputs.get(f"{role.name}.offload_optimizer")
        for role in roles
    ):
        notes.append(
            "grad_accum_dtype, which is often advised for this, changes nothing on the host with "
            "ZeRO-1 and 2: DeepSpeed keeps the gradients "
            "there in fp32 (stage_1_and_2.py, initialize_optimizer_states)."
        )
    return tuple(notes)
