#!/usr/bin/env python3
"""Compiles each header of common/ alone, twice in one file.

usage: headers_alone.py SOURCE BUILD COMPILER...

A header that leans on what its users happen to include before it, or that has
no include guard, breaks far away from the fault.
"""

import pathlib
import subprocess
import sys


def main(source, build, *compiler):
    common = pathlib.Path(source, 'common')
    headers = sorted(common.glob('*/*.h'))
    flags = ['-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-fsyntax-only',
             '-I', common, '-I', pathlib.Path(build, 'common'), '-x', 'c', '-']
    failed = 0
    for header in headers:
        name = header.relative_to(common)
        text = f'#include "{name}"\n' * 2
        done = subprocess.run([*compiler, *flags], input=text, text=True, capture_output=True)
        if done.returncode:
            failed += 1
            print(f'{name} does not compile alone:\n{done.stderr}')
    print(f'{len(headers)} headers, {failed} failed')
    return 1 if failed or not headers else 0


sys.exit(main(*sys.argv[1:]))
