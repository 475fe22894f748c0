"""Memory that ran out while the files of a model were read."""

from __future__ import annotations

import pytest

OOM = (
    "[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.62 GiB. GPU "
    "{rank} has a total capacity of 79.10 GiB of which 743.75 MiB is free. Including non-PyTorch "
    "memory, this process has 78.36 GiB memory in use. Of the allocated memory 77.85 GiB is "
    "allocated by PyTorch, and 18.89 MiB is reserved by PyTorch but unallocated.\n"
)


#: As tqdm prints it for transformers: each state behind the one before.
BAR = "{words}:  {share:2}%|█▍        | {done}/{files} [16:35<2:30:09, 52.38s/it]"


def trace_of(said, ranks, done=19, words="Loading checkpoint shards", head=""):
    states = (BAR.format(words=words, share=n * 100 // 191, done=n, files=191) for n in (1, done))
    log = head + "\r".join(states) + "\n" + "".join(OOM.format(rank=rank) for rank in ranks)
    return said(log).traces[0].finding.message


def test_ranks_that_fail_alike_each_load_the_whole_model(said):
    message = trace_of(said, range(8))
    assert "It had read 19 of the model's 191 files. 8 ranks failed alike" in message
    assert "about 782.6 GiB on each" in message


def test_of_one_process_no_more_is_said_than_how_far_it_was(said):
    message = trace_of(said, [0])
    assert "It had read 19 of the model's 191 files." in message
    assert "alike" not in message


@pytest.mark.parametrize("head", ["zero_stage: 3\n", "fsdp: full_shard\n", "tensor_parallel=8\n"])
def test_nor_where_the_weights_are_divided(said, head):
    assert "alike" not in trace_of(said, range(8), head=head)


@pytest.mark.parametrize(
    ("done", "words"), [(191, "Loading checkpoint shards"), (19, "Downloading shards")]
)
def test_nothing_of_what_was_read_to_its_end_or_is_fetched(said, done, words):
    assert "It had read" not in trace_of(said, range(8), done, words)
