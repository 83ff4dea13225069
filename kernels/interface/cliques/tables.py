"""How long the bitmap tables of vertices are, where they are made in pieces; see ``clique_rows.cu``."""

WORD_BYTES = 4
_START_WORDS = 2  # where a table begins, 64 bits


def table_words(degree: int, least: int) -> int:
    """Return the words that the table of a vertex takes, with what says where it begins.

    Row i of a table has a bit for each of the out-neighbours before out-neighbour i, in words of 32 bits.

    Parameters
    ----------
    degree
        The number of its out-neighbours.
    least
        Vertices of fewer out-neighbours have no table.
    """
    groups, rest = degree >> 5, degree & 31
    return (16 * groups + rest) * (groups + 1) * (degree >= least) + _START_WORDS


def longest_table(max_out_degree: int) -> int:
    """Return the words of the table of the vertex with the most out-neighbours."""
    return table_words(max_out_degree, 0)
