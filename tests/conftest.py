"""Options, markers and the few fixtures that several modules share."""

import os

import hypothesis
import pytest

# The processes that run tests side by side share the cores.
N_CORES = os.cpu_count() or 1
os.environ.setdefault(
    "OMP_NUM_THREADS", str(max(1, N_CORES // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
)

# The same examples every time; by hand, `pytest --hypothesis-profile slow tests/test_properties.py`.
# How fast the machine is decides nothing.
any_speed = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("ci", derandomize=True, max_examples=25, **any_speed)
hypothesis.settings.register_profile("slow", max_examples=5000, **any_speed)
hypothesis.settings.load_profile("ci")


def pytest_xdist_auto_num_workers():
    return min(N_CORES, 8)  # each imports PyTorch


def pytest_addoption(parser):
    parser.addoption("--run-slow", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config, items):
    slow = pytest.mark.skip(reason="takes minutes: run it with --run-slow")
    no_cuda = pytest.mark.skip(reason="needs a CUDA device, and torch sees none")
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        has_cuda = torch.cuda.is_available()
    for item in items:
        if item.get_closest_marker("slow") and not config.getoption("--run-slow"):
            item.add_marker(slow)
        if item.get_closest_marker("gpu") and not has_cuda:
            item.add_marker(no_cuda)


@pytest.fixture(params=["auto", "streamed", "dense"])
def backend(request):
    """Each choice that serves any small problem; "auto" is the fastest backend there is for it."""
    return request.param
