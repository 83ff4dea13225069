"""Transactions: the graphs of a database, which together are one data graph without an edge between two of them."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

Int64s = npt.NDArray[np.int64]


class TransactionSource(LabelSource):
    """The transaction of every vertex of an input, which can be read more than once; isolated vertices too.

    Its labels are the ids of the transactions in the input, in [0, 2^63).
    """

    noun = "transaction"
    verb = "listed"

    @abstractmethod
    def transaction_ids(self) -> Iterator[Int64s]:
        """Yield the ids of all transactions, in any order, repeated or not, those without a vertex too.

        Raises
        ------
        InputError
            Where the input is wrong.
        """

    def check_ids(self, ids: Int64s) -> None:
        """Refuse two transactions of one id, where every transaction is named once.

        Parameters
        ----------
        ids : int64[t]
            What `transaction_ids` gave: distinct, ascending.

        Raises
        ------
        InputError
            Naming the second one.
        """


class TransactionList(TransactionSource):
    """Transactions that stand in a list of "vertex transaction" pairs.

    Parameters
    ----------
    pairs
        The list, read as one of labels.
    """

    def __init__(self, pairs: LabelSource) -> None:
        self.source = pairs.source
        self._pairs = pairs

    def blocks(self) -> Iterator[LabelBlock]:
        """Read the list from the beginning."""
        self._pairs.named = self.named
        return self._pairs.blocks()

    def transaction_ids(self) -> Iterator[Int64s]:
        """Read the list from the beginning, for its second column."""
        return (block.values for block in self.blocks())
