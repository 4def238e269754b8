// Autocast of tensors without memory, whose bytes a meter counts: libtorch has none for them.
#pragma once

namespace troupe {

// Before a thread meters. Idempotent; never taken back.
void install_metered_casts();

}  // namespace troupe
