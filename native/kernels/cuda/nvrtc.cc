#include "kernels/cuda/nvrtc.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace troupe::cuda {
namespace {

namespace fs = std::filesystem;

using NvrtcProgram = void*;

// The library's functions that are used; they are C's, and the same since CUDA 11.2.
struct Nvrtc {
  int (*version)(int*, int*) = nullptr;
  int (*num_supported)(int*) = nullptr;
  int (*supported)(int*) = nullptr;
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  int (*code_size)(NvrtcProgram, size_t*) = nullptr;
  int (*code)(NvrtcProgram, char*) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  std::string refusal;
  std::string name;  // with its version
  std::vector<int> capabilities;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Folders in which libtorch's packages have CUDA's libraries.
std::vector<fs::path> folders_of_libtorch() {
  std::vector<fs::path> folders;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        const fs::path path(info->dlpi_name);
        const std::string name = path.filename().string();
        if (name.rfind("libtorch_cuda.so", 0) == 0 || name.rfind("libc10.so", 0) == 0) {
          auto& folders = *static_cast<std::vector<fs::path>*>(to);
          const fs::path packages = path.parent_path() / ".." / ".." / "nvidia";
          for (const fs::path& folder : {path.parent_path(), packages / "cu13" / "lib", packages / "cuda_nvrtc" / "lib"}) {
            folders.push_back(folder);
          }
        }
        return 0;
      },
      &folders);
  return folders;
}

std::vector<std::string> candidates() {
  if (const char* const named = std::getenv("TROUPE_NVRTC")) return {named};
  std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const fs::path& folder : folders_of_libtorch()) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
      const std::string name = entry.path().filename().string();
      const bool is_compiler = name.rfind("libnvrtc", 0) == 0 && name.rfind("libnvrtc-builtins", 0) != 0 && name.find(".alt") == std::string::npos;
      if (is_compiler) names.push_back(entry.path().string());
    }
  }
  return names;
}

// The compiler opens its other part by name alone, which is found if it is open already.
void open_builtins(void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(info.dli_fname).parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libnvrtc-builtins", 0) == 0 && name.find(".alt") == std::string::npos) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

Nvrtc opened() {
  Nvrtc nvrtc;
  void* library = nullptr;
  for (const std::string& name : candidates()) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    nvrtc.refusal = "[nvrtc] expected CUDA's compiler libnvrtc, got no such library (TROUPE_NVRTC names it)";
    return nvrtc;
  }
  const bool complete = find(library, "nvrtcVersion", nvrtc.version) && find(library, "nvrtcGetNumSupportedArchs", nvrtc.num_supported) &&
                        find(library, "nvrtcGetSupportedArchs", nvrtc.supported) && find(library, "nvrtcCreateProgram", nvrtc.create) &&
                        find(library, "nvrtcCompileProgram", nvrtc.compile) && find(library, "nvrtcGetProgramLogSize", nvrtc.log_size) &&
                        find(library, "nvrtcGetProgramLog", nvrtc.log) && find(library, "nvrtcGetCUBINSize", nvrtc.code_size) &&
                        find(library, "nvrtcGetCUBIN", nvrtc.code) && find(library, "nvrtcDestroyProgram", nvrtc.destroy);
  int major = 0, minor = 0, count = 0;
  if (!complete || nvrtc.version(&major, &minor) != 0 || nvrtc.num_supported(&count) != 0) {
    nvrtc.refusal = "[nvrtc] expected CUDA's compiler libnvrtc of CUDA 11.2 or newer, got a library that lacks its functions";
    return nvrtc;
  }
  open_builtins(reinterpret_cast<void*>(nvrtc.version));
  nvrtc.name = "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
  nvrtc.capabilities.resize(static_cast<size_t>(count));
  nvrtc.supported(nvrtc.capabilities.data());
  return nvrtc;
}

const Nvrtc& nvrtc() {
  static const auto* const instance = new Nvrtc(opened());
  return *instance;
}

uint64_t hash_of(const std::string& text, uint64_t hash) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
  return hash;
}

std::string name_of(const std::string& text) {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(hash_of(text, 0xCBF29CE484222325u)),
                static_cast<unsigned long long>(hash_of(text, 0x9AE16A3B2F90404Fu)));
  return name;
}

// Where a kernel is kept; empty where the user has no home.
fs::path kept_at(const std::string& key) {
  const char* const own = std::getenv("TROUPE_CACHE");
  const char* const caches = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const fs::path cache = own != nullptr      ? fs::path(own)
                         : caches != nullptr ? fs::path(caches) / "troupe"
                         : home != nullptr   ? fs::path(home) / ".cache" / "troupe"
                                             : fs::path();
  return cache.empty() ? cache : cache / "kernels" / name_of(key);
}

// A file: the hash of what follows, the key's length, the key, the code.
std::string with_key(const std::string& key, const std::string& code) {
  const std::string body = std::to_string(key.size()) + "\n" + key + code;
  return name_of(body) + "\n" + body;
}

std::string read_kept(const fs::path& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str(), head = with_key(key, "");
  // The hash is of the complete file: behind it the two begin alike.
  const size_t hash = name_of("").size() + 1;
  if (!file || all.size() <= head.size() || all.compare(hash, head.size() - hash, head, hash) != 0) return {};
  const std::string code = all.substr(head.size());
  return with_key(key, code) == all ? code : std::string();
}

// For the next process; what cannot be written is compiled again there.
void keep(const fs::path& path, const std::string& key, const std::string& code) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const fs::path next = path.string() + "." + std::to_string(getpid()) + "." + name_of(std::to_string(reinterpret_cast<uintptr_t>(&failed)));
  {
    std::ofstream file(next, std::ios::binary);
    file << with_key(key, code);
    if (!file.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) fs::rename(next, path, failed);
  if (failed) fs::remove(next, failed);
}

std::string log_of(const Nvrtc& library, NvrtcProgram program) {
  size_t size = 0;
  library.log_size(program, &size);
  std::string log(size, ' ');
  if (size > 0) library.log(program, log.data());
  return log.c_str();
}

std::string compile(const Nvrtc& library, const std::string& text, const std::vector<std::string>& options) {
  NvrtcProgram program = nullptr;
  if (library.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) {
    throw std::runtime_error("[nvrtc] expected a program, got an error of CUDA's compiler");
  }
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const int result = library.compile(program, static_cast<int>(words.size()), words.data());
  const std::string log = result == 0 ? std::string() : log_of(library, program);
  size_t size = 0;
  if (result == 0) library.code_size(program, &size);
  std::string code(size, '\0');
  if (size > 0) library.code(program, code.data());
  library.destroy(&program);
  if (code.empty()) throw std::runtime_error("[nvrtc] expected the text of a kernel to compile, got \"" + log + "\"");
  return code;
}

}  // namespace

std::string nvrtc_refusal(int capability) {
  const Nvrtc& library = nvrtc();
  if (!library.refusal.empty()) return library.refusal;
  const auto& known = library.capabilities;
  if (std::find(known.begin(), known.end(), capability) != known.end()) return {};
  return "[nvrtc] expected a compiler that knows GPUs of compute capability " + std::to_string(capability / 10) + "." +
         std::to_string(capability % 10) + ", got " + library.name;
}

std::string compiled_by_nvrtc(const std::string& text, int capability) {
  if (const std::string refusal = nvrtc_refusal(capability); !refusal.empty()) throw std::runtime_error(refusal);
  const std::vector<std::string> options{"--gpu-architecture=sm_" + std::to_string(capability), "--std=c++17", "--fmad=false",
                                         "--prec-div=true", "--prec-sqrt=true", "--ftz=false"};
  std::string key = nvrtc().name;
  for (const std::string& option : options) key += " " + option;
  key += "\n" + text;
  const fs::path path = kept_at(key);
  if (!path.empty()) {
    if (std::string code = read_kept(path, key); !code.empty()) return code;
  }
  std::string code = compile(nvrtc(), text, options);
  if (!path.empty()) keep(path, key, code);
  return code;
}

}  // namespace troupe::cuda
