"""How many processes a run has, by whichever launcher starts them."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Tuple

import pytest

from envdoctor.plan.frameworks import read_workload

_RUN = (
    "pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 4 --hidden-size 512 "
    "--num-attention-heads 8 --seq-length 1024 --micro-batch-size 1"
)
_JOB = "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n"


@pytest.mark.parametrize(
    ("before", "counts"),
    [
        ("srun -N2 --ntasks-per-node=8 python {run}", (2, 8)),
        ("srun -N 2 -n16 --no-container-mount-home python {run}", (2, 8)),
        ("srun -N 2-4 -n16 python {run}", (None, None)),
        (f"{_JOB}srun -l --verbose --container-image x python {{run}}", (4, 8)),
        (f"{_JOB}srun --ntasks=1 python {{run}}", (None, None)),
        (f"{_JOB}srun --ntasks=32 python {{run}}", (4, 8)),
        (f"{_JOB}srun torchrun --nnodes 2 --nproc_per_node 3 {{run}}", (2, 3)),
        ('srun -N 2 -n 2 bash -c "torchrun --nnodes 2 --nproc_per_node=4 {run}"', (2, 4)),
        ("srun -n 8 python {run}", (None, None)),
        ("mpirun -np 8 --mca btl ^openib -x NCCL_DEBUG=INFO python {run}", (1, 8)),
        ("mpirun -n 128 -npernode 4 -hostfile /job/hosts python {run}", (32, 4)),
        ("mpiexec -n 16 -ppn 8 -f hosts -env A 1 python {run}", (2, 8)),
        ("mpirun -np 16 -H a:8,b:8 python {run}", (2, 8)),
        ("mpirun -np 16 --map-by ppr:8:node --hostfile hosts python {run}", (2, 8)),
        ("mpirun -np 16 --hostfile hosts python {run}", (None, None)),
        ("L='torchrun --nproc_per_node 4'; $L {run}", (1, 4)),
        ("$(launcher) python {run}", (None, None)),
        ("torchrun {run}", (1, 1)),
        ("torchrun --nproc_per_node=gpu {run}", (1, None)),
        ("CUDA_VISIBLE_DEVICES=0,2 torchrun --nproc_per_node=gpu {run}", (1, 2)),
        ("torchrun --nnodes 1:4 --nproc_per_node 8 {run}", (None, 8)),
        ("deepspeed --num_nodes 2 --num_gpus 4 {run}", (2, 4)),
        ("deepspeed --hostfile hosts --num_gpus 4 {run}", (None, 4)),
        ("deepspeed --include localhost:0,1,5 {run}", (1, 3)),
        ("deepspeed --include a@b:0,1 {run}", (1, None)),
        ("CUDA_VISIBLE_DEVICES=0,1 deepspeed {run}", (1, 2)),
        ("accelerate launch --gpu_ids 0,3 {run}", (1, 2)),
        ("accelerate launch --gpu_ids all {run}", (1, None)),
        ("accelerate launch --gpu_ids 0,3 --num_processes 1 {run}", (1, 1)),
    ],
)
def test_processes_are_those_that_the_launcher_starts(
    before: str, counts: Tuple[Optional[int], Optional[int]], tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(before.format(run=_RUN))
    workload = read_workload([str(script)], environ={})
    assert (workload.value("nodes"), workload.value("gpus_per_node")) == counts


def test_the_key_of_a_count_is_the_launchers_own(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{_JOB}srun python {_RUN}")
    workload = read_workload([str(script)], environ={})
    assert workload.key_of("gpus_per_node") == "--ntasks-per-node"
    assert workload.value("port") is None  # Slurm's processes need not meet at torchrun's port
