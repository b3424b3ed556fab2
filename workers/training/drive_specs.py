"""What each rank of an attempt is told."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workers.contract import Node, Task, TrainingParams
from workers.training.drive_prepared import Prepared
from workers.training.failures_named import DeviceMismatch
from workers.training.node_messages import RANK, NodeWork, RankWork
from workers.training.rules import Resolved, with_replaced
from workers.training.spec import RankSpec

STOP_FILE = ".stop"


def works_of(task: Task, claim: str, prepared: Prepared, address: str, port: int, call: str = RANK) -> list[NodeWork]:
    """The ranks of each node, which meet at `address` and `port`. Raises DeviceMismatch."""
    assert task.training is not None
    params = TrainingParams.model_validate(task.params)
    resolved = Resolved.model_validate(task.plan["resolved"])
    shares = devices_of(task.training.nodes, resolved)
    told = params.model_copy(update={"config": with_replaced(params.config, prepared.paths)})
    common: dict[str, Any] = {
        "attempt": task.attempt,
        "job": task.job,
        "params": told,
        "resolved": resolved,
        "folder": task.folder,
        "local_world_size": resolved.devices,
        "master_address": address,
        "master_port": port,
        "seed": seed_of(task.job, params),
        "checkpoint": prepared.checkpoint,
        "resumes": prepared.resumes,
        "resumes_in": prepared.resumes_in,
        "metrics_before": prepared.metrics_before,
        "metrics_seen": task.training.metrics_seen,
        "source": task.training.source,
        "allow": task.training.allow,
        "stop_file": str(Path(task.folder, STOP_FILE)),
    }
    return [
        NodeWork(
            attempt=task.attempt,
            claim=claim,
            node=number,
            ranks=[
                _rank(
                    RankSpec(
                        rank=number * resolved.devices + local, local_rank=local, node_rank=number, **share, **common
                    )
                )
                for local in range(resolved.devices)
            ],
            home_shares=task.training.nodes[0].shares_storage,
            storage=task.storage,
            inputs=prepared.paths,
            call=call,
            start_seconds=params.start_seconds,
            stall_seconds=params.stall_seconds,
        )
        for number, share in enumerate(shares)
    ]


def _rank(spec: RankSpec) -> RankWork:
    return RankWork(
        rank=spec.rank, log=str(Path(spec.folder, f"rank-{spec.rank}.log")), spec=spec.model_dump(mode="json")
    )


def devices_of(nodes: Sequence[Node], resolved: Resolved) -> list[dict[str, Any]]:
    """Each node's share: the threads of a rank, and the CUDA devices. Raises DeviceMismatch where a node has not what was planned."""
    if len(nodes) != resolved.num_nodes:
        raise DeviceMismatch(
            f"The plan has {resolved.num_nodes} nodes, and {len(nodes)} workers were given to the job."
        )
    for node in nodes:
        if resolved.accelerator == "cuda" and len(node.devices) < resolved.devices:
            raise DeviceMismatch(
                f"The plan has {resolved.devices} CUDA devices on each node, and worker {node.worker} on {node.host} "
                f"has {len(node.devices)}."
            )
    return [
        {
            "threads": max(1, node.threads // resolved.devices),
            "devices": node.devices[: resolved.devices] if resolved.accelerator == "cuda" else [],
        }
        for node in nodes
    ]


def seed_of(job: str, params: TrainingParams) -> int:
    """The seed that was set, or one made from the job's id, so that all its attempts have the same."""
    chosen = params.config.get("seed_everything")
    return chosen if isinstance(chosen, int) and not isinstance(chosen, bool) else zlib.crc32(job.encode())
