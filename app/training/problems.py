"""How a training job can fail, as problems with a page each. Raised by nobody here: workers name them in a job's `error`."""

from app.kit.problems import Problem


class TrainingFailed(Problem):
    """The training job's own code raised, its loss was not finite, or a rank ended without a word.

    The `detail` says what was seen and on which `rank`; where Python code raised, `traceback` has its own words. The job's checkpoints and
    logs are kept: `GET /jobs/{id}/artifacts`. Once the cause is mended, `POST /jobs/{id}/retry` goes on from the last checkpoint.
    """

    status, title = 500, "Training failed"


class RankKilled(Problem):
    """A process of the training job was ended by a signal that Tidemill did not send.

    Somebody on that machine ended it, or its own code crashed; `GET /jobs/{id}/logs?rank=` has its last words. Then
    `POST /jobs/{id}/retry` goes on from the last checkpoint.
    """

    status, title = 500, "A rank was killed"


class TrainingHung(Problem):
    """The training job did nothing for as long as its `start_seconds` allow: no rank came to a first step.

    The stack of each rank is in its log, `GET /jobs/{id}/logs?rank=`. Where preparing the data takes longer, allow for it.
    """

    status, title = 500, "Training did not start"


class TrainingStalled(Problem):
    """The training job moved no step further for as long as its `stall_seconds` allow.

    The `detail` says at which step each rank stood, and the stack of each is in its log, `GET /jobs/{id}/logs?rank=`. A rank that waits
    for others in a collective waits for ever where one of them takes another way.
    """

    status, title = 500, "Training stalled"


class RendezvousFailed(Problem):
    """The processes of the training job did not find each other over the network.

    The `detail` names the address they were to meet at. Each worker must reach the first one there: look at its network, its firewall and
    how its name resolves.
    """

    status, title = 500, "The ranks could not find each other"


class PortTaken(Problem):
    """No port could be had for the processes of the training job to meet at, in several tries.

    See what takes the ports of that worker's machine, then `POST /jobs/{id}/retry`.
    """

    status, title = 500, "No port to meet at"


class DeviceMismatch(Problem):
    """The worker has not the devices that were planned, or another number of ranks would have run than was planned.

    `POST /capabilities/probes` finds anew what its devices are; then `POST /jobs/{id}/retry`.
    """

    status, title = 500, "The devices are not as planned"


class NeedsSharedStorage(Problem):
    """The training job's strategy has every node write a part of each checkpoint, and its workers have no folder in common.

    Mount the server's storage (`TIDEMILL_STORAGE`) at the same path on all workers, or choose a strategy that saves from rank 0.
    """

    status, title = 500, "A folder in common is needed"


class MissingPackage(Problem):
    """The configuration needs a package that is not installed on the worker.

    Install the one that the `detail` names there, or choose something that does not need it.
    """

    status, title = 500, "A package is missing on the worker"
