// The parts of a vertex that are blocks' work.
#pragma once
#include "common.cuh"

// Return the rows of a table of `degree` rows that one block searches: `most` up to a degree of `whole`, beyond as many
// as have about the same work, which grows with the square of the degree.
DEVICE int rows_of_part(i64 degree, i64 whole, i64 work, i64 least, i64 most) {
  return static_cast<int>(degree <= whole ? most : min(max(work / (degree * degree), least), most));
}
