"""Results, artifacts and plots of finished jobs."""
