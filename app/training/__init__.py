"""Training jobs on the server's side: what they name is looked up, where they run is planned, a worker is asked for the full check."""
