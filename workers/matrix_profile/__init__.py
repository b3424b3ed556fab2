"""Computing one matrix profile."""
