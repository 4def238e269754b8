#include "core/memory/shared_segment.h"

#include <ATen/ops/empty.h>
#include <c10/core/Storage.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/memory/allocator.h"
#include "core/error.h"
#include "core/memory/reserve_file.h"
#include "core/memory/shared_folder.h"

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

[[noreturn]] void no_memory(int64_t bytes, int error) {
  throw CodedError("SHARED_MEMORY_FULL",
                   "[shared memory] expected room for " + std::to_string(bytes) + " bytes in " + shared_folder() + ", got \"" +
                       std::strerror(error) + "\" (give the place more room, as docker run --shm-size does, or use placement \"thread\")",
                   {{"bytes", std::to_string(bytes)}, {"folder", shared_folder()}});
}

[[noreturn]] void refuse(int64_t bytes) {
  throw CodedError("SHARED_MEMORY_REFUSED",
                   "[shared memory] expected no tensor in memory that processes share, got one of " + std::to_string(bytes) +
                       " bytes (this process shares none: carry tensors over a group, or as bytes of a message)",
                   {{"bytes", std::to_string(bytes)}});
}

[[noreturn]] void gone(const std::string& name) {
  throw CodedError("TENSOR_REF_GONE",
                   "[attach] expected a tensor under way from another process, got " + name +
                       ", which was taken or released before, or whose sender has ended (a ref can be attached once)",
                   {{"name", name}});
}

// Frees the context of a storage of ours. `Segment::of` recognises our storages by this function.
void release_context(void* context) { delete static_cast<std::shared_ptr<Segment>*>(context); }

// A second name is another process's, or of a ref under way; and of a folder that was left nothing is kept.
bool is_only_mine(const std::string& path) {
  struct stat status {};
  if (!in_shared_folder() || path.compare(0, shared_folder().size() + 1, shared_folder() + "/") != 0) return false;
  return stat(path.c_str(), &status) == 0 && status.st_nlink == 1;
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

std::shared_ptr<Segment> Segment::create(int64_t bytes, const std::string& tag, bool charged) {
  static_assert(sizeof(Header) <= kHeaderBytes, "the header has its pages");
  std::optional<Mapping> kept = reuse_mapping(kHeaderBytes + static_cast<size_t>(bytes));
  std::shared_ptr<Segment> segment = kept ? std::shared_ptr<Segment>(new Segment(std::move(*kept))) : make(bytes);
  segment->header().bytes = bytes;
  std::strncpy(segment->header().tag, tag.c_str(), sizeof(Header::tag) - 1);
  if (charged) segment->charge_if_nobody_does();
  return segment;
}

std::shared_ptr<Segment> Segment::make(int64_t bytes) {
  if (!in_shared_folder() || std::getenv("TROUPE_REFUSE_SHARED_MEMORY") != nullptr) refuse(bytes);
  const std::string path = new_shared_path();
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.number < 0) no_memory(bytes, errno);
  const int error = reserve_file(file.number, 0, static_cast<int64_t>(kHeaderBytes) + bytes);
  if (error != 0) {
    unlink(path.c_str());
    no_memory(bytes, error);
  }
  return map(file.number, path);
}

std::shared_ptr<Segment> Segment::take_over(const std::string& name, int32_t slot) {
  const Descriptor file(open(shared_path(name).c_str(), O_RDWR | O_CLOEXEC));
  if (file.number < 0) gone(name);
  const std::string own_path = new_shared_path();
  auto segment = map(file.number, own_path);
  if (slot != kNoSlot) {
    // Before the name is gone: without either, the sender would take the tensor for released.
    uint32_t under_way = kUnderWay;
    if (!segment->slot(slot).compare_exchange_strong(under_way, static_cast<uint32_t>(getpid()))) gone(name);
  }
  // If two processes open the file, one renames it; the other finds no such name.
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
  Mapping mapping{std::move(path), base, length};
  begin_use(mapping);
  return std::shared_ptr<Segment>(new Segment(std::move(mapping)));
}

Segment::~Segment() {
  if (charge_ != nullptr) {
    if (!vacant_) credit_memory(charge_, header().bytes);
    header().counted_by.store(0);
  }
  // Only reserved memory is kept for reuse.
  const bool reusable = !vacant_ && is_only_mine(mapping_.path);
  end_use(std::move(mapping_), reusable);
}

void Segment::vacate() {
  if (vacant_) return;
  // The charge stays this process's, with nothing on it: nobody else is to count the memory meanwhile.
  release_pages();
  if (charge_ != nullptr) credit_memory(charge_, header().bytes);
  vacant_ = true;
}

void Segment::release_pages() {
  madvise(static_cast<char*>(mapping_.base) + kHeaderBytes, mapping_.length - kHeaderBytes, MADV_REMOVE);
}

void Segment::occupy() {
  if (!vacant_) return;
  const Descriptor file(open(mapping_.path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.number < 0) no_memory(header().bytes, errno);
  const int error = reserve_file(file.number, static_cast<int64_t>(kHeaderBytes), header().bytes);
  if (error != 0) {
    release_pages();  // those that it got
    no_memory(header().bytes, error);
  }
  if (charge_ != nullptr) charge_again(charge_, header().bytes);
  vacant_ = false;
}

Segment::Header& Segment::header() const { return *static_cast<Header*>(mapping_.base); }

void Segment::charge_if_nobody_does() {
  uint32_t nobody = 0;
  if (header().counted_by.compare_exchange_strong(nobody, static_cast<uint32_t>(getpid()))) {
    charge_ = charge_memory(header().bytes, header().tag);
  }
}

at::Tensor Segment::tensor(at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  // A tensor keeps its mapping; the mapping keeps no tensor.
  auto* context = new std::shared_ptr<Segment>(shared_from_this());
  c10::DataPtr data(static_cast<char*>(mapping_.base) + kHeaderBytes, context, &release_context, c10::Device(c10::DeviceType::CPU));
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(header().bytes), std::move(data), nullptr, false);
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(dtype));
  tensor.set_(storage, offset, sizes, strides);
  return tensor;
}

void Segment::add_name(const std::string& name) const {
  if (link(mapping_.path.c_str(), shared_path(name).c_str()) != 0) no_memory(header().bytes, errno);
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
