// How a token is drawn from the weights of a row, which are at most 1: what the processor and a GPU share.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

constexpr int64_t kDrawnPiece = 1024;  // weights that are added up together

inline int64_t drawn_pieces(int64_t num_classes) { return (num_classes + kDrawnPiece - 1) / kDrawnPiece; }

struct Restriction {
  float temperature;  // 0: the likeliest token
  int64_t top_k;      // 0: all
  double top_p;
};

// A weight as a whole number: sums of these are exact, so their order does not matter.
TROUPE_INLINE uint64_t units_of(float weight) { return static_cast<uint64_t>(weight * 0x1p40f); }

// Whether units reach a share of all.
TROUPE_INLINE bool reach(uint64_t units, uint64_t all, double share) {
  return static_cast<double>(units) >= static_cast<double>(all) * share;
}

// The first token at which the cumulative weight passes `uniform` of the total. sums: the weight of each piece.
TROUPE_INLINE int64_t token_at(double uniform, const float* weights, int64_t num_classes, const float* sums) {
  double remaining = 0.0;
  for (int64_t piece = 0; piece * kDrawnPiece < num_classes; piece++) remaining += sums[piece];
  remaining *= uniform;
  int64_t chosen = 0;  // rounding may leave a rest after the last weight
  for (int64_t first = 0; first < num_classes; first += kDrawnPiece) {
    const double sum = sums[first / kDrawnPiece];
    if (sum == 0.0) continue;
    const bool ends = remaining < sum;
    const int64_t last = first + kDrawnPiece < num_classes ? first + kDrawnPiece : num_classes;
    for (int64_t i = ends ? first : last - 1; ends ? i < last : i >= first; i += ends ? 1 : -1) {
      if (weights[i] == 0.0f) continue;
      chosen = i;
      if (!ends) break;  // the last of a piece that is passed
      remaining -= weights[i];
      if (remaining < 0.0) return i;
    }
    if (ends) return chosen;
    remaining -= sum;
  }
  return chosen;
}

}  // namespace troupe
