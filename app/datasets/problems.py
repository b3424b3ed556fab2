"""What can go wrong with datasets."""

from app.kit.problems import Conflict, InvalidInput


class UnreadableFile(InvalidInput):
    """The file could not be read for certain, and nothing of it was kept.

    `row` and `column` say where reading failed, `option` which option of the upload settles it: `delimiter`, `decimal`, `thousands`,
    `header`, `encoding`, `missing`, `time_column` or `time_format`, in the query or as parts of the form.
    """


class DatasetInUse(Conflict):
    """A job that has not ended needs this dataset.

    Cancel the job or wait for its end, then delete the dataset.
    """

    title = "Dataset in use"
