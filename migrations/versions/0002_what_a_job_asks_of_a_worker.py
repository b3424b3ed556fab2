"""what a job asks of a worker

Revision: 0002, after 0001
"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("demand", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    op.execute("UPDATE job SET demand = 'cpu'")  # until now every job ran so
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.alter_column("demand", existing_type=sqlmodel.sql.sqltypes.AutoString(), nullable=False)
        batch_op.create_index("ix_job_demand", ["state", "demand", "priority", "created_at", "id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index("ix_job_demand")
        batch_op.drop_column("demand")
