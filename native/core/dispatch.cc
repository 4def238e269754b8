#include "core/dispatch.h"

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cmath>
#include <limits>

#include "core/describe.h"
#include "core/error.h"
#include "core/operators.h"
#include "core/placeholders.h"

namespace troupe {
namespace {

using Kind = ArgumentType::Kind;

constexpr double kMaxExact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers

// Reads the frame from left to right. Never past its end: a wrong length in it is our own mistake, but must not be UB.
class FrameReader {
 public:
  FrameReader(Frame frame, const char* op) : at_(frame.data), end_(frame.data + frame.length), op_(op) {}

  double number() {
    if (at_ == end_) throw CodedError("NATIVE_MISMATCH", std::string("[") + op_ + "] the argument frame is too short");
    return *at_++;
  }
  // 0 for whatever cannot be a handle, so that the table says what is wrong.
  Handle handle() {
    const double value = number();
    return value >= 1 && value <= std::numeric_limits<Handle>::max() ? static_cast<Handle>(value) : 0;
  }
  int64_t integer() {
    const double value = number();
    if (!(std::trunc(value) == value && std::abs(value) <= kMaxExact)) {
      throw CodedError("TENSOR_ARGUMENT", std::string("[") + op_ + "] an integer was expected: " + std::to_string(value));
    }
    return static_cast<int64_t>(value);
  }
  bool flag() { return number() != 0; }

 private:
  const double* at_;
  const double* end_;
  const char* op_;
};

struct Call {
  const OperatorPlan& plan;
  HandleTable& handles;
  const StringTable& strings;
  FrameReader reader;
};

// A JavaScript number is an int to ATen when it has no fraction, so that integer tensors stay integer under `add(x, 2)`.
c10::IValue scalar(double value) {
  const bool whole = std::trunc(value) == value && std::abs(value) <= kMaxExact && !(value == 0 && std::signbit(value));
  return whole ? c10::IValue(static_cast<int64_t>(value)) : c10::IValue(value);
}

const at::Tensor& tensor(Call& call, const ArgumentStep& step) {
  const Handle handle = call.reader.handle();
  return step.writes ? call.handles.get_writable(handle, call.plan.name.c_str(), step.name.c_str())
                     : call.handles.get(handle, call.plan.name.c_str(), step.name.c_str());
}

c10::IValue tensor_list(Call& call, const ArgumentStep& step, int64_t length) {
  c10::List<at::Tensor> list;
  list.reserve(length);
  for (int64_t i = 0; i < length; ++i) list.push_back(tensor(call, step));
  return list;
}

c10::IValue element(Call& call, const ArgumentStep& step) {
  if (call.reader.flag()) return tensor(call, step);
  call.reader.number();
  return {};
}

c10::IValue optional_tensor_list(Call& call, const ArgumentStep& step, int64_t length) {
  c10::impl::GenericList list(c10::OptionalType::create(c10::TensorType::get()));
  list.reserve(length);
  for (int64_t i = 0; i < length; ++i) {
    list.push_back(element(call, step));
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
  throw CodedError("TENSOR_OP_CHANGED", "[" + call.plan.name + "] argument " + step.name +
                                            " has a type that the argument frame cannot carry");
}

c10::IValue list(Call& call, const ArgumentStep& step) {
  const int64_t length = call.reader.integer();
  switch (step.type.kind) {
    case Kind::tensor:
      return step.type.optional_elements ? optional_tensor_list(call, step, length) : tensor_list(call, step, length);
    case Kind::integer: return number_list<int64_t>(length, [&] { return call.reader.integer(); });
    case Kind::floating: return number_list<double>(length, [&] { return call.reader.number(); });
    case Kind::boolean: return number_list<bool>(length, [&] { return call.reader.flag(); });
    default: unsupported(call, step);
  }
}

c10::IValue value(Call& call, const ArgumentStep& step) {
  if (step.type.optional && !call.reader.flag()) {
    if (!step.type.list) call.reader.number();
    return {};
  }
  if (step.type.list) return list(call, step);
  switch (step.type.kind) {
    case Kind::tensor: return tensor(call, step);
    case Kind::scalar: return scalar(call.reader.number());
    case Kind::integer: return call.reader.integer();
    case Kind::floating: return call.reader.number();
    case Kind::boolean: return call.reader.flag();
    case Kind::string: return call.strings.at(call.reader.number(), call.plan.name.c_str());
    case Kind::other: break;
  }
  unsupported(call, step);
}

void refuse_unknown(const Call& call, const ArgumentStep& step) {
  throw CodedError("TENSOR_OP_CHANGED", "[" + call.plan.name + "] argument " + step.name +
                                            " must keep its default: the installed libtorch's operator has no such argument");
}

void push_arguments(Call& call, torch::jit::Stack& stack) {
  for (const ArgumentStep& step : call.plan.steps) {
    switch (step.action) {
      case ArgumentStep::Action::pass: stack.push_back(value(call, step)); break;
      case ArgumentStep::Action::fill: stack.push_back(step.fallback); break;
      case ArgumentStep::Action::must_be_default:
        if (value(call, step) != step.fallback) refuse_unknown(call, step);
        break;
    }
  }
}

// The rights that views of an argument inherit: a view of a shared tensor is as read-only as the tensor itself.
Guard inherited(const Call& call, Frame frame) {
  return call.plan.returns_views ? call.handles.guard(static_cast<Handle>(frame.data[0])) : Guard{};
}

class ResultWriter {
 public:
  ResultWriter(Frame frame, HandleTable& handles, const Guard& guard) : frame_(frame), handles_(handles), guard_(guard) {}

  void write(c10::IValue&& result) {
    if (result.isTensor()) {
      push(handles_.put(std::move(result).toTensor(), guard_));
    } else if (result.isTensorList()) {
      const auto list = result.toTensorVector();
      push(static_cast<double>(list.size()));
      for (const auto& element : list) push(handles_.put(element, guard_));
    } else if (result.isBool()) {
      push(result.toBool() ? 1 : 0);
    } else {
      push(result.toScalar().toDouble());
    }
  }
  double first() const { return written_ == 0 ? 0 : frame_.data[0]; }

 private:
  void push(double number) {
    if (written_ == frame_.length) throw CodedError("TENSOR_FRAME_FULL", "[tensor] too many results for the argument frame");
    frame_.data[written_++] = number;
  }
  Frame frame_;
  HandleTable& handles_;
  const Guard& guard_;
  size_t written_ = 0;
};

double collect_results(const Call& call, Frame frame, torch::jit::Stack& stack) {
  const Guard guard = inherited(call, frame);
  ResultWriter writer(frame, call.handles, guard);
  const size_t first = stack.size() - call.plan.keeps_output.size();
  for (size_t i = 0; i < call.plan.keeps_output.size(); ++i) {
    if (call.plan.keeps_output[i]) writer.write(std::move(stack[first + i]));
  }
  return writer.first();
}

// Our own kernels begin their messages with "[their_name] ", which the operator's name in front would repeat.
std::string without_own_name(const OperatorPlan& plan, const std::string& reason) {
  const std::string own = "[" + plan.name.substr(plan.name.rfind(':') + 1) + "] ";
  return reason.rfind(own, 0) == 0 ? reason.substr(own.size()) : reason;
}

// Which tensors the failed call was given, for the error text. Reads the frame again: the stack is gone by then.
[[noreturn]] void fail(const OperatorPlan& plan, Frame frame, HandleTable& handles, const StringTable& strings,
                       const std::string& reason) {
  Call call{plan, handles, strings, FrameReader(frame, plan.name.c_str())};
  std::string operands;
  for (const ArgumentStep& step : plan.steps) {
    if (step.action == ArgumentStep::Action::fill) continue;
    const std::string text = describe_argument(step.name, value(call, step));
    if (!text.empty()) operands += (operands.empty() ? "" : ", ") + text;
  }
  throw CodedError("TENSOR_OP_FAILED", "[" + plan.name + "] " + without_own_name(plan, reason) + (operands.empty() ? "" : ": got " + operands),
                   {{"op", plan.name}, {"operands", operands}});
}

// Empty between calls; kept for its capacity.
torch::jit::Stack& thread_stack() {
  thread_local torch::jit::Stack stack;
  stack.clear();
  return stack;
}

}  // namespace

int32_t StringTable::intern(const std::string& text) {
  texts_.push_back(text);
  return static_cast<int32_t>(texts_.size()) - 1;
}

const std::string& StringTable::at(double number, const char* op) const {
  if (!(number >= 0 && number < static_cast<double>(texts_.size()))) {
    throw CodedError("NATIVE_MISMATCH", std::string("[") + op + "] no such interned string");
  }
  return texts_[static_cast<size_t>(number)];
}

double call_operator(uint32_t index, Frame frame, HandleTable& handles, const StringTable& strings) {
  const OperatorPlan& plan = operator_plan(index);
  Call call{plan, handles, strings, FrameReader(frame, plan.name.c_str())};
  torch::jit::Stack& stack = thread_stack();
  try {
    push_arguments(call, stack);
    if (meets_placeholder(stack)) {
      call_on_placeholders(plan.op, plan.writes, stack);
    } else {
      plan.op.callBoxed(stack);
    }
  } catch (const CodedError&) {
    stack.clear();
    throw;
  } catch (const std::exception& error) {
    stack.clear();
    fail(plan, frame, handles, strings, plain_message(error));
  }
  const double result = collect_results(call, frame, stack);
  stack.clear();
  return result;
}

}  // namespace troupe
