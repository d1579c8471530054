import { type DocumentNode, getOperationAST } from 'graphql';

export type Variables = Record<string, unknown>;

/** What a client library tells of an operation's result. */
export interface Told {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of many shapes.
  data?: any;
  errors?: readonly { message: string; extensions?: Record<string, unknown> | undefined }[] | undefined;
}

/** Who hears of a subscription: each of its results, and once that nothing more will come. */
export interface Listener {
  told(result: Told): void;
  over(): void;
}

/** Somebody else's client library, as a dashboard uses it. */
export interface RealClient extends AsyncDisposable {
  run(document: DocumentNode, variables?: Variables): Promise<Told>;
  /** Subscribes, and comes back from the last cursor when the connection breaks. @returns what ends it. */
  subscribe(document: DocumentNode, variables: Variables, listener: Listener): () => void;
}

/** Where a client library finds the service, and what it shows there. */
export interface Door {
  url: string;
  token: string;
  fetch: typeof fetch;
}

interface Payload {
  query: string;
  variables?: Variables | null | undefined;
}

interface Sink {
  // biome-ignore lint/suspicious/noExplicitAny: each library has another type for the same results.
  next(result: any): void;
  error(error: unknown): void;
  complete(): void;
}

/**
 * The same `subscribe`, of graphql-ws or of graphql-sse, which on each connection asks for what comes after the last cursor
 * that it was told: both libraries send the payload anew then, so it is enough to change it.
 */
export function resuming<Request extends Payload>(
  subscribe: (payload: Request, sink: Sink) => () => void,
): (payload: Request, sink: Sink) => () => void {
  return (payload, sink) => {
    const variables: Variables = { ...payload.variables };
    return subscribe(
      { ...payload, variables },
      {
        next(result: Told) {
          const cursor = result.data?.transactionUpdates?.cursor;
          if (cursor !== undefined) variables.after = cursor;
          sink.next(result);
        },
        error: (error) => sink.error(error),
        complete: () => sink.complete(),
      },
    );
  };
}

/** How the libraries try again here: soon, and for as long as a test lasts. */
export const RETRIES = 1_000;
export const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

/** What ends a subscription that a client has been refused, or has lost for good. */
export function lost(listener: Listener, error: unknown): void {
  const errors = Array.isArray(error) ? error : [{ message: String(error) }];
  listener.told({ errors });
  listener.over();
}

export function isMutation(document: DocumentNode): boolean {
  return getOperationAST(document)?.operation === 'mutation';
}
