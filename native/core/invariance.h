// Whether the rows of a forward are computed each on its own: in orders that depend on nothing but the row, so that its bits are
// the same in any batch, at any place, with a cache or without. A choice of the calling thread.
#pragma once

namespace troupe {

bool is_invariant();

// Returns what it was before.
bool set_invariant(bool invariant);

// Backward, which makes gradients of all rows together, is free to take the quickest way, and so is what only they are made from.
class Variant {
 public:
  Variant() : before_(set_invariant(false)) {}
  ~Variant() { set_invariant(before_); }
  Variant(const Variant&) = delete;
  Variant& operator=(const Variant&) = delete;

 private:
  bool before_;
};

}  // namespace troupe
