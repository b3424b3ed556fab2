"""Jobs: submit, watch, cancel, retry, delete."""
