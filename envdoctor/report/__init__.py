"""Facts and findings as text: console, plain, JSON, SARIF, GitHub, Markdown."""
