#include "core/dispatch/meter.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

namespace troupe {
namespace {

size_t octave_of(int64_t bytes) {
  size_t size = 0;
  while ((int64_t{1} << size) < bytes) size++;
  return size;
}

// Any thread may free memory, so live bytes are counted with atomics, and the counts live as long as any memory that is
// charged to them.
struct Counts {
  std::atomic<int64_t> live_bytes{0};
  std::atomic<int64_t> peak_bytes{0};
  std::array<int64_t, kOctaves> made_bytes{};
  double flops = 0;
  double narrow_flops = 0;
  int64_t ring_bytes = 0;
  int64_t num_rings = 0;
  std::set<std::string> unruled;

  void charge(int64_t bytes) {
    made_bytes[octave_of(bytes)] += bytes;
    const int64_t live = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (live > peak_bytes.load(std::memory_order_relaxed)) peak_bytes.store(live, std::memory_order_relaxed);
  }
};

struct ThreadMeter {
  std::shared_ptr<Counts> counts;
  bool of_gpu = false;
  at::CallbackHandle products{0};
};

thread_local ThreadMeter meter;

struct Charge {
  std::shared_ptr<Counts> counts;
  int64_t bytes;
};

void let_go(void* context) {
  const std::unique_ptr<Charge> charge(static_cast<Charge*>(context));
  charge->counts->live_bytes.fetch_sub(charge->bytes, std::memory_order_relaxed);
}

void nothing(void*) {}

class MetaAllocator final : public c10::Allocator {
 public:
  // The interface changed, see allocator.cc.
  c10::DataPtr allocate(size_t bytes) { return charged(bytes); }
  c10::DataPtr allocate(size_t bytes) const { return charged(bytes); }
  void copy_data(void*, const void*, size_t) const {}
  c10::DeleterFnPtr raw_deleter() const { return nullptr; }

 private:
  static c10::DataPtr charged(size_t bytes) {
    const c10::Device device(c10::DeviceType::Meta);
    if (!meter.counts || bytes == 0) return {nullptr, nullptr, &nothing, device};
    const auto size = static_cast<int64_t>(bytes);
    meter.counts->charge(size);
    return {nullptr, new Charge{meter.counts, size}, &let_go, device};
  }
};

// Elements of the last dim, over which a product adds up.
double depth_of(const c10::IValue& value) {
  const at::Tensor& tensor = value.toTensor();
  return tensor.dim() == 0 ? 1.0 : static_cast<double>(tensor.size(-1));
}

// The number of products that one element of a convolution's output adds up.
double taps_of(const c10::IValue& weight) {
  const at::Tensor& tensor = weight.toTensor();
  return static_cast<double>(tensor.numel()) / static_cast<double>(std::max<int64_t>(1, tensor.size(0)));
}

// The number of products that one element of the output adds up, for libtorch's operators; Troupe's kernels count their own.
double terms_of(const std::string& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (op == "aten::mm" || op == "aten::bmm" || op == "aten::mv") return depth_of(inputs[0]);
  if (op == "aten::addmm" || op == "aten::baddbmm" || op == "aten::addmv") return depth_of(inputs[1]);
  if (op == "aten::convolution") return taps_of(inputs[1]);
  return 0;
}

// The count taken before an operator runs, because the operator may consume its operands.
struct Terms final : at::ObserverContext {
  explicit Terms(double terms) : terms(terms) {}
  double terms;
};

std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& call) {
  const double terms = terms_of(call.name(), call.inputs());
  return terms == 0 ? nullptr : std::make_unique<Terms>(terms);
}

void after(const at::RecordFunction& call, at::ObserverContext* context) {
  if (!meter.counts || context == nullptr || call.outputs().empty() || !call.outputs()[0].isTensor()) return;
  const at::Tensor& made = call.outputs()[0].toTensor();
  count_flops(2 * static_cast<Terms*>(context)->terms * static_cast<double>(made.numel()), made);
}

}  // namespace

void start_meter(bool of_gpu) {
  stop_meter();
  meter.of_gpu = of_gpu;
  meter.counts = std::make_shared<Counts>();
  meter.products = at::addThreadLocalCallback(
      at::RecordFunctionCallback(before, after).needsInputs(true).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
}

void stop_meter() {
  if (!meter.counts) return;
  at::removeCallback(meter.products);
  meter.counts = nullptr;
}

Metered read_meter() {
  if (!meter.counts) return {};
  const Counts& counts = *meter.counts;
  return {counts.live_bytes.load(), counts.peak_bytes.load(), counts.made_bytes, counts.flops, counts.narrow_flops,
          counts.ring_bytes, counts.num_rings, counts.unruled};
}

bool meters() { return meter.counts != nullptr; }

bool meters_gpu() { return meter.counts && meter.of_gpu; }

void reset_meter_peak() {
  if (meter.counts) meter.counts->peak_bytes = meter.counts->live_bytes.load();
}

void count_flops(double flops, const at::Tensor& operand) {
  if (!meter.counts) return;
  meter.counts->flops += flops;
  if (operand.element_size() == 2) meter.counts->narrow_flops += flops;
}

void count_unruled(const std::string& op) {
  if (meter.counts) meter.counts->unruled.insert(op);
}

void count_rings(int64_t passes, int64_t bytes) {
  if (!meter.counts) return;
  meter.counts->ring_bytes += passes * bytes;
  meter.counts->num_rings += passes;
}

void install_meter() {
  static MetaAllocator* const allocator = new MetaAllocator;
  constexpr uint8_t kAboveTheOneThatCountsNothing = 1;
  c10::SetAllocator(c10::DeviceType::Meta, allocator, kAboveTheOneThatCountsNothing);
}

}  // namespace troupe
