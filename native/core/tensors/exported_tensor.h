// Tensors between processes: what a ref becomes on its way, and the loans that reach into other processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensors/refs.h"

namespace troupe {

// A ref on its way to another process: plain data. The memory waits under `name` until it is taken over, or released.
struct ExportedTensor {
  std::string name;
  std::string owner;
  int32_t dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset;  // in elements
  bool read_only;
  int32_t slot;  // of the segment, where the sender waits for the tensor to be released; -1: it does not
};

// Takes a ref out of this process's table and makes its memory ready to be taken over elsewhere. Memory that is not shared is
// copied once. Throws TENSOR_REF_GONE, SHARED_MEMORY_FULL.
ExportedTensor export_ref(RefId ref);

// Takes the memory over, and puts a ref to it into this process's table. Throws TENSOR_REF_GONE the second time.
RefId import_ref(const ExportedTensor& exported);

// Gives up what a ref has become that left this process and was taken by nobody; false when there is none.
bool release_exported(RefId ref);

// The same for all tensors that were on their way to an actor that died, from any sender; returns their number.
int64_t release_exported_to(const std::string& owner);

// Gives back the rights of those tensors whose readers in other processes have released them; and, where `all` is asked for,
// whose readers have ended, which takes a system call for each.
void settle_exports(bool all);

}  // namespace troupe
