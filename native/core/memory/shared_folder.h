// The folder of the memory that processes of one host share: each file in it is one segment.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

// Names the folder, and this process's number in it. Before it, this process shares memory with no other. Throws CodedError
// SHARED_FOLDER_TAKEN while it is in another one.
void enter_shared_folder(const std::string& folder, int32_t process_index);
// Takes that back; tensors in shared memory live on, and what is kept for reuse is given back to the system.
void leave_shared_folder();
// Whether this process is in one.
bool in_shared_folder();
// The folder; empty where there is none.
const std::string& shared_folder();
// This process's number.
int32_t shared_process_index();
// A file of the folder.
std::string shared_path(const std::string& name);
// A new path in the folder for this process, `p<index>-<n>`.
std::string new_shared_path();

}  // namespace troupe
