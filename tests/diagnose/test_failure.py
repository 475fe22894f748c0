"""Causes from logs: real messages of the loader, the shell, pip, uv and Python, and what follows
from what.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

CGROUP = (
    "[Fri Nov 21 10:05:00 2025] Memory cgroup out of memory: Killed process 9187 "
    "(ray::WorkerDict) total-vm:2kB, anon-rss:16736460kB\n"
)
DIED = (
    "2025-11-21 10:05:03,000 ERROR ray.exceptions.ActorDiedError: The actor died unexpectedly "
    "before finishing this task.\n"
)
GUESS = (
    "Worker unexpectedly exits with a connection error code 2. End of file. There are some "
    "potential root causes. "
    "(1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop "
    "--force is called. "
    "(3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n"
)
TIMEOUT = (
    "[rank3]:[E1121 10:15:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught "
    "collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600081 milliseconds before timing out.\n"
)


@pytest.fixture(scope="module")
def matrix():
    return load_matrix()


@pytest.fixture
def said(tmp_path, matrix):
    """Diagnose texts as logs of their own, with assumed facts."""

    def run(*texts, assume=()):
        paths = []
        for number, text in enumerate(texts):
            path = tmp_path / f"{number}.log"
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        return diagnose(
            paths,
            with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None,
            matrix,
        )

    return run


def roots(found):
    return [
        (trace.finding.component, trace.finding.kind, trace.certainty)
        for trace in found.traces
        if trace.finding.caused_by is None
    ]


# --------------------------------------------------------------------------------------------------
# what followed from what


def test_the_first_cause_is_the_root_and_the_rest_hangs_under_it(said):
    found = said(CGROUP + DIED + GUESS + TIMEOUT)
    assert roots(found) == [("host-memory", "host-oom", "established")]
    assert len(found.traces) == 4
    assert found.exit_code == 1


def test_the_kernel_log_may_be_a_file_of_its_own_in_any_order(said):
    assert (
        roots(said(DIED + GUESS, CGROUP))
        == roots(said(CGROUP, DIED + GUESS))
        == [("host-memory", "host-oom", "established")]
    )


def test_rays_guesses_are_no_evidence(said):
    found = said(DIED + GUESS)
    assert "segmentation-fault" not in {trace.finding.subject for trace in found.traces}
    assert {certainty for _, _, certainty in roots(found)} == {"candidate"}
    assert all(
        trace.finding.verdict == "undetermined"
        for trace in found.traces
        if trace.finding.caused_by is None
    )
    assert any(
        suspect.kind == "host-oom" and suspect.collect
        for trace in found.traces
        for suspect in trace.suspects
    )


def test_a_warning_at_the_start_does_not_take_the_blame(said):
    found = said(
        "ImportError: libfoo.so.3: cannot open shared object file: No such file or directory\n"
        + CGROUP
        + DIED
    )
    assert roots(found)[0] == ("host-memory", "host-oom", "established")


@pytest.mark.parametrize(
    "text",
    [  # vllm 0.11.0, DeepSpeed 0.16.0 and sglang 0.5.9 go on after these
        "FooForCausalLM has no vLLM implementation, falling back to Transformers implementation.",
        (
            "max_model_len (9) is greater than the derived max_model_len (x=8 or y=9). This may "
            "lead "
            "to CUDA errors. Make sure the value is correct"
        ),
        (
            "Installed CUDA version 12.8 does not match the version torch was compiled with "
            "11.8.Detected `DS_SKIP_CUDA_CHECK=1`: Allowing this"
        ),
        "TokenizerManager watchdog timeout (self.watchdog_timeout=300, self.soft=True)",
    ],
)
def test_what_a_program_only_warns_of_is_no_cause(said, text):
    assert roots(said(f"{text}\n")) == []


def test_nothing_found_says_so(said):
    found = said("INFO all is well\n" * 10)
    assert (found.traces, found.exit_code) == ((), 0)
    assert found.looked_for > 200


SCOPE = f"cri-containerd-{'a' * 64}.scope"
POD = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c.slice/{SCOPE}"
STEP = "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-01-01T00:00:00"
TERMINATED = "(raylet) Raylet is terminated. Termination is unexpected. "
COUNT = (
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
    "before calling NumCudaDevices() "
    "that might have already set an error? Error "
)


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        (
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={SCOPE},mems_allowed=0-1,oom_memcg={POD},task_memcg={POD},task=python",
            "kernel-oom-constraint-memcg",
        ),
        (
            f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset={SCOPE},mems_allowed=0-1,global_oom,task_memcg={POD},task=ray::IDLE",
            "kernel-oom-constraint-none",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel "
                "(0x9). "
                "RST: No, D-RST: No"
            ),
            "xid-ecc",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for "
                "remapping, "
                "reset gpu to activate."
            ),
            "xid-row-retired",
        ),
        (
            "python3[77]: segfault at 0 ip 0000000000000000 sp 00007ffe12 error 14",
            "kernel-segfault",
        ),
        ("srun: error: node1: tasks 0-3: Out Of Memory", "slurm-oom"),
        ("12.batch  batch  OUT_OF_ME+  0:125", "slurm-oom"),
        (
            "slurmstepd: error: Exceeded step memory limit at some point.",
            "slurm-memory-limit-touched",
        ),
        (f"{STEP} ***", "slurm-step-cancelled"),
        (f"{STEP} DUE to SIGNAL Terminated ***", "slurm-cancelled"),
        (
            (
                "Memory on the node (IP: 10.0.0.1, ID: abc) was 95.01GB used / 100.00GB limit "
                "(0.950100)"
            ),
            "ray-memory-monitor",
        ),
        (
            (
                "ray.exceptions.LocalRayletDiedError: The task's local raylet died. Check "
                "raylet.out "
                "for more information."
            ),
            "ray-raylet-died",
        ),
        (
            (
                "core_worker_process.cc:232: Failed to register worker to Raylet: IOError: "
                "Failed to "
                "read data from the socket"
            ),
            "ray-raylet-no-answer",
        ),
        (
            (
                f"core_worker.cc:179: Failed to register worker 01{'f' * 54} to Raylet. IOError: "
                "[RayletClient] Unable to register worker with raylet."
            ),
            "ray-raylet-no-answer",
        ),
        (
            (
                "(raylet) worker_pool.cc:586: Some workers of the worker process(7) have not "
                "registered within the timeout."
            ),
            "ray-worker-registration",
        ),
        ('                        "reason": "OOMKilled",', "container-oom-killed"),
        ("The actor is dead because it was killed by `ray.kill`.", None),
        (
            (
                f"{TERMINATED}Possible reasons include: (2) Invalid memory access from Raylet "
                "causing "
                "SIGSEGV or SIGBUS"
            ),
            "ray-raylet-died",
        ),
        ("(raylet) Raylet is terminated. Termination is graceful.", None),
        ("UCX_ERROR_SIGNALS=SIGILL,SIGSEGV,SIGBUS,SIGFPE", None),
        ("ProcessExitedException: process 0 terminated with signal SIGSEGV", "segmentation-fault"),
        (
            (
                "traps: python3[7] trap divide error ip:7f sp:7f error:0 in "
                "libcublasLt.so.12[7f00+100]"
            ),
            "kernel-divide-error",
        ),
        (
            "traps: python3[7] trap divide error ip:7f sp:7f error:0 in libfoo.so[7f00+100]",
            "kernel-divide-error-elsewhere",
        ),
        (
            "RuntimeError: unable to write to file </torch_7_8_9>: No space left on device (28)",
            "torch-shm",
        ),
        ("+ docker inspect -f '{{.State.OOMKilled}}' trainer", None),
        (
            "CUDA driver version is insufficient for CUDA runtime version",
            "cuda-driver-insufficient",
        ),
        (f"{COUNT}2: out of memory", "cuda-error-oom"),
        (
            f"{COUNT}804: forward compatibility was attempted on non supported HW",
            "cuda-compat-not-supported",
        ),
        (
            (
                "ptxas /tmp/tmpx.ptx, line 9; fatal   : Unsupported .version 8.7; current "
                "version is "
                "'8.4'"
            ),
            None,
        ),
        ("OSError: [Errno 23] Too many open files in system", None),
        (
            (
                "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the "
                "current PyTorch installation."
            ),
            "torch-arch-warning",
        ),
        (
            "RuntimeError: CUDA error: cudaErrorInvalidDeviceFunction",
            "cuda-invalid-device-function",
        ),
        (
            (
                "UserWarning: Plan failed with a cudnnException: cudnnFinalizeDescriptor Failed "
                "cudnn_status: CUDNN_STATUS_NOT_SUPPORTED"
            ),
            None,
        ),
        (
            (
                "unable to open shared memory object </torch_1_2> in read-write mode: No such "
                "file or "
                "directory (2)"
            ),
            None,
        ),
        ("OSError: libfoo.so.1: cannot open shared object file: Permission denied", None),
        (
            (
                "RaySystemError: System error: Failed to connect to GCS. Please check if the GCS "
                "server is running and if"
            ),
            "ray-gcs-unreachable",
        ),
        (
            (
                "ERROR utils.py:1395 -- Failed to connect to GCS. Please check `gcs_server.out` "
                "for "
                "more details."
            ),
            "ray-gcs-unreachable",
        ),
        (
            (
                "WARNING utils.py:1401 -- Unable to connect to GCS (ray head) at 172.17.0.2:6379. "
                "Check that (1) Ray with"
            ),
            "ray-gcs-unreachable",
        ),
        (
            (
                "WARNING node.py:1465 -- Unable to connect to GCS at 127.0.0.1:6379. Check that "
                "(1) "
                "Ray GCS with matching"
            ),
            "ray-gcs-unreachable",
        ),
        ("ERROR storage.py:12 -- Unable to connect to GCS bucket 'data': 403 Forbidden", None),
        (
            (
                "[W ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname to a (local) "
                "address. Using the loopback address as fallback."
            ),
            None,
        ),
        (
            "ImportError: /x/_C.so: undefined symbol: _Z16ms_deform_attn_forwardRKN2at6TensorE",
            "undefined-symbol",
        ),
        (
            "ImportError: /x/y.so: undefined symbol: _ZNK2at6Tensor8data_ptrEv",
            "undefined-symbol-torch",
        ),
        (
            "ImportError: /x/libtorch_cuda.so: undefined symbol: cusparseLtMatmulDescSetAttribute",
            "undefined-symbol",
        ),
        ("AttributeError: /x/libfoo.so: undefined symbol: PyFoo_New", "symbol-looked-up"),
        (
            (
                "[12.5] Out of memory: Killed process 4242 (python3) total-vm:1kB, "
                "anon-rss:12345kB, "
                "file-rss:0kB"
            ),
            "kernel-oom-global",
        ),
        (
            (
                "slurmstepd: error: Detected 3 oom_kill events in StepId=1.0. Some of the step "
                "tasks "
                "have been OOM Killed."
            ),
            "slurm-oom",
        ),
        ("srun: error: node1: task 3: Killed", "killed-by-signal"),
        ("run.sh: line 3:  1234 Aborted                 (core dumped) python train.py", "aborted"),
        ("D-Bus error: org.freedesktop.DBus.Error.ServiceUnknown", None),
        ("failed to register layer: write /var/lib/docker/x: no space left on device", "disk-full"),
        ("To solve CUDA out of memory lower the batch size", None),
        ("c++: fatal error: Killed signal terminated program cc1plus", "killed-by-signal"),
        (
            (
                "libibverbs: Warning: couldn't load driver 'libmlx4.so': libmlx4.so: cannot open "
                "shared object file: No such file or directory"
            ),
            None,
        ),
        (
            (
                "Failed to import from vllm._C with ImportError('/x/vllm/_C.abi3.so: undefined "
                "symbol: "
                "_ZN3c105ErrorD1Ev')"
            ),
            "undefined-symbol-torch",
        ),
        (
            (
                "ImportError: cannot import name 'RepositoryNotFoundError' from 'huggingface_hub' "
                "(/x/__init__.py)"
            ),
            "import-name",
        ),
        ("ImportError: cannot import name 'LLM' from 'vllm' (unknown location)", "import-circular"),
        ("ModuleNotFoundError: No module named 'google.protobuf'", "module-missing"),
        ("/usr/bin/python3.13t: No module named pip", "module-missing"),
        ("/usr/bin/python3: No module named json/tool", None),
        ("/usr/bin/python3: No module named pip-tools", None),
        ("ModuleNotFoundError: No module named 'flash-attn'", None),
        ("    raise ModuleNotFoundError(\"No module named 'foo'\")", None),
        (
            "ModuleNotFoundError: No module named 'transformers_modules.deepseek-ai'",
            "module-part-missing",
        ),
        ("ModuleNotFoundError: No module named 'verl.trainer/main_ppo'", None),
        ("OSError: /x/libgds.so: undefined symbol: cuFileDriverOpen", "undefined-symbol"),
        (
            "numba 0.61.0 has requirement numpy<2.2,>=1.24, but you have numpy 2.2.0.",
            "pip-conflict-line",
        ),
        (
            "ImportError: cannot import name 'izip' from 'itertools' (unknown location)",
            "import-name",
        ),
        (
            (
                "ImportError: cannot import name 'ProcessGroupNCCL' from "
                "'torch._C._distributed_c10d' "
                "(unknown location)"
            ),
            "import-name",
        ),
        ("    from ray.exceptions import GetTimeoutError, RayActorError", None),
        ("    except ray.exceptions.WorkerCrashedError: continue", None),
        ("    from vllm.v1.engine.exceptions import EngineGenerateError, EngineDeadError", None),
        (
            (
                "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-a (size "
                "0), "
                "error: No such file or directory (2)"
            ),
            None,
        ),
        ("fanotify_mark: No space left on device", None),
        ("  - CUDA out of memory: try a smaller batch", None),
        ("    if 'CUDA out of memory' in str(error):", None),
        (
            (
                "RuntimeError: cuda runtime error (8) : invalid device function at "
                "/x/THCTensorMathPointwise.cu:247"
            ),
            "cuda-invalid-device-function",
        ),
        ("RuntimeError: HIP error: invalid device function", None),
        ("[rank0]: AssertionError: Torch not compiled with CUDA enabled", "torch-without-cuda"),
        ("SKIPPED [1] test_kernels.py: Torch not compiled with CUDA enabled", None),
    ],
)
def test_a_line_means_one_thing(said, line, signature):
    """Lines as the sources of Linux 6.6, NVIDIA 595, Slurm 26.05, Ray 2.60, torch 2.15 and CUDA
    12.8 write them.
    """
    found = [trace.finding.subject for trace in said(f"{line}\n").traces]
    assert found == ([signature] if signature else [])


def test_an_older_kernel_may_have_killed_a_child_of_what_it_names(said):
    (trace,) = said(
        "Memory cgroup out of memory: Kill process 123 (python) score 1000 or sacrifice child\n"
    ).traces
    assert trace.finding.message == (
        "The kernel killed python (pid 123), or a child of it, because its memory cgroup was full."
    )


# --------------------------------------------------------------------------------------------------
# joined with facts


def test_a_floating_point_exception_on_an_h20_with_old_cublas(said):
    text = "Floating point exception (core dumped)\n"
    assert roots(said(text))[0][2] == "candidate"
    found = said(text, assume=["gpu=H20:8", "nvidia-cublas-cu12==12.1.3.1"])
    assert roots(found)[0] == ("nvidia-cublas-cu12", "too-old", "established")


def test_a_floating_point_exception_elsewhere_is_not_blamed_on_cublas(said):
    found = said(
        "Floating point exception (core dumped)\n",
        assume=["gpu=A100:8", "nvidia-cublas-cu12==12.1.3.1"],
    )
    assert not [
        suspect
        for trace in found.traces
        for suspect in trace.suspects
        if "cublas" in suspect.component
    ]
    assert "nvidia-cublas-cu12" not in [component for component, _, _ in roots(found)]


def test_a_bus_error_with_a_small_shm(said):
    assert roots(said("Bus error (core dumped)\n", assume=["shm=64MiB"]))[0][:2] == (
        "/dev/shm",
        "shm-too-small",
    )
    assert roots(said("Bus error (core dumped)\n"))[0][2] == "candidate"


def test_a_symptom_of_a_row_that_the_facts_refute_is_not_claimed(said):
    text = (
        "ImportError: cannot import name 'ForkingPickler' from 'torch.multiprocessing.reductions'\n"
    )
    rows = {
        name
        for trace in said(text).traces
        for name in (
            trace.finding.row,
            *trace.finding.rows,
            *(suspect.row for suspect in trace.suspects),
        )
    }
    assert any("tensordict" in name for name in rows)


def traceback_of(package, last):
    """A traceback as Python prints it, through the code of a package."""
    frame = f'  File "/venv/lib/python3.12/site-packages/{package}/x.py", line 1, in <module>\n'
    return (
        f'Traceback (most recent call last):\n  File "run.py", line 1, in <module>\n{frame}{last}\n'
    )


def test_what_any_program_can_print_is_a_rows_only_where_its_packages_are_named(said):
    last = "ImportError: cannot import name 'clear_device_cache' from 'accelerate.utils.memory'"
    row = "peft-0.15-accelerate-0.32"
    assert row in {
        trace.finding.row
        for trace in said(traceback_of("peft", last)).traces
        if trace.certainty == "likely"
    }
    other = said(traceback_of("somebodys", last))
    assert not [trace for trace in other.traces if trace.finding.row]
    assert row in {
        suspect.row
        for trace in other.traces
        for suspect in trace.suspects
        if suspect.confidence == "low"
    }


def test_a_symptom_of_several_rows_claims_none_of_them(said):
    found = said("ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!\n")
    (trace,) = found.traces
    assert trace.certainty == "candidate"
    assert len({suspect.row for suspect in trace.suspects}) > 1


def test_a_library_that_tensorflow_looks_for_is_no_fault_of_torchaudio(said):
    # the words are those of tensorflow/stream_executor/platform/default/dso_loader.cc in 2.10
    library = "libcudart.so.11.0"
    found = said(
        "2026-11-22 10:00:01.123456: W "
        "tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic "
        f"library '{library}'; "
        f"dlerror: {library}: cannot open shared object file: No such file or directory\n"
    )
    assert all(trace.certainty == "candidate" for trace in found.traces)


# --------------------------------------------------------------------------------------------------
# real messages


def ended(*command, **options):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, **options
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("number", "signature"),
    [
        (signal.SIGKILL, "killed-by-signal"),
        (signal.SIGSEGV, "segmentation-fault"),
        (signal.SIGFPE, "floating-point-exception"),
        (signal.SIGBUS, "bus-error"),
    ],
)
def test_exit_codes_of_a_real_shell(said, number, signature):
    script = f"bash -c 'kill -{number.value} $$'; echo \"process ended: exit code $?\""
    found = said(ended("bash", "-c", script, env={**os.environ, "LC_ALL": "C"}))
    assert signature in {trace.finding.subject for trace in found.traces}


@pytest.fixture
def library(tmp_path, prerequisite):
    prerequisite(shutil.which("gcc") is not None, "gcc is not installed")
    (tmp_path / "have.c").write_text("int have(void) { return 1; }\n")
    (tmp_path / "want.c").write_text(
        "int _ZN3c105ErrorC2Ev(void); int have(void); int want(void) { return _ZN3c105ErrorC2Ev() "
        "+ have(); }\n"
    )
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-o",
            tmp_path / "libcudart.so.12",
            tmp_path / "have.c",
            "-Wl,-soname,libcudart.so.12",
        ],
        check=True,
    )
    made = tmp_path / "flash_attn_2_cuda.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", made, tmp_path / "want.c", tmp_path / "libcudart.so.12"],
        check=True,
    )
    return made


def load(path, **variables):
    return ended(
        sys.executable,
        "-c",
        f"import ctypes, os; ctypes.CDLL({str(path)!r}, os.RTLD_NOW)",
        env={**os.environ, **variables},
    )


def test_the_loaders_undefined_symbol(said, library):
    found = said(load(library, LD_LIBRARY_PATH=str(library.parent)))
    assert roots(found) == [("flash-attn", "abi-mismatch", "likely")]


def test_the_loaders_missing_library(said, library):
    found = said(load(library))
    assert roots(found)[0][1:] == ("cuda-major-mismatch", "likely")


def test_a_library_whose_number_is_no_cuda_version(said, library):
    cudnn = library.parent / "libcudnn.so.9"
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-o",
            cudnn,
            library.parent / "have.c",
            "-Wl,-soname,libcudnn.so.9",
        ],
        check=True,
    )
    (library.parent / "call.c").write_text("int have(void); int call(void) { return have(); }\n")
    made = library.parent / "libprovider.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", made, library.parent / "call.c", cudnn], check=True
    )
    assert roots(said(load(made))) == [("libcudnn", "missing", "likely")]


@pytest.mark.parametrize(
    ("name", "function", "cause"),
    [
        ("libmade.so.1", "newer", ("version-mismatch", "likely")),
        ("libbitsandbytes_cpu.so", "cquantize_blockwise_fp16_nf4", ("missing", "established")),
        ("libnccl.so.2", "ncclCommWindowRegister", ("shadowed", "likely")),
    ],
)
def test_a_function_that_ctypes_does_not_find(said, library, name, function, cause):
    """The library is not the one that asks."""
    made = library.parent / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, library.parent / "have.c"], check=True)
    found = said(
        ended(sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(made)!r}).{function}")
    )
    assert [root[1:] for root in roots(found)] == [cause]
    assert not any(
        "asks for" in trace.finding.message or "by /" in trace.finding.message
        for trace in found.traces
    )


def test_the_loaders_missing_version(said, tmp_path, prerequisite):
    prerequisite(shutil.which("gcc") is not None, "gcc is not installed")
    (tmp_path / "map").write_text("GLIBC_2.99 { global: newer; };\n")
    (tmp_path / "new.c").write_text("int newer(void) { return 1; }\n")
    (tmp_path / "use.c").write_text("int newer(void); int use(void) { return newer(); }\n")
    build = ["gcc", "-shared", "-fPIC"]
    subprocess.run(
        [
            *build,
            "-o",
            tmp_path / "libx.so",
            tmp_path / "new.c",
            f"-Wl,--version-script={tmp_path / 'map'},-soname,libx.so",
        ],
        check=True,
    )
    subprocess.run(
        [*build, "-o", tmp_path / "use.so", tmp_path / "use.c", tmp_path / "libx.so"], check=True
    )
    subprocess.run(
        [*build, "-o", tmp_path / "libx.so", tmp_path / "new.c", "-Wl,-soname,libx.so"], check=True
    )
    (tmp_path / "old").write_text("GLIBC_2.1 { global: newer; };\n")
    subprocess.run(
        [
            *build,
            "-o",
            tmp_path / "libx.so",
            tmp_path / "new.c",
            f"-Wl,--version-script={tmp_path / 'old'},-soname,libx.so",
        ],
        check=True,
    )
    text = load(tmp_path / "use.so", LD_LIBRARY_PATH=str(tmp_path))
    assert "GLIBC_2.99' not found" in text
    assert roots(said(text)) == [("glibc", "too-old", "established")]


def test_pythons_import_errors(said):
    text = ended(sys.executable, "-c", "from json import no_such_name")
    assert roots(said(text)) == [("json", "version-mismatch", "likely")]
    assert roots(said(ended(sys.executable, "-c", "import flash_attn_not_there"))) == [
        ("flash-attn-not-there", "missing", "likely")
    ]


def test_a_file_that_hides_a_module_by_its_name(said, tmp_path):
    """Python 3.8 to 3.12 and 3.13 have different words for it."""
    hiding = tmp_path / "colorsys.py"
    hiding.write_text("import colorsys\ncolorsys.rgb_to_hsv\n")
    text = ended(sys.executable, str(hiding))
    assert {
        (suspect.component, suspect.kind)
        for trace in said(text).traces
        for suspect in trace.suspects
    } >= {("colorsys", "shadowed")}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 and newer say it")
def test_a_submodule_that_is_not_imported_to_its_end(said, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("")
    (tmp_path / "made" / "part.py").write_text("import made\nmade.part.name\n")
    text = ended(
        sys.executable, "-c", "import made.part", env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    found = [trace for trace in said(text).traces if trace.finding.subject == "import-circular"]
    components = {suspect.component for trace in found for suspect in trace.suspects}
    assert "made" in components
    assert "?" not in components


@pytest.fixture
def index(tmp_path):
    """Wheels that exclude each other: a needs c 1, b needs c 2."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, version, needs in (
        ("made-a", "1", "made-c==1"),
        ("made-b", "1", "made-c==2"),
        ("made-c", "1", ""),
        ("made-c", "2", ""),
    ):
        stem = f"{name.replace('-', '_')}-{version}"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            requires = f"Requires-Dist: {needs}\n" if needs else ""
            wheel.writestr(
                f"{stem}.dist-info/METADATA",
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
            )
            wheel.writestr(
                f"{stem}.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return str(folder)


def test_pips_resolution_impossible(said, index, tmp_path):
    target = str(tmp_path / "target")
    text = ended(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--find-links",
        index,
        "--target",
        target,
        "made-a",
        "made-b",
    )
    assert "ResolutionImpossible" in text
    assert roots(said(text)) == [("requirements", "conflict", "established")]


def test_uvs_no_solution(said, index, tmp_path, prerequisite):
    uv = shutil.which("uv") or os.path.join(os.path.dirname(sys.executable), "uv")
    prerequisite(os.path.exists(uv), "uv is not installed")
    command = (
        uv,
        "pip",
        "install",
        "--no-index",
        "--find-links",
        index,
        "--target",
        str(tmp_path / "target"),
        "made-a",
        "made-b",
    )
    text = ended(*command, env={**os.environ, "NO_COLOR": "1"})
    assert roots(said(text)) == [("requirements", "conflict", "likely")]


@pytest.mark.parametrize(
    "text",
    # PDM, ANTLR, lightning, sglang with its check off, a value that was not quoted, a type of
    # weights that safetensors 0.6.2 does not know
    [
        "[ResolutionImpossible]: Unable to find a resolution for a>=1",
        "antlr4.error.Errors.LexerNoViableAltException: LexerNoViableAltException('#')",
        "NotImplementedError: Support for `training_epoch_end` has been removed in v2.0.0.",
        (
            "[2025-05-01 10:00:00 TP0] The memory capacity is unbalanced. Some GPUs may be "
            "occupied by "
            "other processes."
        ),
        "bash: line 1: export: `8.0': not a valid identifier",
        (
            "SafetensorError: Error while deserializing header: invalid JSON in header: unknown "
            "variant `F9_X`, expected one of `BOOL`, `F4`"
        ),
    ],
)
def test_what_other_programs_say_in_like_words(said, text):
    assert roots(said(f"{text}\n")) == []


def test_error_304_is_more_than_memory_that_cannot_be_pinned(said):
    found = said(f"{COUNT}304: OS call failed or operation not supported on this OS\n")
    assert [trace.finding.subject for trace in found.traces] == ["cuda-os-call-failed"]


def test_offline_mode_is_not_a_hub_out_of_reach(said):
    """The traceback names the exception on a line of its own."""
    offline = (
        "Cannot find the requested files in the disk cache and outgoing traffic has been disabled."
    )
    found = said(
        "    raise LocalEntryNotFoundError(\nhuggingface_hub.errors.LocalEntryNotFoundError: "
        f"{offline}\n"
    )
    assert [trace.finding.subject for trace in found.traces] == ["hub-offline"]


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_the_shells_export_of_a_dotted_key(said, shell, prerequisite):
    prerequisite(shutil.which(shell), f"{shell} is not installed")
    text = ended(shell, "-c", "export a.b.c=0.6", env={**os.environ, "LC_ALL": "C"})
    assert roots(said(text)) == [("configuration", "unsupported", "established")]


def test_files_that_cannot_be_opened_any_more(said):
    text = ended(
        "bash",
        "-c",
        f"ulimit -n 20; exec {sys.executable} -c 'import os; [os.dup(0) for _ in range(40)]'",
    )
    assert roots(said(text)) == [("rlimit-nofile", "too-small", "established")]


def test_a_full_tmpfs_is_a_bus_error(said, tmp_path, prerequisite):
    """The kernel itself: memory that a full /dev/shm cannot back raises SIGBUS."""
    mounted = (
        subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    )
    prerequisite(mounted, "no mount namespace can be made here")
    script = (
        f"ulimit -c 0; mount -t tmpfs -o size=64k none {tmp_path} && {sys.executable} -c 'import "
        "mmap, os; "
        f'f = os.open("{tmp_path}/x", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 20); '
        "mmap.mmap(f, 1 << 20).write(bytes(1 << 20))'; echo exit code $?"
    )
    text = ended("unshare", "-m", "bash", "-c", script, env={**os.environ, "LC_ALL": "C"})
    assert "135" in text, text
    assert "bus-error" in {trace.finding.subject for trace in said(text).traces}
