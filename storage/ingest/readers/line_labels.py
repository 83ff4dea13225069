"""Labels of `v` and `e` lines: texts if one at the beginning of the file is no integer, else integers."""

from collections.abc import Callable, Generator, Sequence

import numpy as np
import numpy.typing as npt

from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.texts import HashedTexts, gather_spans, hash_texts
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.tables.named_rows import BYTES_PER_BYTE
from longwall.storage.ingest.text.text_file import BYTES_OF_INTEGERS, Lines, TextFile

_VERTEX, _EDGE = b"ve"
_OF_VERTICES, _OF_EDGES = 1, 2  # the columns of the labels

Int64s = npt.NDArray[np.int64]


class LineLabels:
    """Reads a file of tagged lines, any number of times, and numbers the labels that are texts.

    Parameters
    ----------
    file
        The file.
    letters, end
        See `TextFile.tagged_rows` and `TextFile.parse`.
    take_header
        Consumes the header lines.
    """

    def __init__(self, file: FileRequest, letters: bytes, end: str, take_header: Callable[[TextFile], None]) -> None:
        self._file, self._letters, self._end, self._take_header = file, letters, end, take_header
        self.of_vertices, self.of_edges = LabelNames(str(file.path)), LabelNames(str(file.path))
        self._texts: list[int] | None = None

    @property
    def texts(self) -> Sequence[int]:
        """The columns that are texts."""
        return self._texts or []

    def make(
        self, text: npt.NDArray[np.uint8], columns: Int64s, tags: npt.NDArray[np.uint8]
    ) -> tuple[HashedTexts, HashedTexts]:
        """Copy the texts of the labels of vertices and of edges out of a block; none if they are integers."""
        vertices, edges = self._labelled(columns, tags)
        labels = columns[_OF_VERTICES][vertices], columns[_OF_EDGES][edges]
        of_vertices, of_edges = (hash_texts(gather_spans(text, spans)) for spans in labels)
        return of_vertices, of_edges

    def lines(self, *, reports: bool = False) -> Generator[Lines, None, None]:
        """Read the file from the beginning, with numbers for labels; if it `reports`, with progress and notes."""
        file = self._file
        if self._texts is None:
            with TextFile(*file.opening) as text:
                self._take_header(text)
                found = text.tagged_texts(self._letters)
            self._texts = [column for column, texts in zip((_OF_VERTICES, _OF_EDGES), found, strict=True) if texts]
        convert = self if self._texts else None
        progress, bytes_per_byte = file.progress if reports else None, BYTES_PER_BYTE if convert else BYTES_OF_INTEGERS
        with TextFile(*file.opening, progress, bytes_per_byte) as text:
            self._take_header(text)
            for lines in text.parse(text.tagged_rows(self._letters, convert), self._end.encode()):
                if convert is not None:
                    vertices, edges = self._labelled(lines.columns, lines.tags)
                    of_vertices, of_edges = lines.converted
                    lines.columns[_OF_VERTICES, vertices] = self.of_vertices.numbers(of_vertices)
                    lines.columns[_OF_EDGES, edges] = self.of_edges.numbers(of_edges)
                yield lines
            if reports:
                file.columns.notes.add("comments", text.comments)

    def _labelled(self, columns: Int64s, tags: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return the rows of vertices, and of edges, that have a text as label."""
        vertices = (tags == _VERTEX) & (_OF_VERTICES in self.texts)
        edges = (tags == _EDGE) & (_OF_EDGES in self.texts) & (columns[_OF_EDGES] >= 0)
        return vertices, edges
