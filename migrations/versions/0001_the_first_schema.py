"""the first schema

Revision: 0001, after
"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

import app.db.types

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dataset",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("format", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("media_type", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("sha256", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("options", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("columns", app.db.types.Json(), nullable=False),
        sa.Column("time_column", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("first_time", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.Column("last_time", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.Column("reading", app.db.types.Json(), nullable=False),
        sa.Column("notes", app.db.types.Json(), nullable=False),
        sa.Column("created_at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
        sa.UniqueConstraint("owner", "sha256", "options", name="uq_dataset_content"),
    )
    with op.batch_alter_table("dataset", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_dataset_created_at"), ["created_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_dataset_owner"), ["owner"], unique=False)

    op.create_table(
        "idempotency",
        sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("scope", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("fingerprint", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.PrimaryKeyConstraint("owner", "scope", "key", name=op.f("pk_idempotency")),
    )
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_created_at"), ["created_at"], unique=False)

    op.create_table(
        "job",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("owner", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("phase", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("progress", app.db.types.Json(), nullable=False),
        sa.Column("params", app.db.types.Json(), nullable=False),
        sa.Column("execution", app.db.types.Json(), nullable=False),
        sa.Column("plan", app.db.types.Json(), nullable=False),
        sa.Column("labels", app.db.types.Json(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("timeout_seconds", sa.Float(), nullable=True),
        sa.Column("seconds_used", sa.Float(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("attempts_counted", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("retry_of", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("created_at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.Column("started_at", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.Column("finished_at", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.Column("error", app.db.types.Json(), nullable=True),
        sa.Column("result", app.db.types.Json(), nullable=True),
        sa.Column("provenance", app.db.types.Json(), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NOT NULL) = (state IN ('cancelled', 'failed', 'succeeded'))", name=op.f("ck_job_finished")
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_job_state"),
        ),
        sa.CheckConstraint("priority BETWEEN -100 AND 100", name=op.f("ck_job_priority")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index("ix_job_newest", ["owner", "created_at", "id"], unique=False)
        batch_op.create_index("ix_job_queue", ["state", "priority", "created_at"], unique=False)

    op.create_table(
        "worker",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("engine", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("address", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("joined_at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.Column("left_at", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.Column("resources", app.db.types.Json(), nullable=False),
        sa.Column("facts", app.db.types.Json(), nullable=False),
        sa.CheckConstraint("state IN ('up', 'gone')", name=op.f("ck_worker_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
    )
    with op.batch_alter_table("worker", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_worker_state"), ["state"], unique=False)

    op.create_table(
        "artifact",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("path", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("sha256", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("media_type", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_artifact_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_artifact")),
    )
    op.create_table(
        "attempt",
        sa.Column("id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("worker_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("claim", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("events_seen", sa.Integer(), nullable=False),
        sa.Column("end", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("placed_at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.Column("claimed_at", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.Column("ended_at", app.db.types.UtcDateTime(length=32), nullable=True),
        sa.CheckConstraint("(state = 'placed') <= (claim IS NULL)", name=op.f("ck_attempt_claim")),
        sa.CheckConstraint("state IN ('placed', 'claimed', 'ended')", name=op.f("ck_attempt_state")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_attempt_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("job_id", "number", name="uq_attempt_number"),
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_job_id"), ["job_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempt_state"), ["state"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempt_worker_id"), ["worker_id"], unique=False)

    op.create_table(
        "event",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", app.db.types.UtcDateTime(length=32), nullable=False),
        sa.Column("type", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("data", app.db.types.Json(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_event_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_event")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "job_dataset",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("dataset_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_dataset_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "dataset_id", name=op.f("pk_job_dataset")),
    )
    with op.batch_alter_table("job_dataset", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_job_dataset_dataset_id"), ["dataset_id"], unique=False)

    op.create_table(
        "job_label",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("value", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_label_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_job_label")),
    )
    with op.batch_alter_table("job_label", schema=None) as batch_op:
        batch_op.create_index("ix_job_label_name_value", ["name", "value"], unique=False)

    op.create_table(
        "lease",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("worker_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("resource", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_lease_amount")),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name=op.f("fk_lease_attempt_id_attempt"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "resource", name=op.f("pk_lease")),
    )
    with op.batch_alter_table("lease", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_lease_worker_id"), ["worker_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("lease", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_lease_worker_id"))

    op.drop_table("lease")
    with op.batch_alter_table("job_label", schema=None) as batch_op:
        batch_op.drop_index("ix_job_label_name_value")

    op.drop_table("job_label")
    with op.batch_alter_table("job_dataset", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_job_dataset_dataset_id"))

    op.drop_table("job_dataset")
    op.drop_table("event")
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempt_worker_id"))
        batch_op.drop_index(batch_op.f("ix_attempt_state"))
        batch_op.drop_index(batch_op.f("ix_attempt_job_id"))

    op.drop_table("attempt")
    op.drop_table("artifact")
    with op.batch_alter_table("worker", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_worker_state"))

    op.drop_table("worker")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index("ix_job_queue")
        batch_op.drop_index("ix_job_newest")

    op.drop_table("job")
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_idempotency_created_at"))

    op.drop_table("idempotency")
    with op.batch_alter_table("dataset", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_dataset_owner"))
        batch_op.drop_index(batch_op.f("ix_dataset_created_at"))

    op.drop_table("dataset")
