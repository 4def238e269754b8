#include "core/memory/shared_folder.h"

#include <atomic>

#include "core/error.h"
#include "core/memory/kept_mappings.h"

namespace troupe {
namespace {

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

}  // namespace

void enter_shared_folder(const std::string& folder, int32_t process_index) {
  if (in_shared_folder()) {
    throw CodedError("SHARED_FOLDER_TAKEN",
                     "[shared memory] expected one system with processes at a time, got a second beside that in " + place().folder +
                         " (stop that system first)",
                     {{"folder", place().folder}});
  }
  place().folder = folder;
  place().process_index = process_index;
}

void leave_shared_folder() {
  release_kept_mappings();
  place().folder.clear();
}

bool in_shared_folder() { return !place().folder.empty(); }
const std::string& shared_folder() { return place().folder; }
int32_t shared_process_index() { return place().process_index; }
std::string shared_path(const std::string& name) { return place().folder + "/" + name; }

std::string new_shared_path() {
  return shared_path("p" + std::to_string(place().process_index) + "-" + std::to_string(place().next_name.fetch_add(1)));
}

}  // namespace troupe
