"""The backends that run on this machine, as the estimator itself knows them."""

import functools

import numpy as np

from sktransclust import TransformerKMeans


@functools.cache
def available_backends():
    """Names of the backends that run here on dense data, without "auto", which chooses one of them."""
    (options,) = TransformerKMeans._parameter_constraints["backend"]
    return tuple(name for name in sorted(options.options) if name != "auto" and _runs(name))


def _runs(name):
    try:
        TransformerKMeans(1, backend=name).fit(np.zeros((1, 1)))
    except ValueError as error:
        # A compiled backend says so where it was not built; anything else is a fault.
        if "cannot run" not in str(error):
            raise
        return False
    return True
