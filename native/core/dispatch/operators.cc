#include "core/dispatch/operators.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <sstream>

#include "core/error.h"
#include "core/torch_version.h"

namespace troupe {
namespace {

// Read by every thread without a lock once `ready` is set; filled under the mutex, never freed: a worker may be calling
// while another one ends.
struct Registry {
  std::mutex mutex;
  std::vector<std::string> schemas;
  std::unique_ptr<std::atomic<const OperatorPlan*>[]> plans;
  std::atomic<bool> ready{false};
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

ArgumentType::Kind kind_of(const c10::Type& type) {
  using Kind = ArgumentType::Kind;
  switch (type.kind()) {
    case c10::TypeKind::TensorType: return Kind::tensor;
    case c10::TypeKind::NumberType: return Kind::scalar;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return Kind::integer;
    case c10::TypeKind::FloatType: return Kind::floating;
    case c10::TypeKind::BoolType: return Kind::boolean;
    case c10::TypeKind::StringType: return Kind::string;
    default: return Kind::other;
  }
}

ArgumentType argument_type(c10::TypePtr type) {
  ArgumentType result;
  if (const auto optional = type->cast<c10::OptionalType>()) {
    result.optional = true;
    type = optional->getElementType();
  }
  if (const auto list = type->cast<c10::ListType>()) {
    result.list = true;
    type = list->getElementType();
    if (const auto element = type->cast<c10::OptionalType>()) {
      result.optional_elements = true;
      type = element->getElementType();
    }
  }
  result.kind = kind_of(*type);
  return result;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

std::string display_name(const c10::OperatorName& name) {
  return name.name.rfind("aten::", 0) == 0 ? name.name.substr(6) : name.name;
}

[[noreturn]] void changed(const std::string& op, const std::string& what, const c10::FunctionSchema& actual) {
  std::ostringstream message;
  message << "[" << op << "] expected " << what << ", got libtorch " << TORCH_VERSION << ", which has " << actual
          << " (use another libtorch, or generate the operators again)";
  throw CodedError("TENSOR_OP_CHANGED", message.str(), {{"op", op}, {"torch", TORCH_VERSION}});
}

ArgumentStep pass(const c10::Argument& argument) {
  return {ArgumentStep::Action::pass, argument.name(), argument_type(argument.type()), writes(argument), {}};
}

// An operator that makes a tensor of no other; one that is given a tensor stays on that one's device.
bool makes_from_nothing(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments()) {
    if (argument_type(argument.type()).kind == ArgumentType::Kind::tensor) return false;
  }
  return true;
}

ArgumentStep fill(const std::string& op, const c10::Argument& argument, const c10::FunctionSchema& actual) {
  if (!argument.default_value().has_value()) {
    changed(op, "no argument " + argument.name() + " without a default", actual);
  }
  const bool places = argument.name() == "device" && makes_from_nothing(actual);
  const auto action = places ? ArgumentStep::Action::place : ArgumentStep::Action::fill;
  return {action, argument.name(), {}, false, *argument.default_value()};
}

ArgumentStep must_be_default(const std::string& op, const c10::Argument& argument, const c10::FunctionSchema& actual) {
  if (!argument.default_value().has_value()) changed(op, "an argument " + argument.name(), actual);
  return {ArgumentStep::Action::must_be_default, argument.name(), argument_type(argument.type()), false,
          *argument.default_value()};
}

bool has_argument(const c10::FunctionSchema& schema, const std::string& name) {
  return schema.argumentIndexWithName(name).has_value();
}

// Whether an argument we write as `ours` can be read as `installed`. Numbers can where an int or float became a Scalar
// in a later libtorch; a fraction for an int is refused when it comes.
bool takes(const ArgumentType& installed, ArgumentType ours) {
  using Kind = ArgumentType::Kind;
  if (ours.kind == Kind::scalar && (installed.kind == Kind::integer || installed.kind == Kind::floating)) ours.kind = installed.kind;
  return installed == ours;
}

// Merges our argument list with that of the installed operator: both keep their order, each may lack some of the other's.
std::vector<ArgumentStep> merge(const std::string& op, const c10::FunctionSchema& ours, const c10::FunctionSchema& actual) {
  std::vector<ArgumentStep> steps;
  size_t next = 0;
  for (const auto& argument : ours.arguments()) {
    if (!has_argument(actual, argument.name())) {
      steps.push_back(must_be_default(op, argument, actual));
      continue;
    }
    while (next < actual.arguments().size() && actual.arguments()[next].name() != argument.name()) {
      steps.push_back(fill(op, actual.arguments()[next++], actual));
    }
    if (next == actual.arguments().size()) changed(op, "argument " + argument.name() + " in its place", actual);
    const auto& installed = actual.arguments()[next++];
    if (!takes(argument_type(installed.type()), argument_type(argument.type()))) {
      changed(op, "argument " + argument.name() + " of type " + argument.type()->str(), actual);
    }
    steps.push_back(pass(installed));
  }
  while (next < actual.arguments().size()) steps.push_back(fill(op, actual.arguments()[next++], actual));
  return steps;
}

// Operators that return views take the viewed tensor first; the few that view a list are not held to be views. The schema of type_as
// does not say that it may return its argument.
bool returns_views(const std::vector<ArgumentStep>& steps, const c10::FunctionSchema& actual) {
  if (actual.name() == "aten::type_as") return true;
  const bool tensor_first = !steps.empty() && steps[0].action == ArgumentStep::Action::pass &&
                            steps[0].type == ArgumentType{ArgumentType::Kind::tensor};
  for (const auto& output : actual.returns()) {
    if (output.alias_info() != nullptr && !output.alias_info()->isWrite()) return tensor_first;
  }
  return false;
}

std::unique_ptr<OperatorPlan> compile(const std::string& text) {
  const c10::FunctionSchema ours = torch::jit::parseSchema(text);
  const std::string name = display_name(ours.operator_name());
  const auto op = c10::Dispatcher::singleton().findSchema(ours.operator_name());
  if (!op) {
    throw CodedError("TENSOR_OP_MISSING",
                     "[" + name + "] expected operator " + c10::toString(ours.operator_name()) + ", got libtorch " +
                         TORCH_VERSION + ", which has none (use a newer one)",
                     {{"op", name}, {"torch", TORCH_VERSION}});
  }
  const c10::FunctionSchema& actual = op->schema();
  auto plan = std::make_unique<OperatorPlan>(OperatorPlan{*op, name, merge(name, ours, actual), {}});
  if (ours.returns().size() != actual.returns().size()) changed(name, std::to_string(ours.returns().size()) + " results", actual);
  for (const ArgumentStep& step : plan->steps) plan->writes = plan->writes || step.writes;
  for (const auto& output : actual.returns()) plan->keeps_output.push_back(!writes(output));
  plan->returns_views = returns_views(plan->steps, actual);
  plan->own = name.rfind("troupe::", 0) == 0;
  return plan;
}

}  // namespace

void define_operators(const std::vector<std::string>& schemas) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!all.ready) {
    all.schemas = schemas;
    all.plans = std::make_unique<std::atomic<const OperatorPlan*>[]>(schemas.size());
    all.ready = true;
  } else if (all.schemas != schemas) {
    throw CodedError("NATIVE_MISMATCH", "[native] expected every thread to define the same operators, got others (two versions of "
                                        "troupe are loaded in this process: install one)");
  }
}

const OperatorPlan& operator_plan(uint32_t index) {
  Registry& all = registry();
  if (!all.ready.load(std::memory_order_acquire) || index >= all.schemas.size()) {
    throw CodedError("NATIVE_MISMATCH", "[native] expected the number of an operator, got " + std::to_string(index));
  }
  if (const OperatorPlan* plan = all.plans[index].load(std::memory_order_acquire)) return *plan;
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (const OperatorPlan* plan = all.plans[index].load(std::memory_order_relaxed)) return *plan;
  const OperatorPlan* plan = compile(all.schemas[index]).release();
  all.plans[index].store(plan, std::memory_order_release);
  return *plan;
}

std::vector<std::string> registered_schemas(const std::string& name_space) {
  std::vector<std::string> result;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind(name_space + "::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) continue;
    std::ostringstream text;
    text << op->schema();
    result.push_back(text.str());
  }
  return result;
}

}  // namespace troupe
