// A block's operators, forward and backward, recorded once and replayed by one call: below autograd, without JavaScript, nodes or
// handles between them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/differentiable.h"
#include "core/programs/chain.h"
#include "core/programs/chain_runner.h"
#include "core/programs/fuse.h"
#include "core/programs/heads.h"

namespace troupe {

// A place for a tensor while a program runs. -1 stands for no tensor.
using Slot = int32_t;
constexpr Slot kNoSlot = -1;

// How a tensor lies in a storage.
struct Geometry {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;  // elements
  at::ScalarType dtype = at::kFloat;

  static Geometry of(const at::Tensor& tensor);
  bool operator==(const Geometry& o) const {
    return offset == o.offset && dtype == o.dtype && sizes == o.sizes && strides == o.strides;
  }
};

int64_t numel_of(const Geometry& geometry);
// Whether it has elements, in row-major order without gaps.
bool is_dense(const Geometry& geometry);

// An argument of an instruction.
struct Operand {
  enum class Kind : uint8_t { constant, tensor, tensors, late, late_list };
  Kind kind = Kind::constant;
  c10::IValue constant;
  std::vector<Slot> slots;  // one for `tensor`
  int32_t late = 0;         // index of a number, or of a list of tensors, that each call is given
};

struct Instruction {
  enum class Kind : uint8_t {
    atomic,    // an operator of libtorch, below autograd
    own,       // an operator of Troupe's, with all that it calls
    view,      // another look at a slot's memory
    gradient,  // a backward that an `own` instruction of forward left
    chain,     // elementwise operators in one pass
    product,   // a product over tiles, with what follows it
    heads      // products of heads where they lie
  };
  Kind kind = Kind::atomic;
  std::optional<c10::OperatorHandle> op;
  std::vector<Operand> operands;
  std::vector<Slot> results;
  bool lists = false;           // the only result is a list of tensors
  Geometry geometry;            // of a view; its offset counts from that of its base
  int32_t backward = -1;        // `gradient`: which
  std::vector<bool> wants;      // `own`: the answers to whether gradients are wanted
  std::optional<at::ScalarType> autocast;  // `own`: what it casts to
  int32_t num_backwards = 0;    // `own`: the backwards that it leaves
  bool walks_again = false;     // `gradient`: whether a later instruction walks the same backward
  std::shared_ptr<const Chain> chain;
  std::shared_ptr<const FusedProduct> product;
  std::shared_ptr<const HeadsProduct> heads;
  std::vector<Slot> last_uses;  // slots that nobody reads afterwards
  bool for_results = false;     // of forward: backward needs nothing that it computes

  std::string name() const;
};

// Calls visit(slot) for each that an instruction reads.
template <class Visit>
void each_read(const Instruction& instruction, const Visit& visit) {
  for (const Operand& operand : instruction.operands) {
    for (const Slot slot : operand.slots) {
      if (slot != kNoSlot) visit(slot);
    }
  }
}

// The facts of an argument that a program holds for.
struct ArgumentFacts {
  Geometry geometry;  // the offset counts from the first argument in the same storage
  bool requires_grad = false;
  int32_t first_of_storage = 0;
};
std::vector<ArgumentFacts> facts_of(const Tensors& arguments);

// A call's values between forward and backward.
struct Played {
  struct Left {
    Backward backward;
    Tensors saved;
  };
  std::vector<at::Tensor> slots;
  std::vector<Left> backwards;
  std::vector<int64_t> late;
  std::vector<Tensors> lists;  // of any lengths, for operators of Troupe's that take them
  std::vector<std::pair<Slot, at::Tensor>> places;  // where products of backward are to be written

  // Undefined if a slot's tensor gets memory of its own.
  at::Tensor place_of(Slot slot) const;
};

// Writes a @ b to a place, or adds it to one of float32.
void multiply_into(at::Tensor place, const at::Tensor& a, const at::Tensor& b);

// Memory for the gradient with this index: from an element of a flat tensor on. If that is float32 and the gradient is not, it has a sum,
// to which the gradient is added.
struct GradientPlace {
  size_t gradient;
  at::Tensor flat;
  int64_t begin;
};

// The purpose of a replay of forward. A call whose activations were dropped is replayed again, for backward alone.
enum class Purpose : uint8_t { results, results_and_backward, backward };

class Program {
 public:
  // Whether it holds for arguments like these.
  bool fits(const Tensors& arguments) const;

  // Computes forward. Results are fresh tensors without a graph; for backward alone there are none.
  // `played` has the numbers and lists of the call.
  Tensors forward(const Tensors& arguments, Purpose purpose, Played& played) const;

  // Whether backward holds for gradients that lie as these do.
  bool takes(const Tensors& gradients) const;

  // The gradients, undefined where there are none; of the results that had gradients when it was recorded, in order. Those that are
  // products of bfloat16 matrices lie in their `places`, if they have one.
  Tensors backward(const Tensors& gradients, Played& played, const std::vector<GradientPlace>& places = {}) const;

  // A line for each instruction of a half, in order: what it gives, its name, what it reads.
  std::vector<std::string> describe(bool backward) const;

  // Why the two do not compute the same by the same operators and numbers; empty if they do.
  std::string difference(const Program& other) const;

  c10::Device device{c10::kCPU};  // of all its tensors
  int64_t num_slots = 0;
  std::vector<Geometry> geometries;  // by slot, as it was recorded
  std::array<size_t, 2> num_issued{};  // operators of forward and of backward where they are issued singly, views included
  std::vector<ArgumentFacts> arguments;
  std::vector<at::Tensor> bound;     // slots behind the arguments: parameters, buffers and constants
  size_t num_late = 0;
  std::vector<Instruction> forwards;
  std::vector<Slot> results;
  std::vector<Slot> gradient_slots;  // where backward's arguments go; kNoSlot where one has no use
  std::vector<Instruction> backwards;
  std::vector<Slot> gradients;       // of what backward was asked for
  std::vector<bool> lasts;           // by slot: whether backward reads it
  std::vector<Slot> placed;          // by gradient: the product that may be written elsewhere; kNoSlot for none
  std::vector<bool> added;           // by gradient: whether that product may be added to what is there

  std::vector<std::pair<Slot, at::Tensor>> literals;   // made of numbers of the caller's; small
  std::vector<std::pair<Slot, at::Tensor>> constants;  // what no call changes; small
  std::vector<bool> written;                           // by slot: whether its memory is written in place
  RunChain run_on_device = nullptr;                    // chains of a device's tensors; null on the host
  bool on_one_thread = false;                          // each operator is over before another thread has woken

  // Makes it cheaper, once it is sure; before its first call. `fast`: with other bits, where that is quicker.
  void improve(bool fast);

 private:
  // By slot, how often it is read, results and gradients by the caller.
  std::vector<int32_t> count_readers() const;
  void place_gradients(const std::vector<GradientPlace>& places, Played& played) const;
  void fold_constants();
  // Leaves out instructions that compute only what nobody reads.
  void drop_unread();
  // Finds out which instructions walk a backward that a later one walks again.
  void mark_walks();
  void fuse_products();
  void join_heads();
  void join_elementwise(bool fast);
  // Finds the last uses, and what forward computes for its results alone.
  void plan_memory();
  void find_placed();
  bool is_small() const;
};

}  // namespace troupe
