// A graph is a list of tasks, captured in a stream of its own, to which all memory belongs that they take. At a launch they run again in the
// launcher's stream. All that memory is poisoned first, so that only what was put elsewhere comes in.
#include "devices/sim/capture.h"

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>

#include <cstring>
#include <vector>

#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

// The stream of graphs that share memory, and that in which they were launched.
struct CaptureStream {
  explicit CaptureStream(c10::DeviceIndex device) : queue(new_queue(device)) { queue.keep_in(nullptr); }
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  // Memory is for others behind the last launch.
  ~CaptureStream() {
    if (launched == nullptr) arena_of(queue.device).give_up(queue);
    else launched->push_free([queue = &queue] { arena_of(queue->device).give_up(*queue); });
  }

  Queue& queue;
  Queue* launched = nullptr;
};

class TaskGraph final : public DeviceGraph {
 public:
  // `beside`: keeps what it left for this one.
  TaskGraph(c10::DeviceIndex device, const TaskGraph* beside, const std::function<void()>& body)
      : stream_(beside != nullptr ? beside->stream_ : std::make_shared<CaptureStream>(device)), is_first_(beside == nullptr) {
    const c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, device));
    Queue& outer = current_queue(device);
    stream_->queue.keep_in(&tasks_);
    set_current_queue(stream_->queue);
    const auto end = [&] {
      set_current_queue(outer);
      stream_->queue.keep_in(nullptr);
    };
    try {
      body();
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  void launch() override {
    Queue& queue = current_queue(stream_->queue.device);
    if (is_first_) {
      queue.push("poison", [memory = stream_->queue.memory()] {
        for (const auto& [begin, bytes] : memory) std::memset(begin, 0xFF, bytes);
      });
    }
    count_late_operator();
    for (const Task& task : tasks_) queue.push(task.name, task.run);
    stream_->launched = &queue;
  }

 private:
  const std::shared_ptr<CaptureStream> stream_;  // it outlives the tasks
  const bool is_first_;
  std::vector<Task> tasks_;
};

}  // namespace

std::unique_ptr<DeviceGraph> capture(int64_t index, const DeviceGraph* beside, const std::function<void()>& body) {
  return std::make_unique<TaskGraph>(static_cast<c10::DeviceIndex>(index), static_cast<const TaskGraph*>(beside), body);
}

}  // namespace troupe::sim

#endif
