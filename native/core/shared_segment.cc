#include "core/shared_segment.h"

#include <ATen/ops/empty.h>
#include <c10/core/Storage.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "core/allocator.h"
#include "core/error.h"

namespace troupe {

// The first pages of the file. Zero is how the system hands them out.
struct Segment::Header {
  int64_t bytes;
  char tag[128];  // what it is counted as
  // The process whose ledger counts this memory; 0: none.
  std::atomic<uint32_t> counted_by;
  std::atomic<uint32_t> slots[kNumSlots];
};

namespace {

constexpr size_t kHeaderBytes = 8192;
static_assert(std::atomic<uint32_t>::is_always_lock_free, "words are shared by processes");

struct Place {
  std::string folder;
  int32_t process_index = 0;
  std::atomic<uint32_t> next_name{0};
};

// Written while no actor that shares tensors exists.
Place& place() {
  static Place* const instance = new Place;
  return *instance;
}

[[noreturn]] void no_memory(int64_t bytes, int error) {
  throw CodedError("SHARED_MEMORY_FULL",
                   "[shared memory] " + std::to_string(bytes) + " bytes in " + place().folder + ": " + std::strerror(error) +
                       " (give the place more room, as docker run --shm-size does, or use placement \"thread\")",
                   {{"bytes", std::to_string(bytes)}, {"folder", place().folder}});
}

[[noreturn]] void gone(const std::string& name) {
  throw CodedError("TENSOR_REF_GONE",
                   "[attach] a tensor under way from another process was expected: " + name +
                       " was taken or released before, or its sender has ended (a ref can be attached once)",
                   {{"name", name}});
}

std::string next_name() {
  return "p" + std::to_string(place().process_index) + "-" + std::to_string(place().next_name.fetch_add(1));
}

// What a storage of ours holds. Its function is how it is known again.
void release_context(void* context) { delete static_cast<std::shared_ptr<Segment>*>(context); }

// Mapped memory in no use.
struct Kept {
  std::string path;
  void* base;
};

struct Pool {
  std::mutex mutex;
  std::multimap<size_t, Kept> kept;
  size_t kept_bytes = 0;
  size_t used_bytes = 0;
  size_t peak_bytes = 0;

  void use(size_t length) {
    used_bytes += length;
    peak_bytes = std::max(peak_bytes, used_bytes);
  }
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

// A second name is another process's, or of a ref under way; and of a folder that was left nothing is kept.
bool is_only_mine(const std::string& path) {
  struct stat status {};
  if (!in_shared_folder() || path.compare(0, place().folder.size() + 1, place().folder + "/") != 0) return false;
  return stat(path.c_str(), &status) == 0 && status.st_nlink == 1;
}

void drop(const std::string& path, void* base, size_t length) {
  munmap(base, length);
  unlink(path.c_str());
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

}  // namespace

void enter_shared_folder(const std::string& folder, int32_t process_index) {
  if (in_shared_folder()) {
    throw CodedError("SHARED_FOLDER_TAKEN",
                     "[shared memory] one system with processes at a time: this program is in " + place().folder +
                         " (stop that system first)",
                     {{"folder", place().folder}});
  }
  place().folder = folder;
  place().process_index = process_index;
}

void leave_shared_folder() {
  release_kept_segments();
  place().folder.clear();
}

void release_kept_segments() {
  Pool& segments = pool();
  const std::lock_guard<std::mutex> lock(segments.mutex);
  for (const auto& [length, kept] : segments.kept) drop(kept.path, kept.base, length);
  segments.kept.clear();
  segments.kept_bytes = 0;
  segments.peak_bytes = segments.used_bytes;
}

bool in_shared_folder() { return !place().folder.empty(); }
int32_t shared_process_index() { return place().process_index; }
std::string shared_path(const std::string& name) { return place().folder + "/" + name; }

std::shared_ptr<Segment> Segment::create(int64_t bytes, const std::string& tag, bool charged) {
  static_assert(sizeof(Header) <= kHeaderBytes, "the header has its pages");
  auto segment = reuse(kHeaderBytes + static_cast<size_t>(bytes));
  if (segment == nullptr) segment = make(bytes);
  segment->header().bytes = bytes;
  std::strncpy(segment->header().tag, tag.c_str(), sizeof(Header::tag) - 1);
  if (charged) segment->charge_if_nobody_does();
  return segment;
}

std::shared_ptr<Segment> Segment::reuse(size_t length) {
  Pool& segments = pool();
  const std::lock_guard<std::mutex> lock(segments.mutex);
  const auto found = segments.kept.find(length);
  if (found == segments.kept.end()) return nullptr;
  const Kept kept = found->second;
  segments.kept.erase(found);
  segments.kept_bytes -= length;
  segments.use(length);
  return std::shared_ptr<Segment>(new Segment(kept.path, kept.base, length));
}

std::shared_ptr<Segment> Segment::make(int64_t bytes) {
  const std::string path = shared_path(next_name());
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.number < 0) no_memory(bytes, errno);
  const int error = posix_fallocate(file.number, 0, static_cast<off_t>(kHeaderBytes) + bytes);
  if (error != 0) {
    unlink(path.c_str());
    no_memory(bytes, error);
  }
  return map(file.number, path);
}

std::shared_ptr<Segment> Segment::take_over(const std::string& name, int32_t slot) {
  const Descriptor file(open(shared_path(name).c_str(), O_RDWR | O_CLOEXEC));
  if (file.number < 0) gone(name);
  const std::string own_path = shared_path(next_name());
  auto segment = map(file.number, own_path);
  if (slot != kNoSlot) {
    // Before the name is gone: without either, the sender would take the tensor for released.
    uint32_t under_way = kUnderWay;
    if (!segment->slot(slot).compare_exchange_strong(under_way, static_cast<uint32_t>(getpid()))) gone(name);
  }
  // Of two that open the file, one renames it; the other finds no such name.
  if (rename(shared_path(name).c_str(), own_path.c_str()) != 0) {
    if (slot != kNoSlot) segment->slot(slot).store(kReturned);
    gone(name);
  }
  segment->charge_if_nobody_does();
  return segment;
}

std::shared_ptr<Segment> Segment::of(const at::Tensor& tensor) {
  const c10::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() != &release_context) return nullptr;
  return *static_cast<std::shared_ptr<Segment>*>(data.get_context());
}

std::shared_ptr<Segment> Segment::map(int descriptor, std::string path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || status.st_size < static_cast<off_t>(kHeaderBytes)) gone(path);
  const auto length = static_cast<size_t>(status.st_size);
  void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) no_memory(status.st_size, errno);
  madvise(base, length, MADV_HUGEPAGE);  // where the system gives them for shared memory at all
  Pool& segments = pool();
  const std::lock_guard<std::mutex> lock(segments.mutex);
  segments.use(length);
  return std::shared_ptr<Segment>(new Segment(std::move(path), base, length));
}

Segment::~Segment() {
  if (charge_ != nullptr) {
    if (!vacant_) credit_memory(charge_, header().bytes);
    header().counted_by.store(0);
  }
  Pool& segments = pool();
  const std::lock_guard<std::mutex> lock(segments.mutex);
  segments.used_bytes -= length_;
  const bool fits = segments.used_bytes + segments.kept_bytes + length_ <= segments.peak_bytes;
  // What is kept for reuse is reserved.
  if (vacant_ || !fits || !is_only_mine(path_)) {
    drop(path_, base_, length_);
    return;
  }
  segments.kept.emplace(length_, Kept{path_, base_});
  segments.kept_bytes += length_;
}

void Segment::vacate() {
  if (vacant_) return;
  // The charge stays this process's, with nothing on it: nobody else is to count the memory meanwhile.
  madvise(static_cast<char*>(base_) + kHeaderBytes, length_ - kHeaderBytes, MADV_REMOVE);
  if (charge_ != nullptr) credit_memory(charge_, header().bytes);
  vacant_ = true;
}

void Segment::occupy() {
  if (!vacant_) return;
  const Descriptor file(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (file.number < 0) no_memory(header().bytes, errno);
  const int error = posix_fallocate(file.number, static_cast<off_t>(kHeaderBytes), header().bytes);
  if (error != 0) no_memory(header().bytes, error);
  if (charge_ != nullptr) charge_again(charge_, header().bytes);
  vacant_ = false;
}

Segment::Header& Segment::header() const { return *static_cast<Header*>(base_); }

void Segment::charge_if_nobody_does() {
  uint32_t nobody = 0;
  if (header().counted_by.compare_exchange_strong(nobody, static_cast<uint32_t>(getpid()))) {
    charge_ = charge_memory(header().bytes, header().tag);
  }
}

at::Tensor Segment::tensor(at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  // A tensor keeps its mapping; the mapping keeps no tensor.
  auto* context = new std::shared_ptr<Segment>(shared_from_this());
  c10::DataPtr data(static_cast<char*>(base_) + kHeaderBytes, context, &release_context, c10::Device(c10::DeviceType::CPU));
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(header().bytes), std::move(data), nullptr, false);
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(dtype));
  tensor.set_(storage, offset, sizes, strides);
  return tensor;
}

void Segment::add_name(const std::string& name) const {
  if (link(path_.c_str(), shared_path(name).c_str()) != 0) no_memory(header().bytes, errno);
}

int32_t Segment::claim_slot() {
  for (int32_t index = 0; index < kNumSlots; ++index) {
    uint32_t expected = kFree;
    if (slot(index).compare_exchange_strong(expected, kUnderWay)) return index;
  }
  return kNoSlot;
}

std::atomic<uint32_t>& Segment::slot(int32_t index) const { return header().slots[index]; }

}  // namespace troupe
