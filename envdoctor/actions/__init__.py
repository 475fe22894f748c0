"""What changes something on this machine, or goes online when asked. Nothing here runs unless a command names it."""
