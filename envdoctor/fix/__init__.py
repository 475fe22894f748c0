"""Changes that mend an environment: proposed as a plan, applied to the environment only when asked,
and undone on failure.
"""
