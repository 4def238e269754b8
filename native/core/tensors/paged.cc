#include "core/tensors/paged.h"

#include <ATen/ops/empty.h>
#include <c10/core/Storage.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/memory/allocator.h"
#include "core/error.h"
#include "core/memory/shared_folder.h"
#include "core/memory/shared_segment.h"

namespace troupe {
namespace {

int64_t whole_pages(int64_t bytes) {
  static const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

// Pages of this process alone.
struct Pages {
  void* base;
  int64_t bytes;
  void* charge;
  bool occupied = true;

  ~Pages() {
    if (occupied) credit_memory(charge, bytes);
    munmap(base, static_cast<size_t>(bytes));
  }
};

// Frees the context of a storage of ours. `pages_of` recognises our storages by this function.
void release_pages(void* context) { delete static_cast<Pages*>(context); }

Pages* pages_of(const at::Tensor& tensor) {
  const c10::DataPtr& data = tensor.storage().data_ptr();
  return data.get_deleter() == &release_pages ? static_cast<Pages*>(data.get_context()) : nullptr;
}

at::Tensor pages_of_this_process(int64_t bytes) {
  void* base = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK_WITH(OutOfMemoryError, base != MAP_FAILED, "[paged] expected address space for ", bytes, " bytes, got \"", std::strerror(errno),
                   "\"");
  madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  auto* pages = new Pages{base, bytes, charge_memory(bytes, present_tag())};
  c10::DataPtr data(base, pages, &release_pages, c10::Device(c10::DeviceType::CPU));
  const c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), std::move(data), nullptr, false);
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(at::kByte));
  tensor.set_(storage, 0, {bytes}, {1});
  return tensor;
}

std::shared_ptr<Segment> segment_of(const at::Tensor& tensor) {
  auto segment = Segment::of(tensor);
  if (segment == nullptr) throw CodedError("TENSOR_ARGUMENT", "[paged] memory of pages of its own was expected (see emptyPaged)");
  return segment;
}

}  // namespace

at::Tensor paged_memory(int64_t bytes) {
  const int64_t length = whole_pages(bytes);
  if (!in_shared_folder()) return pages_of_this_process(length);
  return Segment::create(length, present_tag(), true)->tensor(at::kByte, {length}, {1}, 0);
}

void vacate_pages(const at::Tensor& tensor) {
  Pages* pages = pages_of(tensor);
  if (pages == nullptr) return segment_of(tensor)->vacate();
  if (!pages->occupied) return;
  madvise(pages->base, static_cast<size_t>(pages->bytes), MADV_DONTNEED);
  credit_memory(pages->charge, pages->bytes);
  pages->occupied = false;
}

void occupy_pages(const at::Tensor& tensor) {
  Pages* pages = pages_of(tensor);
  if (pages == nullptr) return segment_of(tensor)->occupy();
  if (pages->occupied) return;
  charge_again(pages->charge, pages->bytes);
  pages->occupied = true;
}

void mark_offloaded(HandleTable& handles, const std::vector<Handle>& tensors, bool offloaded) {
  for (const Handle tensor : tensors) {
    handles.identity(tensor, "markOffloaded");
    handles.changeable_guard(tensor).offloaded = offloaded;
  }
}

}  // namespace troupe
