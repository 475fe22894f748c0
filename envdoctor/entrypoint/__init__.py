"""The hand-off in a container: check in a child with a deadline, say one line, then become the
command.

The script ``envdoctor-entrypoint`` guards it, and starts ``guarded``; ``handoff`` parses, waits and
executes, and imports next to nothing; ``verdict`` is what the child does; ``baseline`` is what
``bake`` wrote.
"""
