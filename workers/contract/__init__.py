"""What crosses the border between the control plane and the compute plane: plain data, no numpy, no database.

Messages are pydantic models; both sides validate them, so a version skew shows itself as an error with a name.
"""

from workers.contract.calls import call_by_name, call_in_thread
from workers.contract.messages import (
    VERSION,
    Artifact,
    Claim,
    EventType,
    Join,
    Node,
    Outcome,
    Probe,
    Report,
    ReportAnswer,
    ReportedEvent,
    Running,
    Source,
    TableSource,
    Task,
    TrainingTask,
)
from workers.contract.params import (
    MAX_INLINE_VALUES,
    Columns,
    ConsensusMotifParams,
    MatrixProfileParams,
    MpdistParams,
    MultidimensionalProfileParams,
    PanProfileParams,
    ProbeParams,
    SeriesReference,
    TrainingParams,
)
from workers.contract.scalars import Message, Sample, Text, WholeNumber, plain_text

__all__ = [
    "MAX_INLINE_VALUES",
    "VERSION",
    "Artifact",
    "Claim",
    "Columns",
    "ConsensusMotifParams",
    "EventType",
    "Join",
    "MatrixProfileParams",
    "Message",
    "MpdistParams",
    "MultidimensionalProfileParams",
    "Node",
    "Outcome",
    "PanProfileParams",
    "Probe",
    "ProbeParams",
    "Report",
    "ReportAnswer",
    "ReportedEvent",
    "Running",
    "Sample",
    "SeriesReference",
    "Source",
    "TableSource",
    "Task",
    "Text",
    "TrainingParams",
    "TrainingTask",
    "WholeNumber",
    "call_by_name",
    "call_in_thread",
    "plain_text",
]
