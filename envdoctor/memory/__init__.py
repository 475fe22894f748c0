"""What a training or serving run will take of host memory, GPU memory and /dev/shm, before it starts. Opens nothing.

``make_plan`` gives low..high for each pool by phase, each term with its formula and source; :mod:`.findings` says what is wrong with that,
:mod:`.levers` what would help.
"""

from __future__ import annotations

from .estimate import make_plan, sizes_of
from .plan import CacheCheck, MemoryPlan, Pool, Term

__all__ = ["CacheCheck", "MemoryPlan", "Pool", "Term", "make_plan", "sizes_of"]
