// Calls of a program as graphs of its device: a call copies what it is given to memory of its own, and queues a half's operators at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/device/graph.h"
#include "core/programs/program.h"

namespace troupe {

// One call under way at a time.
class CapturedCall {
 public:
  // Captures forward. `keep`: whether `backward` will be called.
  CapturedCall(std::shared_ptr<const Program> program, bool keep);

  // As those of a program. The tensors that they give are fresh.
  Tensors forward(const Tensors& arguments);
  Tensors backward(const Tensors& gradients);

 private:
  const std::shared_ptr<const Program> program_;
  // Declared first, so destroyed last: the tensors below lie in the graphs' memory.
  std::unique_ptr<DeviceGraph> forward_, backward_;
  Tensors arguments_, results_, gradients_, made_;
  Played played_;  // what forward's graph leaves to the capture of backward
};

class CapturedProgram {
 public:
  explicit CapturedProgram(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  // Why it cannot be captured; empty if it can.
  static std::string refusal(const Program& program);

  // A call to be made by graphs; null for one that is to be issued singly: the first, which compiles and allocates what operators keep,
  // and those beyond a number under way. The call is over when nobody else holds it.
  std::shared_ptr<CapturedCall> open(bool keep);

 private:
  const std::shared_ptr<const Program> program_;
  std::vector<std::shared_ptr<CapturedCall>> kept_, alone_;  // with backward, and without
  size_t num_opened_ = 0;
};

}  // namespace troupe
