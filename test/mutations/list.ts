import type { Catcher, Mutation } from "./mutation.ts";

const by = (file: string, ...titles: readonly string[]): Catcher => ({ file, titles });

const ownership = "test/access/ownership.test.ts";
const fences = "test/devices/fences.test.ts";
const readLate = "only the reader of a tensor waits for it, and only when it reads";
const behindSender = "are read behind what their sender computed, moved or shared";
const behindReaders = "are written again only behind what their readers have read";
const betweenThreads =
  "are reduced and gathered by threads behind what each has computed, and read behind the result, on one device";
const behindHost =
  "are read behind what a thread of the host has written, which heard of another device first";
const byMessages =
  "buffers are overwritten only after the copies that messages ordered another device to make";
const keepMemory = "keep their memory until the stream that they went to has read it";
const nccl = "test/collectives/nccl.test.ts";
const behindNccl =
  "are reduced, gathered and sent behind what each rank has computed, and read behind the result";
const hostOptimizer = "has them with its optimizer on the host, however late the device is";
const simTraining = "test/devices/sim-training.test.ts";
const simPrograms = "test/devices/sim-programs.test.ts";
const replayedLate = "is replayed late, whatever the schedule, to the CPU's bits, and waits for nothing";
const simGraphs = "test/devices/sim-graphs.test.ts";
const captured =
  "has the bits of single operators at each launch, whatever the schedule, and waits for nothing";
const activations = "test/offload/host-activations.test.ts";
const comeBack =
  "come back as they were, whatever uses their device's memory meanwhile, and are waited for by nobody";
const schedules = "test/optim/schedule.test.ts";
const scales = "test/optim/loss-scale.test.ts";
const bmtrainOptim = "test/optim/bmtrain.test.ts";
const parameters = "test/acceptance/bmtrain/parameters.test.ts";
const blocks = "test/acceptance/bmtrain/blocks.test.ts";
const layouts = "test/acceptance/bmtrain/layouts.test.ts";
const frozen = "test/acceptance/bmtrain/frozen.test.ts";
const training = "test/acceptance/bmtrain/training.test.ts";
const constants = "test/trainer/training/constants.test.ts";
const refusals = "test/acceptance/bmtrain/refusals.test.ts";
const blockRefusals = "test/parallel/block-refusals.test.ts";
const model = "test/trainer/inspection/model.test.ts";
const tensors = "test/trainer/inspection/tensors.test.ts";
const updates = "test/trainer/inspection/updates.test.ts";
const losses = "test/nn/loss.test.ts";
const buffers = "test/trainer/training/buffers.test.ts";
const remembered = "test/trainer/resume/remembered.test.ts";
const collectives = "test/collectives/contract-results.ts";
const adjoints = "test/collectives/contract-gradients.ts";
const together = "test/trainer/layouts/together.test.ts";
const optimizers = "test/trainer/training/optimizers.test.ts";
const layers = "test/parallel/tensor-parallel/layers.test.ts";
const surroundings = "test/acceptance/bmtrain/surroundings.test.ts";
const scaled = "test/trainer/training/loss-scale.test.ts";
const deltas = "test/trainer/training/deltas.test.ts";
const device = "test/trainer/layouts/device.test.ts";
const weights = "test/job/loss-weights.test.ts";
const weighted = "test/trainer/training/weighted-losses.test.ts";
const samples = "test/data/sample-dataset.test.ts";
const loops = "test/trainer/training/loop.test.ts";
const reportedToLinked =
  "a process's end is reported to each process linked with it, even if they never spoke, and to no other";

/** Mistakes that the tests named by the registers of docs/reference must notice. */
export const mutations: readonly Mutation[] = [
  {
    name: "an untrusted file may be a pipe",
    file: "src/errors/untrusted/bounded-file.ts",
    from: "  if (stats.isFile()) return;\n",
    to: "  if (!stats.isDirectory()) return;\n",
    caughtBy: [
      by(
        "test/untrusted/files.test.ts",
        "an untrusted file is read only if it is a regular file of an allowed size, and else refused at once",
      ),
    ],
  },
  {
    name: "a pattern's match is not taken for what has failed",
    file: "src/errors/untrusted/linear-pattern.ts",
    from: "if (memo !== undefined) for (const key of trail) memo[key] = 0;",
    to: "",
    caughtBy: [
      by("test/untrusted/linear-pattern.test.ts", "ends over a text of thousands of characters: %s"),
    ],
  },
  {
    name: "a parameter may hold a parameter",
    file: "src/library/checkpoint/format/torch-file.ts",
    from: "if (made instanceof PickledCall && made.name === PARAMETER)",
    to: "if (made instanceof PickledCall && made.args.length < 0)",
    caughtBy: [
      by(
        "test/checkpoint/torch-file.test.ts",
        "whose parameters hold themselves or each other, however many, is refused by one sentence",
      ),
    ],
  },
  {
    name: "a replayed gradient on the pretend device asks the tensor, not the recording",
    file: "native/devices/sim/graphs.cc",
    from: "wanted.push_back(wants_gradient({input}));",
    to: "wanted.push_back(input.requires_grad());",
    caughtBy: [by(simPrograms, replayedLate)],
  },
  {
    name: "a chain on the pretend device runs before its turn",
    file: "native/devices/sim/chains.cc",
    from: "            [chain, from = std::move(from), to = std::move(to)] { run_chain(*chain, from, to); });",
    to: "            [] {});\n  run_chain(*chain, from, to);",
    caughtBy: [by(simPrograms, replayedLate)],
  },
  {
    name: "a graph reads the arguments of the call before",
    file: "native/core/programs/captured.cc",
    from: "  put_into(arguments_, arguments);\n",
    to: "",
    caughtBy: [by(simGraphs, captured)],
  },
  {
    name: "a call under way has another one's memory",
    file: "native/core/programs/captured.cc",
    from: "    if (call.use_count() == 1) return call;\n",
    to: "    return call;\n",
    caughtBy: [
      by(simGraphs, "keeps calls under way apart, as a pipeline has them, and a result that outlives them"),
    ],
  },
  {
    name: "a replay's views look at a gradient that lies otherwise",
    file: "native/core/programs/program.cc",
    from: "  if (lies_as(geometry, tensor)) return tensor;\n",
    to: "  if (lies_as(geometry, tensor) || geometry.offset >= 0) return tensor;\n",
    caughtBy: [
      by(
        simGraphs,
        "computes backward from a gradient that lies otherwise than the recorded one, singly and as a graph",
      ),
    ],
  },
  {
    name: "a fence stands nowhere",
    file: "native/core/device/fence.cc",
    from: "  fence.event_->record(present_stream(device));\n",
    to: "",
    caughtBy: [by(fences, behindSender, behindReaders, betweenThreads)],
  },
  {
    name: "a stream ignores another device's fence",
    file: "native/core/device/fence.cc",
    from: "  if (ordering_device() != device()) hold_back(ordering_device());\n",
    to: "",
    caughtBy: [by(fences, byMessages, behindHost)],
  },
  {
    name: "a stream does not wait for a fence",
    file: "native/core/device/fence.cc",
    from: "event_->block(present_stream(device));",
    to: "static_cast<void>(present_stream(device));",
    caughtBy: [by(fences, behindSender, behindReaders, betweenThreads)],
  },
  {
    name: "a thread does not wait for a fence",
    file: "native/core/device/fence.cc",
    from: "  event_->synchronize();\n",
    to: "",
    caughtBy: [by(fences, readLate), by(device, hostOptimizer)],
  },
  {
    name: "a writer never learns of a reader's end",
    file: "native/core/device/fence.cc",
    from: "  for (const Fence& fence : fences_) fence.hold_back();\n",
    to: "",
    caughtBy: [by(fences, behindReaders)],
  },
  {
    name: "nobody says which streams use memory",
    file: "native/core/device/fence.cc",
    from: "  guard.recordDataPtrOnStream(tensor.storage().data_ptr(), guard.getStream(tensor.device()));\n",
    to: "",
    caughtBy: [by(fences, keepMemory, betweenThreads)],
  },
  {
    name: "what a message says of its sender's stream is not followed",
    file: "native/core/device/timeline.cc",
    from: "  fence.hold_back();\n",
    to: "",
    caughtBy: [by(fences, byMessages)],
  },
  {
    name: "a thread of the host passes no place on",
    file: "native/core/device/timeline.cc",
    from: "  hear_of_device(fence.device());\n",
    to: "",
    caughtBy: [by(fences, behindHost)],
  },
  {
    name: "messages of threads are taken without their place",
    file: "src/runtime/transport/port-link.ts",
    from: "    this.#order()?.incoming(posted.place);\n",
    to: "",
    caughtBy: [
      by(
        "test/runtime/link.test.ts",
        "between threads goes with each packet how far its sender is, and is heard before the packet is read",
      ),
    ],
  },
  {
    name: "a ref says nothing of its sender's stream",
    file: "native/core/tensors/refs.cc",
    from: "                     Fence::here(tensor.device())};",
    to: "                     Fence()};",
    caughtBy: [by(fences, behindSender)],
  },
  {
    name: "a late value is read before it has come",
    file: "native/core/device/late_values.cc",
    from: "  arrived_.wait();\n",
    to: "",
    caughtBy: [by(fences, readLate)],
  },
  {
    name: "who attaches a ref does not wait for its sender's stream",
    file: "native/core/tensors/refs.cc",
    from: "  pending.ready.hold_back();\n  use_in_stream",
    to: "  use_in_stream",
    caughtBy: [by(fences, behindSender)],
  },
  {
    name: "memory that went to another stream is free at once",
    file: "native/core/tensors/refs.cc",
    from: "  use_in_stream(pending.tensor);\n",
    to: "",
    caughtBy: [by(fences, keepMemory)],
  },
  {
    name: "a reader in another stream does not say where it ended",
    file: "native/core/tensors/refs.cc",
    from: "            reading->upstream->departures->add(Fence::here(device));\n",
    to: "",
    caughtBy: [by(fences, behindReaders)],
  },
  {
    name: "a writer does not wait for readers in other streams",
    file: "native/core/tensors/handles.cc",
    from: "  if (guard(handle).departures) guard(handle).departures->hold_back();\n",
    to: "",
    caughtBy: [by(fences, behindReaders)],
  },
  {
    name: "a copy to the host goes ahead of what it copies",
    file: "native/core/device/beside.cc",
    from: "  before.hold_back(device);\n",
    to: "",
    caughtBy: [by(activations, comeBack)],
  },
  {
    name: "memory is free while it is copied to the host",
    file: "native/core/device/beside.cc",
    from: "  use_in_stream(on_device);\n",
    to: "",
    caughtBy: [by(activations, comeBack)],
  },
  {
    name: "nobody goes on behind a copy",
    file: "native/binding/beside.cc",
    from: "  end_of_copy(info).hold_back();\n",
    to: "",
    caughtBy: [by(activations, comeBack)],
  },
  {
    name: "a copy has arrived at once",
    file: "native/binding/beside.cc",
    from: "[over = end_of_copy(info)](size_t) { over.wait(); }",
    to: "[](size_t) {}",
    caughtBy: [by(device, hostOptimizer)],
  },
  {
    name: "activations do not go to the host",
    file: "src/compute/offload/host-activations.ts",
    from: "    noGrad(() => scope(() => void copyBeside(host, first.contiguous())));\n",
    to: "",
    caughtBy: [by(activations, comeBack)],
  },
  {
    name: "a gradient is used by the host before it has come",
    file: "src/compute/tensor/copies.ts",
    from: "  await copy.arrived();\n",
    to: "",
    caughtBy: [by(device, hostOptimizer)],
  },
  {
    name: "what the host has updated is read before the device has it",
    file: "src/actors/offload.ts",
    from: "    publishing.follow();\n",
    to: "",
    caughtBy: [
      by(
        "test/actors/offload.test.ts",
        "device work behind an update waits for the copy of its parameters, though the host does not",
      ),
    ],
  },
  {
    name: "a state's copy is sent before the device has made it",
    file: "src/actors/shard/store/block-copy.ts",
    from: "  await Promise.all(copies.map((copy) => copy.arrived()));\n",
    to: "",
    caughtBy: [by(simTraining, "after a rank has died and the run went on from its last state")],
  },
  {
    name: "a tensor of another device is taken as it is",
    file: "src/compute/collectives/carrier.ts",
    from: 'there.device === "cpu" || there.device === devices[rank]',
    to: "there.numel >= 0",
    caughtBy: [by(simTraining, "with zero 1 and accumulate 2 and more, spread over two")],
  },
  {
    name: "activations are read before they have come back",
    file: "src/compute/offload/host-activations.ts",
    from: "    copy.follow();\n",
    to: "",
    caughtBy: [by(activations, comeBack)],
  },
  {
    name: "a collective of threads does not wait for what they have computed",
    file: "native/comm/local_collective.cc",
    from: "  for (const Fence& arrival : arrivals) arrival.hold_back();\n",
    to: "",
    caughtBy: [by(fences, betweenThreads)],
  },
  {
    name: "what a collective still reads may be freed",
    file: "native/comm/local_collective.cc",
    from: "    use_in_stream(part.input);\n",
    to: "",
    caughtBy: [by(fences, betweenThreads)],
  },
  {
    name: "what a collective still writes may be freed",
    file: "native/comm/local_collective.cc",
    from: "    use_in_stream(part.output);\n",
    to: "",
    caughtBy: [by(fences, betweenThreads)],
  },
  {
    name: "a collective of threads says nowhere where it ends",
    file: "native/comm/local_collective.cc",
    from: "  for (const Operation& part : parts) results_.push_back(Fence::here(part.device()));\n",
    to: "",
    caughtBy: [by(fences, betweenThreads)],
  },
  {
    name: "a rank comes to a collective without saying how far its stream is",
    file: "native/comm/local_group.cc",
    from: "  collective->arrivals[place] = Fence::here(operation.device());\n",
    to: "",
    caughtBy: [by(fences, betweenThreads)],
  },
  {
    name: "NCCL does not wait for what was computed",
    file: "native/comm/nccl/channel.cc",
    from: "  before.hold_back(device_);\n",
    to: "",
    caughtBy: [by(nccl, behindNccl)],
  },
  {
    name: "an event passes before NCCL has put its kernels into the stream",
    file: "native/comm/nccl/channel.cc",
    from: "  (*wait_)([this] { return state() == success; });\n}\n\nResult",
    to: "}\n\nResult",
    caughtBy: [by(nccl, behindNccl)],
  },
  {
    name: "what NCCL brings is read before it is there",
    file: "native/comm/nccl/communicator.cc",
    from: "      flight_->over.hold_back();\n",
    to: "",
    caughtBy: [by(nccl, behindNccl)],
  },
  {
    name: "a collective's result is read before it is there",
    file: "native/comm/local.cc",
    from: "    collective_->hold_back();\n",
    to: "",
    caughtBy: [by(fences, betweenThreads)],
  },
  {
    name: "streams of a device know nothing of messages",
    file: "src/compute/tensor/device.ts",
    from: "outgoing: (): number => (hasStream ? native().sayPlace() : 0),",
    to: "outgoing: (): number => 0,",
    caughtBy: [by(fences, byMessages)],
  },
  {
    name: "a device's losses are waited for before backward",
    file: "src/actors/engine/rank/step-losses.ts",
    from: "return { nats: readLater(loss), onDevice,",
    to: "const nats = loss.item();\n  return { nats: () => nats, onDevice,",
    caughtBy: [by(device, "blocks no thread on the device within a step: %s")],
  },
  {
    name: "a device's statistics are waited for",
    file: "src/actors/shard/reduce/gradient-statistics.ts",
    from: "await onHost(all)",
    to: "all",
    caughtBy: [by(device, "blocks no thread on the device within a step: %s")],
  },
  {
    name: "a device clips by a norm that is below its limit",
    file: "native/kernels/cpu/gradient_scale.h",
    from: "return factor > 1 ? 1 : factor;",
    to: "return factor;",
    caughtBy: [
      by(
        "test/kernels/gradient-scale.test.ts",
        "are the host's clip factors over the divisor, of the parts' norm together, to the bit",
      ),
    ],
  },
  {
    name: "a step that is to be left out is made",
    file: "native/kernels/cpu/flat_step.h",
    from: "if (scale[1] != 0) return;",
    to: "if (scale[1] != scale[1]) return;",
    caughtBy: [by("test/kernels/gradient-scale.test.ts", "changes nothing where the step is to be left out")],
  },
  {
    name: "the cosine is a straight line",
    file: "src/compute/optim/schedule.ts",
    from: '"linear" ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2;',
    to: '"linear" ? 1 - progress : 1 - progress;',
    caughtBy: [by(schedules, "fall along a cosine and do not rise again after the end")],
  },
  {
    name: "decay goes on after its end",
    file: "src/compute/optim/schedule.ts",
    from: "if (step >= this.end) return this.minLr;",
    to: "",
    caughtBy: [
      by(
        schedules,
        "fall along a cosine and do not rise again after the end",
        "fall in a straight line to zero and stay there",
      ),
    ],
  },
  {
    name: "warm-up never ends",
    file: "src/compute/optim/schedule.ts",
    from: "return step < warmup ? step / warmup : 1;",
    to: "return step / Math.max(1, warmup);",
    caughtBy: [by(schedules, "hold the peak after warm-up")],
  },
  {
    name: "Noam falls by the step, not by its root",
    file: "src/compute/optim/schedule.ts",
    from: "(this.lr / Math.sqrt(Math.max(step, this.warmup)))",
    to: "(this.lr / Math.max(step, this.warmup))",
    caughtBy: [by(schedules, "follow Noam's inverse square root")],
  },
  {
    name: "the exponential is a step ahead",
    file: "src/compute/optim/schedule.ts",
    from: "this.gamma ** (step - this.warmup)",
    to: "this.gamma ** (step + 1 - this.warmup)",
    caughtBy: [by(schedules, "fall by a factor a step")],
  },
  {
    name: "BMTrain's cosine stays at its end",
    file: "src/compute/optim/schedule.ts",
    from: 'if (this.afterEnd === "stay" || step < this.end) return super.lrAt(step);',
    to: "return super.lrAt(step);",
    caughtBy: [
      by(schedules, "rise again after the end where BMTrain's own cosine is asked for, and never by default"),
    ],
  },
  {
    name: "the loss scale passes its bounds",
    file: "src/compute/optim/loss-scale.ts",
    from: "(clamp ? Math.min(max, Math.max(min, value)) : value)",
    to: "value",
    caughtBy: [by(scales, "stays between BMTrain's minimum and maximum, which BMTrain itself may pass")],
  },
  {
    name: "an overflow at the floor counts",
    file: "src/compute/optim/loss-scale.ts",
    from: "state.scale > min ? {",
    to: "state.scale >= min ? {",
    caughtBy: [by(scales, "follows BMTrain's golden trace: at the floor an overflow changes nothing")],
  },
  {
    name: "parameters are aligned to half as many elements",
    file: "src/compute/parallel/blocks/flat-block.ts",
    from: "export const PARAMETER_ALIGNMENT = 128;",
    to: "export const PARAMETER_ALIGNMENT = 64;",
    caughtBy: [
      by(parameters, "lie at BMTrain's offsets within a block, whose slices are multiples of 1,024 elements"),
    ],
  },
  {
    name: "slices are no multiples of chunks",
    file: "src/compute/parallel/blocks/flat-block.ts",
    from: "export const SLICE_ALIGNMENT = 1024;",
    to: "export const SLICE_ALIGNMENT = 128;",
    caughtBy: [
      by(parameters, "lie at BMTrain's offsets within a block, whose slices are multiples of 1,024 elements"),
    ],
  },
  {
    name: "a parameter is grouped twice",
    file: "src/compute/optim/parameter-groups.ts",
    from: "group.names.push(name);",
    to: "group.names.push(name, name);",
    caughtBy: [
      by(parameters, "stand in one optimizer group each, tied ones and those of shared layers once"),
    ],
  },
  {
    name: "held updates move the parameters",
    file: "src/compute/optim/adam.ts",
    from: "const isHeld = step.updateIndex <= holdSteps;",
    to: "const isHeld = step.updateIndex < holdSteps;",
    caughtBy: [
      by(
        bmtrainOptim,
        "holds the parameters for the same number of updates in both forms, while the moments gather",
      ),
    ],
  },
  {
    name: "Adam minimizes what is to be maximized",
    file: "src/compute/optim/update-rule.ts",
    from: "maximize ? -step.gradientScale : step.gradientScale }",
    to: "step.gradientScale }",
    caughtBy: [
      by(bmtrainOptim, "maximizes its own parameters if asked to, whatever the other optimizers do"),
    ],
  },
  {
    name: "class weights are left out",
    file: "src/compute/nn/losses/weighed-rows.ts",
    from: "classWeights.indexSelect(0, classes).mul(counted)",
    to: "counted",
    caughtBy: [by(losses, "holds for %i classes in %s, with weights and without")],
  },
  {
    name: "tensors in class instances are overlooked",
    file: "src/compute/parallel/tape/map-tensors.ts",
    from: "refuseTensors(leaf);",
    to: "return leaf;",
    caughtBy: [by(blockRefusals, "refuses tensors in class instances, which it would overlook")],
  },
  {
    name: "a gradient past a block's results is lost in silence",
    file: "src/compute/parallel/tape/tape-checks.ts",
    from: "if (gradients.every((gradient) => gradient === null)) return;",
    to: "if (gradients.length >= 0) return;",
    caughtBy: [
      by(
        blockRefusals,
        "refuses a tensor that a block keeps aside and the loss reads, which would lose its gradient",
      ),
    ],
  },
  {
    name: "a layer that is used again keeps the gradient of its last use",
    file: "src/compute/parallel/rank/gradient-buckets.ts",
    from: "ops.troupe.collectGradients_(flat, gradients, offsets, present !== undefined);",
    to: "ops.troupe.collectGradients_(flat, gradients, offsets, false);",
    caughtBy: [
      by(blocks, "sum the gradients of all uses of a layer that stands in the list three times"),
      by(
        blocks,
        "sum the gradients of all uses of a weight that blocks share with each other and with the root",
      ),
    ],
  },
  {
    name: "a list of one becomes what is in it",
    file: "src/compute/parallel/tape/map-tensors.ts",
    from: "return value.map((item) => mapLeaves(item, change));",
    to: "return value.length === 1 ? mapLeaves(value[0], change) : value.map((item) => mapLeaves(item, change));",
    caughtBy: [
      by(blocks, "return a tensor, lists of one, two and ten, and nested objects as their modules made them"),
    ],
  },
  {
    name: "micro-batches are not averaged",
    file: "src/actors/shard/update/optimizer-clock.ts",
    from: "return ofStep * (this.before(step)",
    to: "return 1 * (this.before(step)",
    caughtBy: [
      by(layouts, "makes gradients of the magnitude of one device: no factor of stages, ranks or replicas"),
      by(
        training,
        "a micro-batch made four times has its gradient four times: their mean is that of one, to the bit",
      ),
    ],
  },
  {
    name: "dropout goes on in evaluation",
    file: "src/compute/nn/layers/dropout.ts",
    from: "return this.training && this.p > 0;",
    to: "return this.p > 0;",
    caughtBy: [by(training, "dropout draws a new mask in every step of training and is off in evaluation")],
  },
  {
    name: "frozen parameters are trained",
    file: "src/compute/parallel/rank/unit-gradients.ts",
    from: "if (parameter.trainable) this.#trained.add(parameter);",
    to: "this.#trained.add(parameter);",
    caughtBy: [
      by(blocks, "that are frozen never change and keep no state, but are saved"),
      by(
        frozen,
        "is frozen and trained in turns while a run goes on: what is frozen stays to the bit, the rest changes",
        "has a gradient in the steps that train it alone, and keeps the last one's traces while it is frozen",
      ),
    ],
  },
  {
    name: "nothing is ever frozen",
    file: "src/compute/nn/module/parameter.ts",
    from: "return this.#trainable;",
    to: "return this.canTrain;",
    caughtBy: [
      by(blocks, "may hold constant tensors, and frozen parameters in place of persistent buffers"),
      by(model, "shows frozen parameters unchanged and without a gradient"),
    ],
  },
  {
    name: "gradients of recorded tensors are summed over micro-batches",
    file: "src/actors/engine/rank/granted-step.ts",
    from: "const divisor = plan.layout.mesh.dp * this.#counted * (shard",
    to: "const divisor = plan.layout.mesh.dp * (shard",
    caughtBy: [by(tensors, "is that of the step's loss, by finite differences, with %o")],
  },
  {
    name: "a tensor is recorded once more where its block is computed again",
    file: "src/compute/nn/record.ts",
    from: "made ??= call.made;",
    to: "void call.made;",
    caughtBy: [by(tensors, "records a tensor once where its block is computed again, gradient and all")],
  },
  {
    name: "an inspected update has the learning rate in it",
    file: "src/actors/inspect/inspected-update.ts",
    from: "rate === 0 ? 0 : 1 / rate",
    to: "1",
    caughtBy: [by(updates, "tells AdamW's direction as BMTrain's record_delta does: %s")],
  },
  {
    name: "a layer of several stages is held by one of them",
    file: "src/compute/parallel/layout/stage-cut.ts",
    from: "(position === undefined ? holders.get(parameter) : callers[position]) ?? [0]",
    to: "(position === undefined ? holders.get(parameter) : callers[position]?.slice(0, 1)) ?? [0]",
    caughtBy: [by(refusals, "is held by each stage of a pipeline that calls it, and trained as by one rank")],
  },
  {
    name: "buffers become the sum of what was written to them",
    file: "src/compute/parallel/owned/mean-of-writes.ts",
    from: ".div(count);",
    to: ";",
    caughtBy: [
      by(buffers, "are saved under torch's names, and are what the definition makes of the batches"),
    ],
  },
  {
    name: "a run that goes on has the job's standard settings",
    file: "src/actors/trainer/plan/configure.ts",
    from: "typeof value === typeof job.config[name]) config[name] = value;",
    to: "typeof value === typeof job.config[name]) void value;",
    caughtBy: [
      by(
        remembered,
        "a resumed run has the settings and steps of its checkpoint by default, and the bits of the straight run",
      ),
    ],
  },
  {
    name: "another training is gone on with in silence",
    file: "src/actors/trainer/resume/check-resumed.ts",
    from: "if (refused.length === 0) return;",
    to: "return;",
    caughtBy: [
      by(
        remembered,
        "a resumed run refuses another training unless options name the change: %j",
        "data is known by its content, not by its name: other data is refused unless options name the change",
      ),
    ],
  },
  {
    name: "a layer that the model lacks is lost with the next save",
    file: "src/actors/trainer/resume/check-resumed.ts",
    from: "find((name) => !state.has(name))",
    to: 'find((name) => name === "")',
    caughtBy: [by(remembered, "a resumed run refuses another model, and names the settings that differ: %j")],
  },
  {
    name: "a folder is emptied before its run is known to work",
    file: "src/actors/trainer/resume/run-folder.ts",
    from: "await (overwrite ? checkpoints.refuseOthersFiles(storage) : checkpoints.takeEmpty(storage, record));",
    to: "await (overwrite ? checkpoints.takeOver : checkpoints.takeEmpty)(storage, record);",
    caughtBy: [
      by(
        "test/trainer/resume/run-folder.test.ts",
        "a run's folder keeps its content if the run that replaces it fails before its first step",
      ),
    ],
  },
  {
    name: "a text is written without a look whose folder it is",
    file: "src/library/checkpoint/storage/local-folder.ts",
    from: "return this.#write((root) => putText(root, name, text));",
    to: "return putText(this.location, name, text);",
    caughtBy: [by("test/checkpoint/held.test.ts", "%s: changes nothing there any more, by no method")],
  },
  {
    name: "a folder at the same path counts as the one that is held",
    file: "src/library/checkpoint/storage/held-folder.ts",
    from: "own.ino !== there.ino || own.dev !== there.dev",
    to: "own.dev !== there.dev",
    caughtBy: [
      by(
        "test/checkpoint/held.test.ts",
        "of a host's own folder, which has no lock, writes only into the folder that it began in",
      ),
    ],
  },
  {
    name: "a checkpoint in S3 is committed under another's lock",
    file: "src/library/checkpoint/storage/s3/s3-draft.ts",
    from: "    await this.#ask();\n    this.#committed = this.#isJoined;",
    to: "    this.#committed = this.#isJoined;",
    caughtBy: [by("test/checkpoint/held.test.ts", "%s: changes nothing there any more, by no method")],
  },
  {
    name: "a rank is replaced by the state of another run",
    file: "src/actors/trainer/recovery/last-good.ts",
    from: "if (runId === undefined || found === runId) return start;",
    to: "if (runId !== undefined) return start;",
    caughtBy: [
      by(
        "test/trainer/resume/run-folder.test.ts",
        "is not changed or read by a run whose folder it replaced: that run's saves fail",
      ),
    ],
  },
  {
    name: "a record goes on in another run's folder",
    file: "src/job/events/sinks/record-file.ts",
    from: "if (this.#isFolderThere()) return;",
    to: "if (this.#isFolderThere() || true) return;",
    caughtBy: [
      by(
        "test/events/record-file.test.ts",
        "fails where its folder was deleted, also once another lies there",
      ),
    ],
  },
  {
    name: "a signal ends a run without a save",
    file: "src/actors/trainer/running.ts",
    from: "const saved = control.save();",
    to: "const saved = Promise.resolve();",
    caughtBy: [
      by(
        "test/trainer/signals.test.ts",
        "%s lets the run save its state, and end",
        "a signal while the run is paused saves its present state",
      ),
    ],
  },
  {
    name: "a killed run counts as one that never reported its end",
    file: "src/library/checkpoint/reading/run-record.ts",
    from: "return holder === undefined",
    to: "return holder !== undefined",
    caughtBy: [
      by(
        "test/checkpoint/owner.test.ts",
        "an owner file tells the state of its run, and of a killed run the time of its last update",
      ),
    ],
  },
  {
    name: "an all-gather sends what its output held",
    file: "src/compute/collectives/communicator.ts",
    from: 'return this.#issue("allGather", output, input);',
    to: 'return this.#issue("allGather", output, output.narrow(0, 0, input.shape[0] ?? 0));',
    caughtBy: [by(collectives, "gathers what BMTrain's synchronize and store gather")],
  },
  {
    name: "nobody waits at a barrier",
    file: "src/compute/collectives/communicator.ts",
    from: "0, 0, 0, 0, even, even)).wait();",
    to: "0, 0, 0, 0, even, even));",
    caughtBy: [
      by(collectives, "lets nobody past a barrier before all have come to it (BMTrain's synchronize)"),
    ],
  },
  {
    name: "a rank sends twice what it was given",
    file: "src/compute/collectives/communicator.ts",
    from: 'return this.#issue("send", tensor, tensor, 0, to);',
    to: 'return this.#issue("send", tensor.mul(2), tensor.mul(2), 0, to);',
    caughtBy: [by(collectives, "sends from stage to stage (BMTrain's send_recv)")],
  },
  {
    name: "a product is a sum",
    file: "src/compute/collectives/differentiable.ts",
    from: "return ops.troupe.groupAllReduce(x, comm.number, reductionCode(op));",
    to: 'return ops.troupe.groupAllReduce(x, comm.number, reductionCode(op === "prod" ? "sum" : op));',
    caughtBy: [by(adjoints, "of a product need no division (BMTrain's nccl_backward, %s)")],
  },
  {
    name: "a reduce-scatter is always a mean",
    file: "src/compute/collectives/differentiable.ts",
    from: "return ops.troupe.groupReduceScatter(x, comm.number, reductionCode(op));",
    to: 'return ops.troupe.groupReduceScatter(x, comm.number, reductionCode("avg"));',
    caughtBy: [by(adjoints, "of a reduce-scatter are gathered (BMTrain's nccl_backward, %j)")],
  },
  {
    name: "the gradient of a mean over ranks is that of their sum",
    file: "native/comm/differentiable_collectives.cc",
    from: "case Reduction::avg: return gradient.div(member.size());",
    to: "case Reduction::avg: return gradient;",
    caughtBy: [by(adjoints, "of %s equal finite differences")],
  },
  {
    name: "the gradient of what was gathered stays with each rank's own",
    file: "src/compute/collectives/differentiable.ts",
    from: "return gatherSequence(x, comm, 0);",
    to: "return gatherFromGroup(x, comm, 0);",
    caughtBy: [
      by(
        together,
        "ranks compute together along every axis in a loop's hands, and a loss over all replicas' rows is that of one rank",
      ),
    ],
  },
  {
    name: "only the first tensor that a block returns has a gradient",
    file: "src/compute/parallel/tape/block-call.ts",
    from: "if (!(again ? isFloating(tensor) : tensor.requiresGrad)) return tensor;",
    to: "if (!(again ? isFloating(tensor) : tensor.requiresGrad) || outputLeaves.length > 0) return tensor.detach();",
    caughtBy: [
      by(
        blocks,
        "take five tensors and return three, all with gradients",
        "return several tensors from an input that asks for no gradient",
      ),
    ],
  },
  {
    name: "tensors in option objects are taken for constants",
    file: "src/compute/parallel/tape/map-tensors.ts",
    from: "[key, mapLeaves(item, change)]",
    to: "[key, mapTensors(item, (tensor) => tensor.detach())]",
    caughtBy: [
      by(blocks, "receive complete option objects, with tensors in them and after omitted arguments"),
    ],
  },
  {
    name: "a parameter that nothing used has a gradient of one",
    file: "src/compute/parallel/rank/gradient-buckets.ts",
    from: "    const offsets = layout.parameters.map((parameter) => parameter.offset);\n",
    to: "    const offsets = layout.parameters.map((parameter) => parameter.offset);\n    gradients = gradients.map((given, index) => given ?? zeros(layout.parameters[index].shape, { dtype: this.#dtype }).add(1));\n",
    caughtBy: [
      by(
        blocks,
        "give zeros where the loss is of weights around them alone, whether they are run or not",
        "may differ from replica to replica within a step",
      ),
      by(model, "shows a gradient of zero where a layer is not used, the same lines at levels 0 and 3"),
    ],
  },
  {
    name: "what several blocks read has the gradient of one of them",
    file: "src/compute/parallel/tape/block-tape.ts",
    from: "if (!firstUse.has(input)) firstUse.set(input, call);",
    to: "firstUse.set(input, call);",
    caughtBy: [
      by("test/parallel/block-engine.test.ts", "sums the gradient of a tensor that several blocks read"),
    ],
  },
  {
    name: "of the gradients that come to a tensor the last one counts",
    file: "src/compute/parallel/tape/outer-graph.ts",
    from: "hold(sum === undefined ? gradient : ops.add(sum, gradient))",
    to: "hold(sum === undefined ? gradient : ops.add(gradient, 0))",
    caughtBy: [
      by(blocks, "give the gradients of a loss on the last hidden state, on those in the middle, and on all"),
    ],
  },
  {
    name: "a block without anything to train hands no gradient on",
    file: "src/compute/parallel/tape/block-tape.ts",
    from: "const isCut = roots.length === 0 ||",
    to: "const isCut = roots.length === 0 || leaves.length === 0 ||",
    caughtBy: [by(blocks, "have gradients behind frozen blocks, and hand them on through frozen ones")],
  },
  {
    name: "weights outside the blocks have no gradient",
    file: "src/compute/parallel/tape/outer-graph.ts",
    from: "return ofRoot.length === 0 ? undefined",
    to: "return ofRoot.length >= 0 ? undefined",
    caughtBy: [
      by(
        blocks,
        "are made of a user's own modules as they stand: lists in lists, null children, lone parameters",
      ),
    ],
  },
  {
    name: "frozen blocks are computed again for nothing",
    file: "src/compute/parallel/tape/block-tape.ts",
    from: "const recomputes = recompute && (inputs.length > 0 || own.length > 0);",
    to: "const recomputes = recompute;\n    if (recompute) forward(...cutArgs);",
    caughtBy: [
      by(
        blocks,
        "are computed once a micro-batch, twice where recomputed and trained, never for nothing twice",
      ),
    ],
  },
  {
    name: "each slice begins to draw from the start",
    file: "src/compute/nn/module/initializer.ts",
    from: "spec, seed, run.logicalBegin);",
    to: "spec, seed, run.logicalBegin - begin);",
    caughtBy: [
      by(layouts, "begins with the initial values of one device, to the bit"),
      by(training, "the sharded model computes the logits of an untouched copy"),
    ],
  },
  {
    name: "a parameter is saved under the kind of its state",
    file: "src/actors/state/saving/entry-name.ts",
    from: "kind === MASTER ? parameter :",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a line of source
    to: "kind === MASTER ? `${kind}.${parameter}` :",
    caughtBy: [by(layouts, "saves every parameter once, completely, under the name it has in the model")],
  },
  {
    name: "state is saved under the parameter's name first",
    file: "src/actors/state/saving/entry-name.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a line of source
    from: "parameter : `${kind}.${parameter}`",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a line of source
    to: "parameter : `${parameter}.${kind}`",
    caughtBy: [
      by(optimizers, "keeps in a checkpoint what each of several optimizers keeps of its own parameters"),
    ],
  },
  {
    name: "a run goes on without its optimizer's state",
    file: "src/actors/state/initial/stored-values.ts",
    from: 'if (initial.kind === "weights" && kind !== parallel.MASTER) continue;',
    to: "if (kind !== parallel.MASTER) continue;",
    caughtBy: [
      by(
        optimizers,
        "saves and loads the state of several optimizers and of the scale, whatever layout and scale it is built with",
        "goes on from the state that another's hyper-parameters have left, by those that it is built with",
      ),
      by(
        "test/trainer/resume/resume.test.ts",
        "a run that moves from split layers and stages to one rank and back has the bits of one that stays",
      ),
    ],
  },
  {
    name: "dropout draws another mask where a block is recomputed",
    file: "src/compute/parallel/rank/wrapped-blocks.ts",
    from: "const drawn = this.#randomness?.drawnOnce(run) ?? run;",
    to: "const drawn = run;",
    caughtBy: [
      by(
        "test/trainer/training/own-pieces.test.ts",
        "a dropout that layers share draws a new mask in each call, the same under every layout and when recomputed",
      ),
    ],
  },
  {
    name: "every replica draws alike",
    file: "src/actors/engine/rank/granted-step.ts",
    from: "return dp * first + place.dp * size + (microBatch - first)",
    to: "return dp * first + (microBatch - first)",
    caughtBy: [
      by(
        training,
        "in float32: complete or sharded, kept or recomputed, on two ranks or accumulated on one",
        "in %s, and near float32",
      ),
    ],
  },
  {
    name: "a gradient that is not finite is taken for one of zero",
    file: "src/job/anomalies/step-judge.ts",
    from: "if (!Number.isFinite(gradientNorm))",
    to: "if (gradientNorm < 0)",
    caughtBy: [
      by(
        scaled,
        "skips a step in which one rank's gradient overflows, float32 gradients too, and halves the scale",
        "refuses a gradient that is not finite where the loss is not scaled",
      ),
      by(
        training,
        "in float16 under a loss scale is the same with offloaded optimizer state, and near float32",
      ),
    ],
  },
  {
    name: "the gradient of a split map's input is one rank's",
    file: "src/compute/parallel/tensor-parallel/split-affine.ts",
    from: "forward(copyToGroup(x, group)) : region.gatherOutputs(x, module);\n      return rule",
    to: "forward(x) : region.gatherOutputs(x, module);\n      return rule",
    caughtBy: [by(layers, "a split affine map gives output and gradients of the unsplit one")],
  },
  {
    name: "the gradient in front of a split vocabulary is one rank's",
    file: "src/compute/parallel/tensor-parallel/split-vocabulary.ts",
    from: ": copyToGroup(hidden, group); // [B, T, D]",
    to: ": hidden;",
    caughtBy: [
      by(
        layers,
        "BMTrain's parallel_projection: a split vocabulary gives loss, logits and gradients of the unsplit one",
      ),
    ],
  },
  {
    name: "words of other ranks are looked up as one's own first",
    file: "src/compute/parallel/tensor-parallel/split-vocabulary.ts",
    from: "reduceFromGroup(rows.maskedFill(elsewhere.unsqueeze(-1), 0), group)",
    to: "reduceFromGroup(rows, group)",
    caughtBy: [by(layers, "gets the gradient of every rank's tokens, sequence split: %s")],
  },
  {
    name: "ranks that share positions share the one that is read of a last layer",
    file: "src/library/models/stack-plan.ts",
    from: "...unshared(layer),",
    to: "...layer,",
    caughtBy: [by("test/parallel/tensor-parallel/families.test.ts", "bert, an answer a row, 2 ranks")],
  },
  {
    name: "of samples that share a row the first alone is read",
    file: "src/library/models/heads/first-positions.ts",
    from: "isPacked(seen) ? firstPositions(all, seen).unsqueeze(0) : all.narrow(1, 0, 1)",
    to: "all.narrow(1, 0, 1)",
    caughtBy: [by("test/models/first-positions.test.ts", "bert, samples and padding in one row")],
  },
  {
    name: "BMTrain's Adam of half precision adds its decay to the gradient",
    file: "src/compute/optim/adam.ts",
    from: '"bmtrain-adam": ops.troupe.bmtrainAdam_,',
    to: '"bmtrain-adam": ops.troupe.adam_,',
    caughtBy: [
      by(
        bmtrainOptim,
        "gives the golden values of float16, to the printed digits",
        "stays within a float16 moment's rounding of its CUDA kernel, whose state is scaled: ours is not",
        "gives the golden values of bfloat16, rounded to nearest and not truncated",
      ),
    ],
  },
  {
    name: "Adam is AdamW",
    file: "src/compute/optim/adam.ts",
    from: "adam: ops.troupe.adam_,",
    to: "adam: ops.troupe.adamw_,",
    caughtBy: [by(bmtrainOptim, "gives the golden values of float32, whose decay is added to the gradient")],
  },
  {
    name: "the second moment is corrected as if the run had just begun",
    file: "src/compute/optim/adam.ts",
    from: "eps, step.updateIndex, step.gradientScale",
    to: 'eps, kind === "bmtrain-adam" ? 1 : step.updateIndex, step.gradientScale',
    caughtBy: [
      by(
        bmtrainOptim,
        "ends a hundred steps of rate 1 alike in every form and precision, as BMTrain's own test asks",
      ),
    ],
  },
  {
    name: "another target is ignored",
    file: "src/compute/nn/losses/loss.ts",
    from: "export const IGNORE_INDEX = -100;",
    to: "export const IGNORE_INDEX = 0;",
    caughtBy: [by(losses, "cross entropy equals torch's and BMTrain's")],
  },
  {
    name: "a recorded tensor is a constant",
    file: "src/compute/nn/record.ts",
    from: "x.requiresGrad ? ops.troupe.observe(x, id) : x;",
    to: "x.requiresGrad ? x.detach() : x;",
    caughtBy: [
      by(
        tensors,
        "tells deviations and gradients of tensors inside blocks and between them",
        "lets a loss be made of a recorded tensor",
      ),
    ],
  },
  {
    name: "buffers are not read back",
    file: "src/actors/state/initial/stored-values.ts",
    from: "    for (const { kind, tensor, pieces } of state.tensors) {\n",
    to: "    for (const { kind, tensor, pieces } of state.layout.written ? [] : state.tensors) {\n",
    caughtBy: [by(buffers, "go on bit for bit on another number of ranks, and after a rank's death")],
  },
  {
    name: "a module's own tensors may change",
    file: "src/actors/engine/rank/held-tensors.ts",
    from: "if (isSame && !tensor.disposed && ops.writeCount(tensor) === writeCount) continue;",
    to: "if (isSame || !isSame) continue;",
    caughtBy: [by(refusals, "whose own tensor is %s in a step is refused in the first one")],
  },
  {
    name: "parameters of every dtype are taken",
    file: "src/compute/parallel/blocks/plan-blocks.ts",
    from: '!dtype.includes("float")) return;',
    to: "dtype.length > 0) return;",
    caughtBy: [
      by(
        refusals,
        "with a parameter of other floats than float32 is refused, as the run says what is computed in",
      ),
    ],
  },
  {
    name: "a constant of bool is saved as another type",
    file: "src/actors/state/saving/write-parts.ts",
    from: "dtype: checkpoints.toSafetensorsDType(dtype), shape",
    to: 'dtype: checkpoints.toSafetensorsDType(dtype === "bool" ? "uint8" : dtype), shape',
    caughtBy: [
      by(
        constants,
        "keep their type where the model computes in bfloat16, and are saved in it but where they are not persistent",
      ),
    ],
  },
  {
    name: "ranks are not compared",
    file: "src/actors/engine/conductor/check-alike.ts",
    from: "return theirs === undefined || describe(theirs) !== describe(layout);",
    to: "return false;",
    caughtBy: [by(refusals, "is named before the first step, not waited for: %s")],
  },
  {
    name: "a flag has lost its last letter",
    file: "src/tools/cli/option-flags.ts",
    from: "const flag = new Flag(flags, help)",
    to: 'const flag = new Flag(flags.replace("--checkpoint-every", "--checkpoint-ever"), help)',
    caughtBy: [by(surroundings, "names only options that troupe run has")],
  },
  {
    name: "two optimizers train one parameter",
    file: "src/compute/optim/optimizer.ts",
    from: "if (other !== undefined)\n",
    to: "if (other === spec)\n",
    caughtBy: [by(parameters, "are refused where two optimizers would train the same one")],
  },
  {
    name: "where positions are shared, nothing is added to what a delta stands beside",
    file: "src/compute/parallel/tensor-parallel/sequence-region.ts",
    from: "layer.added === undefined ? own : layer.withAdded(own, this.gather(layer.down(share))),",
    to: "own,",
    caughtBy: [
      by(
        deltas,
        "has the same losses up to the order of sums on ranks that split its layers and share its positions, its dropout included",
      ),
    ],
  },
  {
    name: "a delta's base keeps masters",
    file: "src/compute/parallel/owned/block-state.ts",
    from: "this.keepsMaster = this.#isLowPrecision && !layout.base;",
    to: "this.keepsMaster = this.#isLowPrecision;",
    caughtBy: [by(deltas, "keeps no master and no optimizer state of its base in bfloat16, to the byte")],
  },
  {
    name: "a delta's base is saved each time",
    file: "src/compute/parallel/owned/owned-range.ts",
    from: "return !layout.base && sendsPart(layout, rank);",
    to: "return sendsPart(layout, rank);",
    caughtBy: [by(deltas, "the delta alone, by peft's names")],
  },
  {
    name: "a delta goes on upon any base",
    file: "src/actors/trainer/resume/delta-base.ts",
    from: "if (was.sha256 === now.sha256 && was.seed === now.seed) return;",
    to: "if (was.seed === now.seed) return;",
    caughtBy: [by(deltas, "what a run on another base refuses")],
  },
  {
    name: "all micro-batches weigh alike",
    file: "src/job/loss-weights.ts",
    from: "return weights.map((weight) => (weight * weights.length) / total);",
    to: "return weights.map((weight) => (weight <= total ? 1 : 0));",
    caughtBy: [
      by(
        weighted,
        "is that of one rank with the complete batch, to float32's rounding",
        "are those of Σ weight · loss / Σ weight by hand, of three losses, with %o, %o",
      ),
    ],
  },
  {
    name: "a rank's own frozen parameters are unknown where ranks agree on them",
    file: "src/actors/shard/shard.ts",
    from: "return [rank, await this.flags.at(step)] as const;",
    to: "return [rank, []] as const;",
    caughtBy: [by("test/trainer/training/thawing.test.ts", "have the same bits under %o")],
  },
  {
    name: "the smallest of the ranks' largest gradients clips",
    file: "src/actors/shard/reduce/gradient-statistics.ts",
    from: "const largest = Math.max(...ofReplicas",
    to: "const largest = Math.min(...ofReplicas",
    caughtBy: [by(optimizers, "by the inf norm takes a rank whose slice of a block is empty")],
  },
  {
    name: "one element that is not finite is none",
    file: "native/kernels/cpu/all_finite.cc",
    from: "return num_bad == 0;",
    to: "return num_bad < 2;",
    caughtBy: [by(bmtrainOptim, "finds what is not finite in %s, at every size")],
  },
  {
    name: "rounding by chance cuts off",
    file: "native/kernels/cpu/float_bits.h",
    from: "const uint32_t moved = (magnitude + (word & 0xFFFFu)) >> 16;",
    to: "const uint32_t moved = magnitude >> 16;",
    caughtBy: [
      by(
        "test/kernels/round-stochastic.test.ts",
        "does not truncate, as BMTrain's bfloat16 Adam on the CPU does: that is 0.28 % too small in the mean",
      ),
    ],
  },
  {
    name: "a generation that begins empties what it has been sent already",
    file: "src/actors/state/saving/part-collector.ts",
    from: "if (generation > this.#generation) this.#enter",
    to: "this.#enter",
    caughtBy: [
      by(
        "test/actors/checkpointer.test.ts",
        "keeps the parts that come before the word that their generation begins",
      ),
    ],
  },
  {
    name: "a shard takes a peer's message before it knows what carries tensors",
    file: "src/actors/shard/group/shard-groups.ts",
    from: "if (this.#early === undefined) take();",
    to: "if (this.#rank >= 0) take();",
    caughtBy: [by("test/shard/shard-groups.test.ts", "waits for that, and is taken")],
  },
  {
    name: "a batch with many that count weighs as one with few in evaluation",
    file: "src/actors/engine/conductor/evaluation.ts",
    from: "const weights = this.#batches.map(({ weight }) => weightOf(weight, name));",
    to: "const weights = this.#batches.map(({ weight }) => Math.min(1, weightOf(weight, name)));",
    caughtBy: [by(weighted, "is the same evaluation however its samples are dealt")],
  },
  {
    name: "each loss has the weight of the first",
    file: "src/job/loss-weights.ts",
    from: "shares(weights.map((each) => weightOf(each, name)))",
    to: "shares(weights.map((each) => weightOf(each, Object.keys(first)[0])))",
    caughtBy: [
      by(weights, "are those of each loss by its name"),
      by(weighted, "are those of Σ weight · loss / Σ weight by hand, of three losses, with %o, %o"),
    ],
  },
  {
    name: "the mean of the micro-batches' means is not to be had",
    file: "src/job/job.ts",
    from: " || plan?.calculatePerTokenLoss === false",
    to: "",
    caughtBy: [by(weighted, "is not the mean of the micro-batches' means, which is there by its name")],
  },
  {
    name: "a mean over nothing is no number",
    file: "src/job/losses.ts",
    from: "loss.nanToNum(0, 0, 0).mul(0)",
    to: "loss.mul(0)",
    caughtBy: [
      by(
        weights,
        "are the very loss where its share is 1, and without value or gradient where nothing counts",
      ),
    ],
  },
  {
    name: "what is logged weighs alike",
    file: "src/actors/engine/rank/step-metrics.ts",
    from: 'this.#weight = typeof share === "number" ? share : (Object.values(share)[0] ?? 1);',
    to: "this.#weight = 1;",
    caughtBy: [by(weighted, "is what a loss logs, in the mean that its weights make")],
  },
  {
    name: "the auxiliary loss of each sequence is that of all together",
    file: "src/compute/nn/moe/routing.ts",
    from: "if (sequenceLength === undefined) return",
    to: "if (numExperts > 0) return",
    caughtBy: [
      by(
        "test/nn/moe/mixture-of-experts.test.ts",
        "balances each sequence by itself if asked to: the loss is the mean over sequences",
      ),
      by(
        weighted,
        "is that of one rank with the complete batch too, for experts that take all tokens and share each sequence's evenly",
      ),
    ],
  },
  {
    name: "a batch is built for each of its readers",
    file: "src/library/data/built-batches.ts",
    from: "    if (known !== undefined) return known;\n",
    to: "",
    caughtBy: [
      by(samples, "builds a batch once for all its readers, who share its memory and do not write to it"),
    ],
  },
  {
    name: "every epoch has the order of the first",
    file: "src/library/data/sample-dataset.ts",
    from: "permute(place, length, seed, Math.floor(position / length))",
    to: "permute(place, length, seed, 0)",
    caughtBy: [
      by(
        samples,
        "gives every sample once an epoch, each epoch in an order of its own that seed and position alone decide",
      ),
    ],
  },
  {
    name: "rows are scored in another order than their samples'",
    file: "src/actors/predictions.ts",
    from: "parts.sort((a, b) => a.position - b.position);",
    to: "parts.sort((a, b) => b.position - a.position);",
    caughtBy: [
      by(
        "test/trainer/training/scores.test.ts",
        "has the same scores on 1, 2 and 3 ranks, with every sample's row once and in its place",
      ),
    ],
  },
  {
    name: "a dropout that is called twice draws one mask",
    file: "src/compute/nn/random/randomness.ts",
    from: "    this.#numDraws.set(name, index + 1);\n",
    to: "",
    caughtBy: [
      by(
        "test/nn/dropout.test.ts",
        "draws a mask of its own in each call of one forward, and the same ones when it runs again",
      ),
      by(
        "test/trainer/training/own-pieces.test.ts",
        "a dropout that layers share draws a new mask in each call, the same under every layout and when recomputed",
      ),
    ],
  },
  {
    name: "whether a rule may be split is not asked",
    file: "src/compute/optim/optimizer.ts",
    from: "if (split !== undefined && !byParts)",
    to: "if (split !== undefined && byParts === undefined)",
    caughtBy: [
      by(
        "test/trainer/layouts/tensor-parallel.test.ts",
        "refuses Adafactor, whose rows and columns it would cut, before a rank is started",
      ),
    ],
  },
  {
    name: "only the last of several losses of one name is reported",
    file: "src/actors/engine/rank/step-losses.ts",
    from: "sums[name] = name in sums ? (sums[name] as number) + value : value;",
    to: "sums[name] = value;",
    caughtBy: [by(loops, "tells the sum of losses that have one name")],
  },
  {
    name: "what a loop wants saved is that of the next step",
    file: "src/actors/engine/rank/rank-loop.ts",
    from: "reply({ step: this.#numSteps, ...named })",
    to: "reply({ step: this.#numSteps + 1, ...named })",
    caughtBy: [
      by(loops, "has the state at the call saved, under a name that pruning keeps: one rank after its step"),
    ],
  },
  {
    name: "ranks that split layers may look up different words",
    file: "src/compute/parallel/tensor-parallel/split-vocabulary.ts",
    from: 'if (module.weight.tensor.device !== "meta") inputs.check(ids);',
    to: "",
    caughtBy: [by(loops, "is refused by name where ranks that split layers are given different inputs")],
  },
  {
    name: "a loop that has returned makes the next step's save due",
    file: "src/actors/engine/conductor/saving.ts",
    from: "if (step > this.#lastStep) return this.#leaveOut(step, aim.write);",
    to: "",
    caughtBy: [
      by(
        loops,
        "ends the run in order by its return: evaluated and saved at that step, from which another run goes on",
      ),
    ],
  },
  {
    name: "a paused run makes steps",
    file: "src/actors/conductor.ts",
    from: "if (control.isPaused) await this.#pause(step);",
    to: "",
    caughtBy: [
      by(
        "test/trainer/control.test.ts",
        "grants no step until it is resumed, saves what is done meanwhile, and has the undisturbed losses",
      ),
    ],
  },
  {
    name: "the console's steps leave out what has a name",
    file: "src/job/events/sinks/progress.ts",
    from: "formatNamed({ [labels.name]: value })",
    to: "formatNamed({})",
    caughtBy: [
      by(
        "test/events/console-sink.test.ts",
        "a run without token counts prints samples a second, and every figure of steps and evaluations by its name",
      ),
    ],
  },
  {
    name: "the weaker of two sources says what an option is",
    file: "src/job/options/layers.ts",
    from: "at[last] = isPlain(value) ? structuredClone(value) : value;",
    to: "at[last] ??= isPlain(value) ? structuredClone(value) : value;",
    caughtBy: [
      by(
        "test/options/sources.test.ts",
        "flags override the environment, which overrides the file, which overrides the defaults",
      ),
    ],
  },
  {
    name: "callers count from the end of TLS's handshake on",
    file: "src/runtime/access/callers.ts",
    from: 'server.on("connection", (connection: Socket)',
    to: 'server.on("requestCert" in server ? "secureConnection" : "connection", (connection: Socket)',
    caughtBy: [
      by(
        "test/access/callers.test.ts",
        "500 silent callers hold 64 connections, and admitted callers are served at once",
      ),
    ],
  },
  {
    name: "a heartbeat counts from its arrival",
    file: "src/runtime/transport/hub/peer-liveness.ts",
    from: "this.#newestSentMs = sentMs;",
    to: "this.#newestSentMs = sentMs;\n    this.#knownAtMs = this.#time.nowMs;",
    caughtBy: [
      by(
        "test/runtime/network.test.ts",
        "a host whose heartbeats arrive ever later is lost, unless its own data delays them",
      ),
    ],
  },
  {
    name: "an actor stops before its links are there",
    file: "src/runtime/messaging/connections.ts",
    from: "      await connection.opened;\n",
    to: "",
    caughtBy: [
      by(
        "test/runtime/last-words.test.ts",
        "an actor that has nothing left to do waits for the link that its last words are to go by",
      ),
    ],
  },
  {
    name: "a process leaves before it has been heard to the end",
    file: "src/runtime/hosting/process-host.ts",
    from: "    await this.#open.leave(system);\n",
    to: "",
    caughtBy: [
      by(
        "test/runtime/last-words.test.ts",
        "DL-4 the last words of an actor are heard however late and long, the first that its process says there too, by %s",
      ),
    ],
  },
  {
    name: "who is linked with a process does not hear of its end",
    file: "src/runtime/hosting/process-pool.ts",
    from: '      peer.order({ kind: "lost", index: host.index });\n',
    to: "",
    caughtBy: [by("test/runtime/process.test.ts", reportedToLinked)],
  },
  {
    name: "all processes learn of each one's end",
    file: "src/runtime/hosting/process-pool.ts",
    from: "for (const peer of host.peers) {",
    to: "for (const peer of this.#running.values()) {",
    caughtBy: [by("test/runtime/process.test.ts", reportedToLinked)],
  },
  {
    name: "a host leaves before its head has heard it to the end",
    file: "src/runtime/hosting/host-agent.ts",
    from: "    await this.#hub?.leave();\n",
    to: "",
    caughtBy: [
      by(
        "test/runtime/last-words.test.ts",
        "a host that is let go stays until the one that leads has heard how its processes have ended",
      ),
    ],
  },
  {
    name: "shards are read in the order of their names",
    file: "src/job/tasks/examples/splits.ts",
    from: "shards.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))",
    to: "shards",
    caughtBy: [by("test/tasks/splits.test.ts", "may have numbers in their order, not that of the names")],
  },
  {
    name: "pictures of shards are shuffled without their blocks",
    file: "src/job/tasks/define-task.ts",
    from: "...(indexAt && { indexAt })",
    to: "",
    caughtBy: [by("test/tasks/media.test.ts", "are shuffled by blocks, like records")],
  },
  {
    name: "replicas contrast pictures and texts each among its own",
    file: "src/job/tasks/image-text.ts",
    from: "model.training ? rank.axes.dp : undefined",
    to: "undefined",
    caughtBy: [
      by("test/models/clip.test.ts", "is one replica's with the complete batch, gradients too: two replicas"),
    ],
  },
  {
    name: "metaseq's matrices of keys, values and queries are taken for FairSeq's",
    file: "src/library/convert/fairseq/names.ts",
    from: '["k_proj", "v_proj", "q_proj"]',
    to: '["q_proj", "k_proj", "v_proj"]',
    caughtBy: [
      by(
        "test/convert/fairseq.test.ts",
        "of metaseq's OPT, with keys, values and queries in one matrix and no output layer, become the same",
      ),
    ],
  },
  {
    name: "GPT-NeoX's checkpoints of several ranks are read as of the last one",
    file: "src/library/convert/neox/folder.ts",
    from: "holding.some(({ rank }) => rank > 0)",
    to: "false",
    caughtBy: [
      by(
        "test/convert/torch.test.ts",
        "of GPT-NeoX, a file for each layer of its pipeline or one for all, becomes a model that transformers names so",
      ),
    ],
  },
  {
    name: "another user's files are taken for ours",
    file: "scripts/setup/ownership.mjs",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template
    from: "  if (!isTrusted(uid)) return `one of another user (uid ${uid})`;\n",
    to: "",
    caughtBy: [
      by(ownership, "where it, the links to it and the folders above it are this user's or root's"),
      by(ownership, "not as Node's compile cache, by whichever name"),
    ],
  },
  {
    name: "folders above a file are not looked at",
    file: "scripts/setup/ownership.mjs",
    from: "    const reason = whyOpenAbove(named) ?? whyOpenAbove(real);\n",
    to: "    const reason = undefined;\n",
    caughtBy: [by(ownership, "where nobody else can write to it, nor to a folder above it")],
  },
];

/** Tests that a register names and no mutation makes fail, with the reason. */
export const unmutated: readonly (Catcher & { readonly why: string })[] = [
  {
    ...by(surroundings, "leaves the process around it as it was: threads of arithmetic, autograd, tensors"),
    why: "a run calls nothing in its process that could be left out or wrong: a mutation would add the call",
  },
];
