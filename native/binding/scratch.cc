// Scratch files: tensors are written to the disk and read back without blocking JavaScript.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/under_way.h"
#include "core/tensors/offloaded.h"
#include "core/error.h"
#include "io/scratch_file.h"

namespace troupe {

// A transfer that is waited for by blocking.
struct AwaitedTransfer {
  explicit AwaitedTransfer(at::Tensor used) : tensor(std::move(used)) {}

  const at::Tensor tensor;  // whose memory it uses
  std::mutex mutex;
  std::condition_variable wake;
  bool ended = false;
  std::exception_ptr error;

  void end(std::exception_ptr with) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      ended = true;
      error = std::move(with);
    }
    wake.notify_all();
  }
  // Throws what the transfer threw; CodedError SCRATCH_FILE at the deadline.
  void wait(std::chrono::milliseconds deadline) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!wake.wait_for(lock, deadline, [this] { return ended; })) {
      throw CodedError("SCRATCH_FILE", "[scratch] expected the disk to answer within " + std::to_string(deadline.count()) +
                                           " ms, got nothing (see whether it is sound)");
    }
    if (error) std::rethrow_exception(error);
  }
};

// The scratch files of one JavaScript thread.
class ScratchFiles {
 public:
  static ScratchFiles& of(Napi::Env env) {
    auto& files = Environment::of(env).scratch;
    if (!files) files = std::make_shared<ScratchFiles>();
    return *files;
  }

  int32_t open(const std::string& directory, int64_t size_bytes) {
    files_.emplace(next_id_, std::make_shared<const ScratchFile>(directory, size_bytes));
    return next_id_++;
  }

  const std::shared_ptr<const ScratchFile>& at(int32_t id) const {
    const auto found = files_.find(id);
    if (found == files_.end()) throw CodedError("TENSOR_ARGUMENT", "[scratch] expected an open file, got one that was closed");
    return found->second;
  }

  // Transfers in flight keep the file open until they end.
  void close(int32_t id) { files_.erase(id); }

  Napi::Promise transfer(Napi::Env env, int32_t id, at::Tensor tensor, int64_t offset_bytes, bool write) {
    check(*at(id), tensor, offset_bytes);
    auto* memory = static_cast<char*>(tensor.data_ptr());
    Transfer transfer = ScratchFile::transfer(at(id), write, memory, tensor.nbytes(), offset_bytes, nullptr);
    const auto result = [tensor = std::move(tensor)](Napi::Env env) { return env.Undefined(); };
    return UnderWay::of(env).begin(env, transfer.num_pieces, std::move(transfer.move), result);
  }

  // Begins a transfer that `await` waits for; its number.
  int32_t begin(Napi::Env env, int32_t id, at::Tensor tensor, int64_t offset_bytes, bool write) {
    check(*at(id), tensor, offset_bytes);
    auto* memory = static_cast<char*>(tensor.data_ptr());
    const size_t size_bytes = tensor.nbytes();
    const auto awaited = std::make_shared<AwaitedTransfer>(std::move(tensor));
    UnderWay::of(env).threads().submit(
        ScratchFile::transfer(at(id), write, memory, size_bytes, offset_bytes,
                              [awaited](std::exception_ptr error) { awaited->end(std::move(error)); }));
    awaited_.emplace(next_id_, awaited);
    return next_id_++;
  }

  void await(int32_t transfer, std::chrono::milliseconds deadline) {
    const auto found = awaited_.find(transfer);
    if (found == awaited_.end()) throw CodedError("TENSOR_ARGUMENT", "[scratch] expected a transfer under way, got one that has ended");
    const std::shared_ptr<AwaitedTransfer> awaited = found->second;
    awaited_.erase(found);
    awaited->wait(deadline);
  }

 private:
  static void check(const ScratchFile& file, const at::Tensor& tensor, int64_t offset_bytes) {
    constexpr auto kPage = ScratchFile::kPageBytes;
    const bool paged = tensor.is_cpu() && tensor.is_contiguous() && reinterpret_cast<uintptr_t>(tensor.data_ptr()) % kPage == 0 &&
                       tensor.nbytes() % kPage == 0 && offset_bytes % static_cast<int64_t>(kPage) == 0;
    if (!paged) {
      throw CodedError("TENSOR_ARGUMENT",
                       "[scratch] expected full pages of 4,096 bytes in memory and in the file, got " + std::to_string(tensor.nbytes()) +
                           " bytes from byte " + std::to_string(offset_bytes) + " on (see pageAligned)");
    }
    const auto end = offset_bytes + static_cast<int64_t>(tensor.nbytes());
    if (offset_bytes < 0 || end > file.size_bytes()) {
      throw CodedError("TENSOR_ARGUMENT", "[scratch] expected a place within the file's " + std::to_string(file.size_bytes()) +
                                              " bytes, got bytes " + std::to_string(offset_bytes) + " to " +
                                              std::to_string(end));
    }
  }

  std::unordered_map<int32_t, std::shared_ptr<const ScratchFile>> files_;
  std::unordered_map<int32_t, std::shared_ptr<AwaitedTransfer>> awaited_;
  int32_t next_id_ = 1;
};

namespace {

// pageAligned(dtype, numel): a new 1-D tensor that begins on a page.
Napi::Value PageAligned(const Napi::CallbackInfo& info) {
  const auto dtype = static_cast<at::ScalarType>(info[0].As<Napi::Number>().Int32Value());
  const int64_t bytes = info[1].As<Napi::Number>().Int64Value() * static_cast<int64_t>(c10::elementSize(dtype));
  constexpr auto kPage = static_cast<int64_t>(ScratchFile::kPageBytes);
  const at::Tensor roomy = at::empty({bytes + kPage}, at::TensorOptions().dtype(at::kByte));
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(roomy.data_ptr()) % kPage);
  return Environment::give(info, roomy.narrow(0, (kPage - past) % kPage, bytes).view(dtype));
}

// openScratch(directory, sizeBytes): its number.
Napi::Value OpenScratch(const Napi::CallbackInfo& info) {
  const int32_t id = ScratchFiles::of(info.Env()).open(info[0].As<Napi::String>(), info[1].As<Napi::Number>().Int64Value());
  return Napi::Number::New(info.Env(), id);
}

// scratchIsDirect(file): whether it passes the page cache by.
Napi::Value ScratchIsDirect(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), ScratchFiles::of(info.Env()).at(info[0].As<Napi::Number>().Int32Value())->direct());
}

// readScratch(file, handle, offsetBytes): a promise; the tensor may be anything until then.
Napi::Value ReadScratch(const Napi::CallbackInfo& info) {
  return ScratchFiles::of(info.Env())
      .transfer(info.Env(), info[0].As<Napi::Number>().Int32Value(), Environment::writable_tensor(info, 1, "scratch"),
                info[2].As<Napi::Number>().Int64Value(), false);
}

// writeScratch(file, handle, offsetBytes): a promise; the tensor must not change until then.
Napi::Value WriteScratch(const Napi::CallbackInfo& info) {
  return ScratchFiles::of(info.Env())
      .transfer(info.Env(), info[0].As<Napi::Number>().Int32Value(), Environment::tensor(info, 1, "scratch"),
                info[2].As<Napi::Number>().Int64Value(), true);
}

// beginScratch(file, handle, offsetBytes, write): the transfer's number, for awaitScratch.
Napi::Value BeginScratch(const Napi::CallbackInfo& info) {
  const bool write = info[3].ToBoolean();
  const at::Tensor& tensor =
      write ? Environment::tensor(info, 1, "scratch") : Environment::writable_tensor(info, 1, "scratch");
  return Napi::Number::New(info.Env(),
                           ScratchFiles::of(info.Env())
                               .begin(info.Env(), info[0].As<Napi::Number>().Int32Value(), tensor, info[2].As<Napi::Number>().Int64Value(), write));
}

// awaitScratch(transfer, deadlineMs): blocks until it is through.
Napi::Value AwaitScratch(const Napi::CallbackInfo& info) {
  ScratchFiles::of(info.Env())
      .await(info[0].As<Napi::Number>().Int32Value(), std::chrono::milliseconds(info[1].As<Napi::Number>().Int64Value()));
  return info.Env().Undefined();
}

// The handles in the frame, `count` of them.
std::vector<Handle> handles_in_frame(const Napi::CallbackInfo& info) {
  const Frame& frame = Environment::of(info.Env()).frame;
  std::vector<Handle> handles(info[0].As<Napi::Number>().Uint32Value());
  for (size_t i = 0; i < handles.size(); ++i) handles[i] = static_cast<Handle>(frame.data[i]);
  return handles;
}

// giveMemoryUp(count): of the tensors in the frame; whether nothing else uses it.
Napi::Value GiveMemoryUp(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), give_memory_up(Environment::of(info.Env()).handles, handles_in_frame(info)));
}

// takeMemoryBack(count)
Napi::Value TakeMemoryBack(const Napi::CallbackInfo& info) {
  take_memory_back(Environment::of(info.Env()).handles, handles_in_frame(info));
  return info.Env().Undefined();
}

Napi::Value CloseScratch(const Napi::CallbackInfo& info) {
  ScratchFiles::of(info.Env()).close(info[0].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

}  // namespace

void InitScratch(Napi::Env env, Napi::Object exports) {
  define<PageAligned>(env, exports, "pageAligned");
  define<OpenScratch>(env, exports, "openScratch");
  define<ScratchIsDirect>(env, exports, "scratchIsDirect");
  define<ReadScratch>(env, exports, "readScratch");
  define<WriteScratch>(env, exports, "writeScratch");
  define<BeginScratch>(env, exports, "beginScratch");
  define<AwaitScratch>(env, exports, "awaitScratch");
  define<GiveMemoryUp>(env, exports, "giveMemoryUp");
  define<TakeMemoryBack>(env, exports, "takeMemoryBack");
  define<CloseScratch>(env, exports, "closeScratch");
}

}  // namespace troupe
