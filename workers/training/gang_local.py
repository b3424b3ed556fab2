"""The node of the gang on the driver's own machine, as the driver sees it."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from workers.nursery_client import Nursery
from workers.training.node import NodeSupervisor
from workers.training.node_messages import NodeWork, Patience

log = logging.getLogger(__name__)


class LocalNode:
    """As `workers.training.gang_remote.RemoteNode`, without a cluster between."""

    def __init__(self, nursery: Nursery, work: NodeWork, put: Callable[[dict[str, Any]], None]) -> None:
        self._put, self._node = put, work.node
        self._supervisor = NodeSupervisor(nursery, work, lambda message: put({**message, "node": work.node}))

    def go(self) -> None:
        threading.Thread(target=self._run, name="supervisor", daemon=True).start()

    def end(self, patience: Patience) -> None:
        self._supervisor.end(patience)

    def _run(self) -> None:
        try:
            self._put({"type": "over", "end": self._supervisor.run()})
        except Exception as fault:
            log.exception("a supervisor failed")
            self._put({"type": "lost", "node": self._node, "reason": f"The ranks' supervisor failed ({fault})."})
