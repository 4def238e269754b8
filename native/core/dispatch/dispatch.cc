#include "core/dispatch/dispatch.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include "core/dispatch/describe.h"
#include "core/error.h"
#include "core/dispatch/frame_arguments.h"
#include "core/dispatch/operators.h"
#include "core/dispatch/placeholders.h"
#include "core/programs/recording.h"

namespace troupe {
namespace {

// The rights that views of an argument inherit: a view of a shared tensor is as read-only as the tensor itself.
const Guard& inherited(const Call& call) {
  static const Guard plain;
  return call.plan.returns_views ? call.handles.guard(static_cast<Handle>(call.frame.data[0])) : plain;
}

class ResultWriter {
 public:
  ResultWriter(Frame frame, HandleTable& handles, const Guard& guard) : frame_(frame), handles_(handles), guard_(guard) {}

  void write(c10::IValue&& result) {
    if (result.isTensor()) {
      push(handles_.put(std::move(result).toTensor(), guard_));
    } else if (result.isTensorList()) {
      const auto list = result.toTensorVector();
      // Before any handle is made, which nobody would release.
      refuse_beyond(written_ + 1 + list.size());
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
    refuse_beyond(written_ + 1);
    frame_.data[written_++] = number;
  }
  void refuse_beyond(size_t length) const {
    if (length <= frame_.length) return;
    throw CodedError("TENSOR_FRAME_FULL", "[tensor] expected results that fit the argument frame, got more than " + std::to_string(frame_.length));
  }
  Frame frame_;
  HandleTable& handles_;
  const Guard& guard_;
  size_t written_ = 0;
};

double collect_results(const Call& call, torch::jit::Stack& stack) {
  const Guard& guard = inherited(call);
  ResultWriter writer(call.frame, call.handles, guard);
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

// The stack is gone by then: the operands are read off the frame again. Our own sentences say what came; libtorch's do not.
[[noreturn]] void fail(const Call& call, const std::string& reason) {
  const std::string operands = describe_operands(call);
  const std::string sentence = without_own_name(call.plan, reason);
  const bool is_own = sentence.rfind("expected ", 0) == 0;
  const std::string given = operands.empty() ? "" : is_own ? " (given " + operands + ")" : ": got " + operands;
  throw CodedError("TENSOR_OP_FAILED", "[" + call.plan.name + "] " + sentence + given,
                   {{"op", call.plan.name}, {"operands", operands}});
}

// Empty between calls; kept for its capacity.
torch::jit::Stack& thread_stack() {
  thread_local torch::jit::Stack stack;
  stack.clear();
  return stack;
}

}  // namespace

double call_operator(uint32_t index, Frame frame, HandleTable& handles, const StringTable& strings) {
  const OperatorPlan& plan = operator_plan(index);
  const Call call{plan, frame, handles, strings};
  torch::jit::Stack& stack = thread_stack();
  try {
    push_arguments(call, stack);
    if (meets_placeholder(stack)) {
      call_on_placeholders(plan.op, plan.writes, stack);
    } else if (plan.own && Recording::present() != nullptr) {
      Recording::present()->call_own(plan.op, stack);
    } else {
      plan.op.callBoxed(stack);
    }
  } catch (const CodedError&) {
    stack.clear();
    throw;
  } catch (const std::exception& error) {
    stack.clear();
    fail(call, plain_message(error));
  }
  const double result = collect_results(call, stack);
  stack.clear();
  return result;
}

}  // namespace troupe
