"""The failures of training that have names of their own. The slug is that of the problem's page."""

from typing import Final

from workers.failures import JobFailure


class TrainingFailed(JobFailure):
    """A rank raised, or ended without a word."""

    slug, title = "training-failed", "Training failed"


class RankKilled(JobFailure):
    """A rank was ended by a signal that nobody here sent."""

    slug, title = "rank-killed", "A rank was killed"


class TrainingHung(JobFailure):
    """No first step within `start_seconds`."""

    slug, title = "training-hung", "Training did not start"


class TrainingStalled(JobFailure):
    """No further step within `stall_seconds`."""

    slug, title = "training-stalled", "Training stalled"


class RendezvousFailed(JobFailure):
    """The ranks did not find each other."""

    slug, title = "rendezvous-failed", "The ranks could not find each other"


class PortTaken(JobFailure):
    """No port was free to meet at."""

    slug, title = "port-taken", "No port to meet at"


class DeviceMismatch(JobFailure):
    """The worker has not the devices that were to be used, or another number of ranks ran than was planned."""

    slug, title = "device-mismatch", "The devices are not as planned"


class NeedsSharedStorage(JobFailure):
    """All nodes must write into one folder, and have none in common."""

    slug, title = "needs-shared-storage", "A folder in common is needed"


class MissingPackage(JobFailure):
    """The configuration needs a package that the worker has not installed."""

    slug, title = "missing-package", "A package is missing on the worker"


NURSERY_GONE: Final = "The process that forks the ranks ended in the middle of the job."
