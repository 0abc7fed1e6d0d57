#!/usr/bin/env python3
"""Which blocks of a random order break a program: halves the set of moved ones until one, or
a set that only breaks together, is left.

    bisect_order.py PROGRAM SEED [--placement exchange|append] [--image NAME]

PROGRAM is a name of real_programs.py.  Each try relinks by an order file that names the blocks
of the set in the order that the seed gives (with --placement append all others stay); then it
runs the program and compares.  Prints the blocks that are left with their functions.
"""

import argparse
import json

import real_programs  # also finds harness.py
import harness


class Bisection:
    def __init__(self, case, where, arguments):
        self.case, self.arguments, self.tries = case, arguments, 0
        self.image = arguments.image or case.images[0]
        self.original = case.stage(where / "original")
        self.other = case.stage(where / "other")
        self.order = where / "order.txt"
        self.expected = case.outcome(self.original)

    def moved_blocks(self):
        """Begins of the blocks that the random order moves, in its order."""
        harness.relink(self.original / self.image, self.other / self.image, "--order", "random",
                       "--seed", self.arguments.seed, "--placement", self.arguments.placement)
        moves = json.loads((self.other / f"{self.image}.map.json").read_text())["moves"]
        return [old for old, new, _ in sorted(moves, key=lambda move: move[1])]

    def breaks(self, blocks):
        self.tries += 1
        self.order.write_text("".join(f"0x{rva:x}\n" for rva in blocks))
        harness.relink(self.original / self.image, self.other / self.image, "--order", "file",
                       "--order-file", self.order, "--placement", self.arguments.placement)
        found = self.case.outcome(self.other)
        bad = any((e.stdout, e.stderr, e.code) != (f.stdout, f.stderr, f.code)
                  for e, f in zip(self.expected, found))
        harness.note(f"{len(blocks)} blocks: {'breaks' if bad else 'works'}")
        return bad

    def smallest(self, blocks):
        """A set that breaks, and no half of which does (delta debugging, by halves and then
        by ever smaller pieces taken out)."""
        pieces = 2
        while len(blocks) > 1:
            size = -(-len(blocks) // pieces)
            parts = [blocks[at:at + size] for at in range(0, len(blocks), size)]
            rests = [[b for b in blocks if b not in set(part)] for part in parts]
            for smaller in parts + (rests if pieces > 2 else []):
                if smaller and len(smaller) < len(blocks) and self.breaks(smaller):
                    blocks, pieces = smaller, max(2, pieces - 1 if smaller in rests else 2)
                    break
            else:
                if size == 1:
                    break
                pieces = min(pieces * 2, len(blocks))
        return blocks


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=real_programs.PROGRAMS)
    parser.add_argument("seed", type=int)
    parser.add_argument("--placement", default="append", choices=real_programs.PLACEMENTS)
    parser.add_argument("--image", help="of the program's, when it has several")
    arguments = parser.parse_args()
    harness.prepare_wine()
    with harness.work_folder() as where:
        bisection = Bisection(real_programs.PROGRAMS[arguments.program](), where, arguments)
        blocks = bisection.moved_blocks()
        if not bisection.breaks(blocks):
            print("the blocks of this seed, moved by an order file, break nothing")
            return
        for rva in bisection.smallest(blocks):
            print(f"0x{rva:x}")
        print(f"{bisection.tries} tries")


if __name__ == "__main__":
    main()
