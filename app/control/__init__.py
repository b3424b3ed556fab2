"""What keeps jobs moving: dispatcher, reconciler, the workers' door."""
