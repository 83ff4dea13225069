"""The kernels of the CPU engine: the table of :class:`longwall.kernels.interface.kernels.Kernels`."""

from typing import TYPE_CHECKING

from longwall.kernels.jit.lazy_table import lazy_table

if TYPE_CHECKING:
    from longwall.kernels.cpu.frequent.pattern_growth import CpuGrower as grower
    from longwall.kernels.cpu.homomorphisms.almost_cliques import almost_clique_counter as almost_clique_counter
    from longwall.kernels.cpu.homomorphisms.diamonds import diamond_counter as diamond_counter
    from longwall.kernels.cpu.homomorphisms.five_cycles import five_cycle_counter as five_cycle_counter
    from longwall.kernels.cpu.homomorphisms.inner_counts import inner_counts as inner_counts
    from longwall.kernels.cpu.homomorphisms.pairs import pair_counter as pair_counter
    from longwall.kernels.cpu.homomorphisms.prisms import prism_counter as prism_counter
    from longwall.kernels.cpu.homomorphisms.rows import CpuRowCounter as row_counter
    from longwall.kernels.cpu.homomorphisms.tables import cliques_of_arcs as cliques_of_arcs
    from longwall.kernels.cpu.homomorphisms.tables import common_neighbours as common_neighbours
    from longwall.kernels.cpu.homomorphisms.tables import fill_tables as fill_tables
    from longwall.kernels.cpu.homomorphisms.tables import paths_of_arcs as paths_of_arcs
    from longwall.kernels.cpu.homomorphisms.tables import reverse_arcs as reverse_arcs
    from longwall.kernels.cpu.homomorphisms.tables import triangles_of_arcs as triangles_of_arcs
    from longwall.kernels.cpu.homomorphisms.wheels import wheel_counter as wheel_counter
    from longwall.kernels.cpu.kcliques.bitmaps import clique_counter as clique_counter
    from longwall.kernels.cpu.kcliques.large import CpuLargeCliqueCounter as large_clique_counter
    from longwall.kernels.cpu.kcliques.leaves import CpuCliqueLeaves as clique_leaf_counter
    from longwall.kernels.cpu.kcliques.leaves import CpuCliquesOfVertices as clique_vertex_counter
    from longwall.kernels.cpu.kcliques.tables import CpuTabledCliqueCounter as tabled_clique_counter
    from longwall.kernels.cpu.label_rows import rows_by_label as rows_by_label
    from longwall.kernels.cpu.local_counts.arc_diamonds import CpuArcDiamondCounter as arc_diamond_counter
    from longwall.kernels.cpu.local_counts.arc_triangles import arc_triangles as arc_triangles
    from longwall.kernels.cpu.local_counts.arc_triangles import most_triangles as most_triangles
    from longwall.kernels.cpu.local_counts.edges import CpuEdgeCounter as edge_counter
    from longwall.kernels.cpu.local_counts.four_cycles import CpuColumnCycleCounter as column_cycle_counter
    from longwall.kernels.cpu.local_counts.four_cycles import CpuFourCycleCounter as four_cycle_counter
    from longwall.kernels.cpu.local_counts.motifs import CpuMotifCounter as motif_counter
    from longwall.kernels.cpu.local_counts.motifs import CpuOrbitCounter as orbit_counter
    from longwall.kernels.cpu.local_counts.orbits import CpuOrbitHomomorphismCounter as orbit_homomorphism_counter
    from longwall.kernels.cpu.local_counts.triangles import CpuTriangleCounter as triangle_counter
    from longwall.kernels.cpu.local_counts.triangles import CpuTriangleVertexCounter as triangle_vertex_counter
    from longwall.kernels.cpu.maximal_cliques.finders import CpuCliqueLister as maximal_clique_lister
    from longwall.kernels.cpu.maximal_cliques.finders import CpuCliqueSizes as maximal_clique_counter
    from longwall.kernels.cpu.maximal_cliques.finders import (
        CpuCliqueVertices as maximal_clique_vertex_counter,
    )
    from longwall.kernels.cpu.maximal_cliques.order import degeneracy_order as degeneracy_order
    from longwall.kernels.cpu.page_bytes import bytes_per_page as bytes_per_page
    from longwall.kernels.cpu.row_checks import check_rows as check_rows
    from longwall.kernels.cpu.search.edge_extension import CpuEdgeExtender as edge_extender
    from longwall.kernels.cpu.search.search import CpuSearcher as searcher
    from longwall.kernels.cpu.sorting.sorters import CpuChunkSorter as chunk_sorter
    from longwall.kernels.cpu.sorting.sorters import CpuRunMerger as run_merger
    from longwall.kernels.cpu.step_rate import steps_per_second as steps_per_second
else:
    __getattr__ = lazy_table(__name__)
