"""The compute plane: what runs on the machines that do the work. It imports nothing from `app`."""
