// Mapped files in no use, kept for the next one of their size: pages that are new have to be cleared first. What is kept and
// what is in use together never exceed what was in use at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace troupe {

// A file and the address at which all of it is mapped.
struct Mapping {
  std::string path;
  void* base;
  size_t length;
};

// Counts a mapping that was made as in use.
void begin_use(const Mapping& mapping);
// A kept mapping of this length, in use from now on; none where there is none.
std::optional<Mapping> reuse_mapping(size_t length);
// Ends the use of a mapping. It is kept where it may be used again and where there is room, else it and its file go.
void end_use(Mapping mapping, bool reusable);
// Gives all that is kept back to the system.
void release_kept_mappings();

}  // namespace troupe
