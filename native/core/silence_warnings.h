// While it lives, libtorch's warnings of this thread are dropped: for what is done knowingly.
#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "core/torch_version.h"

namespace troupe {

class SilenceWarnings {
 private:
  struct Deaf final : c10::WarningHandler {
#if TROUPE_TORCH_AT_LEAST(2, 0)
    void process(const c10::Warning&) override {}
#else
    void process(const c10::SourceLocation&, const std::string&, bool) override {}
#endif
  };

#if TROUPE_TORCH_AT_LEAST(2, 0)
  using Guard = c10::WarningUtils::WarningHandlerGuard;
#else
  using Guard = c10::Warning::WarningHandlerGuard;
#endif

  Deaf deaf_;
  Guard guard_{&deaf_};
};

}  // namespace troupe
