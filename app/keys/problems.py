"""What can go wrong with keys."""

from app.kit.problems import Conflict


class KeysNotInUse(Conflict):
    """This server asks nobody for a key, so over HTTP it neither makes nor shows any.

    Whoever reaches it may do everything, and would make keys for the day on which it asks for them. Start it with `TIDEMILL_AUTH=keys`;
    `python -m app keys create` makes the first key, before or after.
    """

    title = "Keys not in use"
