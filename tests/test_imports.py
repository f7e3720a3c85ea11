"""Which module imports which, and what importing the package loads."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(find_spec("sktransclust").origin).parent
STANDARD = set(sys.stdlib_module_names)

# Folder or module -> what it must not import of the package.
FORBIDDEN = {
    "core": {
        "_device", "_validation", "checkpoint", "cli", "estimator", "evaluation", "initialization", "model",
        "tasks", "training",
    },
    "tasks": {
        "_device", "_validation", "checkpoint", "cli", "core", "estimator", "evaluation", "initialization",
        "model", "training",
    },
    "initialization": {"checkpoint", "cli", "estimator", "evaluation", "tasks", "training"},
    "model": {"checkpoint", "cli", "estimator", "evaluation", "tasks", "training"},
    "checkpoint": {"cli", "estimator", "evaluation", "tasks", "training"},
    "training": {"cli", "estimator", "evaluation"},
    "estimator": {"cli", "evaluation", "tasks", "training"},
}  # fmt: skip
OUTSIDE = {"core": {"numpy", "torch", "threadpoolctl"}, "tasks": {"numpy", "torch", "threadpoolctl"}}


def part_of(path):
    """The folder or module of the package that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path):
    """Absolute dotted names that a file imports anywhere, those for type checking only included."""
    inside = ("sktransclust", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(inside[: len(inside) - node.level + 1]) if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def files_of(part):
    return sorted(path for path in PACKAGE.rglob("*.py") if part_of(path) == part)


def siblings(path):
    """Parts of the package that a file imports."""
    names = (name.split(".") for name in imported(path))
    return {name[1] for name in names if name[0] == "sktransclust" and len(name) > 1}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_a_part_imports_only_the_parts_below_it(part):
    for path in files_of(part):
        assert not siblings(path) & FORBIDDEN[part], path.name


@pytest.mark.parametrize("part", OUTSIDE)
def test_core_and_tasks_import_nothing_but_torch_numpy_and_threadpoolctl(part):
    assert files_of(part)
    for path in files_of(part):
        outside = {name.split(".")[0] for name in imported(path)} - STANDARD - {"sktransclust"}
        assert outside <= OUTSIDE[part], path.name


def is_private_of_sklearn(name):
    parts = name.split(".")
    return parts[0] == "sklearn" and any(part.startswith("_") for part in parts)


def test_only_one_module_imports_private_names_of_sklearn():
    users = {path.name for path in PACKAGE.rglob("*.py") if any(map(is_private_of_sklearn, imported(path)))}
    assert users == {"_validation.py"}


def test_the_files_that_the_other_tests_speak_of_exist():
    assert {"core", "model", "estimator", "initialization"} <= {
        part_of(path) for path in PACKAGE.rglob("*.py")
    }


def loaded_after(statement):
    """Top-level names in sys.modules of a fresh process after a statement."""
    script = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


GET = "from sktransclust import TransformerKMeans; "
STATEMENTS = {
    "package": "import sktransclust",
    "estimator": GET,
    "printed": GET + "repr(TransformerKMeans(3)); TransformerKMeans(3).get_params()",
    "cloned": GET + "from sklearn.base import clone; clone(TransformerKMeans())",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_importing_the_estimator_loads_no_torch_and_no_matplotlib(statement):
    loaded = loaded_after(statement)
    assert "sktransclust" in loaded
    assert loaded.isdisjoint({"torch", "matplotlib", "triton"})


def test_the_public_names_are_listed_and_can_be_had():
    script = (
        "import sktransclust\n"
        "assert {'TransformerKMeans', 'LloydTransformer'} <= set(sktransclust.__all__)\n"
        "assert set(sktransclust.__all__) <= set(dir(sktransclust))\n"
        "print(*(getattr(sktransclust, name) is not None for name in sktransclust.__all__))\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"True"}


def test_an_unknown_public_name_is_an_attribute_error():
    import sktransclust

    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        sktransclust.Nonsense  # noqa: B018 - the access is what is tested
