"""The stages of a search that stand on their own: near-duplicates, reading, reasons."""
