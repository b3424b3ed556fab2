"""The reading room: an uploaded file of any kind people really have becomes float64 columns, or is refused with place
and advice. Runs as a short-lived child, `python -m workers.datasets`; inside a process the door is `reading.read`."""
