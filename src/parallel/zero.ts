import { TroupeError } from "../errors.ts";

/**
 * What a rank owns alone, by level: 0 nothing is split; 1 optimizer state; 2 also gradients; 3 also parameters.
 * @see Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"
 */
export type ZeroLevel = 0 | 1 | 2 | 3;

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
 * @param level - a number from outside
 * @throws {TroupeError} `ZERO_LEVEL` unless it is 0, 1, 2 or 3
 */
export function parseZeroLevel(level: number): ZeroLevel {
  if (level === 0 || level === 1 || level === 2 || level === 3) return level;
  throw new TroupeError("ZERO_LEVEL", `[zero] expected level 0, 1, 2 or 3: got ${level}`, {
    fields: { level },
  });
}
