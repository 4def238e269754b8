#include "devices/sim/sim.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceType.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "core/device/device.h"
#include "core/error.h"
#include "core/silence_warnings.h"
#include "core/torch_version.h"
#include "devices/sim/device.h"
#include "devices/sim/capture.h"
#include "devices/sim/fault.h"
#include "devices/sim/kernels.h"
#include "devices/sim/late.h"
#include "devices/sim/native_stream.h"
#include "devices/sim/schedule.h"

namespace troupe::sim {
namespace {

std::atomic<int64_t> num_late_operators{0}, num_read_backs{0}, num_host_waits{0};

#if TROUPE_TORCH_AT_LEAST(2, 9)

constexpr int kMostDevices = 64;

int wanted_devices() {
  const char* const text = std::getenv("TROUPE_SIM_DEVICES");
  if (text == nullptr) return 2;
  const int count = std::atoi(text);
  if (count < 1 || count > kMostDevices) {
    throw CodedError("TENSOR_ARGUMENT", std::string("[device] expected TROUPE_SIM_DEVICES of 1 to 64, got ") + text);
  }
  return count;
}

// Composed of others for every device, by what each of them is, or by reading memory.
bool is_whole_on_cpu(const std::string& name) {
  return name == "troupe::all_finite" || name == "aten::convolution" || name == "aten::convolution_backward";
}

// Every operator that the CPU computes is computed late, in one go: composed of others, as libtorch would for a device that
// lacks it, it might not have the CPU's bits.
void register_late_operators(torch::Library& library, const std::string& name_space) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind(name_space + "::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    const bool computes_on_cpu = op->hasKernelForDispatchKey(c10::DispatchKey::CPU) || is_whole_on_cpu(name.name);
    if (!computes_on_cpu) continue;
    library.impl(qualified(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_late>());
  }
}

void register_all() {
  const SilenceWarnings silence;
  c10::register_privateuse1_backend("sim");
  make_devices(wanted_devices());
  register_guard();
  register_hooks();
  // Never destroyed, as what they register is in use until the process ends.
  static auto* const aten = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static auto* const own = new torch::Library(torch::Library::IMPL, "troupe", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static auto* const graphs =
      new torch::Library(torch::Library::IMPL, "troupe", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  static auto* const casts =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  static auto* const others =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  others->fallback(torch::CppFunction::makeFallthrough());
  register_copies(*aten);
  register_observe(*own);
  register_late_operators(*aten, "aten");
  register_late_operators(*own, "troupe");
  register_graphs(*graphs);
  register_autocast(*casts);
  register_chains();
  name_faults();
  std::atexit(stop_queues);
}

#endif

#if TROUPE_TORCH_AT_LEAST(2, 9)
const RegisteredDeviceKind known({"sim", c10::DeviceType::PrivateUse1, open, native_stream, nullptr, nullptr, capture});
#else
const RegisteredDeviceKind known({"sim", c10::DeviceType::PrivateUse1, open, nullptr});
#endif

}  // namespace

void open() {
#if TROUPE_TORCH_AT_LEAST(2, 9)
  static std::once_flag once;
  std::call_once(once, register_all);
#else
  throw CodedError("TENSOR_OP_MISSING", std::string("[device] the pretend device expected libtorch 2.9 or newer, got ") +
                                            TORCH_VERSION);
#endif
}

Statistics statistics() { return {num_late_operators, num_read_backs, num_host_waits}; }

void set_seed(uint64_t seed) { set_present_seed(seed); }

void count_late_operator() { num_late_operators++; }
void count_read_back() { num_read_backs++; }
void count_host_wait() { num_host_waits++; }

}  // namespace troupe::sim
