"""The kernels of the CUDA engine: the table of :class:`longwall.kernels.interface.kernels.Kernels`."""

from typing import TYPE_CHECKING

from longwall.kernels.jit.lazy_table import lazy_table

if TYPE_CHECKING:
    from longwall.kernels.cuda.frequent.pattern_growth import CudaGrower as grower
    from longwall.kernels.cuda.homomorphisms.almost_cliques import CudaAlmostCliqueCounter as almost_clique_counter
    from longwall.kernels.cuda.homomorphisms.diamonds import CudaDiamondCounter as diamond_counter
    from longwall.kernels.cuda.homomorphisms.five_cycles import CudaFiveCycleCounter as five_cycle_counter
    from longwall.kernels.cuda.homomorphisms.inner_counts import inner_counts as inner_counts
    from longwall.kernels.cuda.homomorphisms.pairs import CudaPairCounter as pair_counter
    from longwall.kernels.cuda.homomorphisms.prisms import CudaPrismCounter as prism_counter
    from longwall.kernels.cuda.homomorphisms.rows import CudaRowCounter as row_counter
    from longwall.kernels.cuda.homomorphisms.tables import cliques_of_arcs as cliques_of_arcs
    from longwall.kernels.cuda.homomorphisms.tables import common_neighbours as common_neighbours
    from longwall.kernels.cuda.homomorphisms.tables import fill_tables as fill_tables
    from longwall.kernels.cuda.homomorphisms.tables import paths_of_arcs as paths_of_arcs
    from longwall.kernels.cuda.homomorphisms.tables import reverse_arcs as reverse_arcs
    from longwall.kernels.cuda.homomorphisms.tables import triangles_of_arcs as triangles_of_arcs
    from longwall.kernels.cuda.homomorphisms.wheels import CudaWheelCounter as wheel_counter
    from longwall.kernels.cuda.kcliques.bitmaps import clique_counter as clique_counter
    from longwall.kernels.cuda.kcliques.bitmaps import large_clique_counter as large_clique_counter
    from longwall.kernels.cuda.kcliques.leaves import CudaCliqueLeaves as clique_leaf_counter
    from longwall.kernels.cuda.kcliques.leaves import CudaCliquesOfVertices as clique_vertex_counter
    from longwall.kernels.cuda.kcliques.tables import CudaTabledCliqueCounter as tabled_clique_counter
    from longwall.kernels.cuda.label_rows import rows_by_label as rows_by_label
    from longwall.kernels.cuda.local_counts.arc_diamonds import CudaArcDiamondCounter as arc_diamond_counter
    from longwall.kernels.cuda.local_counts.arc_triangles import arc_triangles as arc_triangles
    from longwall.kernels.cuda.local_counts.arc_triangles import most_triangles as most_triangles
    from longwall.kernels.cuda.local_counts.edges import CudaEdgeCounter as edge_counter
    from longwall.kernels.cuda.local_counts.four_cycles import CudaColumnCycleCounter as column_cycle_counter
    from longwall.kernels.cuda.local_counts.four_cycles import CudaFourCycleCounter as four_cycle_counter
    from longwall.kernels.cuda.local_counts.motifs import CudaMotifCounter as motif_counter
    from longwall.kernels.cuda.local_counts.motifs import CudaOrbitCounter as orbit_counter
    from longwall.kernels.cuda.local_counts.orbits import CudaOrbitHomomorphismCounter as orbit_homomorphism_counter
    from longwall.kernels.cuda.local_counts.triangles import CudaTriangleCounter as triangle_counter
    from longwall.kernels.cuda.local_counts.triangles import CudaTriangleVertexCounter as triangle_vertex_counter
    from longwall.kernels.cuda.maximal_cliques.finders import CudaCliqueLister as maximal_clique_lister
    from longwall.kernels.cuda.maximal_cliques.finders import CudaCliqueSizes as maximal_clique_counter
    from longwall.kernels.cuda.maximal_cliques.finders import (
        CudaCliqueVertices as maximal_clique_vertex_counter,
    )
    from longwall.kernels.cuda.maximal_cliques.order import degeneracy_order as degeneracy_order
    from longwall.kernels.cuda.page_bytes import bytes_per_page as bytes_per_page
    from longwall.kernels.cuda.row_checks import check_rows as check_rows
    from longwall.kernels.cuda.search.edge_extension import CudaEdgeExtender as edge_extender
    from longwall.kernels.cuda.search.search import CudaSearcher as searcher
    from longwall.kernels.cuda.sorting.sorters import CudaChunkSorter as chunk_sorter
    from longwall.kernels.cuda.sorting.sorters import CudaRunMerger as run_merger
    from longwall.kernels.cuda.step_rate import steps_per_second as steps_per_second
else:
    __getattr__ = lazy_table(__name__)
