// Kernels of text on the host: compiled by its own compiler, their threads one after the other. They wait for nobody.
#include "kernels/cuda/text_kernel.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

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
struct Place { unsigned x; };
static Place threadIdx, blockIdx, blockDim, gridDim;
static float __int_as_float(int bits) { float value; std::memcpy(&value, &bits, sizeof value); return value; }
static int __float_as_int(float value) { int bits; std::memcpy(&bits, &value, sizeof bits); return bits; }
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
extern "C" void run(unsigned blocks, unsigned threads, bool backward, void** arguments) {
  blockDim.x = threads;
  gridDim.x = blocks;
  for (unsigned i = 0; i < blocks * threads; i++) {
    const unsigned at = backward ? blocks * threads - 1 - i : i;
    blockIdx.x = at / threads;
    threadIdx.x = at % threads;
    call(KERNEL, arguments);
  }
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
    const char* const order = std::getenv("TROUPE_CUDA_ON_HOST");
    run_(blocks, threads, order != nullptr && std::string(order) == "backward", arguments);
  }

 private:
  void (*run_)(unsigned, unsigned, bool, void**) = nullptr;
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
