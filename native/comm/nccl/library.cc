#include "comm/nccl/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "core/error.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
namespace troupe::comm::nccl {
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && int{success} == ncclSuccess && int{in_progress} == ncclInProgress);
static_assert(int{int8} == ncclInt8 && int{uint8} == ncclUint8 && int{int32} == ncclInt32 && int{int64} == ncclInt64 &&
              int{float16} == ncclFloat16 && int{float32} == ncclFloat32 && int{float64} == ncclFloat64 &&
              int{bfloat16} == ncclBfloat16);
static_assert(int{sum} == ncclSum && int{prod} == ncclProd && int{max} == ncclMax && int{min} == ncclMin && int{avg} == ncclAvg);
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic) && offsetof(Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking) && sizeof(Config) <= sizeof(ncclConfig_t));
}  // namespace troupe::comm::nccl
#endif

namespace troupe::comm::nccl {
namespace {

constexpr const char* kName = "libnccl.so.2";

[[noreturn]] void throw_unavailable(const std::string& got) {
  throw CodedError("NCCL_UNAVAILABLE", "[nccl] expected NCCL's library, beside libtorch's CUDA or where TROUPE_NCCL says, got " +
                                           got + " (npx troupe doctor)");
}

void* open() {
  const char* const named = std::getenv("TROUPE_NCCL");
  if (named != nullptr) {
    void* const library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw_unavailable(dlerror());
    return library;
  }
  // A libtorch that was linked with NCCL's archive has it within itself.
  if (dlsym(RTLD_DEFAULT, "ncclCommInitRankConfig") != nullptr) return RTLD_DEFAULT;
  void* library = dlopen(kName, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw_unavailable(dlerror());
  return library;
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw_unavailable(std::string("one without ") + name);
}

Library load() {
  void* const from = open();
  Library found{};
  find(from, "ncclGetUniqueId", found.get_unique_id);
  find(from, "ncclCommInitRankConfig", found.comm_init_rank_config);
  find(from, "ncclCommGetAsyncError", found.comm_get_async_error);
  find(from, "ncclCommFinalize", found.comm_finalize);
  find(from, "ncclCommDestroy", found.comm_destroy);
  find(from, "ncclCommAbort", found.comm_abort);
  find(from, "ncclGetErrorString", found.get_error_string);
  find(from, "ncclGetLastError", found.get_last_error);
  find(from, "ncclGroupStart", found.group_start);
  find(from, "ncclGroupEnd", found.group_end);
  find(from, "ncclSend", found.send);
  find(from, "ncclRecv", found.recv);
  find(from, "ncclAllGather", found.all_gather);
  find(from, "ncclBroadcast", found.broadcast);
  find(from, "ncclAllReduce", found.all_reduce);
  find(from, "ncclReduce", found.reduce);
  find(from, "ncclReduceScatter", found.reduce_scatter);
  return found;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void check(Result result, const char* what) {
  if (result == success || result == in_progress) return;
  std::string text = std::string(what) + ": " + library().get_error_string(result);
  const char* const last = library().get_last_error(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  throw std::runtime_error(text);
}

}  // namespace troupe::comm::nccl
