"""What Python packages define, import and demand, measured from their wheels."""
