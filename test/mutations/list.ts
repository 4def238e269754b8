import type { Catcher, Mutation } from "./mutation.ts";

const by = (file: string, ...titles: readonly string[]): Catcher => ({ file, titles });

const schedules = "test/optim/schedule.test.ts";
const scales = "test/optim/loss-scale.test.ts";
const bmtrainOptim = "test/optim/bmtrain.test.ts";
const parameters = "test/acceptance/bmtrain/parameters.test.ts";
const blocks = "test/acceptance/bmtrain/blocks.test.ts";
const layouts = "test/acceptance/bmtrain/layouts.test.ts";
const frozen = "test/acceptance/bmtrain/frozen.test.ts";
const training = "test/acceptance/bmtrain/training.test.ts";
const refusals = "test/acceptance/bmtrain/refusals.test.ts";
const blockRefusals = "test/parallel/block-refusals.test.ts";
const model = "test/trainer/inspect-model.test.ts";
const tensors = "test/trainer/inspect-tensors.test.ts";
const updates = "test/trainer/inspect-updates.test.ts";
const losses = "test/nn/loss.test.ts";
const buffers = "test/trainer/buffers.test.ts";
const remembered = "test/trainer/remembered.test.ts";

/** Mistakes that the tests named by the registers of docs/reference must notice. */
export const mutations: readonly Mutation[] = [
  {
    name: "the cosine is a straight line",
    file: "src/optim/schedule.ts",
    from: "return (1 + Math.cos(Math.PI * progress)) / 2;",
    to: "return 1 - progress;",
    caughtBy: [by(schedules, "fall along a cosine and do not rise again after the end")],
  },
  {
    name: "decay goes on after its end",
    file: "src/optim/schedule.ts",
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
    file: "src/optim/schedule.ts",
    from: "return step < warmup ? step / warmup : 1;",
    to: "return step / Math.max(1, warmup);",
    caughtBy: [by(schedules, "hold the peak after warm-up")],
  },
  {
    name: "Noam falls by the step, not by its root",
    file: "src/optim/schedule.ts",
    from: "(this.lr / Math.sqrt(Math.max(step, this.warmup)))",
    to: "(this.lr / Math.max(step, this.warmup))",
    caughtBy: [by(schedules, "follow Noam's inverse square root")],
  },
  {
    name: "the exponential is a step ahead",
    file: "src/optim/schedule.ts",
    from: "this.gamma ** (step - this.warmup)",
    to: "this.gamma ** (step + 1 - this.warmup)",
    caughtBy: [by(schedules, "fall by a factor a step")],
  },
  {
    name: "BMTrain's cosine stays at its end",
    file: "src/optim/schedule.ts",
    from: 'if (this.afterEnd === "stay" || step < this.end) return super.lrAt(step);',
    to: "return super.lrAt(step);",
    caughtBy: [
      by(schedules, "rise again after the end where BMTrain's own cosine is asked for, and never by default"),
    ],
  },
  {
    name: "the loss scale passes its bounds",
    file: "src/optim/loss-scale.ts",
    from: "(clamp ? Math.min(max, Math.max(min, value)) : value)",
    to: "value",
    caughtBy: [by(scales, "stays between BMTrain's minimum and maximum, which BMTrain itself may pass")],
  },
  {
    name: "an overflow at the floor counts",
    file: "src/optim/loss-scale.ts",
    from: "state.scale > min ? {",
    to: "state.scale >= min ? {",
    caughtBy: [by(scales, "follows BMTrain's golden trace: at the floor an overflow changes nothing")],
  },
  {
    name: "parameters are aligned to half as many elements",
    file: "src/parallel/flat-block.ts",
    from: "export const PARAMETER_ALIGNMENT = 128;",
    to: "export const PARAMETER_ALIGNMENT = 64;",
    caughtBy: [
      by(
        parameters,
        "lie at BMTrain's offsets within a block, whose slices are whole chunks of 1,024 elements",
      ),
    ],
  },
  {
    name: "slices are no whole chunks",
    file: "src/parallel/flat-block.ts",
    from: "export const SLICE_ALIGNMENT = 1024;",
    to: "export const SLICE_ALIGNMENT = 128;",
    caughtBy: [
      by(
        parameters,
        "lie at BMTrain's offsets within a block, whose slices are whole chunks of 1,024 elements",
      ),
    ],
  },
  {
    name: "a parameter is grouped twice",
    file: "src/optim/parameter-groups.ts",
    from: "group.names.push(name);",
    to: "group.names.push(name, name);",
    caughtBy: [
      by(parameters, "stand in one optimizer group each, tied ones and those of shared layers once"),
    ],
  },
  {
    name: "held updates move the parameters",
    file: "src/optim/adam.ts",
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
    file: "src/optim/adam.ts",
    from: "maximize ? -step.gradientScale : step.gradientScale,",
    to: "maximize ? step.gradientScale : step.gradientScale,",
    caughtBy: [by(bmtrainOptim, "maximizes what it is told to, whatever the other optimizers do")],
  },
  {
    name: "class weights are left out",
    file: "src/nn/weighed-rows.ts",
    from: "classWeights.indexSelect(0, classes).mul(counted)",
    to: "counted",
    caughtBy: [by(losses, "holds for %i classes in %s, with weights and without")],
  },
  {
    name: "tensors in class instances are overlooked",
    file: "src/parallel/map-tensors.ts",
    from: "  refuseTensors(value);\n",
    to: "",
    caughtBy: [by(blockRefusals, "refuses tensors in class instances, which it would overlook")],
  },
  {
    name: "a gradient past a block's results is lost in silence",
    file: "src/parallel/tape-checks.ts",
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
    file: "src/parallel/gradient-buckets.ts",
    from: "ops.troupe.collectGradients_(flat, given, offsets, present !== undefined);",
    to: "ops.troupe.collectGradients_(flat, given, offsets, false);",
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
    file: "src/parallel/map-tensors.ts",
    from: "return value.map((item) => mapTensors(item, change));",
    to: "return value.length === 1 ? mapTensors(value[0], change) : value.map((item) => mapTensors(item, change));",
    caughtBy: [
      by(blocks, "return a tensor, lists of one, two and ten, and nested objects as their modules made them"),
    ],
  },
  {
    name: "micro-batches are not averaged",
    file: "src/engine/shard/optimizer-clock.ts",
    from: "return this.#plan.numMicroBatches * (this.before(step)",
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
    file: "src/nn/dropout.ts",
    from: "return this.training && this.p > 0;",
    to: "return this.p > 0;",
    caughtBy: [by(training, "dropout draws anew in every step of training and is off in evaluation")],
  },
  {
    name: "frozen parameters are trained",
    file: "src/parallel/unit-gradients.ts",
    from: "if (parameter.trainable) this.#trained.add(parameter);",
    to: "this.#trained.add(parameter);",
    caughtBy: [
      by(blocks, "that are frozen never change and keep no state, but are saved"),
      by(
        frozen,
        "has a gradient in the steps that train it alone, and keeps the last one's traces while it is frozen",
      ),
      by(model, "shows frozen parameters unchanged and without a gradient"),
    ],
  },
  {
    name: "gradients of recorded tensors are summed over micro-batches",
    file: "src/engine/rank/granted-step.ts",
    from: "const divisor = numMicroBatches * (shard",
    to: "const divisor = (shard",
    caughtBy: [by(tensors, "is that of the step's loss, by finite differences, with %o")],
  },
  {
    name: "a tensor is recorded once more where its block is computed again",
    file: "src/nn/record.ts",
    from: "made ??= call.made;",
    to: "void call.made;",
    caughtBy: [by(tensors, "records a tensor once where its block is computed again, gradient and all")],
  },
  {
    name: "an inspected update has the learning rate in it",
    file: "src/inspect/inspected-update.ts",
    from: "rate === 0 ? 0 : 1 / rate",
    to: "1",
    caughtBy: [by(updates, "tells AdamW's direction as BMTrain's record_delta does: %s")],
  },
  {
    name: "a pipeline takes a layer twice",
    file: "src/parallel/stage-cut.ts",
    from: "use.calls.length !== blocks.length || use.calls.some((position, index) => position !== index)",
    to: "use.calls.length < 0",
    caughtBy: [by(refusals, "is refused in a pipeline, whose stages each have their own layers")],
  },
  {
    name: "buffers become the sum of what was written to them",
    file: "src/parallel/mean-of-writes.ts",
    from: ".div(count));",
    to: ");",
    caughtBy: [
      by(buffers, "are saved under torch's names, and are what the definition makes of the batches"),
    ],
  },
  {
    name: "a run that goes on has the job's standard settings",
    file: "src/trainer/configure.ts",
    from: "typeof value === typeof job.config[name]) config[name] = value;",
    to: "typeof value === typeof job.config[name]) void value;",
    caughtBy: [
      by(
        remembered,
        "has the settings and the steps of its checkpoint where nobody gives others: the straight run, bit for bit",
      ),
    ],
  },
  {
    name: "another training is gone on with in silence",
    file: "src/trainer/check-resumed.ts",
    from: "if (refused.length === 0) return;",
    to: "return;",
    caughtBy: [
      by(
        remembered,
        "is refused another training unless it is named: %j",
        "is known by its content, not by its name: another is refused unless it is named to change",
      ),
    ],
  },
  {
    name: "a layer that the model lacks is lost with the next save",
    file: "src/trainer/check-resumed.ts",
    from: "find((name) => !state.has(name))",
    to: 'find((name) => name === "")',
    caughtBy: [by(remembered, "is refused another model, by the names of the settings that make it one: %j")],
  },
  {
    name: "a folder is emptied before its run is known to work",
    file: "src/trainer/run-folder.ts",
    from: "if (!overwrite) await takeEmpty(storage, record);",
    to: "await (overwrite ? takeOver : takeEmpty)(storage, record);",
    caughtBy: [
      by(
        "test/trainer/run-folder.test.ts",
        "keeps what it holds where the run that is to replace it does not come to its first step",
      ),
    ],
  },
  {
    name: "a signal ends a run without a save",
    file: "src/trainer/runtime.ts",
    from: "const saved = control.save();",
    to: "const saved = Promise.resolve();",
    caughtBy: [
      by(
        "test/trainer/signals.test.ts",
        "%s lets the run save what it has made, and end",
        "while the run is paused saves the state that it stands at",
      ),
    ],
  },
  {
    name: "a killed run counts as one that never told its end",
    file: "src/checkpoint/run-record.ts",
    from: "return holder === undefined",
    to: "return holder !== undefined",
    caughtBy: [
      by(
        "test/checkpoint/owner.test.ts",
        "tells how its run stands, of one that was killed when it was last heard of",
      ),
    ],
  },
];
