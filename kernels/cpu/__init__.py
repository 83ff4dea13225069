"""The kernels of the CPU engine: the table of :class:`longwall.kernels.interface.kernels.Kernels`."""

from typing import TYPE_CHECKING

from longwall.kernels.jit.lazy_table import lazy_table

if TYPE_CHECKING:
    from longwall.kernels.cpu.frequent.pattern_growth import grower as grower
    from longwall.kernels.cpu.homomorphisms.almost_cliques import almost_clique_counter as almost_clique_counter
    from longwall.kernels.cpu.homomorphisms.diamonds import diamond_counter as diamond_counter
    from longwall.kernels.cpu.homomorphisms.five_cycles import five_cycle_counter as five_cycle_counter
    from longwall.kernels.cpu.homomorphisms.inner_counts import inner_counts as inner_counts
    from longwall.kernels.cpu.homomorphisms.pairs import pair_counter as pair_counter
    from longwall.kernels.cpu.homomorphisms.prisms import prism_counter as prism_counter
    from longwall.kernels.cpu.homomorphisms.rows import row_counter as row_counter
    from longwall.kernels.cpu.homomorphisms.tables import cliques_of_arcs as cliques_of_arcs
    from longwall.kernels.cpu.homomorphisms.tables import common_neighbours as common_neighbours
    from longwall.kernels.cpu.homomorphisms.tables import paths_of_arcs as paths_of_arcs
    from longwall.kernels.cpu.homomorphisms.tables import reverse_arcs as reverse_arcs
    from longwall.kernels.cpu.homomorphisms.tables import sum_neighbours as sum_neighbours
    from longwall.kernels.cpu.homomorphisms.wheels import wheel_counter as wheel_counter
    from longwall.kernels.cpu.kcliques.bitmaps import clique_counter as clique_counter
    from longwall.kernels.cpu.kcliques.large import large_clique_counter as large_clique_counter
    from longwall.kernels.cpu.kcliques.leaves import clique_leaf_counter as clique_leaf_counter
    from longwall.kernels.cpu.kcliques.leaves import clique_vertex_counter as clique_vertex_counter
    from longwall.kernels.cpu.kcliques.tables import tabled_clique_counter as tabled_clique_counter
    from longwall.kernels.cpu.label_rows import rows_by_label as rows_by_label
    from longwall.kernels.cpu.local_counts.arc_diamonds import arc_diamond_counter as arc_diamond_counter
    from longwall.kernels.cpu.local_counts.arc_triangles import arc_triangles as arc_triangles
    from longwall.kernels.cpu.local_counts.edges import edge_counter as edge_counter
    from longwall.kernels.cpu.local_counts.four_cycles import column_cycle_counter as column_cycle_counter
    from longwall.kernels.cpu.local_counts.four_cycles import four_cycle_counter as four_cycle_counter
    from longwall.kernels.cpu.local_counts.motifs import motif_counter as motif_counter
    from longwall.kernels.cpu.local_counts.motifs import orbit_counter as orbit_counter
    from longwall.kernels.cpu.local_counts.orbits import orbit_homomorphism_counter as orbit_homomorphism_counter
    from longwall.kernels.cpu.local_counts.triangles import triangle_counter as triangle_counter
    from longwall.kernels.cpu.local_counts.triangles import triangle_vertex_counter as triangle_vertex_counter
    from longwall.kernels.cpu.maximal_cliques.finders import maximal_clique_counter as maximal_clique_counter
    from longwall.kernels.cpu.maximal_cliques.finders import maximal_clique_lister as maximal_clique_lister
    from longwall.kernels.cpu.maximal_cliques.finders import (
        maximal_clique_vertex_counter as maximal_clique_vertex_counter,
    )
    from longwall.kernels.cpu.maximal_cliques.order import degeneracy_order as degeneracy_order
    from longwall.kernels.cpu.page_bytes import bytes_per_page as bytes_per_page
    from longwall.kernels.cpu.search.edge_extension import edge_extender as edge_extender
    from longwall.kernels.cpu.search.search import searcher as searcher
    from longwall.kernels.cpu.sorting.sorters import chunk_sorter as chunk_sorter
    from longwall.kernels.cpu.sorting.sorters import run_merger as run_merger
    from longwall.kernels.cpu.step_rate import steps_per_second as steps_per_second
else:
    __getattr__ = lazy_table(__name__)
