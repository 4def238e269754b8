// Records the operators of one call of a block, forward and backward, while they compute as ever.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd/watched.h"
#include "core/programs/program.h"

namespace troupe {

// Whether this libtorch has a place between autograd and the kernels where operators can be seen.
bool can_record_programs();

class Recording final : public AutogradWatcher {
 public:
  // `arguments`: of the call; `parameters`: what else it may read and what stays where it is from call to call; `lists`: lists of tensors
  // that operators of Troupe's take, of which each call has its own.
  Recording(Tensors arguments, const Tensors& parameters, std::vector<Tensors> lists);
  ~Recording() override;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The one that sees the calling thread's operators now.
  static Recording* present();

  // From here to `pause` the calling thread's operators are seen.
  void begin();
  void pause();

  // Ends forward. `draws`: the streams of random numbers that it drew, in order.
  void end_forward(const Tensors& results, const std::vector<int64_t>& draws);
  // Makes a tensor of the caller's numbers, of which every replay has a copy.
  at::Tensor literal(const std::function<at::Tensor()>& make);
  // Ends a program of forward alone.
  void finish();
  // Begins backward, from gradients of `results[i]` for which `gradients[i]` is defined.
  void begin_backward(const Tensors& gradients);
  // Ends it with what it returned. The program is complete, unless refused.
  void end_backward(const Tensors& made);

  // Calls one of Troupe's own operators, which is recorded as one.
  void call_own(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  // Calls one of libtorch's, below autograd.
  void call_atomic(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

  // Why no program comes of it; empty if one does.
  const std::string& refusal() const { return refusal_; }
  void refuse(const std::string& reason);

  std::shared_ptr<Program> program() const { return program_; }

  bool wants(bool asked) override;
  bool take(Backward& backward, const Tensors& saved, int64_t& index) override;
  void ran(int64_t index, const Tensors& gradients, const Tensors& results) override;
  Tensors unseen(const std::function<Tensors()>& body) override;

 private:
  Slot add(const at::Tensor& tensor);
  // The slot of what an instruction made: kNoSlot for known memory, which is looked at where it is read.
  Slot add_made(const at::Tensor& tensor);
  // Whether it is an argument or bound.
  bool is_given(Slot slot) const { return static_cast<size_t>(slot) < program_->arguments.size() + program_->bound.size(); }
  // The slot of a tensor that the program has or can look at; refuses and returns kNoSlot for others.
  Slot find(const at::Tensor& tensor, const std::string& reader);
  Operand operand(const c10::IValue& value, const c10::Argument& argument, const std::string& op);
  std::vector<Operand> operands(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  void note(Instruction instruction, const c10::OperatorHandle& op, const std::vector<c10::IValue>& given,
            const torch::jit::Stack& stack);
  // Whether an instruction gives the same in every call, as a mask of the shape alone does.
  bool is_constant(const Instruction& instruction) const;
  void keep_constant(Slot slot, const at::Tensor& tensor);
  // Finds the stream of each instruction that draws among those of the call.
  void settle_draws(std::vector<Instruction>& instructions);
  std::vector<Instruction>& half() { return is_backward_ ? program_->backwards : program_->forwards; }

  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  // The tensor of each slot; kept, so that no storage is used twice.
  std::vector<at::Tensor> values_;
  std::vector<bool> constant_;  // by slot
  std::vector<bool> literal_;   // by slot
  std::vector<int64_t> draws_;
  const std::vector<Tensors> lists_;
  std::unordered_map<const c10::StorageImpl*, std::vector<Slot>> slots_of_;
  Instruction* own_ = nullptr;  // the operator of Troupe's that runs
  int64_t num_backwards_ = 0;
  bool is_backward_ = false;
  std::string refusal_;
  AutogradWatcher* outer_ = nullptr;
  bool runs_ = false;
};

}  // namespace troupe
