"""How a worker's processes write their log: to standard error, for whoever started them to keep."""

import logging
import os


def set_up_logging() -> None:
    level = os.environ.get("TIDEMILL_LOG_LEVEL", "info").upper()
    logging.basicConfig(level=level, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for noisy in ("distributed", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
