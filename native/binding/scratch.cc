// Scratch files: tensors go to the disk and come back while JavaScript goes on.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <exception>
#include <unordered_map>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/error.h"
#include "io/scratch_file.h"
#include "io/transfer_threads.h"

namespace troupe {
namespace {

// Pieces under way at once: enough to keep an NVMe queue from running dry, few enough to cost nothing while they wait.
constexpr int kNumThreads = 8;

// The end of one transfer, on its way back to the thread that asked for it.
struct Ended {
  Napi::Promise::Deferred promise;
  at::Tensor tensor;  // whose memory the transfer used
  std::exception_ptr error;
};

Napi::Value error_of(Napi::Env env, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return error_in_flight(env, "scratch");
  }
}

void settle(Napi::Env env, const Ended& ended) noexcept {
  // A terminated worker refuses every call, also these: then nobody waits any more.
  try {
    if (ended.error) {
      ended.promise.Reject(error_of(env, ended.error));
    } else {
      ended.promise.Resolve(env.Undefined());
    }
  } catch (...) {
  }
}

}  // namespace

// The scratch files of one JavaScript thread, and the threads that move their bytes.
class ScratchFiles {
 public:
  static ScratchFiles& of(Napi::Env env) {
    auto& files = Environment::of(env).scratch;
    if (!files) files = std::make_shared<ScratchFiles>(env);
    return *files;
  }

  explicit ScratchFiles(Napi::Env env) : threads_(std::make_unique<TransferThreads>(kNumThreads)) {
    const Napi::String name = Napi::String::New(env, "scratch");
    napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, come_back, &back_);
    napi_unref_threadsafe_function(env, back_);
    // Made after the way back, so called before it is closed: no thread is left that could still take it.
    env.AddCleanupHook([this] { threads_.reset(); });
  }

  int32_t open(const std::string& directory, int64_t size_bytes) {
    files_.emplace(next_id_, std::make_shared<const ScratchFile>(directory, size_bytes));
    return next_id_++;
  }

  const std::shared_ptr<const ScratchFile>& at(int32_t id) const {
    const auto found = files_.find(id);
    if (found == files_.end()) throw CodedError("TENSOR_ARGUMENT", "[scratch] an open file was expected: it was closed");
    return found->second;
  }

  // What is under way keeps the file open until it is through.
  void close(int32_t id) { files_.erase(id); }

  Napi::Promise transfer(Napi::Env env, int32_t id, at::Tensor tensor, int64_t offset_bytes, bool write) {
    check(*at(id), tensor, offset_bytes);
    const auto ended = std::make_shared<Ended>(Ended{Napi::Promise::Deferred::New(env), std::move(tensor), nullptr});
    auto* memory = static_cast<char*>(ended->tensor.data_ptr());
    const napi_threadsafe_function back = back_;
    if (num_under_way_++ == 0) napi_ref_threadsafe_function(env, back);
    threads_->submit({at(id), write, memory, ended->tensor.nbytes(), offset_bytes, [ended, back](std::exception_ptr error) {
                        ended->error = std::move(error);
                        napi_call_threadsafe_function(back, new std::shared_ptr<Ended>(ended), napi_tsfn_nonblocking);
                      }});
    return ended->promise.Promise();
  }

 private:
  // Runs in the JavaScript thread; without `env` that thread is ending, and nobody waits any more.
  static void come_back(napi_env env, napi_value, void* context, void* data) {
    const std::unique_ptr<std::shared_ptr<Ended>> ended(static_cast<std::shared_ptr<Ended>*>(data));
    if (!env) return;
    auto& files = *static_cast<ScratchFiles*>(context);
    // Only what is under way keeps a program alive.
    if (--files.num_under_way_ == 0) napi_unref_threadsafe_function(env, files.back_);
    settle(env, **ended);
  }

  static void check(const ScratchFile& file, const at::Tensor& tensor, int64_t offset_bytes) {
    constexpr auto kPage = ScratchFile::kPageBytes;
    const bool paged = tensor.is_contiguous() && reinterpret_cast<uintptr_t>(tensor.data_ptr()) % kPage == 0 &&
                       tensor.nbytes() % kPage == 0 && offset_bytes % static_cast<int64_t>(kPage) == 0;
    if (!paged) {
      throw CodedError("TENSOR_ARGUMENT",
                       "[scratch] whole pages of 4,096 bytes were expected, in memory and in the file (see pageAligned)");
    }
    const auto end = offset_bytes + static_cast<int64_t>(tensor.nbytes());
    if (offset_bytes < 0 || end > file.size_bytes()) {
      throw CodedError("TENSOR_ARGUMENT", "[scratch] a place within the file's " + std::to_string(file.size_bytes()) +
                                              " bytes was expected: bytes " + std::to_string(offset_bytes) + " to " +
                                              std::to_string(end));
    }
  }

  napi_threadsafe_function back_ = nullptr;
  std::unordered_map<int32_t, std::shared_ptr<const ScratchFile>> files_;
  int32_t next_id_ = 1;
  int num_under_way_ = 0;
  std::unique_ptr<TransferThreads> threads_;
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
  define<CloseScratch>(env, exports, "closeScratch");
}

}  // namespace troupe
