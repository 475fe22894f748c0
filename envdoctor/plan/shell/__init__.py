"""Launch scripts, read as bash would read them and never run."""
