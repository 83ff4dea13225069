"""Whole numbers of any size, of their words or of their residues (Chinese remainder theorem)."""

from collections.abc import Callable, Mapping, Sequence

_BELOW = (
    *(1, 19, 61, 69, 85, 99, 105, 151, 159, 171, 225, 249, 295, 325, 379, 399, 411, 469, 477, 511, 525, 571, 579, 589),
    *(595, 615, 619, 697, 699, 705, 711, 727, 771, 775, 781, 789, 829, 831, 837, 847, 885, 909, 951, 955, 967, 985),
    *(987, 1027, 1057, 1065, 1071, 1141, 1147, 1167, 1231, 1239, 1281, 1287, 1299, 1305, 1321, 1357, 1375, 1411, 1417),
    *(1425, 1527, 1555, 1557, 1567, 1585, 1627),
)
PRIMES = tuple(2**31 - below for below in _BELOW)
"""The largest primes below 2**31: a product of two residues fits 64 bits.

The product of 2**64 and all primes exceeds the number of matches of 64 vertices (fewer than 2**1984) by some hundred
bits, which are for terms that cancel out.
"""
_WORD = 64  # bits of the word that every count is computed in
_SPARE = 0  # bits of a word that no number may need
_MARGIN = 4  # bits for the sign, and for the rounding of the magnitude


def moduli_for(magnitude: float, primes: Sequence[int]) -> list[int]:
    """Return the primes that are needed beside 2**64 for numbers of this magnitude.

    Raises
    ------
    OverflowError
        If all primes together are too few.
    """
    bits, needed = float(_WORD - _MARGIN), list[int]()
    for prime in primes:
        if magnitude < 1 << int(bits):
            return needed
        needed.append(prime)
        bits += 30.99
    if magnitude < 1 << int(bits):
        return needed
    raise OverflowError(f"a number has more than {bits:.0f} bits, which are all that counts have")


def require_fits(bound: int, bits: int, what: str) -> None:
    """Refuse to count if a number of at most `bound` may not fit a word of `bits` bits.

    Raises
    ------
    OverflowError
        If it may not.
    """
    if bound.bit_length() > bits - _SPARE:
        raise OverflowError(f"the graph is too large for this count: {what} may not fit {bits}-bit integers")


def two_words(low: int, high: int) -> int:
    """Return the number that a kernel added up with `longwall.kernels.jit.bits.add_carry`."""
    return int(low) % (1 << _WORD) + (int(high) << _WORD)


def combine(residues: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the numbers that have these residues by modulus, each not negative and below the product of the moduli."""
    numbers: list[int] = []
    modulus = 1
    for other, values in residues.items():
        if not numbers:
            numbers, modulus = [value % other for value in values], other
            continue
        inverse = pow(modulus, -1, other)
        numbers = [
            number + modulus * ((value - number) * inverse % other)
            for number, value in zip(numbers, values, strict=True)
        ]
        modulus *= other
    return numbers


def exact_number(word: int, estimate: float, residue: Callable[[int], int]) -> int:
    """Return a number that is not negative, from its word and as many residues as its magnitude needs.

    Parameters
    ----------
    word
        The number modulo 2**64.
    estimate
        About the sum of the absolute values that were added up.
    residue
        Returns the number modulo a prime.
    """
    primes = moduli_for(estimate, PRIMES)
    return combine({2**64: [word], **{prime: [residue(prime)] for prime in primes}})[0]
