#include "core/dispatch/frame.h"

#include "core/error.h"

namespace troupe {

int32_t StringTable::intern(const std::string& text) {
  texts_.push_back(text);
  return static_cast<int32_t>(texts_.size()) - 1;
}

const std::string& StringTable::at(double number, const char* op) const {
  if (!(number >= 0 && number < static_cast<double>(texts_.size()))) {
    throw CodedError("NATIVE_MISMATCH", std::string("[") + op + "] expected the number of an interned string, got another");
  }
  return texts_[static_cast<size_t>(number)];
}

}  // namespace troupe
