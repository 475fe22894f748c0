"""A newer matrix from an address or a file, and the way back. Goes online only when asked to."""
