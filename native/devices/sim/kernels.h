// The registrations that open() makes, file by file.
#pragma once

#include <ATen/core/operator_name.h>
#include <torch/library.h>

#include <string>

namespace troupe::sim {

void register_copies(torch::Library& aten);     // copies.cc, of PrivateUse1
void register_observe(torch::Library& troupe);  // copies.cc, of PrivateUse1
void register_graphs(torch::Library& troupe);   // graphs.cc, of AutogradPrivateUse1
void register_autocast(torch::Library& aten);   // autocast.cc, of AutocastPrivateUse1
void register_chains();                         // chains.cc

inline std::string qualified(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

}  // namespace troupe::sim
