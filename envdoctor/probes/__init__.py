"""The only code that reads the machine. Probes report and never judge."""
