"""Pickles that released versions have written go on loading, and answer what they answered."""

import pickle
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sktransclust import TransformerKMeans, __version__

from .cases import nearest

FOLDER = Path(__file__).parent / "data"
PICKLES = sorted(FOLDER.glob("*.pickle"))
X = np.random.RandomState(0).randn(60, 2)  # what they were fitted to


@pytest.mark.parametrize("path", PICKLES, ids=[path.stem for path in PICKLES])
@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")  # from another scikit-learn
def test_a_pickle_of_any_release_predicts_what_it_did_and_fits_again(path):
    m = pickle.loads(path.read_bytes())
    data = X.astype(m.cluster_centers_.dtype)
    assert isinstance(m, TransformerKMeans)
    assert_array_equal(m.predict(data), m.labels_)
    assert_array_equal(m.labels_, nearest(data, m.cluster_centers_)[0])
    assert_allclose(-m.score(data), m.inertia_, rtol=1e-12)
    assert_allclose(m.inertia_history_[-1], m.inertia_, rtol=1e-12)
    assert m.transform(data).dtype == data.dtype
    before = m.labels_.copy()
    assert_array_equal(m.fit(data).labels_, before)


def test_this_version_has_a_pickle_of_each_kind():
    spec = spec_from_file_location("make_pickles", FOLDER / "make_pickles.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {f"{name}-{__version__}.pickle" for name in module.estimators()}
    assert names <= {path.name for path in PICKLES}
