// Work for a device's stream, captured once and queued again by one call: the same operators on the same memory.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace troupe {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Queues it in the calling thread's stream.
  virtual void launch() = 0;
};

// Whether a device's work can be captured.
bool captures_graphs(c10::Device device);

// Captures what `body` gives the calling thread's stream of a device; nothing of it runs. Memory that `body` takes is the graph's, which
// must live as long as it. `beside`: a graph that never runs at the same time, whose memory `body` may have where it is free; null: none.
// Throws where `body` waits for the device or for another stream.
std::unique_ptr<DeviceGraph> capture_graph(c10::Device device, const DeviceGraph* beside, const std::function<void()>& body);

}  // namespace troupe
