"""Data for training jobs, from files alone: windows of series, and rows of tables."""

from workers.training.data.series import SeriesWindows
from workers.training.data.table import Table

__all__ = ["SeriesWindows", "Table"]
