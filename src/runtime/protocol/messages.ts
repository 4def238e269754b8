/**
 * The shape of one kind of message: `in` is the message. With `out` it is a question that is answered once, with `stream` one
 * that is answered by any number of items, with neither a statement.
 */
export interface MessageShape {
  readonly in: unknown;
  readonly out?: unknown;
  readonly stream?: unknown;
}

/** The messages that an actor understands: a map from kind to shape, written as a plain type. */
export type Protocol<P> = { readonly [K in keyof P]: MessageShape };

/** The names of all messages of `P`. */
export type Kind<P> = keyof P & string;

/** The body of a message of kind `K`. */
export type In<P, K extends keyof P> = P[K] extends { readonly in: infer Message } ? Message : never;

/** The answer to a message of kind `K`. */
export type Out<P, K extends keyof P> = P[K] extends { readonly out: infer Answer } ? Answer : never;

/** The kinds of `P` that are questions. */
export type AskKind<P> = { [K in Kind<P>]: P[K] extends { readonly out: unknown } ? K : never }[Kind<P>];

/** The kinds of `P` that are answered by a stream. */
export type StreamKind<P> = {
  [K in Kind<P>]: P[K] extends { readonly stream: unknown } ? K : never;
}[Kind<P>];

/** An item of the answer to a message of kind `K`. */
export type Item<P, K extends keyof P> = P[K] extends { readonly stream: infer Answer } ? Answer : never;
