"""Check that a wheel holds every tracked file of the package, and nothing beside the package."""

import subprocess
import sys
import zipfile

names = set(zipfile.ZipFile(sys.argv[1]).namelist())
tracked = set(subprocess.check_output(["git", "ls-files", "sktransclust"], text=True).split())

missing = sorted(tracked - names)
foreign = sorted(n for n in names if not n.startswith("sktransclust/") and ".dist-info/" not in n)
if missing or foreign:
    sys.exit(f"{sys.argv[1]}: missing {missing}, foreign {foreign}")
print(f"{sys.argv[1]} holds the {len(tracked)} tracked files of the package and nothing else")
