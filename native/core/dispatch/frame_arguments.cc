#include "core/dispatch/frame_arguments.h"

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include <cmath>
#include <limits>

#include "core/dispatch/describe.h"
#include "core/device/device.h"
#include "core/error.h"

namespace troupe {
namespace {

using Kind = ArgumentType::Kind;

constexpr double kMaxExact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers

// Reads the frame from left to right. Never past its end: a wrong length in it is our own mistake, but must not be UB.
class FrameReader {
 public:
  FrameReader(Frame frame, const char* op) : at_(frame.data), end_(frame.data + frame.length), op_(op) {}

  double number() {
    if (at_ == end_) refuse_end();
    return *at_++;
  }
  // 0 for whatever cannot be a handle, so that the table says what is wrong.
  Handle handle() {
    const double value = number();
    return value >= 1 && value <= std::numeric_limits<Handle>::max() ? static_cast<Handle>(value) : 0;
  }
  int64_t integer(const std::string& argument) {
    const double value = number();
    if (!(std::trunc(value) == value && std::abs(value) <= kMaxExact)) refuse(argument, value);
    return static_cast<int64_t>(value);
  }
  bool flag() { return number() != 0; }

 private:
  // Apart from who reads, which stays small enough to be inlined.
  [[noreturn]] void refuse(const std::string& argument, double value) const {
    // What JavaScript leaves out is no number either.
    const std::string got = std::isnan(value) ? "none" : std::to_string(value);
    throw CodedError("TENSOR_ARGUMENT", std::string("[") + op_ + "] expected " + argument + " to be a whole number, got " + got);
  }
  [[noreturn]] void refuse_end() const {
    throw CodedError("NATIVE_MISMATCH", std::string("[") + op_ + "] expected all arguments in the frame, got a shorter one");
  }

  const double* at_;
  const double* end_;
  const char* op_;
};

// A call and how far its frame has been read.
struct Reading {
  const Call& call;
  FrameReader frame;
};

// A JavaScript number is an int to ATen when it has no fraction, so that integer tensors stay integer under `add(x, 2)`.
c10::IValue scalar(double value) {
  const bool whole = std::trunc(value) == value && std::abs(value) <= kMaxExact && !(value == 0 && std::signbit(value));
  return whole ? c10::IValue(static_cast<int64_t>(value)) : c10::IValue(value);
}

const at::Tensor& tensor(Reading& in, const ArgumentStep& step) {
  const Handle handle = in.frame.handle();
  const HandleTable& handles = in.call.handles;
  const char* op = in.call.plan.name.c_str();
  return step.writes ? handles.get_writable(handle, op, step.name.c_str()) : handles.get(handle, op, step.name.c_str());
}

c10::IValue tensor_list(Reading& in, const ArgumentStep& step, int64_t length) {
  c10::List<at::Tensor> list;
  list.reserve(length);
  for (int64_t i = 0; i < length; ++i) list.push_back(tensor(in, step));
  return list;
}

c10::IValue element(Reading& in, const ArgumentStep& step) {
  if (in.frame.flag()) return tensor(in, step);
  in.frame.number();
  return {};
}

c10::IValue optional_tensor_list(Reading& in, const ArgumentStep& step, int64_t length) {
  c10::impl::GenericList list(c10::OptionalType::create(c10::TensorType::get()));
  list.reserve(length);
  for (int64_t i = 0; i < length; ++i) {
    list.push_back(element(in, step));
  }
  return list;
}

template <typename T, typename Read>
c10::IValue number_list(int64_t length, Read read) {
  c10::List<T> list;
  list.reserve(length);
  for (int64_t i = 0; i < length; ++i) list.push_back(read());
  return list;
}

[[noreturn]] void unsupported(const Call& call, const ArgumentStep& step) {
  throw CodedError("TENSOR_OP_CHANGED", "[" + call.plan.name + "] expected argument " + step.name +
                                            " to be of a type that the argument frame carries, got another");
}

c10::IValue list(Reading& in, const ArgumentStep& step) {
  const int64_t length = in.frame.integer(step.name);
  switch (step.type.kind) {
    case Kind::tensor:
      return step.type.optional_elements ? optional_tensor_list(in, step, length) : tensor_list(in, step, length);
    case Kind::integer: return number_list<int64_t>(length, [&] { return in.frame.integer(step.name); });
    case Kind::floating: return number_list<double>(length, [&] { return in.frame.number(); });
    case Kind::boolean: return number_list<bool>(length, [&] { return in.frame.flag(); });
    default: unsupported(in.call, step);
  }
}

c10::IValue value(Reading& in, const ArgumentStep& step) {
  if (step.type.optional && !in.frame.flag()) {
    if (!step.type.list) in.frame.number();
    return {};
  }
  if (step.type.list) return list(in, step);
  switch (step.type.kind) {
    case Kind::tensor: return tensor(in, step);
    case Kind::scalar: return scalar(in.frame.number());
    case Kind::integer: return in.frame.integer(step.name);
    case Kind::floating: return in.frame.number();
    case Kind::boolean: return in.frame.flag();
    case Kind::string: return in.call.strings.at(in.frame.number(), in.call.plan.name.c_str());
    case Kind::other: break;
  }
  unsupported(in.call, step);
}

void refuse_unknown(const Call& call, const ArgumentStep& step) {
  throw CodedError("TENSOR_OP_CHANGED", "[" + call.plan.name + "] expected argument " + step.name +
                                            " to keep its default, got another (the installed libtorch's operator has no such argument)");
}

}  // namespace

void push_arguments(const Call& call, torch::jit::Stack& stack) {
  Reading in{call, FrameReader(call.frame, call.plan.name.c_str())};
  for (const ArgumentStep& step : call.plan.steps) {
    switch (step.action) {
      case ArgumentStep::Action::pass: stack.push_back(value(in, step)); break;
      case ArgumentStep::Action::fill: stack.push_back(step.fallback); break;
      case ArgumentStep::Action::place: stack.push_back(default_device()); break;
      case ArgumentStep::Action::must_be_default:
        if (value(in, step) != step.fallback) refuse_unknown(call, step);
        break;
    }
  }
}

std::string describe_operands(const Call& call) {
  Reading in{call, FrameReader(call.frame, call.plan.name.c_str())};
  std::string operands;
  for (const ArgumentStep& step : call.plan.steps) {
    if (step.action == ArgumentStep::Action::fill || step.action == ArgumentStep::Action::place) continue;
    const std::string text = describe_argument(step.name, value(in, step));
    if (!text.empty()) operands += (operands.empty() ? "" : ", ") + text;
  }
  return operands;
}

}  // namespace troupe
