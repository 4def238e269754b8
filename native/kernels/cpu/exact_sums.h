// Sums of squares whose bits do not depend on the order of the additions, so that slices of a parameter may be summed
// anywhere and joined in any order. Demmel and Nguyen 2015, "Parallel Reproducible Summation", with two bins: given a bound on
// the total, each term is cut into a multiple of a coarse unit, a multiple of a fine unit, and a rest that is dropped.
// Sums of multiples are exact. What is dropped of n terms is below n 2^-74 of the bound.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cpu/isa.h"

namespace troupe {

class ExactBins {
 public:
  // `bound` is at least the sum of all terms, which are not negative, and of fewer than 2^31 terms.
  explicit ExactBins(double bound) {
    int exponent = 0;
    std::frexp(bound, &exponent);  // bound <= 2^exponent
    coarse_ = std::ldexp(1.5, exponent + 1);
    fine_ = std::ldexp(1.5, exponent - 21);
  }

  // Adds both parts of a term. The compiler may not simplify (x + y) - y: floating-point addition is not associative.
  TROUPE_INLINE void split(double term, double& coarse, double& fine) const {
    coarse = (coarse_ + term) - coarse_;
    fine = (fine_ + (term - coarse)) - fine_;
  }

  // The numbers that split terms.
  double coarse() const { return coarse_; }
  double fine() const { return fine_; }

 private:
  double coarse_;
  double fine_;
};

}  // namespace troupe
