"""Pure rules: facts and matrix to findings."""
