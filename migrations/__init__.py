"""Schema migrations (Alembic). The server applies them when it starts."""
