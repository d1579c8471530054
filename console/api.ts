import { createClient, NetworkError } from 'graphql-sse';
import type { TypedDocumentString } from './generated/graphql.ts';
import { accessToken, addressOf, Ended, end, viewer } from './session.ts';

/** A value that the server refuses: the place in the input, and what to change. */
export interface Issue {
  path: string[];
  message: string;
}

/** Why there is no answer, in words to show, with what leads to the audit record of the request. */
export class Failure extends Error {
  readonly issues: readonly Issue[];
  readonly permission: string | undefined;
  readonly correlationId: string | undefined;
  /** The type of the error, or its code: `PreconditionError`, `NOT_FOUND`. */
  readonly kind: string;

  constructor(message: string, about: Partial<Pick<Failure, 'issues' | 'permission' | 'correlationId' | 'kind'>> = {}) {
    super(message);
    this.issues = about.issues ?? [];
    this.permission = about.permission;
    this.correlationId = about.correlationId;
    this.kind = about.kind ?? '';
  }
}

/** Returns any error as a failure to show. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof TypeError) return new Failure('The server cannot be reached. Check the connection, and try again.');
  return new Failure(error instanceof Error ? error.message : String(error));
}

interface GraphqlError {
  message: string;
  extensions?: { code?: string; permission?: string; correlationId?: string; issues?: Issue[] };
}

interface Answer<Result> {
  data?: Result | null;
  errors?: GraphqlError[];
  error?: { message?: string };
  message?: string;
}

/** The server's message about a variable whose type differs from the schema. */
const OF_VARIABLE = /^Variable "\$input" has invalid value at ([^:]+): (.+)$/s;

function issuesIn({ message, extensions }: GraphqlError): Issue[] {
  const [, path, reason] = OF_VARIABLE.exec(message) ?? [];
  if (path === undefined || reason === undefined) return extensions?.issues ?? [];
  return [{ path: path.split(/[.[\]]+/).filter(Boolean), message: reason }];
}

function refusalOf(errors: readonly GraphqlError[], correlationId: string | undefined): Failure {
  const issues = errors.flatMap(issuesIn);
  const { message: first = 'The server gave no reason.', extensions = {} } = errors[0] ?? {};
  const message = OF_VARIABLE.test(first) ? 'The input is invalid.' : first;
  const { permission, correlationId: own = correlationId, code: kind = '' } = extensions;
  return new Failure(message, { issues, permission, correlationId: own, kind });
}

/** The parser's third argument, which TypeScript does not know yet (proposal "JSON.parse source text access"). */
export type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** Parses JSON; a number that would lose a digit comes as its text. */
export function parseExact(text: string): unknown {
  const reviver: Reviver = (_key, value, { source }) => (typeof value === 'number' && source !== undefined && String(value) !== source ? source : value);
  return JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1]);
}

/** The correlation ids of mutations' answers, by their results, for errors that come as data. */
const ANSWERED = new WeakMap<object, string>();

/**
 * Sends an operation and returns its data.
 * @param file what the variable `file` stands for, in a multipart request
 * @throws Failure
 */
export async function ask<Result, Variables>(
  operation: TypedDocumentString<Result, Variables>,
  variables: Variables,
  { file, signal }: { file?: File | undefined; signal?: AbortSignal | undefined } = {},
): Promise<Result> {
  const sent = JSON.stringify({ query: String(operation), variables });
  const body = file ? formOf(sent, file) : sent;
  const response = await posted(body, signal);
  const correlationId = response.headers.get('x-correlation-id') ?? undefined;
  const answer = answerIn(await response.text()) as Answer<Result>;
  if (answer.errors?.length) throw refusalOf(answer.errors, correlationId);
  if (!response.ok || !answer.data) {
    throw new Failure(answer.error?.message ?? answer.message ?? `The server returned HTTP status ${response.status}.`, { correlationId });
  }
  for (const result of Object.values(answer.data)) if (result && correlationId !== undefined) ANSWERED.set(result, correlationId);
  return answer.data;
}

/** Parses an answer; one that is no JSON, such as the page of a proxy, says nothing but its status. */
function answerIn(text: string): unknown {
  try {
    return parseExact(text) ?? {};
  } catch {
    return {};
  }
}

async function posted(body: string | FormData, signal: AbortSignal | undefined): Promise<Response> {
  const once = async (isRefused: boolean) => {
    const headers = new Headers({ authorization: `Bearer ${await accessToken(isRefused)}` });
    if (typeof body === 'string') headers.set('content-type', 'application/json');
    return fetch(addressOf('/graphql'), { method: 'POST', headers, body, signal: signal ?? null });
  };
  const who = viewer.value;
  const response = await once(false);
  if (response.status !== 401) return response;
  // A new session must not send the requests of an earlier one.
  if (viewer.value !== who) throw new Ended('You are signed out.');
  const again = await once(true);
  if (again.status === 401) throw end();
  return again;
}

function formOf(operations: string, file: File): FormData {
  const form = new FormData();
  form.set('operations', operations);
  form.set('map', '{"0":["variables.file"]}');
  form.set('0', file);
  return form;
}

/** The result of a mutation: the requested object, or an error as data. */
type Refused = { __typename: string; message: string; issues?: Issue[]; permission?: string };

/**
 * Returns the result of a mutation.
 * @throws Failure when it is an error.
 */
export function resultOf<Result extends object>(result: Result): Exclude<Result, Refused> {
  if (!('message' in result)) return result as Exclude<Result, Refused>;
  const { __typename: kind, message, issues, permission } = result as unknown as Refused;
  throw new Failure(message, { kind, issues: issues ?? [], permission, correlationId: ANSWERED.get(result) });
}

/** How a stream of events is: `waiting` for the next attempt after one that was cut. */
export type Link = { state: 'connecting' | 'live' } | { state: 'waiting'; untilMs: number };

interface Followed<Result, Variables> {
  operation: TypedDocumentString<Result, Variables>;
  /** Returns the variables of an attempt, so that it resumes where the last one was interrupted. */
  variables(): Variables;
  onNext(data: Result): void;
  onLink(link: Link): void;
  /** Called where trying again would not help. */
  onFailure(failure: Failure): void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
/** The longest silence of a stream: the server sends a ping every 12 s. */
const SILENCE_MS = 40_000;

/**
 * Returns a response whose body fails where it ends, and where nothing has come for too long. The client of streams
 * takes an end without an error for one that was meant, and a connection that was lost on the way never ends.
 */
function watched(response: Response): Response {
  let silence = 0;
  const expect = (controller: TransformStreamDefaultController) => {
    clearTimeout(silence);
    silence = setTimeout(() => controller.error(new TypeError('The event stream has stopped sending.')), SILENCE_MS);
  };
  const watching = new TransformStream<Uint8Array, Uint8Array>({
    start: expect,
    transform: (chunk, controller) => {
      expect(controller);
      controller.enqueue(chunk);
    },
    flush: (controller) => {
      clearTimeout(silence);
      controller.error(new TypeError('The event stream was interrupted.'));
    },
  });
  return response.body ? new Response(response.body.pipeThrough(watching), response) : response;
}

/** Follows a subscription over SSE, again and again until it completes or the returned function is called. */
export function follow<Result, Variables extends Record<string, unknown>>(followed: Followed<Result, Variables>): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  void attempts(followed, signal).catch((error: unknown) => {
    if (!signal.aborted && !(error instanceof Ended)) followed.onFailure(failureOf(error));
  });
  return () => stopping.abort();
}

async function attempts<Result, Variables extends Record<string, unknown>>(
  { operation, variables, onNext, onLink }: Followed<Result, Variables>,
  signal: AbortSignal,
): Promise<void> {
  let isRefused = false;
  for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    onLink({ state: 'connecting' });
    let correlationId: string | undefined;
    const client = createClient({
      url: addressOf('/graphql'),
      retryAttempts: 0,
      headers: async () => ({ authorization: `Bearer ${await accessToken(isRefused)}` }),
      fetchFn: async (input: RequestInfo, init: RequestInit) => {
        const response = await fetch(input, init);
        correlationId = response.headers.get('x-correlation-id') ?? undefined;
        if (response.ok && !signal.aborted) {
          isRefused = false;
          waitMs = FIRST_WAIT_MS;
          onLink({ state: 'live' });
        }
        return watched(response);
      },
    });
    const stop = () => client.dispose();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for await (const { data, errors } of client.iterate<Result>({ query: String(operation), variables: variables() })) {
        if (signal.aborted) return;
        if (errors) throw refusalOf(errors as readonly GraphqlError[], correlationId);
        if (data) onNext(data);
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      const status = error instanceof NetworkError && error.response ? error.response.status : 0;
      if (status === 401 && isRefused) throw end();
      if (error instanceof Failure || error instanceof Ended) throw error;
      if (status >= 400 && status < 500 && status !== 401 && status !== 429) {
        throw new Failure(`The server rejected the subscription with HTTP status ${status}.`, { correlationId });
      }
      isRefused = status === 401;
      if (isRefused) waitMs = FIRST_WAIT_MS;
    } finally {
      signal.removeEventListener('abort', stop);
      client.dispose();
    }
    onLink({ state: 'waiting', untilMs: Date.now() + waitMs });
    await new Promise((resume) => setTimeout(resume, waitMs));
  }
}
