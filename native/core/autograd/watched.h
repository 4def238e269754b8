// A seam for programs: what Troupe's kernels tell autograd may be recorded beside it, or taken in its place.
#pragma once

#include "core/autograd/differentiable.h"

namespace troupe {

// Sees what the calling thread's kernels tell autograd. One at a time; null for nearly all of a thread's life.
class AutogradWatcher {
 public:
  virtual ~AutogradWatcher() = default;
  // Whether a kernel's gradients are wanted, where autograd's own answer is `asked`.
  virtual bool wants(bool asked) = 0;
  // A backward and what it saved; true if it was taken, and autograd makes no node. Otherwise `index` names the node later.
  virtual bool take(Backward& backward, const Tensors& saved, int64_t& index) = 0;
  // A node that was named ran.
  virtual void ran(int64_t index, const Tensors& gradients, const Tensors& results) = 0;
  // Runs `body` while nothing that it calls is seen.
  virtual Tensors unseen(const std::function<Tensors()>& body) = 0;
};

AutogradWatcher*& autograd_watcher();

}  // namespace troupe
