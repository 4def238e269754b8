// Programs of blocks: lists come through the frame, written as for operators.
#include "binding/programs.h"

#include <unordered_map>
#include <utility>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/error.h"
#include "core/programs/captured.h"
#include "core/programs/program.h"

namespace troupe {

// The programs of one thread, by number.
class ProgramTable {
 public:
  static ProgramTable& of(Napi::Env env) {
    auto& programs = Environment::of(env).programs;
    if (!programs) programs = std::make_shared<ProgramTable>();
    return *programs;
  }

  struct Call {
    std::shared_ptr<const Program> program;
    Played played;
    std::shared_ptr<CapturedCall> captured;  // null: operators are issued one by one
  };
  std::unordered_map<uint32_t, std::unique_ptr<Recording>> recordings;
  std::unordered_map<uint32_t, std::shared_ptr<Program>> programs;
  std::unordered_map<uint32_t, std::unique_ptr<CapturedProgram>> captured;  // of programs that are
  std::unordered_map<uint32_t, Call> calls;
  Napi::ObjectReference refusal;  // of the present recording
  uint32_t next = 1;
};

namespace {

class FrameLists {
 public:
  explicit FrameLists(Napi::Env env) : environment_(Environment::of(env)) {}

  Tensors tensors() {
    Tensors list(length());
    for (at::Tensor& tensor : list) tensor = environment_.handles.get(static_cast<Handle>(number()), "program");
    return list;
  }
  // Only where they are in the graph is asked: their memory may be away.
  Tensors identities() {
    Tensors list(length());
    for (at::Tensor& tensor : list) tensor = environment_.handles.identity(static_cast<Handle>(number()), "program");
    return list;
  }
  Tensors with_gaps() {
    Tensors list(length());
    for (at::Tensor& tensor : list) {
      const bool present = number() != 0;
      const double handle = number();
      if (present) tensor = environment_.handles.get(static_cast<Handle>(handle), "program");
    }
    return list;
  }
  std::vector<Tensors> many() {
    std::vector<Tensors> lists(length());
    for (Tensors& list : lists) list = tensors();
    return lists;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> list(length());
    for (int64_t& each : list) each = static_cast<int64_t>(number());
    return list;
  }

 private:
  size_t length() { return static_cast<size_t>(number()); }
  double number() { return environment_.frame.data[cursor_++]; }

  const Environment& environment_;
  size_t cursor_ = 0;
};

// A handle for each in the frame, 0 where there is none.
void give_all(Napi::Env env, Tensors tensors) {
  Environment& environment = Environment::of(env);
  for (size_t i = 0; i < tensors.size(); i++) {
    environment.frame.data[i] = tensors[i].defined() ? environment.handles.put(std::move(tensors[i])) : 0;
  }
}

uint32_t number_at(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().Uint32Value(); }

template <class Map>
auto& named(Map& map, uint32_t number) {
  const auto found = map.find(number);
  if (found == map.end()) throw CodedError("NATIVE_MISMATCH", "[program] expected the number of a program, got " + std::to_string(number));
  return found->second;
}

// canRecord(): whether this libtorch lets programs be recorded.
Napi::Value CanRecord(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), can_record_programs()); }

// beginRecording(): of arguments, parameters and lists of tensors in the frame; its number.
Napi::Value BeginRecording(const Napi::CallbackInfo& info) {
  if (Recording::present() != nullptr) throw CodedError("NATIVE_MISMATCH", "[program] expected one recording at a time, got a second");
  ProgramTable& table = ProgramTable::of(info.Env());
  FrameLists lists(info.Env());
  Tensors arguments = lists.tensors();
  const Tensors parameters = lists.identities();
  auto recording = std::make_unique<Recording>(std::move(arguments), parameters, lists.many());
  recording->begin();
  table.refusal.Reset();
  const uint32_t number = table.next++;
  table.recordings.emplace(number, std::move(recording));
  return Napi::Number::New(info.Env(), number);
}

// endForward(recording): with the lists results and draws in the frame. Why it was refused: an error, or a text; "" if it was not.
Napi::Value EndForward(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  Recording& recording = *named(table.recordings, number_at(info, 0));
  FrameLists lists(info.Env());
  const Tensors results = lists.tensors();
  recording.end_forward(results, lists.numbers());
  if (!table.refusal.IsEmpty()) return std::exchange(table.refusal, Napi::ObjectReference()).Value();
  return Napi::String::New(info.Env(), recording.refusal());
}

// dropRecording(recording)
Napi::Value DropRecording(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  table.recordings.erase(number_at(info, 0));
  table.refusal.Reset();
  return info.Env().Undefined();
}

// Ends a recording. The program's number, or why there is none: an error, or a text.
Napi::Value take_program(Napi::Env env, ProgramTable& table, uint32_t number) {
  const std::unique_ptr<Recording> recording = std::move(named(table.recordings, number));
  table.recordings.erase(number);
  if (!table.refusal.IsEmpty()) return std::exchange(table.refusal, Napi::ObjectReference()).Value();
  if (!recording->refusal().empty()) return Napi::String::New(env, recording->refusal());
  const uint32_t made = table.next++;
  table.programs.emplace(made, recording->program());
  return Napi::Number::New(env, made);
}

// endProgram(recording): ends one of forward alone.
Napi::Value EndProgram(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  named(table.recordings, number_at(info, 0))->finish();
  return take_program(info.Env(), table, number_at(info, 0));
}

// beginBackward(recording): with the list of gradients of the results in the frame, with gaps.
Napi::Value BeginBackward(const Napi::CallbackInfo& info) {
  if (Recording::present() != nullptr) throw CodedError("NATIVE_MISMATCH", "[program] expected one recording at a time, got a second");
  named(ProgramTable::of(info.Env()).recordings, number_at(info, 0))->begin_backward(FrameLists(info.Env()).with_gaps());
  return info.Env().Undefined();
}

// endBackward(recording): with the list of what it gave in the frame, with gaps.
Napi::Value EndBackward(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  named(table.recordings, number_at(info, 0))->end_backward(FrameLists(info.Env()).with_gaps());
  return take_program(info.Env(), table, number_at(info, 0));
}

// programDifference(one, other): in words, "" for none.
Napi::Value ProgramDifference(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  return Napi::String::New(info.Env(), named(table.programs, number_at(info, 0))->difference(*named(table.programs, number_at(info, 1))));
}

// improveProgram(program, fast): once it is sure, and before its first call.
Napi::Value ImproveProgram(const Napi::CallbackInfo& info) {
  named(ProgramTable::of(info.Env()).programs, number_at(info, 0))->improve(info[1].ToBoolean());
  return info.Env().Undefined();
}

// captureProgram(program): its calls from now on are graphs of their device; why not, "" if they are, and on the host, which has none.
Napi::Value CaptureProgram(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  const auto& program = named(table.programs, number_at(info, 0));
  if (program->device.is_cpu()) return Napi::String::New(info.Env(), "");
  const std::string refusal = CapturedProgram::refusal(*program);
  if (refusal.empty()) table.captured.emplace(number_at(info, 0), std::make_unique<CapturedProgram>(program));
  return Napi::String::New(info.Env(), refusal);
}

// describeProgram(program): { forward, backward }, each { numIssued, operators }: how many are issued singly, and a line for each
// instruction.
Napi::Value DescribeProgram(const Napi::CallbackInfo& info) {
  const auto& program = named(ProgramTable::of(info.Env()).programs, number_at(info, 0));
  const auto half = [&](bool backward) {
    const std::vector<std::string> lines = program->describe(backward);
    Napi::Array operators = Napi::Array::New(info.Env(), lines.size());
    for (uint32_t i = 0; i < lines.size(); i++) operators.Set(i, lines[i]);
    Napi::Object made = Napi::Object::New(info.Env());
    made.Set("numIssued", static_cast<double>(program->num_issued[backward]));
    made.Set("operators", operators);
    return made;
  };
  Napi::Object made = Napi::Object::New(info.Env());
  made.Set("forward", half(false));
  made.Set("backward", half(true));
  return made;
}

// programFits(program): whether it holds for the list of arguments in the frame.
Napi::Value ProgramFits(const Napi::CallbackInfo& info) {
  const auto& program = named(ProgramTable::of(info.Env()).programs, number_at(info, 0));
  return Napi::Boolean::New(info.Env(), program->fits(FrameLists(info.Env()).tensors()));
}

// playForward(program, purpose): on the lists arguments, streams, and which results shall ask for gradients, and on lists of tensors; the
// frame then holds the results, unless it is for backward alone. Returns the call's number, 0 if nothing is kept of it.
Napi::Value PlayForward(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  ProgramTable::Call call{named(table.programs, number_at(info, 0)), {}, {}};
  const auto purpose = static_cast<Purpose>(number_at(info, 1));
  FrameLists lists(info.Env());
  const Tensors arguments = lists.tensors();
  call.played.late = lists.numbers();
  const std::vector<int64_t> leaves = lists.numbers();
  call.played.lists = lists.many();
  const auto captured = table.captured.find(number_at(info, 0));
  if (captured != table.captured.end()) call.captured = captured->second->open(purpose != Purpose::results);
  Tensors results = call.captured ? call.captured->forward(arguments) : call.program->forward(arguments, purpose, call.played);
  if (purpose != Purpose::backward) {
    for (size_t i = 0; i < results.size(); i++) {
      if (leaves[i] != 0) results[i].set_requires_grad(true);
    }
    give_all(info.Env(), std::move(results));
  }
  if (purpose == Purpose::results) return Napi::Number::New(info.Env(), 0);
  const uint32_t number = table.next++;
  table.calls.emplace(number, std::move(call));
  return Napi::Number::New(info.Env(), number);
}

// playBackward(call): from the lists in the frame: gradients; flat tensors that gradients may be written to; for each its gradient's
// index and the element it begins at. The frame then holds a gradient for each that was recorded, 0 for none. The call's values are
// released. Whether the program takes gradients that lie so; otherwise nothing was computed.
Napi::Value PlayBackward(const Napi::CallbackInfo& info) {
  ProgramTable& table = ProgramTable::of(info.Env());
  ProgramTable::Call call = std::move(named(table.calls, number_at(info, 0)));
  table.calls.erase(number_at(info, 0));
  FrameLists lists(info.Env());
  const Tensors gradients = lists.tensors();
  std::vector<GradientPlace> places;
  for (at::Tensor& flat : lists.tensors()) places.push_back({0, std::move(flat), 0});
  const std::vector<int64_t> numbers = lists.numbers();
  for (size_t i = 0; i < places.size(); i++) {
    places[i].gradient = static_cast<size_t>(numbers[2 * i]);
    places[i].begin = numbers[2 * i + 1];
  }
  const bool takes = call.program->takes(gradients);
  if (takes) give_all(info.Env(), call.captured ? call.captured->backward(gradients) : call.program->backward(gradients, call.played, places));
  return Napi::Boolean::New(info.Env(), takes);
}

// dropCall(call)
Napi::Value DropCall(const Napi::CallbackInfo& info) {
  ProgramTable::of(info.Env()).calls.erase(number_at(info, 0));
  return info.Env().Undefined();
}

// dropProgram(program)
Napi::Value DropProgram(const Napi::CallbackInfo& info) {
  ProgramTable::of(info.Env()).programs.erase(number_at(info, 0));
  ProgramTable::of(info.Env()).captured.erase(number_at(info, 0));
  return info.Env().Undefined();
}

Napi::Value HasTileProducts(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), has_tile_products()); }

// setTileProducts(flag): what it was before, in this thread.
Napi::Value SetTileProducts(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), set_tile_products(info[0].ToBoolean()));
}

}  // namespace

void note_refusal(Napi::Env env) {
  const Recording* const recording = Recording::present();
  ProgramTable& table = ProgramTable::of(env);
  if (recording->refusal().empty() || !table.refusal.IsEmpty()) return;
  table.refusal = Napi::Persistent(Napi::Error::New(env, recording->refusal()).Value());
}

void refuse_in_recording(Napi::Env env, const char* reason) {
  Recording* const recording = Recording::present();
  if (recording == nullptr) return;
  recording->refuse(reason);
  note_refusal(env);
}

void InitPrograms(Napi::Env env, Napi::Object exports) {
  define<CanRecord>(env, exports, "canRecord");
  define<BeginRecording>(env, exports, "beginRecording");
  define<EndForward>(env, exports, "endForward");
  define<DropRecording>(env, exports, "dropRecording");
  define<EndProgram>(env, exports, "endProgram");
  define<BeginBackward>(env, exports, "beginBackward");
  define<EndBackward>(env, exports, "endBackward");
  define<ProgramDifference>(env, exports, "programDifference");
  define<ImproveProgram>(env, exports, "improveProgram");
  define<CaptureProgram>(env, exports, "captureProgram");
  define<DescribeProgram>(env, exports, "describeProgram");
  define<ProgramFits>(env, exports, "programFits");
  define<PlayForward>(env, exports, "playForward");
  define<PlayBackward>(env, exports, "playBackward");
  define<DropCall>(env, exports, "dropCall");
  define<DropProgram>(env, exports, "dropProgram");
  define<HasTileProducts>(env, exports, "hasTileProducts");
  define<SetTileProducts>(env, exports, "setTileProducts");
}

}  // namespace troupe
