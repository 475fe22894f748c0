"""Run in the judged interpreter, by its text: one trial, which tells its steps as they come.

    python -c TEXT DESCRIPTOR TRIAL PARAMETERS

A step that ends the process (a signal in a library, an exit) is the one that began last. Nothing of
envdoctor is imported here, and every device is named by a parameter, so that the same code runs on
a CPU.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, List, Tuple

#: Type -> how far a product may lie from the exact one, as a share of the largest entry. A sum of
#: ``_DEPTH`` products of a type with p bits is off by less than a few times 2**-p.
_TYPES = (
    ("float64", 1e-12),
    ("float32", 1e-3),  # TF32 may be on
    ("bfloat16", 2e-2),
    ("float16", 3e-3),
)
#: rows, depth, columns: of a prompt, of one token, and the layer on which cuBLAS 12.0.2 to 12.2.1
#: divides by zero on an H20 (pytorch/pytorch issue 133548).
_SHAPES = ((256, 512, 256), (1, 1024, 1024), (8, 1024, 18432))


def _say(**members: Any) -> None:
    os.write(int(sys.argv[1]), (json.dumps(members) + "\n").encode())


def _step(name: str, work: Callable[[], Dict[str, Any]]) -> None:
    """Run one step and tell what came of it."""
    _say(begins=name)
    try:
        said = work()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        import traceback

        _say(ends=name, error=f"{type(error).__name__}: {error}"[:2000])
        traceback.print_exc()
    else:
        _say(ends=name, **said)


def imports(parameters: Dict[str, Any]) -> None:
    """Import the modules of one distribution."""
    metadata = import_module("importlib.metadata")
    name = parameters["distribution"]
    try:
        modules = _modules(metadata.distribution(name), name)
    except metadata.PackageNotFoundError:
        _step(name, partial(metadata.distribution, name))  # that it is not there is the result
        return
    for module in modules:
        _step(module, partial(_imported, module))


def _imported(module: str) -> Dict[str, Any]:
    began = time.monotonic()
    import_module(module)
    return {"seconds": round(time.monotonic() - began, 3)}


def _modules(distribution: Any, name: str) -> List[str]:
    """Return what is imported of a distribution: the module of its name, else all at its top."""
    tops = {}
    for path in distribution.files or ():
        first, _, rest = str(path).partition("/")
        stem = first.split(".")[0]
        if rest == "__init__.py" or (not rest and first.endswith((".py", ".so"))):
            tops[stem] = True
    own = [top for top in tops if top.lower() == name.replace("-", "_").lower()]
    return own or [top for top in tops if top.isidentifier() and not top.startswith("_")][:3]


def arithmetic(parameters: Dict[str, Any]) -> None:
    """Multiply matrices of every type on one device, and hold them against exact products."""
    torch = import_module("torch")
    device = parameters["device"]
    for name, tolerance in _TYPES:
        for shape in _SHAPES:
            words = f"{name} {shape[0]}x{shape[1]} by {shape[1]}x{shape[2]}"
            _step(words, partial(_product, torch, device, name, shape, tolerance))


def _product(
    torch: Any, device: str, name: str, shape: Tuple[int, int, int], tolerance: float
) -> Dict[str, Any]:
    rows, depth, columns = shape
    kind = getattr(torch, name)
    generator = torch.Generator().manual_seed(rows + depth + columns)
    # As a linear layer does it, with what it adds: that is another call of cuBLAS.
    values = torch.rand(rows, depth, generator=generator, dtype=torch.float32) - 0.5
    weights = torch.rand(columns, depth, generator=generator, dtype=torch.float32) - 0.5
    added = torch.rand(columns, generator=generator, dtype=torch.float32) - 0.5
    typed = [part.to(kind) for part in (values, weights, added)]
    exact = torch.nn.functional.linear(*[part.to(torch.float64) for part in typed])
    result = torch.nn.functional.linear(*[part.to(device) for part in typed])
    off = float((result.cpu().to(torch.float64) - exact).abs().max() / exact.abs().max())
    if not off <= tolerance:  # not a number is no result either
        return {"error": f"is off by {off:.2g} of its largest entry, expected {tolerance:.2g}"}
    return {"value": off, "unit": "of the largest entry"}


def memory(parameters: Dict[str, Any]) -> None:
    """Copy within one device, and look whether what was written is read."""
    torch = import_module("torch")
    device, size = parameters["device"], parameters["bytes"]
    _step("copy", lambda: _copied(torch, device, device, size))


def peers(parameters: Dict[str, Any]) -> None:
    """Copy between every two devices."""
    torch = import_module("torch")
    devices = parameters["devices"]
    for source in devices:
        for target in devices:
            if source != target:
                copy = partial(_copied, torch, source, target, parameters["bytes"])
                _step(f"{source} to {target}", copy)


def _copied(torch: Any, source: str, target: str, size: int) -> Dict[str, Any]:
    first = torch.arange(size // 8, dtype=torch.int64, device=source)
    second = torch.empty(size // 8, dtype=torch.int64, device=target)
    second.copy_(first)  # the first one sets up what the others use
    _wait(torch, source, target)
    began, times = time.monotonic(), 5
    for _ in range(times):
        second.copy_(first)
    _wait(torch, source, target)
    seconds = max(time.monotonic() - began, 1e-9)
    if not bool((first.cpu() == second.cpu()).all()):
        return {"error": "what was read is not what was written"}
    moved = size * times * (2 if source == target else 1)  # read and written
    return {"value": round(moved / seconds / 1e9, 2), "unit": "GB/s"}


def _wait(torch: Any, *devices: str) -> None:
    for device in devices:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)


def collective(parameters: Dict[str, Any]) -> None:
    """All-reduce between processes, of which this is one: RANK, LOCAL_RANK (among those of this
    node) and WORLD_SIZE are in the environment.
    """
    torch = import_module("torch")
    distributed = import_module("torch.distributed")
    from datetime import timedelta

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = parameters["devices"][int(os.environ["LOCAL_RANK"])]
    store = parameters["store"]
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    _step(
        "joining",
        lambda: (
            distributed.init_process_group(
                parameters["backend"],
                init_method=store if "://" in store else f"file://{store}",
                rank=rank,
                world_size=size,
                timeout=timedelta(seconds=parameters["seconds"]),
            )
            or {}
        ),
    )
    for count in parameters["bytes"]:
        _step(
            f"all-reduce of {count >> 10} KiB",
            partial(_reduced, torch, distributed, device, count, size, rank),
        )
    # No rank goes before all are done; taking the group down waits for a store that may be gone.
    _step("leaving", lambda: distributed.barrier() or {})


def _reduced(
    torch: Any, distributed: Any, device: str, count: int, size: int, rank: int
) -> Dict[str, Any]:
    values = torch.full((count // 4,), float(rank + 1), dtype=torch.float32, device=device)
    distributed.all_reduce(values)
    expected = size * (size + 1) / 2
    if not bool((values == expected).all()):
        return {"error": f"the sum of {size} ranks is {float(values[0])}, expected {expected}"}
    _wait(torch, device)
    began, times = time.monotonic(), 5
    for _ in range(times):
        distributed.all_reduce(values)
    _wait(torch, device)
    seconds = max(time.monotonic() - began, 1e-9)
    # Bus bandwidth, as nccl-tests define it: doc/PERFORMANCE.md.
    moved = 2 * (size - 1) / size * count * times
    return {"value": round(moved / seconds / 1e9, 3), "unit": "GB/s on the bus"}


def kernels(parameters: Dict[str, Any]) -> None:
    """Compile and run a kernel of nvcc's and of Triton's, and those that installed packages
    bring.
    """
    torch = import_module("torch")
    device, folder = parameters["device"], parameters["folder"]
    if parameters["nvcc"]:
        _step("nvcc", lambda: _nvcc(torch, device, parameters["nvcc"], folder))
    if "triton" in parameters["packages"]:
        _step("triton", lambda: _triton(torch, device, folder))
    if "flash-attn" in parameters["packages"]:
        _step("flash-attn", lambda: _flash_attention(torch, device))
    if "vllm" in parameters["packages"]:
        _step("vllm", lambda: _vllm(torch, device))


#: What a build with torch.utils.cpp_extension does, without torch's headers.
_SOURCE = """
__global__ void add_one(float *values, int count) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < count) values[place] += 1.0f;
}
extern "C" const char *run(void *values, int count) {
    add_one<<<(count + 255) / 256, 256>>>((float *)values, count);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
}
"""


def _write(path: str, text: str) -> None:
    """Write a source into the folder of a trial, which is its own and goes with it."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _nvcc(torch: Any, device: str, nvcc: str, folder: str) -> Dict[str, Any]:
    import ctypes
    import subprocess

    source, library = os.path.join(folder, "add_one.cu"), os.path.join(folder, "add_one.so")
    _write(source, _SOURCE)
    target = []
    if device.startswith("cuda"):
        major, minor = torch.cuda.get_device_capability(device)
        target = [f"-arch=sm_{major}{minor}"]
    command = [nvcc, "-shared", "-Xcompiler", "-fPIC", *target, "-o", library, source]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        sys.stderr.write(said + "\n")
        last = said.split("\n")[-1]
        return {"error": f"nvcc ended with exit code {done.returncode}: {last}"[:2000]}
    run = ctypes.CDLL(library).run
    run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_char_p
    values = torch.zeros(1000, device=device)
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    words = run(values.data_ptr(), 1000).decode("utf-8", "replace")
    if words:
        return {"error": f"the kernel that nvcc compiled: {words}"}
    return {} if bool((values.cpu() == 1).all()) else {"error": "the kernel gave other values"}


#: Triton reads the source of a kernel from its file.
_KERNEL = """
import triton, triton.language as tl


@triton.jit
def add_one(values, count, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    mask = places < count
    tl.store(values + places, tl.load(values + places, mask=mask) + 1.0, mask=mask)
"""


def _triton(torch: Any, device: str, folder: str) -> Dict[str, Any]:
    _write(os.path.join(folder, "envdoctor_kernel.py"), _KERNEL)
    sys.path.insert(0, folder)
    kernel = import_module("envdoctor_kernel").add_one
    values = torch.zeros(1000, device=device)
    kernel[(4,)](values, 1000, block=256)
    return {} if bool((values.cpu() == 1).all()) else {"error": "the kernel gave other values"}


def _flash_attention(torch: Any, device: str) -> Dict[str, Any]:
    function = import_module("flash_attn").flash_attn_func
    query, key, value = (
        torch.rand(1, 64, 4, 64, device=device, dtype=torch.float16) for _ in range(3)
    )
    result = function(query, key, value).float().cpu().transpose(1, 2)
    parts = [part.float().cpu().transpose(1, 2) for part in (query, key, value)]
    off = float((result - torch.nn.functional.scaled_dot_product_attention(*parts)).abs().max())
    return {"value": off, "unit": ""} if off < 1e-2 else {"error": f"is off by {off:.2g}"}


def _vllm(torch: Any, device: str) -> Dict[str, Any]:
    import_module("vllm._custom_ops")
    values = torch.rand(4, 256, device=device, dtype=torch.float16)
    result = torch.empty(4, 128, device=device, dtype=torch.float16)
    torch.ops._C.silu_and_mul(result, values)
    first, second = values.float().cpu().chunk(2, dim=-1)
    off = float((result.float().cpu() - torch.nn.functional.silu(first) * second).abs().max())
    return {"value": off, "unit": ""} if off < 1e-2 else {"error": f"is off by {off:.2g}"}


TRIALS = {
    trial.__name__: trial for trial in (imports, arithmetic, memory, peers, collective, kernels)
}


def main() -> None:
    """Run the trial that was named; only a child with all its arguments does."""
    parameters = json.loads(sys.argv[3])
    # Who started it kills it at the deadline; should that one be gone, the kernel does.
    signal.alarm(int(parameters.get("seconds", 3600)) + 60)
    TRIALS[sys.argv[2]](parameters)
    _say(done=True)
    sys.stderr.flush()
    os._exit(0)  # what libraries do at their end is no part of the trial


if __name__ == "__main__":
    main()
