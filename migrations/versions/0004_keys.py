"""keys of callers

Revision: 0004, after 0003
"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

from app.db.types import Json, UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TEXT = sqlmodel.sql.sqltypes.AutoString


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", TEXT(), nullable=False),
        sa.Column("owner", TEXT(), nullable=False),
        sa.Column("name", TEXT(), nullable=False),
        sa.Column("scopes", Json(), nullable=False),
        sa.Column("digest", TEXT(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=True),
        sa.Column("last_used_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("owner <> ''", name=op.f("ck_api_key_owner")),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_api_key_digest")),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )
    op.create_index("ix_api_key_newest", "api_key", ["created_at", "id"])


def downgrade() -> None:
    op.drop_table("api_key")
