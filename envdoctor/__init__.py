"""An environment doctor and compatibility resolver for LLM training and inference stacks."""

__version__ = "0.1.0"
