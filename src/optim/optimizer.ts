import type { AdamWSpec } from "./adamw.ts";
import { adamwRule } from "./adamw-rule.ts";
import type { UpdateRule } from "./update-rule.ts";

/** An optimizer as plain data: what a job names, what messages carry, what a shard makes an {@link UpdateRule} of. */
export type OptimizerSpec = AdamWSpec;

/** @returns what a shard does for an optimizer */
export function updateRuleOf(spec: OptimizerSpec): UpdateRule {
  switch (spec.kind) {
    case "adamw":
      return adamwRule(spec);
    default:
      return spec.kind satisfies never;
  }
}
