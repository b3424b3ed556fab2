"""The pictures of results, drawn in a short-lived child (see workers.plot): one small file a kind, and what they share."""
