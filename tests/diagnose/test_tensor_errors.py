"""What torch's operators refuse, as torch itself says it."""

import json
import subprocess

import pytest

from envdoctor.diagnose.tensor_errors import of_tensors, remedy_of_tensors


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("GenerateEncoderDecoderOutput", "its tokens are .sequences"),
        ("MaskedLMOutput", ".logits"),
        ("transformers.modeling_outputs.BaseModelOutputWithPast", ".last_hidden_state"),
        ("BatchEncoding", "under their names"),
        ("NoneType", "returns nothing"),
        ("Lamp", "Lamp came in its place"),
    ],
)
def test_what_came_in_the_place_of_a_tensor(given, words):
    message = f"linear(): argument 'input' (position 1) must be Tensor, not {given}"
    assert words in of_tensors(message)
    assert not of_tensors(f"the input must be Tensor, not {given}")


def test_torch_names_the_argument_that_is_no_tensor(torch_python):
    program = "import torch\ntorch.embedding({'a': 1}, torch.tensor([0]))"
    done = subprocess.run(
        [torch_python, "-c", program], capture_output=True, text=True, check=False
    )
    message = done.stderr.strip().splitlines()[-1].partition(": ")[2]
    assert "weight of embedding is to be a tensor; dict holds" in of_tensors(message)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("\"normal_kernel_cuda\" not implemented for 'Char'", "on a GPU for tensors of torch.int8"),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", "torch.float16: the tensor has to be"),
        ("\"tril\" not implemented for 'BFloat16'", "torch has no tril for tensors of torch.bfl"),
        ("\"x\" not implemented for 'Anything'", ""),
        ("Tensor on device cuda:0 is not on the expected device meta!", "was never loaded"),
        ("masked_fill only supports boolean masks, but got dtype Byte", ".bool() in place of"),
        ("masked_fill_ only supports boolean masks, but got mask with dtype Byte", ".bool()"),
    ],
)
def test_of_which_type_a_tensor_is(message, words):
    answer = of_tensors(message)
    assert words in answer
    assert bool(answer) == bool(words)


def test_the_names_of_types_are_torchs(torch_python):
    """A torch that is installed says what it has no code for, and which type that is."""
    program = """
import torch
for kind in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool):
    try:
        torch.randn_like(torch.zeros(2, dtype=kind))
    except (RuntimeError, NotImplementedError) as error:
        print(kind, error, sep="\\t")
"""
    done = subprocess.run(
        [torch_python, "-c", program], stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) == 6
    for kind, message in lines:
        assert f"on the CPU for tensors of {kind}:" in of_tensors(message)


#: Lines that fail, and what is said of them.
REFUSED = {
    "F.linear(torch.zeros(2, 768), torch.zeros(10, 1024))": "768 wide, and the weights take 1024",
    "torch.nn.Embedding(10, 4)(torch.tensor([12]))": "a row behind its last",
    "F.cross_entropy(torch.zeros(2, 5), torch.tensor([1, 7]))": "it takes 8 of them or more",
    "F.cross_entropy(torch.zeros(8, 5), torch.zeros(4).long())": "8 rows, 2 for each label, and",
    "F.cross_entropy(torch.zeros(16, 5, 30), torch.zeros(16).long())": "(16, classes, 30): the",
    "F.cross_entropy(torch.zeros(2, 8, 5), torch.zeros(2, 8).long())": "(2, classes, 5): the loss",
    "torch.stack([torch.zeros(3), torch.zeros(4)])": "differ in size ([3] and [4])",
    "default_collate([None, None])": "gave None for a sample",
    "torch.zeros(2).sum().backward()": "Nothing that the loss was made of is trained",
    "torch.zeros(10).view(3, 4)": "The shape takes 12 values, and the tensor has 10.",
    "torch.zeros(10).view(-1, 4)": "10 values are no multiple of 4",
    "RandomSampler([])": "The data set is empty there",
    "torch.optim.AdamW([])": "No parameter is to be trained",
    "torch.nn.BatchNorm1d(4)(torch.zeros(1, 4))": "drop_last=True",
    "torch.nn.Embedding(3, 2)(torch.zeros(2, dtype=torch.bfloat16))": "token ids themselves",
    "torch.randn((2.5, 3), generator=torch.Generator(), device='cpu', dtype=None)": "takes its sizes as whole numbers",
    "torch.zeros(()).chunk(2)": "has no dimension",
    "torch.zeros(3).item()": "",
    "F.normalize(torch.zeros(2, 2).long())": "torch.int64 there, and the operation takes floating",
    "[1, 2, 3][torch.tensor([1, 2])]": "indexed with a tensor of several places",
    "torch.zeros(3).size(1)": "has 1 dimension there, and the line asks for dimension 1",
    "torch.zeros(2, 3).transpose(1, 2)": "has 2 dimensions there, and the line asks for dimen",
    "torch.zeros(3)[5]": "It has 3 in dimension 0, so that the last place is 2.",
    "torch.zeros(0, 3)[0]": "Dimension 0 of it is empty",
    "numpy.zeros((0, 2))[0]": "Dimension 0 of it is empty",
    "torch.cat((torch.zeros(1, 2, 26), torch.zeros(1, 2, 25)), dim=1)": "do not divide",
    "torch.cat((torch.zeros(1, 2, 26), torch.zeros(1, 2, 20)), dim=1)": "differs in another one.",
    "torch.nn.Conv2d(3, 8, 3)(torch.zeros(1, 1, 8, 8))": "for 3 channels, and what comes in has 1",
    "torch.nn.Conv2d(3, 8, 3)(torch.zeros(8, 8))": "The layer takes 4D with the batch",
    "F.cross_entropy(torch.zeros(2, 5), torch.tensor([1, 2]), torch.zeros(3))": "gives 5 classes",
    "F.mse_loss(torch.zeros(2, 1), numpy)": "",
    "bce(torch.zeros(2, 1), torch.zeros(2))": "dimension of 1 alone",
    "bce(torch.zeros(2, 3), torch.zeros(2))": "what the model gives 2, 3.",
    "F.binary_cross_entropy(torch.tensor([2.0]), torch.zeros(1))": "the model gives logits",
    "torch.zeros(2, 3, requires_grad=True).backward()": "The loss is no single number",
    "again()": "Two calls of backward()",
    "in_place()": "was written over after the forward pass",
    "torch.zeros(2, requires_grad=True).add_(1)": "A parameter is written to",
    "bool(torch.zeros(2))": "stands before several values",
    "bool(numpy.zeros(2))": "stands before several values",
    "torch.zeros(2, 3).t().view(6)": "transposed, permuted or cut",
    "numpy.zeros((3, 2)) + numpy.zeros((4, 2))": "shape (3,2), the other (4,2)",
    "numpy.array([[1, 2], [3]])": "The rows differ in length",
    "torch.tensor([[1, 2], [3]])": "The rows differ in length",
    "torch.zeros(2, 3).expand(4)": "A tensor of 2 dimensions is put into a place that has 1.",
    "torch.arange(3).mean()": "the operation takes floating point alone",
    "torch.cat([])": "the list is empty",
    "torch.zeros(2).to('auto')": "a word of device_map",
    "torch.device('auto')": "a word of device_map",
    "torch.zeros(2).to('gpu:0')": "torch knows none of that name",
    "torch.device('cuda:x')": "torch knows none of that name",
    "torch.stack([])": "the list is empty",
    "numpy.concatenate([])": "the list is empty",
    "F.one_hot(torch.tensor([5]), 3)": "outside of the classes",
}


def test_what_torch_refuses(torch_python):
    program = f"""
import json, numpy, torch, torch.nn.functional as F
bce = F.binary_cross_entropy_with_logits
def again():
    loss = (torch.zeros(2, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()
def in_place():
    value = torch.ones(2, requires_grad=True).exp()
    value.add_(1)
    value.sum().backward()
from torch.utils.data import RandomSampler
from torch.utils.data._utils.collate import default_collate
said = {{}}
for line in {list(REFUSED)!r}:
    try:
        eval(line)
    except Exception as error:
        said[line] = str(error)
print(json.dumps(said))
"""
    done = subprocess.run(
        [torch_python, "-c", program], stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    messages = json.loads(done.stdout)
    assert messages.keys() == REFUSED.keys()
    for line, words in REFUSED.items():
        message = messages[line].partition("\n")[0]
        answer = of_tensors(message)
        assert words in answer, (line, messages[line])
        assert bool(answer) == bool(words), line
        assert answer or not remedy_of_tensors(message)


def test_what_to_do_about_labels_goes_by_what_they_lack():
    assert "pooling" in remedy_of_tensors("Expected target size [16, 30], got [16]")
    assert "pooling" in remedy_of_tensors("Expected target size (16, 30), got torch.Size([16])")
    assert "flatten both" in remedy_of_tensors("Expected target size [2, 5], got [2, 8]")
    assert "flatten both" in remedy_of_tensors("Expected target size [16, 30], got [1]")


def test_tensors_on_different_devices_are_told_with_their_operation(said):
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/go.py", line 9, in <module>\n    out = net(rows)\n'
        '  File "/v/site-packages/nets/wide.py", line 3, in forward\n    return rows * self.table\n'
        "RuntimeError: Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!\n"
    )
    trace = said(text).traces[0]
    assert "nets/wide.py, line 3: return rows * self.table" in trace.finding.message
    assert [remedy.label for remedy in trace.finding.remedies] == ["hint"]
