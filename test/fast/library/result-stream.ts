import { type ExecutionResult, mapSourceToResponseEvent, type ValidatedSubscriptionArgs } from 'graphql';

/** Maps events to results as graphql-js does, and leaves their transport to the layers above. */
export class ResultStream {
  constructor(events: AsyncIterable<unknown>, answer: (event: unknown) => ExecutionResult | Promise<ExecutionResult>) {
    const none = {} as ValidatedSubscriptionArgs;
    // biome-ignore lint/correctness/noConstructorReturn: the class has the library's own value in its place.
    return mapSourceToResponseEvent(none, events, ({ rootValue }) => answer(rootValue)) as never;
  }
}
