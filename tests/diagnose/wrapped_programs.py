"""Programs that fail with a drawn exception below what wraps it: pools, futures, event loops,
launchers. What is raised is known, so a log of theirs has an oracle.
"""

from __future__ import annotations

import random
import textwrap

__all__ = ["PLAIN", "RAY", "TORCH", "TORCHRUN", "draw_failure", "program"]

_WORK = '''
import random, sys, time
class ShardError(Exception):
    """An exception of the program's own."""
def deeper(depth, *rest):
    return deeper(depth - 1, *rest) if depth else fail(*rest)
def fail(kind, message, chain):
    if chain:
        try:
            {}["first"]
        except KeyError as error:
            if chain == 1:
                raise kind(message) from error
            raise kind(message)
    raise kind(message)
def work(n=0):
    if n == AT:
        deeper(DEPTH, KIND, MESSAGE, CHAIN)
    return n
'''

#: Of Python alone.
PLAIN = {
    "nothing": "work(AT)",
    "a thread pool": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, range(4)))
    """,
    "a process pool": """
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(work, range(4)))
    """,
    "multiprocessing": """
        import multiprocessing
        process = multiprocessing.get_context("fork").Process(target=work, args=(AT,))
        process.start(); process.join(); sys.exit(process.exitcode)
    """,
    "a pool": """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(work, range(4))
    """,
    "asyncio": """
        import asyncio
        async def child(n):
            await asyncio.sleep(0)
            return work(n)
        async def main():
            await asyncio.gather(*map(child, range(4)))
        asyncio.run(main())
    """,
    "an executor of a loop": """
        import asyncio
        async def main():
            await asyncio.get_running_loop().run_in_executor(None, work, AT)
        asyncio.run(main())
    """,
    "a task that is waited for": """
        import asyncio
        async def child():
            return work(AT)
        async def main():
            await asyncio.wait_for(asyncio.create_task(child()), 5)
        asyncio.run(main())
    """,
    "a child": """
        import subprocess
        if sys.argv[1:] == ["child"]:
            work(AT)
        subprocess.run([sys.executable, __file__, "child"], check=True)
    """,
}

#: Of torch, started by itself.
TORCH = {
    "torch spawn": """
        import torch.multiprocessing as processes
        processes.spawn(work, nprocs=2 if AT < 2 else AT + 1)
    """,
    "a loader": """
        import torch
        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, n):
                return work(n)
        for batch in torch.utils.data.DataLoader(Rows(), num_workers=2):
            pass
    """,
}

#: For torchrun with two processes.
TORCHRUN = {
    "torchrun": """
        import os
        work(AT if int(os.environ["RANK"]) == 1 else -1)
        time.sleep(2)
    """,
    "torchrun, recorded": """
        import os
        from torch.distributed.elastic.multiprocessing.errors import record
        @record
        def main():
            work(AT if int(os.environ["RANK"]) == 0 else -1)
            time.sleep(2)
        main()
    """,
}

#: Of Ray.
RAY = {
    "a task of Ray": """
        import ray
        ray.init(num_cpus=2, include_dashboard=False)
        ray.get([ray.remote(work).remote(n) for n in range(4)])
    """,
    "an actor of Ray": """
        import ray
        ray.init(num_cpus=2, include_dashboard=False)
        @ray.remote
        class Worker:
            def step(self, n):
                return work(n)
        worker = Worker.remote()
        ray.get([worker.step.remote(n) for n in range(4)])
    """,
    "an actor of Ray that does not start": """
        import ray
        ray.init(num_cpus=2, include_dashboard=False)
        @ray.remote
        class Worker:
            def __init__(self):
                work(AT)
            def step(self):
                return 1
        ray.get(Worker.remote().step.remote())
    """,
    "a nested task of Ray": """
        import ray
        ray.init(num_cpus=2, include_dashboard=False)
        @ray.remote
        def outer():
            return ray.get(ray.remote(work).remote(AT))
        ray.get(outer.remote())
    """,
}

_KINDS = ("ValueError", "RuntimeError", "LookupError", "OSError", "ArithmeticError", "ShardError")
_WORDS = (
    "the shard of rank 3 is empty",
    "expected 12 columns, found 7",
    "rows [4, 9) are missing: rebuild the index",
    "loss became inf at step 40\\nlast finite: 2.31",
    "Zeile 4: größer als erlaubt",
    "unknown option 'beta': did you mean 'beta1'?",
)


def draw_failure(seed: int):
    """Return the name of an exception's class, its message, and how it is raised, by a seed."""
    choose = random.Random(seed)
    return (
        choose.choice(_KINDS),
        choose.choice(_WORDS),
        {"DEPTH": choose.randrange(0, 30), "CHAIN": choose.randrange(3), "AT": choose.randrange(4)},
    )


def program(body: str, seed: int) -> str:
    """Return the text of a program that fails as ``draw_failure`` says."""
    kind, message, settings = draw_failure(seed)
    given = "".join(f"{name} = {value}\n" for name, value in settings.items())
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return (
        f'{_WORK}KIND = {kind}\nMESSAGE = "{message}"\n{given}if __name__ == "__main__":\n{body}\n'
    )
