"""What other commands than check read: nodes, lock, plan, fix, matrix. One function of bytes
each.
"""

from __future__ import annotations

import os

from envdoctor.report.text import clean

from .inputs import built_in_matrix, chosen, input_file, scratch_folder
from .invariants import SECRETS, Broken, check_texts, planted


def nodes(data: bytes) -> None:
    """What nodes answered, as lines: grouped, judged and written."""
    from envdoctor.app import check_cluster
    from envdoctor.model.node_answers import Answers, read_lines
    from envdoctor.report.cluster_json import dump_cluster
    from envdoctor.report.cluster_text import lay_out_cluster
    from envdoctor.report.console import draw
    from envdoctor.report.view import View

    answers = Answers()
    lines = iter(data.decode("utf-8", "replace").splitlines(keepends=True))
    said = list(read_lines(lines, "answers.jsonl", answers))
    result = check_cluster(said, answers.environments, built_in_matrix())
    view = View(80, verbose=True)
    check_texts([dump_cluster(result), draw(lay_out_cluster(result, view), view)])


def node_output(data: bytes) -> None:
    """What a program prints that speaks for one node, or for many."""
    from envdoctor.model.node_answers import Answers
    from envdoctor.nodes.collection import Job, collect

    name, rest = chosen(data, ("gpu01", ""))
    path = input_file(planted(rest).encode("utf-8", "replace"), "output")
    for reply in collect([Job(("cat", path), name)], "", Answers(), deadline=20):
        check_texts([clean(reply.failed)])


def engines(data: bytes) -> None:
    """What sinfo and kubectl print of a cluster, and an MPI host file."""
    from envdoctor.nodes.engines import NodeRequest, jobs_of

    engine, rest = chosen(data, ("slurm", "kubectl", "mpi"))
    path = input_file(rest, "printed")
    program = {"slurm": "sinfo", "kubectl": "kubectl", "mpi": "mpirun"}[engine]
    command = input_file(f"#!/bin/sh\nexec cat {path}\n".encode(), program)
    os.chmod(command, 0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{scratch_folder()}:{before}"
    try:
        asked = jobs_of(NodeRequest(engine, path if engine == "mpi" else "app=x"))
    finally:
        os.environ["PATH"] = before
    for job in asked.jobs:
        if job.node.startswith("-") and engine == "mpi":  # a word of its own; srun has --nodelist=
            raise Broken(f"a node that {program} takes for an option: {job.node!r}")
    check_texts([clean(reply.failed) for reply in asked.failed])


def hosts(data: bytes) -> None:
    """Lists of hosts: what is folded stands for the same names."""
    from envdoctor.model.host_names import expand, fold_names, unfold

    names = expand(data.decode("utf-8", "replace"), "--ssh")
    if len(names) < 2000 and sorted(unfold(fold_names(names))) != sorted(names):
        raise Broken(f"folded to other names: {fold_names(names)!r}")


def wanted(data: bytes) -> None:
    """What a lock is asked for: requirements, constraints, pyproject.toml."""
    from envdoctor.intake.wanted import read_wanted
    from envdoctor.model.request import parse_root

    name, rest = chosen(data, ("requirements.in", "pyproject.toml", "constraints.txt"))
    path = input_file(rest, name)
    files, constraints = ([], [path]) if name == "constraints.txt" else ([path], [])
    for line in read_wanted((), files, constraints).requirements:
        parse_root(line)


def index_settings(data: bytes) -> None:
    """pip's configuration: what is told of it holds no password."""
    from envdoctor.lock.closing.index_sources import read_sources

    text = b"[global]\nextra-index-url = " + SECRETS[1].encode() + b"\n" + data
    sources = read_sources(
        {"PIP_CONFIG_FILE": input_file(text, "pip.conf"), "HOME": scratch_folder()}
    )
    check_texts([clean(text) for text in (*sources.options, sources.strategy)])


def uv_output(data: bytes) -> None:
    """What uv prints of a closed set."""
    from envdoctor.lock.closing.uv import read_lines

    read_lines(data.decode("utf-8", "replace"))


def source_archive(data: bytes) -> None:
    """The source archive of a package."""
    from envdoctor.lock.closing.sdist_metadata import read_sdist

    name, rest = chosen(data, ("x-1.0.tar.gz", "x-1.0.zip"))
    read_sdist(rest, name)


def model(data: bytes) -> None:
    """config.json or the index of a model, which a run names."""
    from envdoctor.app import plan
    from envdoctor.model.facts import Facts
    from envdoctor.report import plan_json, plan_text
    from envdoctor.report.view import View

    name, rest = chosen(data, ("config.json", "model.safetensors.index.json"))
    folder = os.path.join(scratch_folder(), "model")
    os.makedirs(folder, exist_ok=True)
    for other in os.listdir(folder):
        os.unlink(os.path.join(folder, other))
    with open(os.path.join(folder, name), "wb") as file:
        file.write(rest)
    words = f"actor_rollout_ref.model.path={folder} actor_rollout_ref.rollout.name=vllm"
    script = f"python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 {words}\n"
    result, _ = plan([input_file(script.encode(), "run.sh")], Facts({}), built_in_matrix())
    view = View(80, verbose=True)
    check_texts([plan_text.render(result, view), plan_json.render(result, view)])


_TABLES = (
    "profiles/own.toml",
    "models.toml",
    "conda.toml",
    "index.json",
    "names.json",
    "names/own.json",
    "packages/own.json",
    "surfaces/own.json",
    "gpus.toml",
    "drivers.toml",
)


def tables(data: bytes) -> None:
    """The other files of a matrices folder."""
    import shutil

    from envdoctor.errors import MatrixError
    from envdoctor.matrix.loader import load_folder

    name, rest = chosen(data, _TABLES)
    folder = os.path.join(scratch_folder(), "tables")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(os.path.join(folder, name)))
    path = input_file(rest, f"tables/{name}")
    try:
        matrix = load_folder(os.path.join(scratch_folder(), "tables"))
        for row in matrix.rows():
            matrix.complete(row)
    except MatrixError as error:
        check_texts([clean(fault) for fault in error.faults])
    finally:
        os.unlink(path)


def own_files(data: bytes) -> None:
    """What envdoctor wrote itself, and somebody changed: where an update came from, what an
    unfinished change left.
    """
    from envdoctor.fix.environment_snapshot import read_state
    from envdoctor.matrix.place import Generation
    from envdoctor.matrix.update.installation import read_origin

    os.makedirs(os.path.join(scratch_folder(), ".envdoctor-change"), exist_ok=True)
    input_file(data, "origin.json")
    input_file(data, ".envdoctor-change/state.json")
    read_origin(Generation(scratch_folder(), "", "", 1, ""))
    read_state(scratch_folder())


def values(data: bytes) -> None:
    """Words that stand for a value: versions, sizes, GPUs, calls of an installer."""
    from envdoctor.entrypoint.options import parse_settings
    from envdoctor.intake.gpu_names import parse_gpus
    from envdoctor.model.calls import parse_call
    from envdoctor.model.sizes import parse_limit, parse_size
    from envdoctor.model.versions import split_clauses

    text = data.decode("utf-8", "replace")
    parse_settings(text.split(), dict.fromkeys(("ENVDOCTOR_POLICY", "ENVDOCTOR_TIMEOUT"), text))
    for line in text.split("\n"):
        for read in (parse_gpus, parse_limit, parse_size, split_clauses):
            read(line)
        str(parse_call(line))
