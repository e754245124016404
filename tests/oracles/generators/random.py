"""random.txt: Philox4x32-10, from its paper (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011),
checked against the known-answer vectors that its authors publish with Random123 (kat_vectors).

A case: inputs counter (4 words) and key (2 words), output 4 words; counters count up from the first word.
"""

import numpy as np

from . import text

MULTIPLIERS, BUMPS, MASK = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 0xFFFFFFFF
KNOWN_ANSWERS = [  # counter, key, result
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(line):
    return [int(word, 16) for word in line.split()]


def philox(counter, key, rounds=10):
    a, b, c, d = counter
    for number in range(rounds):
        left, right = [(k + number * bump) & MASK for k, bump in zip(key, BUMPS)]
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 32) ^ b ^ left, second & MASK, (first >> 32) ^ d ^ right, first & MASK
    return [a, b, c, d]


def write_case(file, counter, key, result, **attributes):
    arrays = [("UInt32", np.array(w, dtype=np.int64)) for w in (counter, key, result)]
    text.case(file, "philox", "UInt32", arrays[:2], arrays[2:], "exact", rounds=10, **attributes)


def write(file):
    for line in KNOWN_ANSWERS:
        counter, key, result = [words(part) for part in line]
        assert philox(counter, key) == result
        write_case(file, counter, key, result, samples="known")
    for key in ([42, 0], [0xDEADBEEF, 7]):
        for low in (0, 1, 2, 3, 1000, MASK):
            counter = [low, 1 if low == MASK else 0, 0, 5]
            write_case(file, counter, key, philox(counter, key))
