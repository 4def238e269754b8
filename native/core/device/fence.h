// Order between streams: what one thread's stream was given, another's waits for.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

// A place in a stream of a device. Of the host there is none: what its threads have done is done. Copies are one place; safe
// from every thread.
class Fence {
 public:
  Fence() = default;

  // Behind what the calling thread has given its stream of this device so far.
  static Fence here(c10::Device device);

  // The calling thread's streams of the fence's device and of its ordering device go on only behind it; the thread itself does not
  // wait.
  void hold_back() const;
  // The same for its stream of one device of the fence's kind; nothing for another.
  void hold_back(c10::Device device) const;

  // The host where there is nothing to wait for.
  c10::Device device() const { return event_ ? event_->device() : c10::Device(c10::DeviceType::CPU); }

  // The calling thread waits.
  void wait() const;
  // Whether it would not have to. Asking has a pretend device go on.
  bool has_passed() const { return !event_ || event_->query(); }

 private:
  std::shared_ptr<c10::Event> event_;  // null: nothing to wait for
};

// Where the readers of a lent tensor have let go of it, each in its own stream, for its next writer to wait for.
class Departures {
 public:
  void add(Fence fence);
  // As Fence::hold_back, for all so far, which are forgotten then.
  void hold_back();

 private:
  std::mutex mutex_;
  std::vector<Fence> fences_;
};

// Marks a tensor's memory as used by the calling thread's stream: it is not reused before that use is over, whichever thread frees
// it and when. Does nothing for host memory.
void use_in_stream(const at::Tensor& tensor);

}  // namespace troupe
