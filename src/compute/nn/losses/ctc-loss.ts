import type { NamesOf } from "../../../errors/index.ts";
import { type Device, grad, noGrad, onDevice, ops, scope, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { checkLossOptions } from "./loss-options.ts";

/** Options of connectionist temporal classification; defaults are torch's. */
export interface CtcOptions {
  /** int64 [B]: number of frames of each row without padding. Default: all. */
  readonly inputLengths?: Tensor | undefined;
  /** The blank class. Default: 0. */
  readonly blank?: number;
  /** "mean" divides each row's loss by its number of labels and averages over the rows. */
  readonly reduction?: "mean" | "sum";
  /** Whether rows with more labels than their frames can hold have loss 0 instead of infinity. False */
  readonly zeroInfinity?: boolean;
}

const NAMES: NamesOf<CtcOptions> = { inputLengths: true, blank: true, reduction: true, zeroInfinity: true };

/**
 * Computes the CTC loss: minus the log-probability of all alignments of labels with frames, in nats.
 * @param logits - [B, T, V], float; log-probabilities are computed in float32
 * @param labels - [B, L], int64: each row's labels, then negative padding
 * @returns float32 scalar
 * @throws {TroupeError} `MODULE_ARGUMENT` if logits and labels differ in rows, or a label is not below V, and for an option that
 *   it does not have
 * @see Graves et al. 2006, https://www.cs.toronto.edu/~graves/icml_2006.pdf
 */
export function ctcLoss(logits: Tensor, labels: Tensor, options: CtcOptions = {}): Tensor {
  checkLossOptions("ctcLoss", options, NAMES, ["mean", "sum"]);
  const { blank = 0, reduction = "mean", zeroInfinity = false } = options;
  const [batch = 0, numFrames = 0, numClasses = 0] = logits.shape;
  // A pipeline stage other than the last needs only the shape. This has the same shape, and keeps about as much memory.
  if (logits.device === "meta") return logits.to("float32").logSoftmax(-1).mean();
  check(logits, labels);
  return scope(() => {
    const isLabel = labels.ge(0); // [B, L]
    const flat = noGrad(() => labels.maskedSelect(isLabel));
    const highest = flat.numel === 0 ? -1 : flat.max().item();
    if (highest >= numClasses) throw argumentError("ctcLoss", `labels below ${numClasses}`, `${highest}`);
    const lengths = options.inputLengths ?? ops.full([batch], numFrames, "int64");
    const wide = logits.dtype === "float64" ? logits : logits.to("float32");
    const logProbabilities = wide.logSoftmax(2).transpose(0, 1); // [T, B, V]
    const code = reduction === "mean" ? 1 : 2;
    const labelLengths = isLabel.to("int64").sum([1]); // [B]
    const counted = [flat, lengths, labelLengths] as const;
    const loss = (rows: Tensor, [labels, frames, numLabels]: readonly [Tensor, Tensor, Tensor]) =>
      ops.ctcLoss(rows, labels, frames, numLabels, blank, code, zeroInfinity);
    return logits.device.startsWith("cuda")
      ? lossOverHost(loss, logProbabilities, counted)
      : loss(logProbabilities, counted);
  });
}

/** Computes the loss on the host, where sums have a fixed order, unlike libtorch's gradient on a GPU. */
function lossOverHost<Given extends readonly Tensor[]>(
  loss: (rows: Tensor, given: Given) => Tensor,
  rows: Tensor,
  given: Given,
): Tensor {
  const [value, gradient] = onDevice("cpu", () => {
    const host = rows.detach().onto("cpu").requiresGrad_();
    const onHost = loss(host, given.map((each) => each.detach().onto("cpu")) as unknown as Given);
    return [onHost.detach(), rows.requiresGrad ? grad([onHost], [host])[0] : undefined] as const;
  });
  const device = rows.device as Device; // a GPU
  if (!gradient) return value.onto(device);
  return ops.troupe.attachGradients(value.onto(device), [rows], [gradient.onto(device)], 1);
}

function check({ shape }: Tensor, labels: Tensor): void {
  if (shape.length === 3 && labels.ndim === 2 && labels.dtype === "int64" && labels.shape[0] === shape[0])
    return;
  throw argumentError(
    "ctcLoss",
    "logits [B, T, V] and labels of int64 [B, L]",
    `[${shape}] and ${labels.dtype} [${labels.shape}]`,
  );
}
