"""What computed a table: versions and the kind of machine."""

import os
import platform

import numpy as np
import sklearn
import torch

from .. import __version__


def versions() -> dict[str, str]:
    """Versions of everything that takes part in a number."""
    return {
        "sktransclust": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "Python": platform.python_version(),
    }


def machine(device: torch.device | str = "cpu") -> str:
    """Kind of machine: its system, processor, cores, and the GPU if `device` is one."""
    host = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    if torch.device(device).type != "cuda":
        return host
    return f"{host}, {torch.cuda.get_device_name(torch.device(device))}"


def made_with() -> str:
    """Versions and machine in one line, as a table's last column holds it."""
    return "; ".join([*(f"{name} {version}" for name, version in versions().items()), machine()])
