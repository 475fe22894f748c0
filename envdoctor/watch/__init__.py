"""A run while it lasts: samples of its memory, where they are heading, and how the run ended."""
