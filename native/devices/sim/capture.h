// Graphs of the pretend device: see core/device/graph.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/device/graph.h"

namespace troupe::sim {

std::unique_ptr<DeviceGraph> capture(int64_t index, const DeviceGraph* beside, const std::function<void()>& body);

}  // namespace troupe::sim
