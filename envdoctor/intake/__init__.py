"""Text that people have, turned into facts. Parsers report and never judge."""
