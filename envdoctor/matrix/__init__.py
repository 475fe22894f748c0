"""What is known: schema, loader, tables, and the one meaning of a row (truth, bind)."""
