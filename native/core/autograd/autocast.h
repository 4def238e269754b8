// Automatic mixed precision of this thread: libtorch's autocast for the thread's device, without the cache of casts. That cache is one
// for the process, and would make one rank's results depend on when another rank ends its pass.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Optional.h>

namespace troupe {

// Tensors without memory have no autocast in libtorch. Where a thread meters what they take they borrow that of a kind of device
// that this process never has.
constexpr c10::DispatchKey kMeteredAutocast = c10::DispatchKey::AutocastHPU;

// The dtype that operators of this thread cast to now; nothing where autocast is off.
c10::optional<at::ScalarType> autocast_dtype();

// Turns autocast on, to `dtype`, or off. @returns what it was before
c10::optional<at::ScalarType> set_autocast(c10::optional<at::ScalarType> dtype);

}  // namespace troupe
