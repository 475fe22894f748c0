"""What cures by a text: settings, variables, packages taken out or kept in a range."""

import pytest

from envdoctor.errors import InputError
from envdoctor.intake import parse_report


def cures_of(text):
    """Return what a report says to cure; it always states a package."""
    facts = parse_report(f"peft 0.12.0\n{text}")
    return facts, list(facts.value("report.cures") or {})


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("All ranks hang. Setting NCCL_P2P_DISABLE=1 solves it.", "NCCL_P2P_DISABLE=1"),
        ("The start hangs. `export VLLM_USE_V1=0` fixed the hang for me.", "VLLM_USE_V1=0"),
        ("It freezes. With `NCCL_CUMEM_ENABLE=0` everything works.", "NCCL_CUMEM_ENABLE=0"),
        ("Got nan. The issue goes away when use_cache is set to False.", "use_cache=False"),
        ("Illegal access. If I add --enforce-eager the problem disappears.", "--enforce-eager"),
        ("Ranks hang. Disabling P2P (NCCL_P2P_DISABLE=1) helped.", "NCCL_P2P_DISABLE=1"),
        ("The loader hangs; it runs fine with num_workers=0.", "num_workers=0"),
        ("It crashes.\nWorkaround: set NCCL_NVLS_ENABLE=0", "NCCL_NVLS_ENABLE=0"),
        ("It crashes. Solved by passing --disable-custom-all-reduce.",
         "--disable-custom-all-reduce"),
        ("训练卡住。设置 NCCL_IB_DISABLE=1 之后问题解决。", "NCCL_IB_DISABLE=1"),
        ("It hangs. We found that unsetting NCCL_GRAPH_FILE solves the hang.",
         "unset NCCL_GRAPH_FILE"),
        ("Once I removed NCCL_GRAPH_FILE from the environment, it ran without errors; it failed.",
         "unset NCCL_GRAPH_FILE"),
        ("Removing `--enable-prefix-caching` makes it work again, else it crashes.",
         "unset --enable-prefix-caching"),
        ("It crashes with the option `--enable-chunked-prefill`, and works without it.",
         "unset --enable-chunked-prefill"),
        ("The import fails. Fixed by uninstalling flash-attn.", "uninstall flash-attn"),
        ("The error disappeared after I uninstalled xformers.", "uninstall xformers"),
        ("CUDA setup fails. Without bitsandbytes installed it works.", "uninstall bitsandbytes"),
        ("Numpy is not available. I solved it by pinning numpy<2.", "numpy<2"),
        ("The build fails. Worked around it by installing setuptools<70.", "setuptools<70"),
        ("A setup of two GPUs hangs without NCCL_P2P_DISABLE=1.", "NCCL_P2P_DISABLE=1"),
        ("Setting NCCL_P2P_DISABLE=1 seems to fix the issue.", "NCCL_P2P_DISABLE=1"),
        ("NCCL_P2P_LEVEL=NVL also seems to work. Without it hangs.", "NCCL_P2P_LEVEL=NVL"),
        ("It fails when I set bf16=True. fp16=True works.", "fp16=True"),
        ("With use_cache=False it works fine, otherwise it crashes.", "use_cache=False"),
        ("With tensor_parallel_size=1 it works, with tensor_parallel_size=2 it hangs.",
         "tensor_parallel_size=1"),
        ('It fails. Setting `kwargs={"use_reentrant": False}` fixed the RuntimeError.',
         "use_reentrant=False"),
        ("It crashes. The same file works with --split-mode layer.", "--split-mode=layer"),
        ("It hangs. I changed NCCL_ALGO=Tree to NCCL_ALGO=Ring and it works.", "NCCL_ALGO=Ring"),
        ("The error is not triggered when using use_mmap=False.", "use_mmap=False"),
        ("This crash does not occur without --enable-torch-compile.",
         "unset --enable-torch-compile"),
    ],
)  # fmt: skip
def test_what_cures(text, cure):
    assert cures_of(text)[1] == [cure]


@pytest.mark.parametrize(
    "text",
    [
        "Neither setting NCCL_P2P_DISABLE=1 nor NCCL_IB_DISABLE=1 helped. It hangs.",
        "Does setting NCCL_P2P_DISABLE=1 help? It hangs.",
        "I tried NCCL_P2P_DISABLE=1 but it still hangs.",
        "Setting NCCL_P2P_DISABLE=1 should fix it. It hangs.",
        "The docs say that setting NCCL_P2P_DISABLE=1 fixes it. It hangs.",
        "Setting NCCL_P2P_DISABLE=1 did not help. It hangs.",
        "With NCCL_P2P_DISABLE=1 it crashes.",
        "With NCCL_P2P_DISABLE=1 it never works.",
        "WARNING: setting VLLM_USE_V1=0 solves it. It hangs.",
        "RuntimeError: setting VLLM_USE_V1=0 solves it",
        "You can set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which helps. It fails.",
        "vllm serve a/b --tensor-parallel-size 2 works, but it still fails later",
        "It works fine with use_cache=True in transformers 4.45.0, and fails in 4.46.0.",
        "Without a GPU it works, with one it crashes.",
        "I use NCCL_P2P_DISABLE=1. It hangs on H100.",
        "The job fails on nodes without InfiniBand.",
        "The model loads fine with load_in_4bit=True, then training crashes.",
        "I added `--shm-size 16g` to docker run but the issue persists. It crashes.",
        "Setting NCCL_IB_DISABLE=1 makes no difference, it hangs.",
        "I set enable_chunked_prefill=False and the crash remains.",
        "I set NCCL_IB_DISABLE=1 and it continues to hang.",
        "Everything worked before I set attn_implementation=flash_attention_2. Now it fails.",
        "The capture failed. Possible solutions: 1. disable it by --disable-cuda-graph",
        "The bug is fixed in the main branch, use_cache=False is no longer needed.",
        "If it crashes, set max_split_size_mb to avoid fragmentation.",
        "It crashes.\n  --help         Print this, which solved nothing",
        'It fails. parser.add_argument("--port", type=int, help="Port to bind")',
        "It fails. Namespace(verbose=False, completion=None, help=False)",
        "It fails (type=value_error), and installing it worked.",
        'It fails. system_prompt="You are a specialist who helps with products."',
        "Although I set --context-length 160k and it starts fine, requests fail.",
        "It fails. If I use tool_choice=auto, the error disappears but no call is ever made.",
        "It hangs. I think that it could be solved by removing litellm.",
        "It crashes. Using --mlock or --no-mmap alone works fine.",
        "--leave-output-tensor   Works 100% (stays in FP16), others crash",
        "It fails. Setting max_tokens to a reasonable value helps.",
        "It fails. Setting call_id to UUID helped.",
        "It crashes with NUM_TOKENS=33, while it works when NUM_TOKENS=32 * 1024.",
        "It hangs when the --data-parallel-rpc-port argument value is taken, it starts without error.",
        "It would be great if it worked with --subtree-only. It crashes.",
        "--subtree-only works fine for control but it does nothing for new files, which fail.",
        "It fails. Re-running with weights_only set to False will likely succeed.",
        "It fails. Restarting the worker with --room usually works.",
        "Bug: --cache-reuse no longer adds prefixes",
        "[Bug] The message is not shown when --dp is set. It crashes.",
        "Bug: callbacks with reasoning=True are never triggered",
        "It hangs. I tried vllm 0.8.5, which works well when concurrency=128.",
        "Users tried the desc_act=True variant with no issues. Ours gives errors.",
        "It fails.\n  name: Optional[str] = Field(..., strict=True)  # Works!",
        "It fails. Tool(name=a, kind=b, description=Use, origin=local) fixed by b",
        "It fails. The endpoint, called directly without litellm, works.",
        'It fails. I set BASE_URL=http://a:1 and checked that "curl http://a:1/v1" works fine.',
        "It hangs.\n'lamp': {'lamp_scale': 0.5, 'kind': 'fixed'},",
    ],
)
def test_what_cures_nothing(text):
    assert cures_of(text)[1] == []


def test_healthy_texts_have_no_cure():
    assert cures_of("With NCCL_CUMEM_ENABLE=0 we use 8 GPUs.")[1] == []


def test_what_cures_is_no_state_of_the_run():
    facts, _ = cures_of("All ranks hang. Setting NCCL_P2P_DISABLE=1 solves it.")
    assert "NCCL_P2P_DISABLE" not in (facts.value("variables") or {})
    facts, _ = cures_of("It hangs with tensor_parallel_size=2, and tensor_parallel_size=1 works.")
    assert facts.value("request").settings()["tensor_parallel_size"] == "2"


def test_what_is_only_hoped_for_or_asked_is_no_state_either():
    for text in ("Does setting NCCL_P2P_DISABLE=1 help?", "Setting NCCL_P2P_DISABLE=1 may help."):
        facts, _ = cures_of(f"It hangs. {text}")
        assert "NCCL_P2P_DISABLE" not in (facts.value("variables") or {})
    facts, _ = cures_of("I tried NCCL_P2P_DISABLE=1 but it still hangs.")
    assert facts.value("variables")["NCCL_P2P_DISABLE"] == "1"


def test_what_was_taken_out_was_there():
    facts, _ = cures_of("The import fails. Fixed by uninstalling flash-attn.")
    assert "flash-attn" in facts.value("distributions")
    facts, _ = cures_of("Removing `--enforce-eager` makes it work, else it crashes.")
    assert facts.value("request").settings()["enforce_eager"] == "true"


def test_a_cure_alone_is_enough_of_a_report():
    try:
        facts = parse_report("The server dies. It is solved by setting VLLM_USE_V1=0.")
    except InputError:
        pytest.fail("nothing was read")
    assert list(facts.value("report.cures")) == ["VLLM_USE_V1=0"]
