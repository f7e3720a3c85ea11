"""Tiles on several threads, with results that do not depend on how many there are.

Each worker runs its PyTorch operations on one thread, so a tile's bits never change
with the number of workers; results come back in the order of the tiles.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}
_process = os.getpid()
_threads_of_fork: int | None = None


def survive_fork() -> None:
    """Make PyTorch and this module usable in a child of ``os.fork()``; call before other work.

    PyTorch's own threads do not survive a fork, and the first operation that wants them never
    returns. So the calling thread of a child uses one, while `ordered_map` starts new ones.
    """
    global _lock, _pools, _process, _threads_of_fork
    if _process == os.getpid():
        return
    # The lock, too, may have been copied while a thread of the parent held it.
    _lock, _pools, _process = threading.Lock(), {}, os.getpid()
    _threads_of_fork = max(torch.get_num_threads(), _threads_of_fork or 1)
    torch.set_num_threads(1)


def _start_worker(caller_threads: int) -> None:
    # PyTorch keeps the number of threads twice: for the calling thread, which is what
    # we want to change here, and as the default of threads yet to start, which is put back.
    torch.get_num_threads()  # a thread takes the default when first asked, and never again
    torch.set_num_threads(1)
    restore = threading.Thread(target=torch.set_num_threads, args=(caller_threads,))
    restore.start()
    restore.join()


def _workers(count: int) -> ThreadPoolExecutor:
    """Return this process's pool of `count` threads; concurrent callers share it."""
    with _lock:
        if count not in _pools:
            _pools[count] = ThreadPoolExecutor(
                count, "sktransclust", initializer=_start_worker, initargs=(torch.get_num_threads(),)
            )
        return _pools[count]


def n_threads() -> int:
    """Return how many threads to use: as many as PyTorch is set to."""
    return _threads_of_fork or torch.get_num_threads()


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, on as many threads as PyTorch is set to use.

    At most twice as many results as threads are held back at any time.
    """
    threads = n_threads()
    if threads == 1:
        yield from map(function, items)
        return
    pool = _workers(threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
