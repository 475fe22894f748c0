"""Run in the Python of a Ray cluster, by its path: asks every node through a task that takes no
CPU, and prints what each says as it comes. Nothing of envdoctor is imported here.

    python ray_driver.py ADDRESS SECONDS MARKS ARGUMENTS < program

MARKS are the texts between which answers stand, as a JSON list: before all nodes with what Ray
knows of each, before an answer, before a reason why there is none, and between the name of a node
and either. ARGUMENTS is what the program gets on each node, as a JSON object: only these are asked
then; empty, all are.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any, Dict, List


def ask(program: str, seconds: float, mark: str, arguments: List[str]) -> str:
    """Run the program on the node where this task is; return what stands behind the mark."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-I", "-", *arguments],
        input=program.encode(),
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    for line in done.stdout.decode("utf-8", "replace").split("\n"):
        if mark in line:
            return line.partition(mark)[2]
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
    raise RuntimeError(f"exit code {done.returncode}: {said[:200]}")


def _say(mark: str, text: str) -> None:
    sys.stdout.write(f"\n{mark}{text}\n")
    sys.stdout.flush()


def _known(node: Dict[str, Any]) -> Dict[str, Any]:
    """Return as facts what Ray counts on a node, but for its own name and sizes of memory."""
    counts = [
        f"{name} {value:g}"
        for name, value in sorted(node.get("Resources", {}).items())
        if not name.startswith("node:") and not name.endswith("memory")
    ]
    return {"ray.resources": {"value": counts, "source": "ray.nodes()"}}


def main() -> None:
    """Ask all nodes of the cluster."""
    address, seconds, program = sys.argv[1], float(sys.argv[2]), sys.stdin.read()
    names_mark, answer_mark, failed_mark, between = json.loads(sys.argv[3])
    arguments = json.loads(sys.argv[4])
    end = time.monotonic() + seconds
    ray = import_module("ray")
    strategies = import_module("ray.util.scheduling_strategies")
    # The address "auto" is RAY_ADDRESS or the cluster of this machine; it never starts one.
    ray.init(address=address or "auto", log_to_driver=False, configure_logging=False)
    nodes: Dict[str, Any] = {}
    gone = []
    for node in ray.nodes():
        name = str(node.get("NodeName") or node.get("NodeManagerAddress"))
        name = f"{name}#{node['NodeID'][:8]}" if name in nodes or name in gone else name
        if node.get("Alive"):
            nodes[name] = node
        elif not node.get("DeathReasonMessage", "").startswith("Expected"):
            gone.append(name)
    if arguments:
        nodes = {name: node for name, node in nodes.items() if name in arguments}
        gone = []
    known = {name: _known(node) for name, node in nodes.items()}
    _say(names_mark, json.dumps({**known, **{name: {} for name in gone}}))
    for name in gone:
        _say(failed_mark, f"{name}{between}Ray says that this node is dead")
    # The text goes through the object store once, not with every task.
    shared = ray.put(program)
    task = ray.remote(num_cpus=0, max_retries=0)(ask)
    asked = {
        task.options(
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(
                node["NodeID"], soft=False
            )
        ).remote(
            shared,
            max(seconds - 2, 1),
            answer_mark,
            [arguments[name]] if arguments else [],
        ): name
        for name, node in nodes.items()
    }
    while asked and time.monotonic() < end:
        ready, _ = ray.wait(list(asked), timeout=max(end - time.monotonic(), 0.1))
        for reference in ready:
            name = asked.pop(reference)
            try:
                _say(answer_mark, f"{name}{between}{ray.get(reference)}")
            except Exception as error:  # noqa: BLE001 - whatever a node does is its own line
                words = str(error).strip().split("\n")[-1]
                _say(failed_mark, f"{name}{between}{type(error).__name__}: {words[:200]}")


if __name__ == "__main__":
    main()
