/** What follows a flag: nothing, one value, several, or one of some words. */
export type Takes = "nothing" | "number" | "integer" | "text" | "texts" | readonly string[];

/** What a flag means here. */
export type Fate =
  /** A setting of the job, which templates read by `getArgs()`. */
  | {
      readonly is: "setting";
      readonly name: string;
      readonly standard: SettingValue;
      readonly value?: SettingValue;
    }
  /** An option of the runtime, by its path; `value` where the flag stands for one. */
  | { readonly is: "option"; readonly path: string; readonly value?: unknown }
  /** Neither: worked out of it together with others, in `settle.ts`. */
  | { readonly is: "derived"; readonly to: string }
  /** Accepted, and nothing follows of it, because what it asks for is so anyway or has no meaning here. */
  | { readonly is: "no-op"; readonly reason: string }
  /** Refused by name. `use`: what to write instead. */
  | { readonly is: "refused"; readonly use: string };

/** What a setting of a job may be. */
export type SettingValue = string | number | boolean;

/** One flag of Rapidformer's command line. */
export interface Flag {
  /** With its dashes, as the seed or Megatron-LM writes it. */
  readonly flag: string;
  readonly also: readonly string[];
  readonly takes: Takes;
  readonly fate: Fate;
  /** A sentence without its full stop. */
  readonly meaning: string;
  /** Whether the original document shows it. */
  readonly isShown: boolean;
}

interface More {
  readonly also?: readonly string[];
  readonly shown?: true;
  /** What the flag stands for, where it takes nothing. */
  readonly value?: SettingValue;
  /** Of the setting, where it is not the flag's own in camel case. */
  readonly name?: string;
}

const built = (
  flag: string,
  takes: Takes,
  fate: Fate,
  meaning: string,
  { also = [], shown }: More,
): Flag => ({
  flag,
  also,
  takes,
  fate,
  meaning,
  isShown: shown === true,
});

/** @returns `--lr-decay-style` as `lrDecayStyle` */
export function settingName(flag: string): string {
  return flag.replace(/^--/, "").replaceAll(/[-_]+([a-z0-9])/gi, (_, letter: string) => letter.toUpperCase());
}

/** @param standard - what stands where it is left out; 0 and "" mostly mean that something else decides */
export function setting(
  flag: string,
  takes: Takes,
  standard: SettingValue,
  meaning: string,
  more: More = {},
): Flag {
  const { name = settingName(flag), value } = more;
  return built(
    flag,
    takes,
    { is: "setting", name, standard, ...(value !== undefined && { value }) },
    meaning,
    more,
  );
}

/** @param path - of `RuntimeOptions` or of a command line's output */
export function option(flag: string, takes: Takes, path: string, meaning: string, more: More = {}): Flag {
  const { value } = more;
  return built(flag, takes, { is: "option", path, ...(value !== undefined && { value }) }, meaning, more);
}

/** @param to - in words, for the docs */
export function derived(flag: string, takes: Takes, to: string, meaning: string, more: More = {}): Flag {
  return built(flag, takes, { is: "derived", to }, meaning, more);
}

export function noOp(flag: string, takes: Takes, reason: string, more: More = {}): Flag {
  return built(flag, takes, { is: "no-op", reason }, reason, more);
}

export function refused(flag: string, takes: Takes, use: string, more: More = {}): Flag {
  return built(flag, takes, { is: "refused", use }, use, more);
}
