// Automatic mixed precision of this thread: libtorch's autocast for what it computes on, without its cache of casts, which is one for
// the whole process and would make what one rank computes depend on when another ends its pass.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Optional.h>

namespace troupe {

// Tensors without memory have no autocast in libtorch. Where a thread meters what they take they borrow that of a kind of device
// that this process never has.
constexpr c10::DispatchKey kMeteredAutocast = c10::DispatchKey::AutocastHPU;

// What operators cast to in this thread now; nothing where autocast is off.
c10::optional<at::ScalarType> autocast_dtype();

// Turns autocast on, to `dtype`, or off. @returns what it was before
c10::optional<at::ScalarType> set_autocast(c10::optional<at::ScalarType> dtype);

}  // namespace troupe
