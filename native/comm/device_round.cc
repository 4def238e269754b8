#include "comm/device_round.h"

#include "comm/rank_order.h"

namespace troupe::comm {
namespace {

using Parts = std::vector<Operation>;

at::Tensor elements(const at::Tensor& contiguous) { return contiguous.view(-1); }

void copy(const at::Tensor& to, const at::Tensor& from) {
  if (from.numel() > 0 && !to.is_same(from)) to.copy_(from);
}

// Reduces `sources`, into `destinations`, which may be among them.
void reduce(Reduction reduction, const std::vector<at::Tensor>& sources, const std::vector<at::Tensor>& destinations) {
  const at::Tensor& first = destinations[0];
  std::vector<at::Tensor> here;
  for (const at::Tensor& source : sources) here.push_back(source.to(first.device()));
  reduce_tensors(reduction, here, first);
  for (size_t i = 1; i < destinations.size(); i++) copy(destinations[i], first);
}

std::vector<at::Tensor> inputs_of(const Parts& parts) {
  std::vector<at::Tensor> inputs;
  for (const Operation& part : parts) inputs.push_back(elements(part.input));
  return inputs;
}

std::vector<at::Tensor> outputs_of(const Parts& parts) {
  std::vector<at::Tensor> outputs;
  for (const Operation& part : parts) outputs.push_back(elements(part.output));
  return outputs;
}

void reduce_scatter(const Parts& parts) {
  const std::vector<at::Tensor> inputs = inputs_of(parts), outputs = outputs_of(parts);
  const int64_t numel = outputs[0].numel();
  for (size_t rank = 0; rank < parts.size(); rank++) {
    std::vector<at::Tensor> slices;
    for (const at::Tensor& input : inputs) slices.push_back(input.narrow(0, static_cast<int64_t>(rank) * numel, numel));
    reduce(parts[0].reduction, slices, {outputs[rank]});
  }
}

void all_gather(const Parts& parts) {
  const std::vector<at::Tensor> inputs = inputs_of(parts), outputs = outputs_of(parts);
  int64_t begin = 0;
  for (const at::Tensor& input : inputs) {
    for (const at::Tensor& output : outputs) {
      const at::Tensor place = output.narrow(0, begin, input.numel());
      // A rank's own slice of its output is often its input.
      if (place.data_ptr() != input.data_ptr()) copy(place, input);
    }
    begin += input.numel();
  }
}

void all_to_all(const Parts& parts) {
  std::vector<int64_t> filled(parts.size(), 0);
  for (size_t from = 0; from < parts.size(); from++) {
    const at::Tensor& input = parts[from].input;
    const int64_t row = input.size(0) == 0 ? 0 : input.numel() / input.size(0);
    int64_t begin = 0;
    for (size_t to = 0; to < parts.size(); to++) {
      const int64_t numel = parts[from].input_splits[to] * row;
      copy(elements(parts[to].output).narrow(0, filled[to], numel), elements(input).narrow(0, begin, numel));
      begin += numel;
      filled[to] += numel;
    }
  }
}

}  // namespace

void run_on_device(const std::vector<Operation>& parts) {
  const Operation& first = parts[0];
  switch (first.kind) {
    case Kind::barrier: return;
    case Kind::all_reduce: return reduce(first.reduction, inputs_of(parts), outputs_of(parts));
    case Kind::reduce:
      return reduce(first.reduction, inputs_of(parts), {elements(parts[static_cast<size_t>(first.peer)].output)});
    case Kind::reduce_scatter: return reduce_scatter(parts);
    case Kind::all_gather: return all_gather(parts);
    case Kind::all_to_all: return all_to_all(parts);
    case Kind::broadcast: {
      const at::Tensor& source = parts[static_cast<size_t>(first.peer)].input;
      for (const Operation& part : parts) copy(part.output, source);
      return;
    }
    case Kind::send:
    case Kind::recv: return copy(parts[1].output, parts[0].input);
  }
}

}  // namespace troupe::comm
