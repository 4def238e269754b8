#include "core/pin_library.h"

#include <dlfcn.h>

namespace troupe {

void pin_library() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&pin_library), &self) != 0) {
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

}  // namespace troupe
