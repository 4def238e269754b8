#include "core/tensors/exported_tensor.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <mutex>

#include "core/memory/allocator.h"
#include "core/device/device.h"
#include "core/error.h"
#include "core/memory/shared_folder.h"
#include "core/memory/shared_segment.h"

namespace troupe {
namespace {

// Holds a loan here on behalf of a reader in another process.
struct Proxy {
  std::shared_ptr<Segment> segment;
  int32_t slot;
  std::string name;  // under which the tensor was sent
  std::shared_ptr<const Loan> loan;
};

struct Proxies {
  std::mutex mutex;
  std::list<Proxy> waiting;
};

Proxies& proxies() {
  static Proxies* const instance = new Proxies;
  return *instance;
}

bool is_over(const Proxy& proxy, bool ask_system) {
  const uint32_t state = proxy.segment->slot(proxy.slot).load();
  if (state == Segment::kReturned) return true;
  if (!ask_system) return false;
  if (state == Segment::kUnderWay) {
    // Without a name no process can take it; a process that has just taken it claimed the slot before it removed the name.
    const bool unnamed = access(shared_path(proxy.name).c_str(), F_OK) != 0;
    return unnamed && proxy.segment->slot(proxy.slot).load() == Segment::kUnderWay;
  }
  return kill(static_cast<pid_t>(state), 0) != 0 && errno == ESRCH;
}

std::string name_prefix(RefId ref) {
  return "r" + std::to_string(shared_process_index()) + "-" + std::to_string(ref.id) + "-" + std::to_string(ref.generation) +
         "@";
}

// Part of a file's name.
std::string as_name(const std::string& owner) {
  std::string name = owner;
  for (char& character : name) {
    if (character == '/') character = '_';
  }
  return name.substr(0, 200);
}

// Removes the files of the folder whose names match; returns how many.
template <typename Matches>
int64_t remove_names(Matches matches) {
  if (!in_shared_folder()) return 0;
  DIR* const folder = opendir(shared_path("").c_str());
  if (folder == nullptr) return 0;
  int64_t removed = 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name[0] == 'r' && matches(name) && unlink(shared_path(name).c_str()) == 0) ++removed;
  }
  closedir(folder);
  return removed;
}

at::Tensor copy_into_shared(const at::Tensor& tensor) {
  const auto segment = Segment::create(static_cast<int64_t>(tensor.numel() * tensor.element_size()), tag_of(tensor.storage().data_ptr()), false);
  std::vector<int64_t> strides(static_cast<size_t>(tensor.dim()), 1);
  for (int64_t dim = tensor.dim() - 2; dim >= 0; --dim) {
    strides[static_cast<size_t>(dim)] = strides[static_cast<size_t>(dim) + 1] * tensor.size(dim + 1);
  }
  at::Tensor copy = segment->tensor(tensor.scalar_type(), tensor.sizes(), strides, 0);
  if (!tensor.is_cpu()) count_read_back();
  copy.copy_(tensor);
  return copy;
}

std::shared_ptr<const Loan> reader_of(const std::shared_ptr<Segment>& segment, int32_t slot) {
  return {new Loan{{}, {}}, [segment, slot](const Loan* loan) {
            segment->slot(slot).store(Segment::kReturned);
            delete loan;
          }};
}

}  // namespace

ExportedTensor export_ref(RefId ref) {
  settle_exports(false);
  PendingRef pending = take_ref(ref);
  pending.ready.hold_back();
  at::Tensor tensor = pending.tensor;
  std::shared_ptr<Segment> segment = Segment::of(tensor);
  if (segment == nullptr) {
    tensor = copy_into_shared(tensor);
    segment = Segment::of(tensor);
  }
  const std::string name = name_prefix(ref) + as_name(pending.owner);
  int32_t slot = Segment::kNoSlot;
  if (pending.guard.borrowed) {
    slot = segment->claim_slot();
    if (slot == Segment::kNoSlot) {
      throw CodedError("TENSOR_TOO_MANY", "[attach] expected at most 1000 loans of one tensor between processes, got one more");
    }
  }
  segment->add_name(name);
  if (slot != Segment::kNoSlot) {
    const std::lock_guard<std::mutex> lock(proxies().mutex);
    proxies().waiting.push_back({segment, slot, name, pending.guard.borrowed});
  }
  return {name,
          pending.owner,
          static_cast<int32_t>(tensor.scalar_type()),
          tensor.sizes().vec(),
          tensor.strides().vec(),
          tensor.storage_offset(),
          pending.guard.read_only,
          slot};
}

RefId import_ref(const ExportedTensor& exported) {
  const auto segment = Segment::take_over(exported.name, exported.slot);
  Guard guard;
  guard.read_only = exported.read_only;
  if (exported.slot != Segment::kNoSlot) guard.borrowed = reader_of(segment, exported.slot);
  const auto dtype = static_cast<at::ScalarType>(exported.dtype);
  const at::Tensor tensor = segment->tensor(dtype, exported.sizes, exported.strides, exported.offset);
  return put_ref({tensor, std::move(guard), exported.owner, {}});
}

bool release_exported(RefId ref) {
  const std::string prefix = name_prefix(ref);
  return remove_names([&](const std::string& name) { return name.compare(0, prefix.size(), prefix) == 0; }) > 0;
}

int64_t release_exported_to(const std::string& owner) {
  const std::string suffix = "@" + as_name(owner);
  return remove_names([&](const std::string& name) {
    return name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  });
}

void settle_exports(bool all) {
  std::list<Proxy> over;
  {
    Proxies& held = proxies();
    const std::lock_guard<std::mutex> lock(held.mutex);
    for (auto it = held.waiting.begin(); it != held.waiting.end();) {
      const auto here = it++;
      if (is_over(*here, all)) over.splice(over.end(), held.waiting, here);
    }
  }
  for (Proxy& proxy : over) proxy.segment->slot(proxy.slot).store(Segment::kFree);
}

}  // namespace troupe
