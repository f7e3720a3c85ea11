"""The documentation's page is what its tables say."""

import shutil
from pathlib import Path

from sktransclust.evaluation.paper.experiments import EXPERIMENTS
from sktransclust.evaluation.paper.page import write_page
from sktransclust.evaluation.paper.tables import read_origin

DOCS = Path(__file__).parents[1] / "docs"
TABLES = DOCS / "reproduction"


def test_the_page_is_what_the_claims_command_writes_from_the_tables(tmp_path):
    shutil.copytree(TABLES, tmp_path / "reproduction", ignore=shutil.ignore_patterns("models"))
    write_page(tmp_path / "reproduction", tmp_path / "page.rst")
    written = (tmp_path / "page.rst").read_text(encoding="utf-8")
    assert written == (DOCS / "reproduction.rst").read_text(encoding="utf-8")


def test_every_table_has_its_drawings_and_is_small():
    tables = sorted(TABLES.glob("*.csv"))
    assert {path.stem for path in tables} <= set(EXPERIMENTS)
    for path in tables:
        assert path.with_suffix(".png").exists()
        assert path.with_suffix(".svg").exists()
        assert read_origin(path)["profile"]["name"] in ("laptop", "paper")
    assert sum(path.stat().st_size for path in tables) < 20e6
