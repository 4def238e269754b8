// The meaning of each operator's argument frame, compiled once per process from the operator's own schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// The type of one argument, the same for every libtorch version (SymInt is int, ScalarType is int).
struct ArgumentType {
  enum class Kind : uint8_t { tensor, scalar, integer, floating, boolean, string, other };
  Kind kind = Kind::other;
  bool optional = false;
  bool list = false;
  bool optional_elements = false;

  bool operator==(const ArgumentType& o) const {
    return kind == o.kind && optional == o.optional && list == o.list && optional_elements == o.optional_elements;
  }
};

// One step on the way from the frame to the operator's stack.
struct ArgumentStep {
  enum class Action : uint8_t {
    pass,           // read from the frame, push
    fill,           // not in the frame: push the installed operator's own default
    place,          // where a new tensor is to be: push the thread's device
    must_be_default // in the frame, but the installed operator is older and knows it not: only its default may stand there
  };
  Action action;
  std::string name;
  ArgumentType type;
  bool writes = false;       // the operator changes this tensor
  c10::IValue fallback;      // for fill and must_be_default
};

struct OperatorPlan {
  c10::OperatorHandle op;
  std::string name;  // as errors print it: "matmul", "troupe::adamw_"
  std::vector<ArgumentStep> steps;
  std::vector<bool> keeps_output;  // false: the output is an argument changed in place, which JavaScript already holds
  bool returns_views = false;      // of the first argument
  bool writes = false;             // changes an argument in place
  bool own = false;                // Troupe's, not libtorch's
};

// Tells the process which operators JavaScript will call: their schemas, in the order of their indices. The first call
// decides; a later one with another table throws CodedError NATIVE_MISMATCH.
void define_operators(const std::vector<std::string>& schemas);

// The plan of an operator, compiled at its first use. Lives for ever; safe from every thread. Throws TENSOR_OP_MISSING
// when this libtorch has no such operator, TENSOR_OP_CHANGED when its schema cannot be called the way ours says.
const OperatorPlan& operator_plan(uint32_t index);

// All schemas registered under a namespace ("aten", "troupe"), one text each, unsorted.
std::vector<std::string> registered_schemas(const std::string& name_space);

}  // namespace troupe
