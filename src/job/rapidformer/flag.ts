/** Values that follow a flag: none, one, several, or one of some words. */
export type Takes = "nothing" | "number" | "integer" | "text" | "texts" | readonly string[];

/** Effect of a flag. */
export type Fate =
  /** A setting of the job, which templates read by `getArgs()`. */
  | {
      readonly is: "setting";
      readonly name: string;
      readonly standard: SettingValue;
      readonly value?: SettingValue;
    }
  /** An option of the runtime, by its path; `value` if the flag implies one. */
  | { readonly is: "option"; readonly path: string; readonly value?: unknown }
  /** Computed together with other flags in `settle.ts`. */
  | { readonly is: "derived"; readonly to: string }
  /** Accepted without effect: always so, or meaningless here. */
  | { readonly is: "no-op"; readonly reason: string }
  /** Refused by name. `use`: what to write instead. */
  | { readonly is: "refused"; readonly use: string };

/** Value of a job's setting. */
export type SettingValue = string | number | boolean;

/** One flag of Rapidformer's command line. */
export interface Flag {
  /** With its dashes, as Rapidformer or Megatron-LM writes it. */
  readonly flag: string;
  readonly also: readonly string[];
  readonly takes: Takes;
  readonly fate: Fate;
  /** The help text, without a full stop. */
  readonly meaning: string;
  /** Whether Rapidformer's documentation shows it. */
  readonly isShown: boolean;
}

interface More {
  readonly also?: readonly string[];
  readonly shown?: true;
  /** The value implied by a flag that takes none. */
  readonly value?: SettingValue;
  /** Name of the setting, if it is not the flag in camel case. */
  readonly name?: string;
}

const built = (
  flag: string,
  takes: Takes,
  fate: Fate,
  meaning: string,
  { also = [], shown }: More,
): Flag => ({ flag, also, takes, fate, meaning, isShown: shown === true });

/** @returns `--lr-decay-style` as `lrDecayStyle` */
export function settingName(flag: string): string {
  return flag.replace(/^--/, "").replaceAll(/[-_]+([a-z0-9])/gi, (_, letter: string) => letter.toUpperCase());
}

/** @param standard - the default; 0 and "" mostly mean that something else decides */
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

/** @param path - in `RuntimeOptions`, or in the outputs of a command line */
export function option(flag: string, takes: Takes, path: string, meaning: string, more: More = {}): Flag {
  const { value } = more;
  return built(flag, takes, { is: "option", path, ...(value !== undefined && { value }) }, meaning, more);
}

/** @param to - what the flag becomes, in words for the docs */
export function derived(flag: string, takes: Takes, to: string, meaning: string, more: More = {}): Flag {
  return built(flag, takes, { is: "derived", to }, meaning, more);
}

export function noOp(flag: string, takes: Takes, reason: string, more: More = {}): Flag {
  return built(flag, takes, { is: "no-op", reason }, reason, more);
}

export function refused(flag: string, takes: Takes, use: string, more: More = {}): Flag {
  return built(flag, takes, { is: "refused", use }, use, more);
}
