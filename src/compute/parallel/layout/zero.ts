import { TroupeError } from "../../../errors/index.ts";

/**
 * The state that a rank owns alone, by level: 0 nothing is split; 1 optimizer state; 2 also gradients; 3 also parameters. @see
 * Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"
 */
export type ZeroLevel = 0 | 1 | 2 | 3;

/** fairscale's names of levels 1, 2 and 3. */
export type ZeroName = "oss" | "sdp" | "fsdp";

const LEVELS: Readonly<Record<ZeroName, ZeroLevel>> = { oss: 1, sdp: 2, fsdp: 3 };

/** Which kinds of state a level splits over the ranks. */
export interface Splitting {
  readonly optimizer: boolean;
  readonly gradients: boolean;
  readonly parameters: boolean;
}

/** @returns what `level` splits */
export function splittingOf(level: ZeroLevel): Splitting {
  return { optimizer: level >= 1, gradients: level >= 2, parameters: level >= 3 };
}

/**
 * @param level - a level from outside, or a {@link ZeroName}
 * @throws {TroupeError} `ZERO_LEVEL` unless it is 0, 1, 2 or 3, or such a name
 */
export function parseZeroLevel(level: number | string): ZeroLevel {
  if (level === 0 || level === 1 || level === 2 || level === 3) return level;
  if (level === "oss" || level === "sdp" || level === "fsdp") return LEVELS[level];
  throw new TroupeError("ZERO_LEVEL", {
    where: "zero",
    expected: "level 0, 1, 2 or 3, or oss, sdp or fsdp",
    got: `${level}`,
    fields: { level },
  });
}
