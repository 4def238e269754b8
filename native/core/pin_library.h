#pragma once

namespace troupe {

// Keeps this library and libtorch loaded for the life of the process. Node unloads an addon when the last thread that
// loaded it ends; threads of libtorch, OpenMP and Gloo, which nobody can join, would then run in unmapped code.
void pin_library();

}  // namespace troupe
