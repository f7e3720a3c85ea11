"""Check that a wheel holds the kernels and every tracked file of the package, and nothing beside it."""

import subprocess
import sys
import zipfile

names = set(zipfile.ZipFile(sys.argv[1]).namelist())
expected = {"sktransclust/core/_kernels.so"}
expected |= set(subprocess.check_output(["git", "ls-files", "sktransclust"], text=True).split())

missing = sorted(expected - names)
foreign = sorted(n for n in names if not n.startswith("sktransclust/") and ".dist-info/" not in n)
if missing or foreign:
    sys.exit(f"{sys.argv[1]}: missing {missing}, foreign {foreign}")
print(f"{sys.argv[1]} holds the {len(expected)} files of the package and nothing else")
