// What a process spends its GPU's time on: CUDA loads this library into it (CUDA_INJECTION64_PATH), CUPTI tells it of each kernel, and
// at the end it prints those that took most, of the last TROUPE_KERNEL_WINDOW_MS (800) before the last one.
//
//   g++ -O2 -shared -fPIC -I$CUDA_HOME/include -I$CUDA_HOME/extras/CUPTI/include bench/gpu/kernel-times.cc -o kernel-times.so -lcupti
//   CUDA_INJECTION64_PATH=$PWD/kernel-times.so node bench/gpu/train.ts --model bert --steps 40
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Span {
  uint64_t start, end;  // ns
  std::string name;
};

std::mutex mutex;
std::vector<Span> spans;

constexpr size_t kBufferBytes = 8 << 20;
constexpr size_t kNamesShown = 30, kNameLength = 150;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      spans.push_back({kernel->start, kernel->end, kernel->name});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      spans.push_back({copy->start, copy->end, "memcpy " + std::to_string(copy->copyKind)});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto* set = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      spans.push_back({set->start, set->end, "memset"});
    }
  }
  std::free(buffer);
}

std::string readable(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string told = status == 0 ? text : name;
  std::free(text);
  return told.substr(0, kNameLength);
}

void report() {
  cuptiActivityFlushAll(1);
  const std::lock_guard<std::mutex> lock(mutex);
  if (spans.empty()) return;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  const char* wanted = std::getenv("TROUPE_KERNEL_WINDOW_MS");
  const uint64_t window = (wanted == nullptr ? 800 : std::strtoull(wanted, nullptr, 10)) * 1'000'000;
  const uint64_t last = spans.back().end, first = last > window ? last - window : 0;
  struct Total {
    double ms = 0;
    size_t count = 0;
  };
  std::map<std::string, Total> totals, idle;
  double sum = 0, busy = 0;
  uint64_t until = 0;
  const Span* before = nullptr;
  for (const Span& span : spans) {
    if (span.start < first) continue;
    const double ms = static_cast<double>(span.end - span.start) / 1e6;
    Total& total = totals[span.name];
    total.ms += ms;
    total.count++;
    sum += ms;
    if (before != nullptr && span.start > until) {
      Total& gap = idle[readable(before->name).substr(0, 70) + "  ->  " + readable(span.name).substr(0, 70)];
      gap.ms += static_cast<double>(span.start - until) / 1e6;
      gap.count++;
    }
    busy += static_cast<double>(span.end - std::min(span.end, std::max(span.start, until))) / 1e6;
    until = std::max(until, span.end);
    before = &span;
  }
  const double all = static_cast<double>(window) / 1e6;
  std::fprintf(stderr, "window %.0f ms, busy %.1f %%, sum of kernels %.1f ms\n", all, 100 * busy / all, sum);
  const auto print = [&](const std::map<std::string, Total>& of, size_t most, const char* what) {
    std::vector<std::pair<std::string, Total>> sorted(of.begin(), of.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
    for (size_t i = 0; i < std::min(most, sorted.size()); i++) {
      const auto& [name, total] = sorted[i];
      std::fprintf(stderr, "%s %8.2f ms %5.1f %% %6zu x %8.1f us  %s\n", what, total.ms, 100 * total.ms / all, total.count,
                   1e3 * total.ms / static_cast<double>(total.count), readable(name).c_str());
    }
  };
  print(totals, kNamesShown, "kernel");
  print(idle, 8, "idle  ");
}

}  // namespace

// CUDA calls it when it is first used.
extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    cuptiActivityEnable(kind);
  }
  std::atexit(report);
  return 1;
}
