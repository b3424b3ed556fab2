"""The control plane: HTTP in front, SQLite as the only truth. Nothing here computes."""
