"""Models for training jobs that fit their data without being told its sizes."""

from workers.training.models.autoencoder import Autoencoder
from workers.training.models.classifier import Classifier
from workers.training.models.forecaster import Forecaster
from workers.training.models.regressor import Regressor

__all__ = ["Autoencoder", "Classifier", "Forecaster", "Regressor"]
