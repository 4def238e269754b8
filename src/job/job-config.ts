/** A value that `--set KEY=VALUE` can write. */
export type ConfigValue = string | number | boolean;

/** A job's own settings: flat, plain, each with a default that defines its type. */
export type JobConfig = Readonly<Record<string, ConfigValue>>;

/** Settings with the names of these defaults. TypeScript widens the types of default numbers and texts, but not of true and false. */
export type SettingsOf<Defaults extends JobConfig> = {
  readonly [Name in keyof Defaults]: Defaults[Name] extends boolean ? boolean : Defaults[Name];
};
