"""Keys: who may use this server, for what, until when."""
