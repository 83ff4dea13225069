// How blocks share the table of a vertex.
#pragma once
#include "common.cuh"

// Return how many rows of a table of `degree` rows one block searches: `most` up to a degree of `whole`; beyond it
// work / degree^2, from `least` to `most`, since the work at a row grows with the degree.
DEVICE int rows_of_part(i64 degree, i64 whole, i64 work, i64 least, i64 most) {
  return static_cast<int>(degree <= whole ? most : min(max(work / (degree * degree), least), most));
}
