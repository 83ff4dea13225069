"""XXH64 in plain Python, step by step as its specification describes it."""

_WORD = 2**64 - 1
_PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _left(value: int, by: int) -> int:
    value &= _WORD
    return (value << by | value >> 64 - by) & _WORD


def _round(accumulator: int, lane: int) -> int:
    return _left(accumulator + lane * _PRIMES[1], 31) * _PRIMES[0] & _WORD


def xxh64(data: bytes, seed: int = 0) -> int:
    """Hash bytes."""
    one, two, three, four, five = _PRIMES
    whole = len(data) // 32 * 32
    accumulator = seed + five
    if whole:
        lanes = [seed + one + two, seed + two, seed, seed - one]
        for at in range(0, whole, 8):
            lanes[at // 8 % 4] = _round(lanes[at // 8 % 4], int.from_bytes(data[at : at + 8], "little"))
        accumulator = sum(_left(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            accumulator = (accumulator & _WORD ^ _round(0, lane)) * one + four
    accumulator, rest = accumulator + len(data) & _WORD, data[whole:]
    while len(rest) >= 8:
        accumulator = _left(accumulator ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * one + four & _WORD
        rest = rest[8:]
    if len(rest) >= 4:
        accumulator = _left(accumulator ^ int.from_bytes(rest[:4], "little") * one & _WORD, 23) * two + three & _WORD
        rest = rest[4:]
    for byte in rest:
        accumulator = _left(accumulator ^ byte * five & _WORD, 11) * one & _WORD
    for by, prime in ((33, two), (29, three), (32, 1)):
        accumulator = (accumulator ^ accumulator >> by) * prime & _WORD
    return accumulator
