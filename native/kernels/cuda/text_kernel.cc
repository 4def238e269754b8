#include "kernels/cuda/text_kernel.h"

#if !TROUPE_CUDA_ON_HOST

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <stdexcept>

#include "kernels/cuda/nvrtc.h"

namespace troupe::cuda {
namespace {

// The functions of CUDA's driver that are used; it is there wherever a GPU is.
struct Driver {
  int (*load)(void** module, const void* code) = nullptr;
  int (*function)(void** function, void* module, const char* name) = nullptr;
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void** arguments,
                void** more) = nullptr;
  int (*error)(int, const char**) = nullptr;

  Driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    load = reinterpret_cast<decltype(load)>(dlsym(library, "cuModuleLoadData"));
    function = reinterpret_cast<decltype(function)>(dlsym(library, "cuModuleGetFunction"));
    launch = reinterpret_cast<decltype(launch)>(dlsym(library, "cuLaunchKernel"));
    error = reinterpret_cast<decltype(error)>(dlsym(library, "cuGetErrorString"));
  }
  bool is_complete() const { return load != nullptr && function != nullptr && launch != nullptr && error != nullptr; }
};

const Driver& driver() {
  static const Driver instance;
  return instance;
}

void check_driver(int result) {
  if (result == 0) return;
  const char* text = nullptr;
  driver().error(result, &text);
  throw std::runtime_error(std::string("[text kernel] expected CUDA to take the kernel, got \"") + (text == nullptr ? "an unknown error" : text) + "\"");
}

int capability_of(int device) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return 10 * major + minor;
}

class DriverKernel final : public TextKernel {
 public:
  DriverKernel(const std::string& code, const char* name) {
    cudaFree(nullptr);  // has the runtime make the device's context the thread's
    void* module = nullptr;  // never unloaded, like the compiled kernels
    check_driver(driver().load(&module, code.data()));
    check_driver(driver().function(&function_, module, name));
  }
  void launch(Stream stream, unsigned blocks, unsigned threads, void** arguments) const override {
    check_driver(driver().launch(function_, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  }

 private:
  void* function_ = nullptr;
};

}  // namespace

std::string TextKernel::refusal(int device) {
  if (!driver().is_complete()) return "[text kernel] expected CUDA's driver libcuda, got no such library";
  return nvrtc_refusal(capability_of(device));
}

std::shared_ptr<const TextKernel> TextKernel::of(const std::string& text, const char* name, int device) {
  static auto* const mutex = new std::mutex;
  static auto* const made = new std::map<std::pair<int, std::string>, std::shared_ptr<const TextKernel>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::shared_ptr<const TextKernel>& kernel = (*made)[{device, text}];
  if (kernel == nullptr) kernel = std::make_shared<DriverKernel>(compiled_by_nvrtc(text, capability_of(device)), name);
  return kernel;
}

}  // namespace troupe::cuda

#endif
