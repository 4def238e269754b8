import type { EventOf, TroupeEvent } from "../../../job/events/index.ts";
import { Registry } from "./registry.ts";

const SECONDS_PER_MS = 1e-3;

/** What a run's events come to, as metrics. */
export class RunMetrics {
  readonly #registry = new Registry();

  constructor() {
    for (const [name, help] of Object.entries(gauges)) this.#registry.declare(name, "gauge", help);
    for (const [name, help] of Object.entries(counters)) this.#registry.declare(name, "counter", help);
  }

  text(): string {
    return this.#registry.text();
  }

  take(event: TroupeEvent): void {
    const metrics = this.#registry;
    switch (event.kind) {
      case "run.started": {
        const { job, precision, zero, placement, numRanks } = event;
        metrics.clear("troupe_run_info");
        metrics.set("troupe_run_info", 1, { job, precision, zero, placement, ranks: numRanks });
        metrics.set("troupe_run_steps", event.steps);
        metrics.set("troupe_parameters", event.numParameters);
        metrics.set("troupe_trainable_parameters", event.numTrainable);
        metrics.set("troupe_up", 1);
        break;
      }
      case "step.finished":
        this.#step(event);
        break;
      case "evaluation.finished":
        metrics.set("troupe_evaluation_loss_nats", event.lossNats, { split: event.split });
        this.#named(event.split, event);
        break;
      case "memory.measured":
        for (const [kind, { liveBytes, peakBytes }] of Object.entries(event.byKind)) {
          metrics.set("troupe_memory_bytes", liveBytes, { rank: event.rank, kind });
          metrics.set("troupe_memory_peak_bytes", peakBytes, { rank: event.rank, kind });
        }
        break;
      case "checkpoint.saved":
        metrics.add("troupe_checkpoints_total", 1, { outcome: "saved" });
        metrics.set("troupe_checkpoint_step", event.step);
        metrics.set("troupe_checkpoint_bytes", event.sizeBytes);
        metrics.set("troupe_checkpoint_seconds", event.durationMs * SECONDS_PER_MS);
        break;
      case "checkpoint.failed":
      case "checkpoint.skipped":
        metrics.add("troupe_checkpoints_total", 1, { outcome: event.kind.slice("checkpoint.".length) });
        break;
      case "actor.failed":
      case "actor.restarted":
      case "actor.stalled":
        metrics.add("troupe_actor_faults_total", 1, {
          actor: event.actor,
          fault: event.kind.slice("actor.".length),
        });
        break;
      case "anomaly.detected":
        metrics.add("troupe_anomalies_total", 1, { anomaly: event.anomaly, action: event.action });
        break;
      case "message.undelivered":
        metrics.add("troupe_messages_undelivered_total", event.count, { reason: event.reason });
        break;
      case "events.dropped":
        metrics.add("troupe_events_dropped_total", event.numDropped);
        break;
      case "run.finished":
      case "run.failed":
        metrics.set("troupe_up", 0);
        break;
    }
  }

  #step(step: EventOf<"step.finished">): void {
    const metrics = this.#registry;
    metrics.set("troupe_step", step.step);
    metrics.add("troupe_steps_total", 1);
    metrics.add("troupe_samples_total", step.numSamples);
    if (step.numTokens !== undefined) metrics.add("troupe_tokens_total", step.numTokens);
    if (step.skipped) metrics.add("troupe_steps_skipped_total", 1);
    metrics.set("troupe_loss_nats", step.lossNats);
    metrics.set("troupe_learning_rate", step.learningRate);
    metrics.set("troupe_gradient_norm", step.gradientNorm);
    if (step.lossScale !== undefined) metrics.set("troupe_loss_scale", step.lossScale);
    this.#named("train", step);
    metrics.set("troupe_samples_per_second", step.samplesPerSecond);
    if (step.tokensPerSecond !== undefined) metrics.set("troupe_tokens_per_second", step.tokensPerSecond);
    metrics.set("troupe_overlap_ratio", step.overlap);
    metrics.set("troupe_resident_bytes", step.residentBytes);
    metrics.set("troupe_step_seconds", step.durationMs * SECONDS_PER_MS);
    for (const part of ["exposed", "gather", "reduce", "update", "data"] as const)
      metrics.set("troupe_step_part_seconds", step[`${part}Ms`] * SECONDS_PER_MS, { part });
  }

  /** What has a name of the job's or the dataset's own. */
  #named(
    split: string,
    { losses = {}, metrics = {} }: Pick<EventOf<"step.finished">, "losses" | "metrics">,
  ): void {
    for (const [name, value] of Object.entries(losses))
      this.#registry.set("troupe_named_loss_nats", value, { split, name });
    for (const [name, value] of Object.entries(metrics))
      this.#registry.set("troupe_metric", value, { split, name });
  }
}

const gauges = {
  troupe_up: "1 while a run is under way.",
  troupe_run_info: "How the run is spread; always 1.",
  troupe_run_steps: "Optimizer steps there will be in all.",
  troupe_parameters: "Parameters of the model.",
  troupe_trainable_parameters: "Parameters that training changes.",
  troupe_step: "Steps done so far.",
  troupe_loss_nats: "Training loss of the latest step.",
  troupe_evaluation_loss_nats: "Loss on held-out data.",
  troupe_named_loss_nats: "Each of a job's named losses, of the latest step or evaluation.",
  troupe_metric: "What a training loop or a dataset's scores measured, by name.",
  troupe_learning_rate: "Learning rate of the latest step.",
  troupe_gradient_norm: "L2 norm of the gradient before clipping; NaN where it was not measured.",
  troupe_loss_scale: "What the loss is multiplied by before backward.",
  troupe_samples_per_second: "Samples of the latest step by its duration.",
  troupe_tokens_per_second: "Tokens of the latest step by its duration.",
  troupe_overlap_ratio: "Share of all communication that computation hid.",
  troupe_step_seconds: "Duration of the latest step.",
  troupe_step_part_seconds:
    "What of it was communication, exposed and in all, update and data; a mean over the ranks.",
  troupe_resident_bytes: "Memory of all processes of the run.",
  troupe_memory_bytes: "What a rank holds, by kind.",
  troupe_memory_peak_bytes: "The most it has held.",
  troupe_checkpoint_step: "Step of the latest checkpoint that was saved.",
  troupe_checkpoint_bytes: "Its size.",
  troupe_checkpoint_seconds: "How long saving it took.",
} as const;

const counters = {
  troupe_steps_total: "Steps made, those after a restart again.",
  troupe_steps_skipped_total: "Steps whose gradient was not finite.",
  troupe_samples_total: "Samples trained on.",
  troupe_tokens_total: "Tokens trained on.",
  troupe_checkpoints_total: "Checkpoints that were due.",
  troupe_actor_faults_total: "Actors that failed, stalled or were started again.",
  troupe_anomalies_total: "Anomalies that were detected.",
  troupe_messages_undelivered_total: "Messages that reached nobody.",
  troupe_events_dropped_total: "Events that were lost because a reader was slow.",
} as const;
