// The one exception of Troupe's own native code. binding/ turns it into a TroupeError of the same code.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

class CodedError : public std::runtime_error {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // `code`: one of src/errors/troupe-error.ts; `message`: "[where] expected X, got Y (what to do)"; `fields`: the operands, as text.
  CodedError(const char* code, const std::string& message, Fields fields = {})
      : std::runtime_error(message), code(code), fields(std::move(fields)) {}

  const char* const code;
  const Fields fields;
};

}  // namespace troupe
