"""What helps where memory of a GPU ran out: each case beside the one that it is mistaken for.

The form of the lines is that of torch's allocator (c10/cuda/CUDACachingAllocator.cpp) and of its
check of the driver's calls (c10/cuda/CUDAException.cpp).
"""

import pytest

from envdoctor.app import diagnose
from envdoctor.matrix.loader import load_matrix

MATRIX = load_matrix()
MAKES_ROOM = "See who holds it"


@pytest.fixture
def first(tmp_path):
    """The finding that a log leads with."""

    def run(text):
        log = tmp_path / "run.log"
        log.write_text(text, encoding="utf-8")
        return diagnose([str(log)], None, MATRIX).traces[0].finding

    return run


def words_of(finding):
    return " ".join(remedy.text for remedy in finding.remedies)


def traceback(*places, last):
    """places: file, function and code of each."""
    frames = "".join(
        f'  File "{file}", line {number}, in {function}\n    {code}\n'
        for number, (file, function, code) in enumerate(places, 3)
    )
    return f"Traceback (most recent call last):\n{frames}{last}\n"


def refused(wanted="2.00 GiB", total="23.60 GiB", free="1.00 GiB", own="22.40 GiB"):
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {wanted}. GPU 0 has a "
        f"total capacity of {total} of which {free} is free. Including non-PyTorch memory, this "
        f"process has {own} memory in use."
    )


MLP = ("/v/site-packages/transformers/models/acme/modeling_acme.py", "forward", "y = self.up(x)")
DRIVER = "RuntimeError: CUDA error: out of memory"


# --------------------------------------------------------------------------------------------------
# training, and what only runs a model


@pytest.mark.parametrize(
    ("file", "function", "code", "fix"),
    [
        ("/v/site-packages/transformers/trainer.py", "training_step", "run()", "micro batch"),
        ("/w/finetune.py", "<module>", "out = model(**batch)", "micro batch"),
        ("/w/bench.py", "generate", "out = model(ids)", "shorter inputs"),
        ("/w/pretrained.py", "from_file", "out = model(ids)", "batch and sequence length"),
        ("/w/benefit.py", "<module>", "out = model(ids)", "batch and sequence length"),
    ],
)
def test_what_helps_where_the_process_itself_fills_the_gpu(first, file, function, code, fix):
    finding = first(traceback((file, function, code), MLP, last=refused()))
    assert fix in words_of(finding)
    assert MAKES_ROOM not in words_of(finding)


@pytest.mark.parametrize(("file", "fix"), [("/w/sft.py", "QLoRA"), ("/w/app.py", "device_map")])
def test_weights_that_are_trained_and_weights_that_are_run(first, file, fix):
    place = (file, "<module>", 'model.to("cuda")')
    assert fix in words_of(first(traceback(place, last=refused())))


def test_an_evaluation_within_a_training(first):
    trainer = "/v/site-packages/transformers/trainer.py"
    loop = (trainer, "evaluation_loop", "logits = self.gather(logits)")
    finding = first(traceback(("/w/train.py", "<module>", "trainer.train()"), loop, last=refused()))
    assert "per_device_eval_batch_size" in words_of(finding)


# --------------------------------------------------------------------------------------------------
# who holds it


@pytest.mark.parametrize(
    ("free", "own", "is_others"),
    [("0.50 GiB", "2.10 GiB", True), ("0.50 GiB", "22.60 GiB", False)],
)
def test_what_others_hold_is_not_cured_by_a_smaller_batch(first, free, own, is_others):
    place = ("/w/train.py", "<module>", "loss.backward()")
    finding = first(traceback(place, last=refused(free=free, own=own)))
    assert (MAKES_ROOM in words_of(finding)) is is_others
    assert ("micro batch" in words_of(finding)) is not is_others


@pytest.mark.parametrize(("held", "is_told"), [("1.30 GiB", True), ("0.50 GiB", False)])
def test_a_small_gpu_that_others_use_too(first, held, is_told):
    """A context alone is held wherever another rank has touched the GPU."""
    listed = f"Process 11 has {held} memory in use. Process 12 has 0.60 GiB memory in use."
    own = "9.70 GiB" if is_told else "10.50 GiB"
    line = refused("20.00 MiB", "11.66 GiB", "0.01 GiB", own).replace("Incl", f"{listed} Incl")
    assert (MAKES_ROOM in words_of(first(traceback(MLP, last=line)))) is is_told


def test_a_request_that_is_larger_than_the_gpu(first):
    finding = first(traceback(MLP, last=refused(wanted="96.00 GiB")))
    assert "larger than the GPU" in finding.message
    assert "this one tensor" in words_of(finding)


@pytest.mark.parametrize(("reserved", "is_others"), [("0.90 GiB", True), ("13.80 GiB", False)])
def test_torch_before_2_1_counts_its_own_alone(first, reserved, is_others):
    last = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 15.78 "
        f"GiB total capacity; 0.80 GiB already allocated; 20.00 MiB free; {reserved} reserved in "
        "total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
    )
    finding = first(traceback(("/w/train.py", "main", "loss.backward()"), last=last))
    assert (MAKES_ROOM in words_of(finding)) is is_others


# --------------------------------------------------------------------------------------------------
# the driver itself


@pytest.mark.parametrize(
    ("code", "function", "is_first"),
    [
        ("model.to(device)", "<module>", True),
        ("torch.cuda.set_device(local_rank)", "<module>", True),
        ("loss.backward()", "training_step", False),
        ("data = [t.pin_memory() for t in batch]", "collate", False),
    ],
)
def test_the_driver_refuses_what_is_put_there_first(first, code, function, is_first):
    finding = first(traceback(("/w/serve_it.py", function, code), last=DRIVER))
    assert (MAKES_ROOM in words_of(finding)) is is_first
    assert ("mostly other processes hold that GPU" in finding.message) is is_first


def test_a_file_that_goes_back_to_the_gpu_that_it_was_saved_from(first):
    read = (
        "/v/site-packages/torch/serialization.py",
        "_cuda_deserialize",
        "return obj.cuda(device)",
    )
    loading = traceback(("/w/app.py", "<module>", "prefix = torch.load(path)"), read, last=DRIVER)
    assert "map_location='cpu'" in words_of(first(loading))
    moving = traceback(("/w/app.py", "<module>", "prefix.cuda()"), last=DRIVER)
    assert "map_location" not in words_of(first(moving))
