"""Learning how columns of a table become numbers: on the training rows alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from workers.training.data.columns import Feature, Rows, Target, codes, column_of, labels, texts
from workers.training.data.files import is_number, numbers

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CLASSES: Final = 1000


def learn_features(
    table: "pa.Table", names: Sequence[str] | None, target: str, train: Rows, most: int
) -> tuple[list[Feature], list[str]]:
    """The features, and why columns are left out. names: which columns, or None for all that say something."""
    features, left_out = [], []
    for name in table.column_names if names is None else names:
        if name == target:
            if names is not None:
                raise ValueError(f"`features` names the target, `{target}`. Leave it out there.")
            continue
        found = _learn(column_of(table, name).take(train), name, most, every=names is None)
        if isinstance(found, Feature):
            features.append(found)
        elif names is None:
            left_out.append(found)
        else:
            raise ValueError(f"`features` names `{name}`, but {found}.")
    if not features:
        raise ValueError(f"No column is left to predict `{target}` from: {'; '.join(left_out) or 'there is no other'}.")
    return features, left_out


def _learn(column: "pa.ChunkedArray", name: str, most: int, *, every: bool) -> Feature | str:
    if is_number(column.type):
        plain = numbers(column)
        finite = plain[np.isfinite(plain)]
        if not len(finite):
            return f"column `{name}` has no value in the training rows"
        spread = float(finite.std())
        scale = spread if spread > 1e-12 * float(np.abs(finite).max()) else 1.0
        return Feature(name, float(finite.mean()), scale, gaps=len(finite) < len(plain))
    text = texts(column)
    if text is None:
        return f"column `{name}` is {column.type}, which is neither numbers nor text"
    counted = sorted(
        ((one["values"], one["counts"]) for one in text.value_counts().to_pylist() if one["values"] is not None),
        key=lambda pair: (-pair[1], pair[0]),
    )
    if every and len(counted) > most:
        return f"column `{name}` has {len(counted):,} different texts, more than `max_categories` {most}"
    if not counted:
        return f"column `{name}` has no value in the training rows"
    return Feature(name, values=sorted(text for text, _ in counted[:most]))


def learn_target(column: "pa.ChunkedArray", name: str, kind: Literal["label", "value"], train: Rows) -> Target:
    """column: the whole one, so that no label is unknown; what is measured is of the training rows alone."""
    if kind == "value":
        if not is_number(column.type):
            raise ValueError(
                f"`target` is `{name}`, which is {column.type}. A Regressor predicts numbers; use a Classifier."
            )
        plain = numbers(column.take(train))
        spread = float(plain.std())
        return Target(name, float(np.median(plain)), float(plain.mean()), spread if spread > 0 else 1.0)
    values = sorted({one for one in labels(column, name) if one is not None}, key=_as_sorted)
    if not 1 < len(values) <= MOST_CLASSES:
        raise ValueError(
            f"`target` is `{name}`, which has {len(values):,} different values; a Classifier needs 2 to {MOST_CLASSES:,}. "
            "For a quantity, use a Regressor."
        )
    found = codes(column, values)[train]
    return Target(name, float(np.bincount(found[found >= 0], minlength=len(values)).argmax()), values=values)


def _as_sorted(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
