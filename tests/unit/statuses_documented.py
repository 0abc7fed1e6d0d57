#!/usr/bin/env python3
"""Checks that docs/command-line.md lists each status with its exit code.

usage: statuses_documented.py SOURCE
"""

import pathlib
import re
import sys


def main(source):
    source = pathlib.Path(source)
    header = (source / 'common/base/status.h').read_text()
    page = (source / 'docs/command-line.md').read_text()
    defined = re.findall(r'X\([A-Z_]+, "([a-z-]+)", ([0-9])\)', header)
    documented = re.findall(r'^\| `([a-z-]+)` \| ([0-9]) \|', page, re.M)
    for name, code in sorted(set(defined) ^ set(documented)):
        where = 'status.h' if (name, code) in defined else 'docs/command-line.md'
        print(f'{name} with exit code {code} stands in {where} only')
    return 0 if defined and set(defined) == set(documented) else 1


sys.exit(main(*sys.argv[1:]))
