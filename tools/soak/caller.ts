import { Agent, request } from 'undici';
import type { Tally } from './tally.ts';

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
  /** What it is to be answered with. */
  expected: number;
  /** What is wrong with the body of such an answer. */
  faultOf?: (json: Json) => string | undefined;
}

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  json: Json;
}

/** What stands in an answer, of many shapes. */
export type Json = ReturnType<typeof JSON.parse>;

/** Asks an instance and tells the tally; every request has a correlation id of its own that begins with its kind. */
export class Caller implements AsyncDisposable {
  readonly #agent = new Agent({ connections: 32 });
  readonly #baseUrl: string;
  readonly #tally: Tally;
  #count = 0;

  constructor(baseUrl: string, tally: Tally) {
    this.#baseUrl = baseUrl;
    this.#tally = tally;
  }

  /** The answer; undefined where there was none, or not the one that was expected. */
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
