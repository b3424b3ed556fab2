"""What this deployment has been proved to do."""
