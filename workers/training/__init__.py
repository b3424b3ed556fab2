"""Training jobs: Lightning on the cluster, from one process to many nodes."""
