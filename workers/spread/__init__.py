"""Spreading one job's pieces over the workers of its cluster."""
