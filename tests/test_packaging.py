"""The package that the tests import is the one that pip installed, and it holds what it should."""

import json
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import sktransclust

DISTRIBUTION = distribution("sktransclust")


def installed_folder():
    """Return where pip put the package: a checkout for an editable install, else site-packages."""
    origin = json.loads(DISTRIBUTION.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return Path(url2pathname(urlparse(origin["url"]).path)) / "sktransclust"
    return Path(DISTRIBUTION.locate_file("sktransclust"))


def test_tests_import_the_installed_package_and_not_the_folder_beside_them():
    assert Path(sktransclust.__file__).resolve().parent == installed_folder().resolve()


def test_version_of_the_package_is_the_version_that_pip_knows():
    assert sktransclust.__version__ == DISTRIBUTION.version


def test_type_checkers_find_the_package_typed():
    assert (Path(sktransclust.__file__).parent / "py.typed").is_file()
