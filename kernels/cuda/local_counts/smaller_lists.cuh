// The lists of smaller neighbours, each where it is read.
#pragma once
#include "pages.cuh"

// A list of smaller neighbours.
struct List {
  const u32* entries;
  int length;
};

DEVICE List list_of(const Rows& graph, u32 vertex) {
  const i64 row = graph.indptr[vertex], length = graph.split[vertex] - row;
  return {graph.indices + place_of_list(graph.places, row, length), static_cast<int>(length)};
}

DEVICE List list_of_lane(const List& list, int lane) {
  return {reinterpret_cast<const u32*>(__shfl_sync(kAll, reinterpret_cast<u64>(list.entries), lane)),
          __shfl_sync(kAll, list.length, lane)};
}
