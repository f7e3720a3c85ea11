"""The estimator: scikit-learn's KMeans, executed by the network's exact attentions.

It is built from scikit-learn's public base classes instead of from KMeans: a subclass would
be tied to private code that moves between versions. The few private names of KMeans that other
code is known to use are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._callbacks import CallbackSupportMixin, with_callbacks
from ._validation import (
    PARAMETER_CONSTRAINTS,
    check_parameters,
    check_query_data,
    check_weights,
    fit_context,
)

if TYPE_CHECKING:
    import torch

    from .core.streamed import StreamedCore
    from .model import LloydTransformer


class TransformerKMeans(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """k-means clustering, executed by a transformer.

    A drop-in replacement for :class:`sklearn.cluster.KMeans`: with ``weights="exact"`` every
    iteration is a layer of the exact network (Thm 2.1), which is Lloyd's iteration, and the
    result is the same for the same `random_state`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {'k-means++', 'random'}, callable or array-like of shape (n_clusters, n_features), \
            default='k-means++'
        Initial centers: greedy k-means++, random samples, what ``init(X, n_clusters,
        random_state=...)`` returns (X is a centered copy if it is dense), or the given ones.
    n_init : 'auto' or int, default='auto'
        Number of starts, of which the one of least inertia is kept. 'auto' is 10 for random
        samples and callables, else 1.
    max_iter : int, default=300
        Most iterations of a start.
    tol : float, default=1e-4
        A start ends when the squared distances that the centers move sum to no more than `tol`
        times the mean variance of the features, or when no label changes.
    verbose : int, default=0
        Whether to print each iteration.
    random_state : int, RandomState instance or None, default=None
        Source of the initial centers.
    copy_x : bool, default=True
        Accepted for compatibility; X is never changed, and never copied as a whole.
    algorithm : {'lloyd', 'elkan'}, default='lloyd'
        Both give the result of Lloyd's algorithm.
    weights : 'exact', str, path-like or LloydTransformer, default='exact'
        The network. A learned one, for data of as many features and with as many clusters,
        moves the initial centers; exact iterations then finish from the best centers seen. A
        string is a bundled name (``'binary-l2-d4-k6'``), a family (``'binary-l2'``: the bundled
        network for this problem) or the path of a ``.safetensors`` file. ``'universal'`` is for
        any problem: from where exact iterations end, it makes moves, each of which is kept only
        if exact iterations then end lower.
    embedding : {'binary', 'onehot'}, default='binary'
        Code of the clusters (Def. 2.1); that of a learned network has to be the same.
    n_steps : int, default=20
        Steps of a learned network; of ``'universal'`` at most so many moves, a step each. Unused
        with exact weights.
    device : str or torch.device, default='auto'
        'auto' is CUDA if there is one, else the CPU.
    backend : {'auto', 'compiled', 'dense', 'streamed'}, default='auto'
        How the attentions are computed: 'dense' by the literal network, with all its matrices,
        'streamed' without them in PyTorch, 'compiled' likewise by the package's own kernels on
        the CPU. 'auto' is 'compiled' where that can run, else 'streamed'.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Float32 if X is, else float64.
    labels_ : ndarray of shape (n_samples,), int32
        Index of the nearest of `cluster_centers_`; the lowest of equally near ones.
    inertia_ : float
        Sum of squared distances of samples to their nearest center, times their weights.
    n_iter_ : int
        Iterations of the best start; with ``'universal'``, those after kept moves included.
    inertia_history_ : ndarray of shape (n_updates + 1,), float64
        Entry t is the inertia of the centers before update t of the best start; the last entry
        is `inertia_`. Updates are the `n_iter_` iterations and, before them, the `n_steps` steps
        of a learned network. With ``'universal'`` they are the iterations alone, those after each
        move that was kept included, so that the history rises where a move begins.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had any that are strings.
    device_ : str
        Where the fit ran.
    backend_ : str
        What computed the attentions.

    See Also
    --------
    LloydTransformer : The network.

    References
    ----------
    "Leaner Transformers Can Easily Learn to Cluster" (2026), Sec. 2 and Thm 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sktransclust import TransformerKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> kmeans = TransformerKMeans(n_clusters=2, random_state=0).fit(X)
    >>> kmeans.labels_
    array([1, 1, 1, 0, 0, 0], dtype=int32)
    >>> kmeans.predict([[0, 0], [12, 3]])
    array([1, 0], dtype=int32)
    >>> kmeans.cluster_centers_
    array([[10.,  2.],
           [ 1.,  2.]])
    """

    _parameter_constraints = PARAMETER_CONSTRAINTS
    cluster_centers_: np.ndarray
    labels_: np.ndarray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        weights: str | LloydTransformer = "exact",
        embedding: str = "binary",
        n_steps: int = 20,
        device: str | torch.device = "auto",
        backend: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.weights = weights
        self.embedding = embedding
        self.n_steps = n_steps
        self.device = device
        self.backend = backend

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute k-means clustering.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples. Dense data of float32 and float64 are read in place, whatever their
            strides; a tensor on the fit's device stays there.
        y : Ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; weight 2 counts as the sample twice.

        Returns
        -------
        self : TransformerKMeans
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data do not fit the description above, or the device is missing.
        MemoryError
            If ``backend="dense"`` would not fit into memory.
        """
        from ._fit import fit

        fit(self, X, y, sample_weight)
        return self

    def _validate_params(self) -> None:
        check_parameters(self)

    def _query(self, X: Any, sample_weight: Any = None) -> tuple[StreamedCore, np.ndarray, int]:
        """Return a core for samples, the fitted centers in its reference frame, and the weights' exponent."""
        from ._device import resolve_device
        from ._engine import query_core

        if not hasattr(self, "cluster_centers_"):
            check_is_fitted(self, "cluster_centers_")  # says so
        device = resolve_device(self.device)
        X = check_query_data(self, X, device)
        n_features = self.cluster_centers_.shape[1]  # set by hand, perhaps
        if X.shape[1] != n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{n_features} features as input."
            )
        weights = check_weights(sample_weight, X)
        backend, embedding = self.backend, self.embedding
        core, centers = query_core(X, self.cluster_centers_, weights.values, device, backend, embedding)
        return core, centers, weights.exponent

    def predict(self, X: Any) -> np.ndarray:
        """Return the index of the nearest cluster center of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            The lowest index of equally near ones. A sample's label does not depend on the others.
        """
        core, centers, _ = self._query(X)
        return core.assign(centers).cpu().numpy()

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return `labels_`; see :meth:`fit`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : Ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            Cluster of each sample.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each sample to each cluster center.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            In the unit of X; by direct differences for dense X. Float32 if X and the centers
            are, else float64.
        """
        core, centers, _ = self._query(X)
        single = core.samples.numpy_dtype == self.cluster_centers_.dtype == np.float32
        X_new = np.empty((core.samples.n_samples, len(centers)), np.float32 if single else np.float64)
        core.distances(centers, X_new)
        exponent = core.samples.reference_frame.exponent
        return np.ldexp(X_new, exponent, out=X_new) if exponent else X_new

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the distances; see :meth:`fit` and :meth:`transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : Ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            Distances.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : Ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Minus the weighted sum of squared distances to the nearest centers; ``-inertia_`` for
            the samples and weights of the fit.
        """
        core, centers, exponent = self._query(X, sample_weight)
        inertia = core.inertia(centers, core.assign(centers))
        return -core.samples.reference_frame.squared_to_data(inertia, exponent)

    def _init_centroids(
        self,
        X: Any,
        x_squared_norms: Any,
        init: Any,
        random_state: np.random.RandomState,
        sample_weight: np.ndarray,
        n_centroids: int | None = None,
    ) -> np.ndarray:
        """Return initial centers, by the name and with the arguments of KMeans."""
        import torch

        from ._engine import fit_core
        from .initialization import initializer

        n_clusters = self.n_clusters if n_centroids is None else n_centroids
        core = fit_core(X, None, torch.device("cpu"), "streamed", self.embedding, n_clusters)
        draw = initializer(init, core, X, n_clusters, sample_weight, random_state)
        return core.samples.reference_frame.to_data(draw()).astype(X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.weights, str) and self.weights == "exact"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
