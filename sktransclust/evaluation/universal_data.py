"""Data sets on which the network for any problem is measured; all can be had offline."""

import pydoc_data.topics
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_sample_image,
    load_wine,
    make_blobs,
    make_moons,
    make_swiss_roll,
)
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.feature_extraction.text import TfidfVectorizer

from .real_data import standardized


def pixels(photo: str, n_samples: int = 20_000) -> np.ndarray:
    """Return the colors of some pixels of a photograph, between 0 and 1, drawn with a fixed seed."""
    colors = load_sample_image(photo).reshape(-1, 3) / 255.0
    return colors[np.random.RandomState(0).permutation(len(colors))[:n_samples]]


def patches(photo: str, side: int, n_samples: int) -> np.ndarray:
    """Return square patches of a photograph as rows of colors, drawn with a fixed seed."""
    image = load_sample_image(photo) / 255.0
    return extract_patches_2d(image, (side, side), max_patches=n_samples, random_state=0).reshape(
        n_samples, -1
    )


def places_and_colors() -> np.ndarray:
    """Return every sixteenth pixel of a photograph: its color and its place, as for superpixels."""
    image = load_sample_image("china.jpg")[::4, ::4] / 255.0
    row, column = np.mgrid[: image.shape[0], : image.shape[1]] / max(image.shape)
    return np.concatenate([image, row[..., None], column[..., None]], axis=2).reshape(-1, 5)


def paragraphs() -> np.ndarray:
    """Return tf-idf weights of 300 words in the paragraphs of Python's own help."""
    texts = [text for topic in pydoc_data.topics.topics.values() for text in topic.split("\n\n")]
    words = TfidfVectorizer(max_features=300, stop_words="english")
    return words.fit_transform([text for text in texts if len(text) > 80]).toarray()


def grid_of_blobs() -> np.ndarray:
    """Return 10,000 samples of 100 blobs on a square grid."""
    random = np.random.RandomState(0)
    place = np.stack(np.divmod(random.randint(100, size=10_000), 10), axis=1)
    return place + 0.15 * random.standard_normal((10_000, 2))


def uneven_blobs(n_blobs: int = 30, n_samples: int = 5000) -> np.ndarray:
    """Return blobs on the plane whose masses and sizes differ much."""
    random = np.random.RandomState(0)
    place, mass = random.uniform(size=(n_blobs, 2)), np.exp(1.2 * random.standard_normal(n_blobs))
    size = 0.03 * np.exp(0.8 * random.standard_normal(n_blobs))
    blob = random.choice(n_blobs, n_samples, p=mass / mass.sum())
    return place[blob] + size[blob, None] * random.standard_normal((n_samples, 2))


DATA: dict[str, tuple[Callable[[], np.ndarray], tuple[int, ...]]] = {
    "iris": (lambda: standardized(load_iris), (8,)),
    "wine": (lambda: standardized(load_wine), (6,)),
    "breast cancer": (lambda: standardized(load_breast_cancer), (8, 20)),
    "diabetes": (lambda: load_diabetes().data, (12,)),
    "digits": (lambda: load_digits().data, (10, 30, 100)),
    "colors of a temple": (lambda: pixels("china.jpg"), (16, 64)),
    "colors of a flower": (lambda: pixels("flower.jpg"), (32,)),
    "patches of a temple": (lambda: patches("china.jpg", 4, 5000), (20,)),
    "patches of a flower": (lambda: patches("flower.jpg", 8, 3000), (40,)),
    "places and colors": (places_and_colors, (50,)),
    "paragraphs": (paragraphs, (20,)),
    "blobs": (lambda: make_blobs(3000, 2, centers=30, cluster_std=0.6, random_state=1)[0], (30,)),
    "grid of blobs": (grid_of_blobs, (100,)),
    "uneven blobs": (uneven_blobs, (30,)),
    "Swiss roll": (lambda: make_swiss_roll(3000, random_state=0)[0], (25,)),
    "moons": (lambda: make_moons(2000, noise=0.08, random_state=0)[0], (16,)),
}


def problems() -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield the name, the samples and the number of clusters of each problem."""
    for name, (load, numbers) in DATA.items():
        X = load()
        for n_clusters in numbers:
            yield name, X, n_clusters
