#include "core/device/timeline.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device/device.h"
#include "core/device/fence.h"

namespace troupe {
namespace {

// The number of places that a line remembers. Waiting for an older one waits for the oldest, which comes after it.
constexpr int64_t kPlaces = 64;
constexpr int64_t kSequences = int64_t{1} << 32;

// The places of one thread, the latest of them. Its sequence begins at 1.
class Line {
 public:
  int64_t say(c10::Device device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    at(++sequence_) = Fence::here(device);
    return sequence_;
  }
  Fence place(int64_t sequence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t oldest = sequence_ - kPlaces + 1;
    return at(sequence < oldest ? oldest : sequence);
  }

 private:
  Fence& at(int64_t sequence) { return fences_[static_cast<size_t>(sequence % kPlaces)]; }

  std::mutex mutex_;
  int64_t sequence_ = 0;
  std::array<Fence, kPlaces> fences_;
};

// By number, from 1 on. Never freed: a message may outlive its sender.
struct Lines {
  std::mutex mutex;
  std::vector<std::unique_ptr<Line>> all;

  static Lines& get() {
    static Lines* const lines = new Lines;
    return *lines;
  }
  int64_t add() {
    const std::lock_guard<std::mutex> lock(mutex);
    all.push_back(std::make_unique<Line>());
    return static_cast<int64_t>(all.size());
  }
  Line& at(int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex);
    return *all.at(static_cast<size_t>(number - 1));
  }
};

thread_local int64_t own_line = 0;

}  // namespace

int64_t say_place() {
  const c10::Device device = ordering_device();
  if (device.is_cpu()) return 0;
  if (own_line == 0) own_line = Lines::get().add();
  return own_line * kSequences + Lines::get().at(own_line).say(device);
}

void follow_place(int64_t place) {
  if (place == 0) return;
  const Fence fence = Lines::get().at(place / kSequences).place(place % kSequences);
  hear_of_device(fence.device());
  fence.hold_back();
}

}  // namespace troupe
