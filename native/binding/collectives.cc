// Collectives: memberships and works by number. What is differentiable goes through the dispatcher instead.
#include "binding/arguments.h"
#include "binding/awaited_works.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/programs.h"
#include "comm/communicator.h"
#include "core/error.h"

namespace troupe {
namespace {

using comm::Communicator;

// Memory in which a membership tells where it is; the environment keeps it, as it keeps the membership.
std::shared_ptr<comm::StatusSlot> status_slot(const Napi::CallbackInfo& info, size_t memory, size_t group) {
  if (info[memory].IsUndefined()) return nullptr;
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  napi_value buffer;
  size_t offset = 0;
  const napi_status status = napi_get_typedarray_info(info.Env(), info[memory], &type, &length, &data, &buffer, &offset);
  if (status != napi_ok || type != napi_uint8_array || length < comm::kStatusSlotBytes ||
      reinterpret_cast<uintptr_t>(data) % alignof(double) != 0) {
    throw CodedError("COLLECTIVE_ARGUMENT", "[openCommunicator] expected " + std::to_string(comm::kStatusSlotBytes) +
                                                " bytes of aligned memory to tell in, got " + std::to_string(length));
  }
  Environment::of(info.Env()).places.push_back(Napi::Persistent(info[memory].As<Napi::Object>()));
  return std::make_shared<comm::StatusSlot>(data, info[group].As<Napi::String>().Utf8Value());
}

// openCommunicator(backend, name, rank, size, rendezvous, deadlineMs, delayMs, place, group, checked, direct, look): its number.
Napi::Value OpenCommunicator(const Napi::CallbackInfo& info) {
  Communicator::Identity identity;
  identity.backend = info[0].As<Napi::String>();
  identity.name = info[1].As<Napi::String>();
  identity.rank = static_cast<int>(whole_number(info, 2));
  identity.size = static_cast<int>(whole_number(info, 3));
  identity.rendezvous = info[4].As<Napi::String>();
  identity.deadline_ms = whole_number(info, 5);
  identity.delay_ms = info[6].As<Napi::Number>().DoubleValue();
  identity.status_slot = status_slot(info, 7, 8);
  identity.checked = info[9].ToBoolean();
  identity.direct = info[10].ToBoolean();
  comm::Look look;
  if (info[11].IsFunction()) {
    look = [&] {
      const Napi::HandleScope scope(info.Env());
      info[11].As<Napi::Function>().Call({});
    };
  }
  const int64_t opened = comm::open_communicator(std::move(identity), look);
  Environment::of(info.Env()).communicators.push_back(opened);
  return Napi::Number::New(info.Env(), static_cast<double>(opened));
}

Napi::Value CloseCommunicator(const Napi::CallbackInfo& info) {
  Environment::of(info.Env()).close_communicator(whole_number(info, 0));
  return info.Env().Undefined();
}

// abortCommunicator(communicator, reason)
Napi::Value AbortCommunicator(const Napi::CallbackInfo& info) {
  comm::communicator(whole_number(info, 0))->abort(info[1].As<Napi::String>());
  return info.Env().Undefined();
}

// abortGroup(name, reason): how many memberships.
Napi::Value AbortGroup(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(comm::abort_group(info[0].As<Napi::String>(), info[1].As<Napi::String>())));
}

// Sets the operation's input and output from the call's tensors.
void take_tensors(const Napi::CallbackInfo& info, comm::Operation& operation) {
  const char* const name = comm::kind_name(operation.kind);
  if (operation.kind == comm::Kind::barrier) return;
  if (operation.kind != comm::Kind::send) operation.output = Environment::writable_tensor(info, 2, name);
  if (operation.kind != comm::Kind::recv) operation.input = Environment::tensor(info, 3, name);
}

// issueCollective(communicator, kind, output, input, reduction, peer, outputSplits, inputSplits): the work's number, 0 when
// it is complete.
Napi::Value IssueCollective(const Napi::CallbackInfo& info) {
  refuse_in_recording(info.Env(), "a collective of its own");
  comm::Operation operation;
  operation.kind = static_cast<comm::Kind>(whole_number(info, 1));
  take_tensors(info, operation);
  operation.reduction = static_cast<comm::Reduction>(whole_number(info, 4));
  operation.peer = static_cast<int>(whole_number(info, 5));
  operation.output_splits = whole_numbers(info[6]);
  operation.input_splits = whole_numbers(info[7]);
  const comm::WorkPointer work = comm::communicator(whole_number(info, 0))->issue(std::move(operation));
  if (!work) return Napi::Number::New(info.Env(), 0);
  Environment& environment = Environment::of(info.Env());
  environment.works.emplace(environment.next_work, work);
  return Napi::Number::New(info.Env(), environment.next_work++);
}

// waitWork(work): forgets it, whatever comes of it.
Napi::Value WaitWork(const Napi::CallbackInfo& info) {
  auto& works = Environment::of(info.Env()).works;
  const auto node = works.extract(info[0].As<Napi::Number>().DoubleValue());
  if (!node.empty()) node.mapped()->wait();
  return info.Env().Undefined();
}

Napi::Value WorkDone(const Napi::CallbackInfo& info) {
  const auto& works = Environment::of(info.Env()).works;
  const auto found = works.find(info[0].As<Napi::Number>().DoubleValue());
  return Napi::Boolean::New(info.Env(), found == works.end() || found->second->done());
}

// awaitWork(work): a promise of its end, which does not block the event loop. Releases the work, also when it fails.
Napi::Value AwaitWork(const Napi::CallbackInfo& info) {
  return AwaitedWorks::of(info.Env()).await(info.Env(), info[0].As<Napi::Number>().DoubleValue());
}

// gatherRagged(communicator, input): how many tensors; their handles are in the frame behind that count.
Napi::Value GatherRagged(const Napi::CallbackInfo& info) {
  refuse_in_recording(info.Env(), "a collective of its own");
  Environment& environment = Environment::of(info.Env());
  const auto parts = comm::communicator(whole_number(info, 0))->gather_ragged(Environment::tensor(info, 1, "gatherRagged"));
  for (size_t i = 0; i < parts.size(); ++i) environment.frame.data[i + 1] = environment.handles.put(parts[i]);
  return Napi::Number::New(info.Env(), static_cast<double>(parts.size()));
}

}  // namespace

void InitCollectives(Napi::Env env, Napi::Object exports) {
  define<OpenCommunicator>(env, exports, "openCommunicator");
  define<CloseCommunicator>(env, exports, "closeCommunicator");
  define<AbortCommunicator>(env, exports, "abortCommunicator");
  define<AbortGroup>(env, exports, "abortGroup");
  define<IssueCollective>(env, exports, "issueCollective");
  define<WaitWork>(env, exports, "waitWork");
  define<AwaitWork>(env, exports, "awaitWork");
  define<WorkDone>(env, exports, "workDone");
  define<GatherRagged>(env, exports, "gatherRagged");
}

}  // namespace troupe
