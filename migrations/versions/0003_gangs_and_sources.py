"""gangs of workers, and packages of users' code

Revision: 0003, after 0002
"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

from app.db.types import Json, UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TEXT = sqlmodel.sql.sqltypes.AutoString


def upgrade() -> None:
    _lease(sa.Column("node", sa.Integer(), nullable=False), key=("attempt_id", "worker_id", "resource"))
    op.create_table(
        "source",
        sa.Column("id", TEXT(), nullable=False),
        sa.Column("owner", TEXT(), nullable=False),
        sa.Column("name", TEXT(), nullable=False),
        sa.Column("format", TEXT(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("sha256", TEXT(), nullable=False),
        sa.Column("modules", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_source"),
        sa.UniqueConstraint("owner", "sha256", name="uq_source_content"),
    )
    op.create_index("ix_source_owner", "source", ["owner"])
    op.create_index("ix_source_created_at", "source", ["created_at"])


def downgrade() -> None:
    op.drop_table("source")
    op.execute("DELETE FROM lease WHERE node > 0")
    _lease(key=("attempt_id", "resource"))


def _lease(*new: sa.Column[int], key: tuple[str, ...]) -> None:
    """The table of leases anew, with what it holds: SQLite cannot change a primary key."""
    old = ("attempt_id", "worker_id", "resource", "amount")
    op.create_table(
        "lease_new",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("worker_id", TEXT(), nullable=False),
        sa.Column("resource", TEXT(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        *new,
        sa.CheckConstraint("amount > 0", name=op.f("ck_lease_amount")),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name="fk_lease_attempt_id_attempt", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint(*key, name="pk_lease"),
    )
    names = ", ".join(old)
    zero = ", 0" if new else ""
    op.execute(f"INSERT INTO lease_new ({names}{', node' if new else ''}) SELECT {names}{zero} FROM lease")  # noqa: S608
    op.drop_table("lease")
    op.rename_table("lease_new", "lease")
    op.create_index("ix_lease_worker_id", "lease", ["worker_id"])
