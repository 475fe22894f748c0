"""Ask the nodes of a cluster through the engine that runs it.

``engines`` knows how each engine names its nodes and starts a program on one; ``payload`` is that
program, envdoctor's own probes as one text for a Python that has nothing installed; ``collection``
runs it everywhere at once, with a bound and a deadline. Nothing is judged here.
"""
