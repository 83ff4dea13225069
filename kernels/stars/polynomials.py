"""Independence polynomials, of which a coefficient is a number of independent sets, up to a degree and modulo primes.

A polynomial is an array int64[degree + 1, primes]; primes are below 2**31, so that products fit.
"""

from longwall.kernels.jit import compiled


@compiled
def set_one(polynomial, degree):
    """Make a polynomial 1, up to a degree."""
    for j in range(degree + 1):
        for r in range(polynomial.shape[1]):
            polynomial[j, r] = 1 if j == 0 else 0


@compiled
def multiply(polynomial, factor, degree, primes):
    """Multiply a polynomial by another one, up to a degree."""
    for j in range(degree, -1, -1):
        for r in range(primes.size):
            value = 0
            for i in range(j + 1):
                value = (value + polynomial[i, r] * factor[j - i, r]) % primes[r]
            polynomial[j, r] = value


@compiled
def _add_binomials(polynomial, size, less, first, degree, primes, inverses):
    """Add C(size - less * j, j - first) to every coefficient j from `first` on."""
    for j in range(first, degree + 1):
        most, chosen = size - less * j, j - first
        if most < chosen:
            break
        for r in range(primes.size):
            value = 1
            for t in range(chosen):
                value = value * ((most - t) % primes[r]) % primes[r] * inverses[r, t + 1] % primes[r]
            polynomial[j, r] = (polynomial[j, r] + value) % primes[r]


@compiled
def set_independent(polynomial, size, degree, primes, inverses):
    """Make a polynomial that of vertices without edges."""
    set_one(polynomial, degree)
    polynomial[0, :] = 0
    _add_binomials(polynomial, size, 0, 0, degree, primes, inverses)


@compiled
def set_path(polynomial, size, degree, primes, inverses):
    """Make a polynomial that of a path."""
    set_one(polynomial, degree)
    polynomial[0, :] = 0
    _add_binomials(polynomial, size + 1, 1, 0, degree, primes, inverses)


@compiled
def set_cycle(polynomial, size, degree, primes, inverses):
    """Make a polynomial that of a cycle: sets without one of its vertices, and those with it."""
    set_one(polynomial, degree)
    polynomial[0, :] = 0
    _add_binomials(polynomial, size, 1, 0, degree, primes, inverses)
    _add_binomials(polynomial, size - 1, 1, 1, degree, primes, inverses)
