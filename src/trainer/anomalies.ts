import {
  type Anomaly,
  type AnomalyRules,
  DEFAULT_RULES,
  mayRewind,
  type Policy,
} from "../anomalies/index.ts";
import type { NamesOf } from "../errors.ts";
import { optionError, refuseUnknown } from "./option-error.ts";
import { whole } from "./whole.ts";

/** What is done where a run's figures are out of the ordinary; all of it is told, as `anomaly.detected`. */
export interface AnomalyOptions {
  /** A loss that is infinite or not a number. "stop" */
  readonly loss?: "stop" | "skip" | "rewind";
  /** A gradient that is infinite or not a number, where no loss scale knows what to do then. "stop" */
  readonly gradient?: "stop" | "skip" | "rewind";
  /** A loss that stands out above those of the last 64 steps. "tell" */
  readonly spike?: Policy;
  /** How far it stands out: in deviations, by the median absolute one, over the median. 8 */
  readonly spikeDeviations?: number;
  /** A rank that computes for longer than the ranks that do the same work, or where there are none, than before. "tell" */
  readonly straggler?: "tell" | "stop";
  /** How many times as long. 2 */
  readonly stragglerFactor?: number;
  /** In how many steps in a row. 10 */
  readonly stragglerSteps?: number;
}

const POLICIES = {
  loss: ["stop", "skip", "rewind"],
  gradient: ["stop", "skip", "rewind"],
  spike: ["tell", "stop", "skip", "rewind"],
  straggler: ["tell", "stop"],
} as const satisfies Record<string, readonly Policy[]>;

const ANOMALIES = {
  loss: "loss-not-finite",
  gradient: "gradient-not-finite",
  spike: "loss-spike",
  straggler: "straggler",
} as const satisfies Record<keyof typeof POLICIES, Anomaly>;

const NAMES: NamesOf<AnomalyOptions> = {
  loss: true,
  gradient: true,
  spike: true,
  straggler: true,
  spikeDeviations: true,
  stragglerFactor: true,
  stragglerSteps: true,
};

/** The names of what may be wrong, as options and the command line have them. */
export const anomalyNames = Object.keys(POLICIES) as readonly (keyof typeof POLICIES)[];

/**
 * @param isSaved - whether the run keeps states that it could go back to
 * @throws {TroupeError} `OPTION`
 */
export function settleAnomalies(options: AnomalyOptions = {}, isSaved: boolean): AnomalyRules {
  refuseUnknown("anomalies", options, NAMES);
  const policies = { ...DEFAULT_RULES.policies };
  for (const name of anomalyNames) {
    const policy = options[name];
    if (policy === undefined) continue;
    const choices: readonly Policy[] = POLICIES[name];
    if (!choices.includes(policy)) throw optionError(`anomalies.${name}`, choices.join(" or "), policy);
    policies[ANOMALIES[name]] = policy;
  }
  const rules = {
    policies,
    spikeDeviations: above("spikeDeviations", options.spikeDeviations, 0),
    stragglerFactor: above("stragglerFactor", options.stragglerFactor, 1),
    stragglerSteps: whole(
      "anomalies.stragglerSteps",
      options.stragglerSteps ?? DEFAULT_RULES.stragglerSteps,
      1,
    ),
  };
  if (mayRewind(rules) && !isSaved) {
    throw optionError(
      "anomalies",
      "rewind only where states are saved",
      "no checkpoint",
      "give checkpoint: { inMemoryEverySteps } or a folder to go back to",
    );
  }
  return rules;
}

function above(
  name: "spikeDeviations" | "stragglerFactor",
  value = DEFAULT_RULES[name],
  bound: number,
): number {
  if (value > bound && Number.isFinite(value)) return value;
  throw optionError(`anomalies.${name}`, `a number > ${bound}`, value);
}
