// Calls any operator of libtorch's dispatcher with arguments written by JavaScript into the argument frame.
//
// The frame is one array of doubles per thread. A tensor is its handle, a Scalar, int, float or bool its number, a string
// its interned number; a list is its length and the elements; an optional argument is 1 and the value, or 0 and one number
// that is skipped (an absent list is the 0 alone).
// Afterwards the frame holds the results in the same form; the first one is also returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/handles.h"

namespace troupe {

// The strings that operators take ("tanh", "bij,bjk->bik") by number, per thread.
class StringTable {
 public:
  int32_t intern(const std::string& text);
  const std::string& at(double number, const char* op) const;

 private:
  std::vector<std::string> texts_;
};

// The frame itself; JavaScript owns the memory and keeps it alive as long as the environment.
struct Frame {
  double* data = nullptr;
  size_t length = 0;
};

// Runs operator `index`. Returns the first result: a handle, a number, or the count of a Tensor[] whose handles are in the
// frame; 0 when the operator only changes its arguments. Throws CodedError, TENSOR_OP_FAILED for what libtorch refuses,
// naming the op and the ndim, shape and dtype of every tensor argument.
double call_operator(uint32_t index, Frame frame, HandleTable& handles, const StringTable& strings);

}  // namespace troupe
