/** An operation of a program on a file system, or a line that it printed; lists are in order. Paths are relative to the watched folder. */
export type Operation =
  | { readonly kind: "create"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: "sync"; readonly path: string }
  | { readonly kind: "mkdir"; readonly path: string }
  | { readonly kind: "rename"; readonly from: string; readonly to: string }
  | { readonly kind: "remove"; readonly path: string }
  /** The program said on its standard output that something is safe. */
  | { readonly kind: "acknowledge"; readonly text: string };
