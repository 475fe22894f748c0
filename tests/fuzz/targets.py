"""Every parser of text that somebody else wrote, and every output made of it, as one function of
bytes each; ``TARGETS`` names them with their seeds.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from . import command_targets as commands
from .inputs import DATA, built_in_matrix, chosen, input_file, scratch_folder
from .invariants import check_texts, planted

REPOSITORY = DATA.parent.parent


class Target(NamedTuple):
    """One function under test; ``seeds`` are patterns below the repository."""

    run: Callable[[bytes], None]
    seeds: Tuple[str, ...]


#: Which share of the inputs whose facts are not what is looked at is judged too: that takes most of
#: the time.
judged_every = 1


def _judged(facts: Any, data: bytes = b"") -> None:
    """Judge facts and write what comes of them in every format."""
    if sum(data) % judged_every:
        return
    from envdoctor.app import check
    from envdoctor.model.serde import dump_facts
    from envdoctor.report import REPORTERS, render
    from envdoctor.report.console import draw
    from envdoctor.report.facts_text import lay_out_facts
    from envdoctor.report.monitoring import STYLES, render_status
    from envdoctor.report.view import View

    view = View(80, verbose=True)
    texts = [json.dumps(dump_facts(facts), indent=1), draw(lay_out_facts(facts, True), view)]
    report = check([facts], built_in_matrix())
    texts += [render(report, name, view) for name in REPORTERS]
    texts += [render_status(report, style)[0] for style in STYLES]
    check_texts(texts)


def report(data: bytes) -> None:
    """A pasted report: its facts, judged and written."""
    from envdoctor.intake.pasted_report import parse_report

    _judged(parse_report(planted(data)), data)


def log(data: bytes) -> None:
    """A log, packed or not: what is diagnosed of it."""
    from envdoctor.app import diagnose
    from envdoctor.intake.log_reader import read_logs
    from envdoctor.report.diagnosis_text import DIAGNOSIS_FORMATS, render_diagnosis
    from envdoctor.report.text import clean
    from envdoctor.report.view import View

    packed = data[:2] == b"\x1f\x8b" or data[:3] == b"BZh" or data[:2] == b"\xfd7"
    path = input_file(data if packed else planted(data).encode("utf-8", "replace"), "run.log")
    if sum(data) % judged_every:
        reading = read_logs([path], built_in_matrix().log_patterns[0])
        lines = [line for event in reading.events for line in (event.first, event.last)]
        check_texts([clean(f"{line.process} {line.text}") for line in lines])
        return
    result = diagnose([path], matrix=built_in_matrix())
    view = View(80, verbose=True)
    check_texts(render_diagnosis(result, name, view) for name in DIAGNOSIS_FORMATS)


_LOCKS = ("requirements.txt", "pylock.toml", "uv.lock", "Pipfile.lock", "environment.yml", "x.txt")


def requirements(data: bytes) -> None:
    """A requirements file or somebody's lock."""
    from envdoctor.intake.requirement_files import parse_requirements

    name, rest = chosen(data, _LOCKS)
    _judged(parse_requirements(rest.decode("utf-8", "replace"), name), data)


def lock(data: bytes) -> None:
    """An envdoctor.lock.json."""
    from envdoctor.intake.lock_reader import lock_facts, parse_lock
    from envdoctor.model.facts import Facts

    _judged(
        Facts(lock_facts(parse_lock(data.decode("utf-8", "replace"), "envdoctor.lock.json"))), data
    )


def facts(data: bytes) -> None:
    """A facts file."""
    from envdoctor.model.serde import load_facts

    _judged(load_facts(data.decode("utf-8", "replace"), "facts.json"))


def assumptions(data: bytes) -> None:
    """Lines ``KEY=VALUE``."""
    from envdoctor.intake.assumptions import with_assumptions
    from envdoctor.model.facts import Facts
    from envdoctor.sources import read_assumptions

    lines = data.decode("utf-8", "replace").split("\n")
    _judged(with_assumptions(Facts({}), read_assumptions(lines)))


def launch(data: bytes) -> None:
    """A launch script: what it starts, and what that takes of the memory."""
    from envdoctor.app import plan
    from envdoctor.model.facts import Facts
    from envdoctor.report import plan_json, plan_text
    from envdoctor.report.view import View

    text = planted(data).encode("utf-8", "replace")
    result, _ = plan([input_file(text, "run.sh")], Facts({}), built_in_matrix())
    view = View(80, verbose=True)
    check_texts([plan_text.render(result, view), plan_json.render(result, view)])


def configuration(data: bytes) -> None:
    """A configuration file of a framework, in YAML, JSON or TOML."""
    from envdoctor.plan.frameworks.settings import read_config

    name, rest = chosen(data, ("config.yaml", "config.json", "config.toml"))
    read_config(rest.decode("utf-8", "replace"), name)


def rows(data: bytes) -> None:
    """A TOML file of a site's own rows."""
    from envdoctor.errors import MatrixError
    from envdoctor.matrix.loader import load_matrix

    os.makedirs(os.path.join(scratch_folder(), "site", "errata"), exist_ok=True)
    folder = os.path.dirname(os.path.dirname(input_file(data, "site/errata/rows.toml")))
    try:
        matrix = load_matrix([folder])
    except MatrixError as error:
        from envdoctor.report.text import clean

        check_texts([clean(fault) for fault in error.faults])
        return
    for row in matrix.rows():
        if row.origin.endswith("rows.toml"):
            matrix.complete(row)


def signatures(data: bytes) -> None:
    """A signatures.toml."""
    from envdoctor.matrix.entries import Faults
    from envdoctor.matrix.signatures import parse_signatures
    from envdoctor.matrix.source import read_toml

    faults = Faults()
    document = read_toml(input_file(data, "signatures.toml"), "signatures.toml", faults)
    if document is not None:
        parse_signatures(document, "signatures.toml", faults)


def archive(data: bytes) -> None:
    """An archive of a matrices folder."""
    import shutil

    from envdoctor.matrix.update.archive import unpack

    path = input_file(data, "matrix.archive")
    destination = os.path.join(scratch_folder(), "unpacked")
    shutil.rmtree(destination, ignore_errors=True)
    os.mkdir(destination)
    unpack(path, destination)


def smi(data: bytes) -> None:
    """What nvidia-smi, the kernel module and its files print."""
    from envdoctor.probes import nvidia_text

    text = data.decode("utf-8", "replace")
    nvidia_text.parse_kernel_version(text)
    nvidia_text.parse_gpu_information(text)
    nvidia_text.parse_maps(text, "libcuda.so")
    nvidia_text.parse_pci_list(text, "10de")
    nvidia_text.parse_smi_gpus(text, ("name", "uuid", "memory.total"))
    nvidia_text.parse_fabric_version(text)
    nvidia_text.is_release(text)


def elf(data: bytes) -> None:
    """A shared library."""
    from envdoctor.probes.elf import ElfError, open_elf

    try:
        with open_elf(input_file(data, "lib.so")) as file:
            for part in ("version_needs", "version_definitions", "undefined"):
                getattr(file, part)()
            file.mentions(b"cuInit")
            file.defines("cuInit")
    except ElfError:
        return


def metadata(data: bytes) -> None:
    """The files of an installed distribution."""
    from envdoctor.model.requirement import try_requirement
    from envdoctor.probes import distributions

    read = distributions.parse_metadata(data)
    for line in read.requires or ():
        try_requirement(line)
    distributions.parse_requires_txt(data)
    distributions.parse_direct_url(data)
    list(distributions.parse_record(data))
    text = data.decode("utf-8", "replace")
    distributions.split_name(text)
    distributions.parse_conda_name(text)


def wheel_names(data: bytes) -> None:
    """Names of wheels and their tags."""
    from envdoctor.intake.package_lists import wheel_file
    from envdoctor.matrix.tags import glibc_for, serves_python
    from envdoctor.model.versions import parse_version

    for line in data.decode("utf-8", "replace").split("\n"):
        wheel = wheel_file(line)
        for tag in wheel[2] if wheel else (line,):
            serves_python(tag, parse_version("3.12"))
            glibc_for(tag, "linux", "x86_64")


def proc(data: bytes) -> None:
    """Files of the kernel: control groups, mounts, limits, memory."""
    from envdoctor.probes import container, process_limits, schedulers, system, toolkits

    text = data.decode("utf-8", "replace")
    container.parse_cgroup(text)
    container.parse_mountinfo(text)
    container.parse_table(text)
    process_limits.parse_limits(text)
    process_limits.parse_meminfo(text)
    process_limits.parse_status(text)
    process_limits.count_list(text)
    schedulers.parse_quantity(text)
    schedulers.parse_ray_usage(text)
    schedulers.slurm_memory({"SLURM_MEM_PER_NODE": text, "SLURM_MEM_PER_CPU": text})
    system.parse_os_release(text)
    system.parse_glibc(data)
    toolkits.parse_version_json(text)
    toolkits.parse_version_text(text)
    toolkits.parse_cuda_header(text)
    toolkits.parse_tool_version(data)


def environment_files(data: bytes) -> None:
    """pyvenv.cfg, .pth files, torch's version.py, the loader's cache and list."""
    from envdoctor.probes import dynamic_loader, interpreter, torch_build

    text = data.decode("utf-8", "replace")
    interpreter.parse_pyvenv(text)
    interpreter.parse_pth(text)
    torch_build.parse_version_file(text)
    dynamic_loader.parse_cache(data)
    dynamic_loader.parse_list(text)


def ignores(data: bytes) -> None:
    """A file of ignore entries."""
    from envdoctor.intake.ignores import parse_ignores

    parse_ignores(data.decode("utf-8", "replace"), "ignore.txt")


def baseline(data: bytes) -> None:
    """The baseline of an image, read at its start."""
    from envdoctor.entrypoint.baseline import read_baseline

    try:
        read_baseline(input_file(data, "baseline.json"))
    except ValueError:  # which its caller words
        return


def secrets(data: bytes) -> None:
    """Any text with a secret in a line of its own."""
    from envdoctor.model.redaction import redact
    from envdoctor.report.text import clean

    check_texts([clean(line) for line in redact(planted(data)).split("\n")])


def output(data: bytes) -> None:
    """A finding whose every text is the input, in every format."""
    from envdoctor.model.evidence import Evidence
    from envdoctor.model.finding import Finding, Remedy
    from envdoctor.model.report import Report
    from envdoctor.model.row import Source
    from envdoctor.report import REPORTERS, render
    from envdoctor.report.monitoring import STYLES, render_status
    from envdoctor.report.view import View

    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"s" else "replace")
    finding = Finding(
        code="ED190",
        component=text,
        kind="conflict",
        severity="error",
        message=text,
        subject=text,
        evidence=(Evidence(text, text),),
        sources=(Source(f"https://{text}", text),),
        remedies=(Remedy(text, (text,), "safe"),),
    )
    result = Report((finding,), (), (), (), (), "2026-11-22", 1)
    view = View(80, verbose=True)
    texts = [render(result, name, view) for name in REPORTERS]
    check_texts([*texts, *(render_status(result, style)[0] for style in STYLES)])


def root(data: bytes) -> None:
    """An image, of which one file is the input: what the probes make of it, judged and written."""
    from envdoctor.sources import probe

    tree = _tree()
    name, rest = chosen(data, tuple(sorted(tree)))
    path = os.path.join(scratch_folder(), "root", name)
    try:
        with open(path, "wb") as file:
            file.write(planted(rest).encode("utf-8", "replace") if name in _WITH_SECRETS else rest)
        _judged(
            probe(root=os.path.join(scratch_folder(), "root"), python="/env/bin/python3.11"), data
        )
    finally:
        with open(path, "wb") as file:
            file.write(tree[name])


#: What a finding may quote.
_WITH_SECRETS = ("env/lib/python3.11/site-packages/torch-2.4.0.dist-info/direct_url.json",)


@lru_cache(maxsize=1)
def _tree() -> Dict[str, bytes]:
    """Make an image with an environment; return its files."""
    site = "env/lib/python3.11/site-packages"
    wheel = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux1_x86_64\n"
    names = {
        "etc/os-release": b'ID=ubuntu\nVERSION_ID="22.04"\n',
        "etc/ld.so.cache": (DATA / "fuzz/environment_files/seed-ld.so.cache").read_bytes(),
        "etc/ld.so.conf": b"/usr/local/cuda/lib64\n",
        "env/pyvenv.cfg": b"home = /usr/bin\nversion = 3.11.7\n",
        "env/bin/python3.11": (DATA / "fuzz/elf/seed-so").read_bytes(),
        f"{site}/torch-2.4.0.dist-info/METADATA": b"Name: torch\nVersion: 2.4.0\n"
        b"Requires-Python: >=3.8\nRequires-Dist: nvidia-cublas-cu12==12.1.3.1\n",
        f"{site}/torch-2.4.0.dist-info/WHEEL": wheel,
        f"{site}/torch-2.4.0.dist-info/RECORD": b"torch/version.py,sha256=x,1\n",
        f"{site}/torch-2.4.0.dist-info/direct_url.json": b'{"url": "file:///x", "dir_info": {}}',
        f"{site}/torch/version.py": b"__version__ = '2.4.0+cu121'\ncuda = '12.1'\n",
        f"{site}/torch/__init__.py": b"cuda_libs = {}\n",
        f"{site}/old.egg-info/PKG-INFO": b"Name: old\nVersion: 1.0\n",
        f"{site}/old.egg-info/requires.txt": b"numpy<2\n\n[x]\nscipy\n",
        f"{site}/own.pth": b"/opt/own\n",
        "env/conda-meta/python-3.11.7-h1.json": b'{"name": "python", "version": "3.11.7"}',
        "usr/local/cuda/version.json": b'{"cuda": {"name": "CUDA SDK", "version": "12.1.1"}}',
        "usr/local/cuda/version.txt": b"CUDA Version 12.1.105\n",
        "usr/local/cuda/include/cuda.h": b"#define CUDA_VERSION 12010\n",
    }
    for name, content in names.items():
        path = os.path.join(scratch_folder(), "root", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_bytes(content)
    os.chmod(os.path.join(scratch_folder(), "root/env/bin/python3.11"), 0o755)
    return names


TARGETS: Dict[str, Target] = {
    "report": Target(report, ("tests/data/reports/*.txt",)),
    "log": Target(log, ("tests/data/logs/*.log",)),
    "requirements": Target(requirements, ("tests/data/requirements/*", "tests/data/health/v*.txt")),
    "lock": Target(lock, ()),
    "facts": Target(facts, ("tests/data/reports/*.json",)),
    "assumptions": Target(assumptions, ()),
    "launch": Target(launch, ("tests/data/workloads/*/*.sh", "tests/data/workloads/*.sh")),
    "configuration": Target(configuration, ("tests/data/workloads/*/*.yaml",)),
    "rows": Target(rows, ("matrices/errata/*.toml",)),
    "signatures": Target(signatures, ("matrices/signatures.toml",)),
    "archive": Target(archive, ()),
    "smi": Target(smi, ("tests/data/reports/nvidia*.txt",)),
    "elf": Target(elf, ()),
    "metadata": Target(metadata, ()),
    "wheel_names": Target(wheel_names, ()),
    "proc": Target(proc, ("tests/data/cgroups/*.json",)),
    "environment_files": Target(environment_files, ()),
    "ignores": Target(ignores, ()),
    "baseline": Target(baseline, ()),
    "secrets": Target(secrets, ("tests/data/reports/vllm*.txt",)),
    "output": Target(output, ()),
    "root": Target(root, ()),
    "nodes": Target(commands.nodes, ()),
    "node_output": Target(commands.node_output, ()),
    "engines": Target(commands.engines, ()),
    "hosts": Target(commands.hosts, ()),
    "wanted": Target(commands.wanted, ()),
    "index_settings": Target(commands.index_settings, ()),
    "uv_output": Target(commands.uv_output, ()),
    "source_archive": Target(commands.source_archive, ()),
    "model": Target(commands.model, ()),
    "tables": Target(commands.tables, ()),
    "own_files": Target(commands.own_files, ()),
    "values": Target(commands.values, ()),
}


def seeds(name: str, largest: int = 1 << 15) -> List[bytes]:
    """Return the inputs to begin with: data of other tests, and all that was ever found."""
    found = [
        path.read_bytes()
        for pattern in TARGETS[name].seeds
        for path in sorted(REPOSITORY.glob(pattern))
        if path.is_file()
    ]
    found += [path.read_bytes() for path in regressions(name)]
    return [data[:largest] for data in found] or [b"0"]


def regressions(name: str) -> List[Path]:
    """Return the inputs that once broke an invariant of a target."""
    return sorted((DATA / "fuzz" / name).glob("*"))
