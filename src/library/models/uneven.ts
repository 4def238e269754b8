// Rules of a family's plan for layers whose dropouts know their width, so that the last ranks may have less.
import * as nn from "../../compute/nn/index.ts";

/** `column`, where the last ranks may have less. */
export function column(options: Parameters<typeof nn.column>[0] = {}): nn.ColumnRule {
  return nn.column({ uneven: true, ...options });
}

/** `row`, where the last ranks may have less. */
export function row(options: Parameters<typeof nn.row>[0] = {}): nn.RowRule {
  return nn.row({ uneven: true, ...options });
}
