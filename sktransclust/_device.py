"""The device of a fit, resolved once."""

from __future__ import annotations

import torch

from .core.threads import survive_fork


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device to compute on, from a process that can.

    Parameters
    ----------
    device : str or torch.device
        ``"auto"`` is CUDA if there is one, else the CPU.

    Returns
    -------
    device : torch.device
        With an index if it is a CUDA device.

    Raises
    ------
    ValueError
        If the name is unknown, or there is no such device here, or it has no float64.
    """
    survive_fork()
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"`device` should be {_available()}, got {device!r}.") from error
    if resolved.type == "cpu":
        return torch.device("cpu")
    if resolved.type == "mps":
        raise ValueError(f"`device` should be {_available()}, got {device!r}: mps has no float64.")
    if resolved.type != "cuda" or (resolved.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"`device` should be {_available()}, got {device!r}, which is not available here. "
            "Use set_params(device='auto') to compute on what there is."
        )
    index = torch.cuda.current_device() if resolved.index is None else resolved.index
    return torch.device("cuda", index)


def _available() -> str:
    names = ["'auto'", "'cpu'", *(f"'cuda:{index}'" for index in range(torch.cuda.device_count()))]
    return "one of " + ", ".join(names)
