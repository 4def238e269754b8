/**
 * One kind of message: what goes in; `out` makes it a question that is answered once, without it it is a statement.
 */
export interface MessageShape {
  readonly in: unknown;
  readonly out?: unknown;
}

/** What an actor understands: a map from kind to shape, written as a plain type. */
export type Protocol<P> = { readonly [K in keyof P]: MessageShape };

/** The names of all messages of `P`. */
export type Kind<P> = keyof P & string;

/** What a message of kind `K` carries. */
export type In<P, K extends keyof P> = P[K] extends { readonly in: infer Message } ? Message : never;

/** What a message of kind `K` is answered with. */
export type Out<P, K extends keyof P> = P[K] extends { readonly out: infer Answer } ? Answer : never;

/** The kinds that are answered once. */
export type AskKind<P> = { [K in Kind<P>]: P[K] extends { readonly out: unknown } ? K : never }[Kind<P>];
