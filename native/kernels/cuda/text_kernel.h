// Kernels that are compiled from text while the program runs. Without CUDA's compiler there are none.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/launch.h"

namespace troupe::cuda {

class TextKernel {
 public:
  virtual ~TextKernel() = default;

  // Why none can be made for a device; empty if they can.
  static std::string refusal(int device);

  // The kernel `name` of a text, for the current device, which is `device`. Throws std::runtime_error where the text does not compile.
  static std::shared_ptr<const TextKernel> of(const std::string& text, const char* name, int device);

  // Queues it on the current device. `arguments`: a pointer to each.
  virtual void launch(Stream stream, unsigned blocks, unsigned threads, void** arguments) const = 0;
};

}  // namespace troupe::cuda
