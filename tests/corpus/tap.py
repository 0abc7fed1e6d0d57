"""Results in the Test Anything Protocol, for tests that need no Wine: e2e/harness.py has more."""


class Results:
    count = failed = 0


def result(name, good, *notes):
    Results.count += 1
    Results.failed += not good
    print(f"{'ok' if good else 'not ok'} {Results.count} - {name}")
    for note in notes:
        print(f"# {note}")


def finish():
    """Prints the plan; the exit code."""
    print(f"1..{Results.count}")
    return int(Results.failed > 0)
