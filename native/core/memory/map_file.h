// Files as tensors, without reading them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace troupe {

// A 1-D tensor over `numel` elements of the file from byte `offset_bytes` on. The tensor owns the mapping; pages are read
// when touched; writing to it is a fault, so its handle must be read-only. Throws CodedError FILE_UNREADABLE,
// or FILE_TOO_SHORT when the file ends before the last element.
at::Tensor map_file(const std::string& path, at::ScalarType dtype, int64_t numel, int64_t offset_bytes);

}  // namespace troupe
