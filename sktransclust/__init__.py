"""k-means clustering executed by a transformer, behind scikit-learn's interface."""

__version__ = "0.1.0"
