#include "core/invariance.h"

#include <utility>

namespace troupe {
namespace {

thread_local bool invariant = false;

}  // namespace

bool is_invariant() { return invariant; }

bool set_invariant(bool wanted) { return std::exchange(invariant, wanted); }

}  // namespace troupe
