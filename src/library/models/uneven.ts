// Rules of a family's plan: its dropouts know how wide they are, so that the last ranks may hold less.
import * as nn from "../../compute/nn/index.ts";

/** As `column`, of which the last ranks may hold less. */
export function column(options: Parameters<typeof nn.column>[0] = {}): nn.ColumnRule {
  return nn.column({ uneven: true, ...options });
}

/** As `row`, of which the last ranks may hold less. */
export function row(options: Parameters<typeof nn.row>[0] = {}): nn.RowRule {
  return nn.row({ uneven: true, ...options });
}
