/** A value that `--set KEY=VALUE` can write. */
export type ConfigValue = string | number | boolean;

/** A job's own settings: flat, plain, each with a default that tells its type. */
export type JobConfig = Readonly<Record<string, ConfigValue>>;
