// Kernels of text on the host: compiled by its own compiler, their threads as cuda_runtime.h has them.
#include "kernels/cuda/text_kernel.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "cuda_runtime.h"

namespace troupe::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBefore = R"(
#include <cmath>
#include <cstdint>
#include <cstring>
#define __global__
#define __device__
#define __launch_bounds__(threads)
struct Place { unsigned x, y, z; };
static const Place* present;
static uint64_t (*exchange)(uint64_t own, int with);
static int (*lane_of_thread)();
#define threadIdx present[0]
#define blockIdx present[1]
#define blockDim present[2]
#define gridDim present[3]
static float __int_as_float(int bits) { float value; std::memcpy(&value, &bits, sizeof value); return value; }
static int __float_as_int(float value) { int bits; std::memcpy(&bits, &value, sizeof bits); return bits; }
static float __shfl_sync(unsigned, float value, int from) { return __int_as_float((int)exchange((unsigned)__float_as_int(value), from)); }
static float __shfl_down_sync(unsigned, float value, int offset) {
  const int from = lane_of_thread() + offset;
  return __shfl_sync(~0u, value, from < 32 ? from : from - offset);
}
)";

// Calls the kernel, whatever its parameters are, with the values that pointers lead to.
constexpr const char* kBehind = R"(
template <class... Parameters, unsigned... I>
static void call(void (*kernel)(Parameters...), void** arguments, std::integer_sequence<unsigned, I...>) {
  kernel(*static_cast<Parameters*>(arguments[I])...);
}
template <class... Parameters>
static void call(void (*kernel)(Parameters...), void** arguments) {
  call(kernel, arguments, std::make_integer_sequence<unsigned, sizeof...(Parameters)>());
}
extern "C" void run(const void* place, uint64_t (*shuffle)(uint64_t, int), int (*lane)(), void** arguments) {
  present = static_cast<const Place*>(place);
  exchange = shuffle;
  lane_of_thread = lane;
  call(KERNEL, arguments);
}
)";

class HostKernel final : public TextKernel {
 public:
  HostKernel(const std::string& text, const std::string& name) {
    static int number = 0;
    const fs::path folder = fs::temp_directory_path() / ("troupe-text-kernel-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    fs::create_directory(folder);
    const std::string source = folder / "kernel.cc", library = folder / "kernel.so";
    std::ofstream(source) << "#include <utility>\n" << kBefore << text << "#define KERNEL " << name << "\n" << kBehind;
    const char* const compiler = std::getenv("CXX");
    const std::string command = std::string(compiler == nullptr ? "c++" : compiler) +
                                " -std=c++17 -O2 -ffp-contract=off -Wno-unknown-pragmas -shared -fPIC -o " + library + " " + source;
    const bool compiled = std::system(command.c_str()) == 0;
    void* const opened = compiled ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    fs::remove_all(folder);
    if (opened == nullptr) throw std::runtime_error("[text kernel] expected the host's compiler to take the text, got an error");
    run_ = reinterpret_cast<decltype(run_)>(dlsym(opened, "run"));
  }
  void launch(Stream, unsigned blocks, unsigned threads, void** arguments) const override {
    on_host::run(blocks, threads, [&] { run_(&on_host::present, on_host::exchange, on_host::lane, arguments); });
  }

 private:
  void (*run_)(const void*, uint64_t (*)(uint64_t, int), int (*)(), void**) = nullptr;
};

}  // namespace

std::string TextKernel::refusal(int) {
  return std::getenv("TROUPE_CUDA_ON_HOST") != nullptr ? "" : "[text kernel] expected the kernels for CUDA to run on the host, got the host's own";
}

std::shared_ptr<const TextKernel> TextKernel::of(const std::string& text, const char* name, int) {
  static auto* const made = new std::map<std::string, std::shared_ptr<const TextKernel>>;
  std::shared_ptr<const TextKernel>& kernel = (*made)[text];
  if (kernel == nullptr) kernel = std::make_shared<HostKernel>(text, name);
  return kernel;
}

}  // namespace troupe::cuda
