import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { Agent, request } from 'undici';

/** The begin of the correlation ids of what is counted against the audit records. */
export const COUNTED = 'soak-';
const MAX_SHOWN = 300;

export interface Call {
  /** What is counted under one name. */
  kind: string;
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  token?: string | undefined;
  headers?: Record<string, string>;
  json?: unknown;
  /** The expected status. */
  expected: number;
  /** Returns what is wrong with the body of such an answer. */
  faultOf?: ((json: Json) => string | undefined) | undefined;
}

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  json: Json;
}

/** The body of an answer, of many shapes. */
export type Json = ReturnType<typeof JSON.parse>;

/** What was asked of one kind, and what came of it. */
export interface KindTally {
  answered: number;
  unexpected: number;
  /** The first unexpected answer. */
  example: string | undefined;
  /** How long answers took, in microseconds. */
  durations: RecordableHistogram;
}

/** What was asked and answered so far, by kind. */
export class Tally {
  readonly kinds = new Map<string, KindTally>();

  /** Counts an answer; `fault` says what was not as expected. */
  answered(kind: string, ms: number, fault?: string): void {
    const tally = this.#of(kind);
    tally.answered += 1;
    tally.durations.record(Math.max(1, Math.round(ms * 1_000)));
    if (fault !== undefined) this.failed(kind, fault);
  }

  /** Counts a request without an answer, or with an unexpected one. */
  failed(kind: string, fault: string): void {
    const tally = this.#of(kind);
    tally.unexpected += 1;
    tally.example ??= fault;
  }

  #of(kind: string): KindTally {
    const empty = { answered: 0, unexpected: 0, example: undefined, durations: createHistogram() };
    const tally = this.kinds.get(kind) ?? empty;
    this.kinds.set(kind, tally);
    return tally;
  }
}

/** Asks an instance and tells the tally. Each request has a correlation id of its own, which begins with its kind. */
export class Caller implements AsyncDisposable {
  readonly #agent = new Agent({ connections: 32 });
  readonly #baseUrl: string;
  readonly #tally: Tally;
  #count = 0;

  constructor(baseUrl: string, tally: Tally) {
    this.#baseUrl = baseUrl;
    this.#tally = tally;
  }

  /** Returns the answer; undefined if there was none, or an unexpected one. */
  async call(call: Call): Promise<Reply | undefined> {
    const { kind, method, path, token, headers = {}, json, expected, faultOf } = call;
    this.#count += 1;
    const startedAt = performance.now();
    try {
      const answer = await request(`${this.#baseUrl}${path}`, {
        dispatcher: this.#agent,
        method,
        headers: {
          'x-correlation-id': `${COUNTED}${kind}-${this.#count}`,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: json === undefined ? null : JSON.stringify(json),
      });
      const text = await answer.body.text();
      const reply = { status: answer.statusCode, headers: answer.headers, json: parsed(text) };
      const fault = reply.status === expected ? faultOf?.(reply.json) : `${reply.status} in the place of ${expected}`;
      const shown = fault === undefined ? undefined : `${fault}: ${text.slice(0, MAX_SHOWN)}`;
      this.#tally.answered(kind, performance.now() - startedAt, shown);
      return fault === undefined ? reply : undefined;
    } catch (error) {
      this.#tally.failed(kind, String(error));
      return undefined;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.close();
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
