/** A value that `--set KEY=VALUE` can write. */
export type ConfigValue = string | number | boolean;

/** A job's own settings: flat, plain, each with a default that defines its type. */
export type JobConfig = Readonly<Record<string, ConfigValue>>;

/** The settings that a job with these defaults may have. TypeScript widens the type of a default number or text, but not of true or false. */
export type SettingsOf<Defaults extends JobConfig> = {
  readonly [Name in keyof Defaults]: Defaults[Name] extends boolean ? boolean : Defaults[Name];
};
