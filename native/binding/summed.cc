// Files with checksums: bytes of tensors and typed arrays are written to the disk and read back without blocking JavaScript.
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "binding/arguments.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/typed_array.h"
#include "binding/under_way.h"
#include "core/dispatch/describe.h"
#include "core/error.h"
#include "io/crc32c.h"
#include "io/summed_file.h"

namespace troupe {
namespace {

[[noreturn]] void refuse_file(const std::string& expected, const std::string& got) {
  throw CodedError("TENSOR_ARGUMENT", "[file] expected " + expected + ", got " + got);
}

// The memory behind an argument, a tensor's handle or a typed array, kept alive with it.
struct Memory {
  char* bytes;
  int64_t size_bytes;
  std::shared_ptr<void> owner;

  static Memory of(const Napi::CallbackInfo& info, size_t index, bool written) {
    if (!info[index].IsNumber()) return of_array(info[index]);
    auto tensor = std::make_shared<at::Tensor>(written ? Environment::writable_tensor(info, index, "file")
                                                       : Environment::tensor(info, index, "file"));
    if (!tensor->is_contiguous() || !tensor->device().is_cpu()) refuse_file("a contiguous tensor in host memory", describe_tensor(*tensor));
    return {static_cast<char*>(tensor->data_ptr()), static_cast<int64_t>(tensor->nbytes()), tensor};
  }

 private:
  static Memory of_array(const Napi::Value& value) {
    const at::Tensor view = view_of_typed_array(value, at::kByte);
    auto array = std::make_shared<Napi::ObjectReference>(Napi::Persistent(value.As<Napi::Object>()));
    return {static_cast<char*>(view.data_ptr()), static_cast<int64_t>(view.nbytes()), array};
  }
};

}  // namespace

// The files of one JavaScript thread, by number.
class SummedFiles {
 public:
  struct Open {
    std::shared_ptr<SummedWriter> writer;  // one of the two
    std::shared_ptr<const SummedReader> reader;
    bool appending = false;
  };

  static SummedFiles& of(Napi::Env env) {
    auto& files = Environment::of(env).summed;
    if (!files) files = std::make_shared<SummedFiles>();
    return *files;
  }

  int32_t put(Open file) {
    files_.emplace(next_id_, std::move(file));
    return next_id_++;
  }

  Open& writer(const Napi::CallbackInfo& info) {
    const auto found = files_.find(info[0].As<Napi::Number>().Int32Value());
    if (found == files_.end() || !found->second.writer) refuse_file("a file that is being written", "one that was closed");
    if (found->second.appending) refuse_file("one append after the other", "a second beside one under way");
    return found->second;
  }

  const std::shared_ptr<const SummedReader>& reader(const Napi::CallbackInfo& info) const {
    const auto found = files_.find(info[0].As<Napi::Number>().Int32Value());
    if (found == files_.end() || !found->second.reader) refuse_file("an open file", "one that was closed");
    return found->second.reader;
  }

  // Says that an append has ended, unless the file was dropped meanwhile.
  void appended(int32_t id) {
    const auto found = files_.find(id);
    if (found != files_.end()) found->second.appending = false;
  }

  // Reads and writes in flight keep the file open until they end.
  void drop(int32_t id) { files_.erase(id); }

 private:
  std::unordered_map<int32_t, Open> files_;
  int32_t next_id_ = 1;
};

namespace {

// createSummed(path, chunkBytes, expectedBytes): a promise of its number.
Napi::Value CreateSummed(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  const int64_t chunk_bytes = whole_number(info, 1);
  const int64_t expected_bytes = whole_number(info, 2);
  const auto made = std::make_shared<std::shared_ptr<SummedWriter>>();
  return UnderWay::of(info.Env()).begin(
      info.Env(), 1,
      [made, path, chunk_bytes, expected_bytes](size_t) {
        *made = std::make_shared<SummedWriter>(path, chunk_bytes, expected_bytes);
      },
      [made](Napi::Env env) -> Napi::Value { return Napi::Number::New(env, SummedFiles::of(env).put({*made, nullptr, false})); });
}

// appendSummed(file, handle or array, offsetBytes, sizeBytes): a promise; the bytes must not change until then.
Napi::Value AppendSummed(const Napi::CallbackInfo& info) {
  const int32_t id = info[0].As<Napi::Number>().Int32Value();
  auto& file = SummedFiles::of(info.Env()).writer(info);
  const Memory memory = Memory::of(info, 1, false);
  const int64_t offset = whole_number(info, 2);
  const int64_t size = whole_number(info, 3);
  if (offset < 0 || size < 0 || size > memory.size_bytes - offset) {
    refuse_file("a stretch within " + std::to_string(memory.size_bytes) + " bytes",
                std::to_string(size) + " bytes from byte " + std::to_string(offset) + " on");
  }
  const auto writer = file.writer;
  const auto append = writer->begin(memory.bytes + offset, static_cast<size_t>(size));
  file.appending = true;
  const auto owner = memory.owner;
  // After a failure the file stays as if appending: nothing but giving it up makes sense.
  return UnderWay::of(info.Env()).begin(
      info.Env(), append->num_pieces(), [writer, append](size_t piece) { append->write(piece); },
      [id, writer, append, owner](Napi::Env env) {
        writer->end(*append);
        SummedFiles::of(env).appended(id);
        return env.Undefined();
      });
}

// finishSummed(file): a promise of its checksums; the file is on the disk and closed then.
Napi::Value FinishSummed(const Napi::CallbackInfo& info) {
  auto& files = SummedFiles::of(info.Env());
  const auto writer = files.writer(info).writer;
  files.drop(info[0].As<Napi::Number>().Int32Value());
  return UnderWay::of(info.Env()).begin(
      info.Env(), 1, [writer](size_t) { writer->finish(); },
      [writer](Napi::Env env) -> Napi::Value {
        const auto& sums = writer->sums();
        Napi::Uint32Array array = Napi::Uint32Array::New(env, sums.size());
        std::copy(sums.begin(), sums.end(), array.Data());
        return array;
      });
}

// openSummed(path): a promise of { file, sizeBytes }.
Napi::Value OpenSummed(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  const auto opened = std::make_shared<std::shared_ptr<const SummedReader>>();
  return UnderWay::of(info.Env()).begin(
      info.Env(), 1, [opened, path](size_t) { *opened = std::make_shared<const SummedReader>(path); },
      [opened](Napi::Env env) -> Napi::Value {
        Napi::Object facts = Napi::Object::New(env);
        facts.Set("sizeBytes", static_cast<double>((*opened)->size_bytes()));
        facts.Set("file", SummedFiles::of(env).put({nullptr, *opened, false}));
        return facts;
      });
}

// readSummed(file, [fileBegin, memoryBegin, sizeBytes, ...], handle or array, chunkBytes, sums, what): a promise of the bytes
// that were read of the file; the memory may hold anything until then.
Napi::Value ReadSummed(const Napi::CallbackInfo& info) {
  const auto reader = SummedFiles::of(info.Env()).reader(info);
  const auto numbers = info[1].As<Napi::Float64Array>();
  std::vector<SummedReader::Stretch> stretches(numbers.ElementLength() / 3);
  const double* number = numbers.Data();
  for (auto& stretch : stretches) {
    stretch = {static_cast<int64_t>(number[0]), static_cast<int64_t>(number[1]), static_cast<int64_t>(number[2])};
    number += 3;
  }
  const Memory memory = Memory::of(info, 2, true);
  const auto sums = info[4].As<Napi::Uint32Array>();
  const auto read = reader->begin(std::move(stretches), memory.bytes, memory.size_bytes, whole_number(info, 3),
                                  std::vector<uint32_t>(sums.Data(), sums.Data() + sums.ElementLength()), info[5].As<Napi::String>());
  const auto owner = memory.owner;
  return UnderWay::of(info.Env()).begin(
      info.Env(), read->num_pieces(), [reader, read](size_t piece) { read->read(piece); },
      [read, owner](Napi::Env env) -> Napi::Value { return Napi::Number::New(env, static_cast<double>(read->read_bytes())); });
}

// dropSummed(file)
Napi::Value DropSummed(const Napi::CallbackInfo& info) {
  SummedFiles::of(info.Env()).drop(info[0].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

// crc32c(array, before, byTable)
Napi::Value Crc32c(const Napi::CallbackInfo& info) {
  const at::Tensor bytes = view_of_typed_array(info[0], at::kByte);
  const uint32_t before = info[1].As<Napi::Number>().Uint32Value();
  const auto sum = info[2].ToBoolean() ? detail::crc32c_by_table : crc32c;
  return Napi::Number::New(info.Env(), sum(bytes.data_ptr(), bytes.nbytes(), before));
}

}  // namespace

void InitSummed(Napi::Env env, Napi::Object exports) {
  define<CreateSummed>(env, exports, "createSummed");
  define<AppendSummed>(env, exports, "appendSummed");
  define<FinishSummed>(env, exports, "finishSummed");
  define<OpenSummed>(env, exports, "openSummed");
  define<ReadSummed>(env, exports, "readSummed");
  define<DropSummed>(env, exports, "dropSummed");
  define<Crc32c>(env, exports, "crc32c");
}

}  // namespace troupe
