"""STUMPY's GPU functions: why they can or cannot run here, and how a job that calls them is run."""
