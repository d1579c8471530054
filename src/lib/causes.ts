/** Yields an error, its causes, and the errors that an AggregateError contains. */
export function* causes(error: unknown): Generator<Error> {
  if (!(error instanceof Error)) return;
  yield error;
  if (error instanceof AggregateError) for (const part of error.errors) yield* causes(part);
  yield* causes(error.cause);
}
