// What stands for the number of new vertices of rows that were not extended.
#pragma once
#include "common.cuh"

constexpr i64 kNotExtended = -1;  // no room for its new vertices
constexpr i64 kTooLong = -2;      // a set on the way may not fit the workspace
