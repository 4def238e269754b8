import { TroupeError, whatWasMeant } from "../../../errors/index.ts";
import type { ConfigValue, Job, JobConfig } from "../../../job/index.ts";

/**
 * Replaces some of a job's settings. @param given - of the right type, or texts as from a command line
 * @param remembered - of the run that is resumed, where `given` has none and the job still has one of that type
 * @throws {TroupeError} `JOB_CONFIG` for a name that the job does not have, or a value of another type
 */
export function configure(
  job: Job,
  given: Readonly<Record<string, unknown>>,
  remembered: JobConfig = {},
): JobConfig {
  const config: Record<string, ConfigValue> = { ...job.config };
  for (const [name, value] of Object.entries(remembered)) {
    if (Object.hasOwn(job.config, name) && typeof value === typeof job.config[name]) config[name] = value;
  }
  for (const [name, value] of Object.entries(given)) {
    const standard = Object.hasOwn(job.config, name) ? job.config[name] : undefined;
    if (standard === undefined) {
      const names = Object.keys(job.config);
      const operands = { where: "job", expected: "a setting of the job", got: name };
      const hint = whatWasMeant(name, names);
      throw new TroupeError("JOB_CONFIG", { ...operands, hint, fields: { name, names } });
    }
    config[name] = convert(name, value, standard);
  }
  return config;
}

function convert(name: string, value: unknown, standard: ConfigValue): ConfigValue {
  if (typeof value === typeof standard && (typeof value !== "number" || Number.isFinite(value)))
    return value as ConfigValue;
  if (
    typeof value === "string" &&
    typeof standard === "number" &&
    value.trim() !== "" &&
    Number.isFinite(Number(value))
  )
    return Number(value);
  if (typeof standard === "boolean" && (value === "true" || value === "false")) return value === "true";
  throw new TroupeError("JOB_CONFIG", {
    where: "job",
    expected: `${name} to be a ${typeof standard}, such as ${standard}`,
    got: JSON.stringify(value),
    fields: { name, value },
  });
}
