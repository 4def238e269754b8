#include "devices/sim/native_stream.h"

#include <map>
#include <mutex>

#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

struct NativeStream : TroupeSimStream {
  explicit NativeStream(Queue& queue) : TroupeSimStream{launch_in, reach_in}, queue(queue) {}

  static void launch_in(TroupeSimStream* stream, const char* name, void (*run)(void*), void* argument) {
    static_cast<NativeStream*>(stream)->queue.push(name, [run, argument] { run(argument); });
  }
  static void* reach_in(TroupeSimStream*, const void* address) {
    Arena* const arena = arena_of(address);
    return arena == nullptr ? nullptr : arena->reachable(address);
  }

  Queue& queue;
};

}  // namespace

void* native_stream(const c10::Stream& stream) {
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::map<Queue*, NativeStream>;
  const std::lock_guard<std::mutex> lock(*mutex);
  Queue& queue = queue_of(stream);
  return &all->try_emplace(&queue, queue).first->second;
}

}  // namespace troupe::sim

#endif
