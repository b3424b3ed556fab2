"""Datasets: upload once, refer to many times."""
