"""The ordered map: results in order, errors passed on, PyTorch's settings left alone."""

import threading

import pytest
import torch

from sktransclust.core.threads import ordered_map


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order(threads):
    assert list(ordered_map(lambda item: item**2, range(100))) == [item**2 for item in range(100)]


def test_workers_run_pytorch_on_one_thread_and_callers_keep_theirs(threads):
    assert set(ordered_map(lambda _: torch.get_num_threads(), range(20))) == {1}
    assert torch.get_num_threads() == threads


def test_threads_started_later_keep_the_callers_number(threads):
    list(ordered_map(str, range(20)))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [threads]


def test_an_error_reaches_the_caller_and_the_next_map_works(threads):
    def fail_at_seven(item):
        if item == 7:
            raise RuntimeError("seven")
        return item

    with pytest.raises(RuntimeError, match="seven"):
        list(ordered_map(fail_at_seven, range(50)))
    assert list(ordered_map(fail_at_seven, range(7))) == list(range(7))
