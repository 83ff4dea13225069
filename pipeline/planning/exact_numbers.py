"""Whole numbers of any size, of their residues (the Chinese remainder theorem)."""

from collections.abc import Mapping, Sequence

PRIMES = tuple(2**31 - below for below in (1, 19, 61, 69, 85, 99, 105, 151, 159, 171, 225, 249, 295, 325, 379, 399))
"""The largest primes below 2**31: residues of one have products that 64-bit integers hold."""
_WORD = 64  # bits of what is always known
_MARGIN = 4  # bits for the sign, and for what floating point leaves out


def moduli_for(magnitude: float, primes: Sequence[int]) -> list[int]:
    """Return the primes that are needed beside 2**64 for numbers of this magnitude.

    Raises
    ------
    OverflowError
        If there are too few.
    """
    bits, needed = float(_WORD - _MARGIN), list[int]()
    for prime in primes:
        if magnitude < 2.0**bits:
            return needed
        needed.append(prime)
        bits += 30.99
    if magnitude < 2.0**bits:
        return needed
    raise OverflowError(f"a number of about {magnitude:.3g} has more than {bits:.0f} bits")


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
