"""`python -m app`: the server. Its command line is `app.command`."""

import os
import signal
import sys

if __name__ == "__main__":
    # Until the server listens for signals itself, whoever stops it has stopped it in good order: all that it has begun may be left as it
    # is. At once, since an exception could come out in the middle of somebody else's code, which makes another one of it.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    from app.command import main

    sys.exit(main())
