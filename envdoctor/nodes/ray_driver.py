"""Run in the Python of a Ray cluster, by its path: asks every node through a task that takes no
CPU, and prints what each says as it comes. Nothing of envdoctor is imported here.

    python ray_driver.py ADDRESS SECONDS MOST MARKS ARGUMENTS < program

MOST is how many bytes of what the program prints on a node are read. MARKS are the texts between
which answers stand, as a JSON list: before all nodes with what Ray knows of each, before an answer,
before a reason why there is none, and between the name of a node and either. ARGUMENTS is what the
program gets on each node, as a JSON object: only these are asked then; empty, all are.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any, Dict, List, Tuple

#: Reasons for which a node is dead that is none of the cluster any more: it was stopped, or its
#: scaler took it away (NodeDeathInfo.Reason in Ray's common.proto).
_LEFT = (1, 3, 4)


def ask(
    program: str, seconds: float, most: int, mark: str, arguments: List[str]
) -> Tuple[bool, str]:
    """Run the program on the node where this task is; return whether it answered, and what stands
    behind the mark or else why nothing does. Of its output at most so many bytes are read.
    """
    import os
    import signal
    import subprocess
    import sys
    import threading
    import time
    from contextlib import suppress

    process: Any = subprocess.Popen(
        [sys.executable, "-I", "-", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    began = time.monotonic()
    said = bytearray()

    def stop() -> None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

    def feed() -> None:
        with suppress(OSError):
            process.stdin.write(program.encode())
            process.stdin.close()

    def listen() -> None:
        for line in process.stderr:
            said[:] = line.strip()[:200] or said

    timer = threading.Timer(seconds, stop)
    others = [threading.Thread(target=work, daemon=True) for work in (feed, listen)]
    for thread in (timer, *others):
        thread.start()
    output = process.stdout.read(most + 1)
    if len(output) <= most:
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)  # it may have closed its output alone
    timer.cancel()
    is_late = time.monotonic() - began >= seconds
    stop()
    code = process.wait()
    others[1].join(1)
    _, answered, answer = output.decode("utf-8", "replace").partition(mark)
    if answered:
        return True, answer.partition("\n")[0]
    if is_late:
        return False, f"no answer within {seconds:.3g} s"
    if len(output) > most:
        return False, f"more than {most >> 20} MiB of output"
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return False, f"the program ended with {ended}: {said.decode('utf-8', 'replace')}"


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


def _named(nodes: List[Dict[str, Any]]) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Return by their names the nodes that are alive, and why those that are dead are; one that
    was started again is not dead.
    """
    alive: Dict[str, Any] = {}
    for node in nodes:
        if node.get("Alive"):
            name = _name_of(node)
            alive[f"{name}#{node['NodeID'][:8]}" if name in alive else name] = node
    dead = {
        _name_of(node): str(node.get("DeathReasonMessage") or "it gives no reason")
        for node in nodes
        if not node.get("Alive") and node.get("DeathReason") not in _LEFT
    }
    return alive, {name: reason for name, reason in dead.items() if name not in alive}


def _name_of(node: Dict[str, Any]) -> str:
    return str(node.get("NodeName") or node.get("NodeManagerAddress"))


def main() -> None:
    """Ask all nodes of the cluster."""
    address, seconds, most = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    names_mark, answer_mark, failed_mark, between = json.loads(sys.argv[4])
    arguments = json.loads(sys.argv[5])
    program = sys.stdin.read()
    end = time.monotonic() + seconds
    # The folder where this starts may have one that is called "ray".
    sys.path[:] = [folder for folder in sys.path if folder]
    try:
        ray = import_module("ray")
    except ImportError as error:
        sys.exit(f"{sys.executable} has no Ray ({error}); --python names the cluster's interpreter")
    strategies = import_module("ray.util.scheduling_strategies")
    # The address "auto" is RAY_ADDRESS or the cluster of this machine; it never starts one.
    ray.init(address=address or "auto", log_to_driver=False, configure_logging=False)
    nodes, gone = _named(ray.nodes())
    if arguments:
        nodes = {name: node for name, node in nodes.items() if name in arguments}
        gone = {}
    known = {name: _known(node) for name, node in nodes.items()}
    _say(names_mark, json.dumps({**known, **{name: {} for name in gone}}))
    for name, reason in gone.items():
        _say(failed_mark, f"{name}{between}Ray says that this node is dead: {reason}")
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
            most,
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
                has_answered, text = ray.get(reference)
            except Exception as error:  # noqa: BLE001 - whatever a node does is its own line
                words = str(error).strip().split("\n")[-1]
                has_answered, text = False, f"{type(error).__name__}: {words[:200]}"
            _say(answer_mark if has_answered else failed_mark, f"{name}{between}{text}")
    for name in asked.values():
        _say(failed_mark, f"{name}{between}no answer within {seconds:.3g} s")


if __name__ == "__main__":
    main()
