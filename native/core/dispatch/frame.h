// How JavaScript and native code hand each other numbers.
//
// The frame is one array of doubles per thread. A tensor is its handle, a Scalar, int, float or bool its number, a string
// its interned number; a list is its length and the elements; an optional argument is 1 and the value, or 0 and one number
// that is skipped (an absent list is the 0 alone).
// After a call the frame holds the results in the same form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// The frame itself; JavaScript owns the memory and keeps it alive as long as the environment.
struct Frame {
  double* data = nullptr;
  size_t length = 0;
};

// The strings that operators take ("tanh", "bij,bjk->bik") by number, per thread.
class StringTable {
 public:
  int32_t intern(const std::string& text);
  const std::string& at(double number, const char* op) const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace troupe
