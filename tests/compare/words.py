"""Text of conversations: varied enough that a database does not compress it to nothing."""

import random

WORDS = (
    "harbour lantern captain invoice quietly delivers winter rope margin seven customers because letter copper north draft morning "
    "price bridge second paper island over garden promise silver the of and a to in with is which on that for at not"
).split()


def text(seed, n_bytes):
    dice, found = random.Random(seed), ""
    while len(found) < n_bytes:
        found += dice.choice(WORDS) + " "
    return found[:n_bytes]
