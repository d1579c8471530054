import { type ConnectionState, NoResponseError, Portcullis, PortcullisError } from '@portcullis/client';
import type { TypedDocumentString } from './generated/graphql.ts';
import { errorSentence } from './kit/sentences.ts';
import { accessToken, addressOf, end, SessionEndedError, viewer } from './session.ts';

/** A value that the server refuses: the place in the input, and what to change. */
export interface Issue {
  path: string[];
  message: string;
}

/** An error as a view shows it, with what leads to the audit record of the request. */
export interface Failure {
  message: string;
  issues: readonly Issue[];
  permission?: string | undefined;
  correlationId?: string | undefined;
  /** The code of the error, or its type: `NOT_FOUND`, `PreconditionError`. */
  code?: string;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof NoResponseError) return failureOf(error.cause);
  if (error instanceof PortcullisError) {
    const { status, code, permission, correlationId } = error;
    const message = code === 'unexpected_response' ? `The server returned HTTP status ${status}.` : errorSentence(code, error.message);
    const issues = error.issues.map((issue) => ({ path: [issue.path].flat(), message: issue.message }));
    return { message, issues, permission, correlationId, code };
  }
  if (error instanceof TypeError) return { message: 'The server cannot be reached. Check the connection, and try again.', issues: [] };
  if (error instanceof DOMException && error.name === 'TimeoutError') return { message: 'The server did not respond in time. Try again.', issues: [] };
  return { message: error instanceof Error ? error.message : String(error), issues: [] };
}

function clientOf(onResponse?: (response: Response) => void): Portcullis {
  const who = viewer.value;
  const token = async (rejected?: string) => {
    // A new session must not send the requests of an earlier one.
    if (rejected !== undefined && viewer.value !== who) throw new SessionEndedError('You are signed out.');
    return accessToken(rejected !== undefined);
  };
  const fetcher = async (...request: Parameters<typeof fetch>) => {
    const response = await fetch(...request);
    onResponse?.(response);
    return response;
  };
  return new Portcullis({ baseUrl: addressOf('/'), token, fetch: fetcher, retries: 0 });
}

/** Ends the session after a 401 for a new token, too. Returns the reason why there is no answer. */
function reasonOf(error: unknown): unknown {
  return error instanceof PortcullisError && error.status === 401 ? end() : error;
}

type Options = { file?: File | undefined; signal?: AbortSignal | undefined; onResponse?: (response: Response) => void };

/** Sends an operation, and the file that its variable `file` stands for. Throws `SessionEndedError` where nobody is signed in any more. */
export async function ask<Result, Variables>(
  operation: TypedDocumentString<Result, Variables>,
  variables: Variables,
  { file, signal, onResponse }: Options = {},
): Promise<Result> {
  const sent = file ? { ...variables, file } : variables;
  return clientOf(onResponse)
    .graphql<Result, unknown>(String(operation), sent, signal && { signal })
    .catch((error: unknown) => {
      throw reasonOf(error);
    });
}

/** Fetches a file by a path that the API has returned. */
export async function download(path: string): Promise<Blob> {
  const headers = { authorization: `Bearer ${await accessToken()}` };
  const response = await fetch(new URL(path, document.baseURI), { headers });
  if (response.ok) return response.blob();
  throw new Error(
    response.status === 404
      ? 'The file was deleted meanwhile, or somebody else has just downloaded it. Try again.'
      : `The server returned HTTP status ${response.status}.`,
  );
}

/** An error that comes as data, in place of the requested object. */
type Refused = { __typename: string; message: string; issues?: Issue[]; permission?: string; reason?: string };

/**
 * Sends a mutation, whose one field is called `result`, and returns what it requested.
 * @throws PortcullisError when the mutation is refused.
 */
export async function mutate<Result extends object, Variables>(
  operation: TypedDocumentString<{ result: Result }, Variables>,
  variables: Variables,
  options?: Options,
): Promise<Exclude<Result, Refused>> {
  let correlationId: string | undefined;
  const onResponse = ({ headers }: Response) => {
    correlationId = headers.get('x-correlation-id') ?? undefined;
  };
  const { result } = await ask(operation, variables, { ...options, onResponse });
  if (!('message' in result)) return result as Exclude<Result, Refused>;
  const { __typename: code, message, issues = [], permission, reason } = result as unknown as Refused;
  throw new PortcullisError(message, { status: 200, code: reason ?? code, issues, permission, correlationId });
}

/** How a stream of events is: `waiting` for the next attempt after one that was cut. */
export type Link = ConnectionState;

interface Followed<Result, Variables> {
  operation: TypedDocumentString<Result, Variables>;
  /** Returns the variables of an attempt, so that it resumes where the last one was interrupted. */
  variables(): Variables;
  onNext(data: Result): void;
  onLink(link: Link): void;
  /** Called where trying again would not help. */
  onFailure(failure: Failure): void;
}

/** Follows a subscription, again and again until it completes or the returned function is called. */
export function follow<Result, Variables>({ operation, variables, onNext, onLink, onFailure }: Followed<Result, Variables>): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const read = async () => {
    const results = clientOf().subscribe<Result, Variables>(String(operation), variables, { signal, onState: onLink });
    for await (const data of results) onNext(data);
  };
  read().catch((error: unknown) => {
    if (signal.aborted) return;
    const reason = reasonOf(error);
    if (!(reason instanceof SessionEndedError)) onFailure(failureOf(reason));
  });
  return () => stopping.abort();
}
