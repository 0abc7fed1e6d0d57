#!/usr/bin/env python3
"""The programs themselves, before anything of ours touches them: each gives the same output
twice, and fails when a quarter of its image's code is broken.  A test that runs a program
which would not notice proves nothing."""

import harness
from harness import claim, require


def runs_alike(case, folder):
    first, second = case.outcome(folder), case.outcome(folder)
    harness.require_same(first, second, "two runs differ")
    for result in first:
        require(result.code is not None, result.describe())
    require(any(result.stdout for result in first), "no output")
    return first


def notices(case, folder, original, expected):
    """For each image by itself."""
    for image in case.images:
        broken = 0
        for seed in range(3):
            harness.break_code(original / image, folder / image, 0.25, seed)
            found = case.outcome(folder)
            broken += any((e.stdout, e.code) != (f.stdout, f.code)
                          for e, f in zip(expected, found))
            if broken:
                break
        harness.shutil.copy(original / image, folder / image)
        require(broken, f"\"{image}\": nobody noticed broken code")


def main():
    harness.prepare_wine()
    seen = set()
    for case in harness.fixture_cases() + harness.real_cases():
        with harness.work_folder() as folder:
            original = case.stage(folder / "original")
            expected = None
            with claim(f"{case.name}: runs alike"):
                expected = runs_alike(case, case.stage(folder / "run"))
            # One compiler's build is enough to know the program.
            if expected and case.exe not in seen:
                seen.add(case.exe)
                with claim(f"{case.name}: notices broken code"):
                    notices(case, folder / "run", original, expected)
    harness.finish()


if __name__ == "__main__":
    main()
