"""`python -m app`: the server. Its command line is `app.command`."""

import signal
import sys

if __name__ == "__main__":
    # Importing the server takes a second, and whoever stops it meanwhile has stopped it in good order.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))

    from app.command import main

    sys.exit(main())
