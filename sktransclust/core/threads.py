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
_pools_process = -1


def _start_worker(caller_threads: int) -> None:
    # PyTorch keeps the number of threads twice: for the calling thread, which is what
    # we want to change here, and as the default of threads yet to start, which is put back.
    torch.set_num_threads(1)
    restore = threading.Thread(target=torch.set_num_threads, args=(caller_threads,))
    restore.start()
    restore.join()


def _workers(count: int) -> ThreadPoolExecutor:
    """Return this process's pool of `count` threads; concurrent callers share it.

    Threads do not survive ``os.fork()``, so a child starts its own.
    """
    global _lock, _pools, _pools_process
    if _pools_process != os.getpid():
        # The lock, too, may have been copied while a thread of the parent held it.
        _lock, _pools, _pools_process = threading.Lock(), {}, os.getpid()
    with _lock:
        if count not in _pools:
            _pools[count] = ThreadPoolExecutor(
                count, "sktransclust", initializer=_start_worker, initargs=(torch.get_num_threads(),)
            )
        return _pools[count]


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, computed on `torch.get_num_threads()` threads.

    At most twice as many results as threads are held back at any time.
    """
    threads = torch.get_num_threads()
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
