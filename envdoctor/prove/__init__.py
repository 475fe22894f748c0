"""Try what a check only reads: imports, arithmetic on each GPU, kernels, collectives.

``trials`` is what a child runs in the judged interpreter; ``running`` starts such a child, bounds
it and leaves nothing of it behind; ``judging`` holds what came of it against what a check finds.
"""
