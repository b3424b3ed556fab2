"""Files of the server's on a worker: used where they are where the worker has that folder, else fetched and put back over HTTP."""
