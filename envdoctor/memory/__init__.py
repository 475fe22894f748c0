"""Memory as arithmetic: what a workload will need, and where what was measured is heading."""
