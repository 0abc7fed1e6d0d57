#!/usr/bin/env python3
"""bisect_order.py finds the blocks of planted faults: calls that a relinked image leads to a
function's old place, where int3 stands now."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
from harness import claim, require  # noqa: E402

import bisect_order  # noqa: E402
import completeness  # noqa: E402

SEED = 7


class Planted(bisect_order.Bisection):
    """The relinker of this one forgets a call, when its block has moved and, if asked for,
    the caller's block has as well."""

    def forget(self, site, target, together):
        self.site, self.target, self.together = site, target, together

    def relink(self, *arguments):
        verified = super().relink(*arguments)
        moves = {old: (new, size) for old, new, size in self.moved()}
        caller = next((old for old, (_, size) in moves.items()
                       if old <= self.site < old + size), None)
        if self.target in moves and (caller is not None or not self.together):
            place = self.site if caller is None else self.site - caller + moves[caller][0]
            path = self.other / self.image
            data = bytearray(path.read_bytes())
            at = harness.file_offset(data, place)
            data[at + 1:at + 5] = (self.target - place - 5).to_bytes(4, "little", signed=True)
            path.write_bytes(data)
        return verified


def executed_call(case, folder):
    """RVA of a call in another function than it leads to, and of that, both of which run."""
    comparison = completeness.Comparison(case, folder)
    comparison.record_probes()
    reached = comparison.touched(case.images[0], "trace")
    comparison.seen[case.images[0]].probes.append(reached)
    functions = comparison.functions(case.images[0])
    for target, site in completeness.single_calls(comparison, case.images[0]):
        caller = next((rva for rva in reached
                       if rva <= site < rva + functions[rva]["size"]), None)
        if caller not in (None, target) and functions[caller]["movable"] and \
                functions[target]["movable"]:
            return caller, site, target
    raise harness.Failure("no call is the only way to a function")


def main():
    harness.prepare_wine()
    with harness.work_folder() as folder:
        case = harness.fixture_case("exports", "gcc-O2")
        caller, site, target = executed_call(case, folder / "traced")
        for together, wanted in ((False, {target}), (True, {caller, target})):
            what = "blocks that break only together" if together else "one block"
            with claim(f"bisecting finds {what}"):
                bisection = Planted(case, folder / what, SEED)
                bisection.forget(site, target, together)
                *found, others, tries = bisection.report()
                harness.note(tries)
                names = bisection.names()
                require(sorted(found) == sorted(f"0x{rva:x} {names[rva]}" for rva in wanted)
                        and others == "all others together work",
                        f"{found}, {others}, instead of {[hex(rva) for rva in wanted]}")
        with claim("bisecting tells when nothing breaks"):
            found = list(bisect_order.Bisection(case, folder / "sound", SEED).report())
            require(len(found) == 1 and found[0].endswith("break nothing"), found)
    harness.finish()


if __name__ == "__main__":
    main()
