"""Peak of the memory that PyTorch allocates during a call, as its profiler sees it."""

from collections.abc import Callable

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

#: PyTorch rounds sizes up, by less than this.
ROUNDING = 512


def peak_memory(call: Callable[[], None], device: torch.device, leave_out: int | None = None) -> int:
    """Most bytes allocated at one moment of a call, above what there was before it.

    Parameters
    ----------
    call : callable
        Without arguments.
    device : torch.device
        Whose memory counts.
    leave_out : int, optional
        Tensors of exactly this many bytes do not count.

    Returns
    -------
    int
        Never negative.
    """
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device.type == "cuda")
    with profile(activities=activities, profile_memory=True) as profiler:
        call()
    events = profiler.profiler.kineto_results.events()
    wanted = DeviceType.CUDA if device.type == "cuda" else DeviceType.CPU
    changes = sorted(
        (event.start_ns(), event.nbytes())
        for event in events
        if event.name() == "[memory]" and event.device_type() == wanted
    )
    now = peak = 0
    for _, change in changes:
        if leave_out is None or not 0 <= abs(change) - leave_out < ROUNDING:
            now += change
            peak = max(peak, now)
    return peak
