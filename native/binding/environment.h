// The addon's state for one JavaScript thread. One per environment, never static.
#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/dispatch/frame.h"
#include "core/tensors/handles.h"

namespace troupe {

class ScratchFiles;
class SummedFiles;
class UnderWay;
class AwaitedWorks;
class LateValues;
class ProgramTable;

namespace comm {
class Work;
}

class Environment {
 public:
  Environment() = default;
  // The thread leaves every group it is in: nobody waits for it any longer.
  ~Environment();

  // The one of this thread; exists from the addon's load to the end of the environment.
  static Environment& of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  HandleTable handles;
  StringTable strings;
  Frame frame;

  // Reads the handle in argument `index` of a call.
  static Handle handle(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().Int32Value(); }
  // The tensor that argument `index` names, to be read, or to be written.
  static const at::Tensor& tensor(const Napi::CallbackInfo& info, size_t index, const char* op);
  static const at::Tensor& writable_tensor(const Napi::CallbackInfo& info, size_t index, const char* op);
  // Gives a tensor to JavaScript.
  static Napi::Value give(const Napi::CallbackInfo& info, at::Tensor tensor, Guard guard = {});
  static Napi::Value give(Napi::Env env, at::Tensor tensor, Guard guard = {});

  std::vector<int64_t> communicators;                             // open ones
  std::unordered_map<double, std::shared_ptr<comm::Work>> works;  // not waited for yet, by number
  double next_work = 1;
  std::vector<Napi::ObjectReference> places;  // memory in which memberships tell where they are
  void close_communicator(int64_t number);
  std::unordered_map<double, std::shared_ptr<LateValues>> late_values;  // not asked for yet, by number
  double next_late_value = 1;

  Napi::ObjectReference frame_owner;  // the Float64Array behind `frame`
  Napi::FunctionReference make_error;  // (code, message, fields) => TroupeError
  // Each null until it is first needed.
  std::shared_ptr<UnderWay> under_way;
  std::shared_ptr<UnderWay> off_thread;
  std::shared_ptr<AwaitedWorks> awaited;
  std::shared_ptr<ScratchFiles> scratch;
  std::shared_ptr<SummedFiles> summed;
  std::shared_ptr<ProgramTable> programs;
};

}  // namespace troupe
