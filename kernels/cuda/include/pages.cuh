// Where lists of a paged adjacency are read: in it, over the host link, or in copies of its pages on the device.
#pragma once

#include "common.cuh"

// The graph, for kernels that look lists up themselves.
struct Rows {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  const i64* places;  // as for place_of_list
};

// How many arcs the copy of a list lies behind its place in the adjacency; 0 where there is none, or not in one
// piece. `places` as in pages.Pages; the list is not empty.
DEVICE i64 copy_of_list(const i64* places, i64 begin, i64 length) {
  const int bits = static_cast<int>(places[0]);
  const i64 last = (begin + length - 1) >> bits;
  i64 page = begin >> bits;
  i64 shift = places[1 + page];
  while (shift && page < last) {
    if (places[1 + ++page] != shift) shift = 0;
  }
  return shift;
}

// Where a list is read, counted from the adjacency's first arc; without `places` (null) in the adjacency.
DEVICE i64 place_of_list(const i64* places, i64 begin, i64 length) {
  return places && length > 0 ? begin + copy_of_list(places, begin, length) : begin;
}
