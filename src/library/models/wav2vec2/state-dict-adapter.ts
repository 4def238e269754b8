import type { StateNaming } from "../weights.ts";

/**
 * How the files of speech models name their parameters; torch's older weight norm said `weight_g` and `weight_v`.
 * @param ignored - what else their files may hold: by default what pre-training alone needs
 */
export function speechNaming(
  prefix: string,
  ignored: readonly RegExp[] = [/^(quantizer|project_q|project_hid)\./],
): StateNaming {
  return {
    prefix,
    ignored,
    renamed: [
      [/^(encoder\.pos_conv_embed\.conv)\.weight_g$/, "$1.parametrizations.weight.original0"],
      [/^(encoder\.pos_conv_embed\.conv)\.weight_v$/, "$1.parametrizations.weight.original1"],
    ],
    head: { outsidePrefix: true, names: [/^masked_spec_embed$/, /^adapter\./] },
  };
}
