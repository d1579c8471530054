import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { SubscribePayload } from 'graphql-ws';
import type { AuditedOperation, Exchange } from '../gateway/exchange.ts';
import type { Principal } from '../oauth/principal.ts';
import { text } from './http-results.ts';

const KEPT_CHARACTERS = 64 * 1024;

/** An operation of a socket that has ended, for its audit record. */
export interface OperationRecord {
  /** The upgrade that the socket began with. */
  exchange: Exchange;
  principal: Principal;
  /** What came with it: its document, variables and name. */
  params: SubscribePayload;
  /** The monotonic clock, and milliseconds since the epoch, when the operation came. */
  startedTick: number;
  startedAtMs: number;
  /** The beginning of what was sent: a JSON text for each message, one a line. */
  responseText: string;
  /** Whether nothing that was sent had errors. */
  ok: boolean;
  /** Whether something that was sent had data. */
  hasData: boolean;
  /** What its audit record shows, once that is known. */
  audited: AuditedOperation | undefined;
}

interface Parts {
  exchange: Exchange;
  record(record: OperationRecord): void;
}

/** The operations of one socket that have not ended yet. */
export class OperationRecords {
  readonly #parts: Parts;
  readonly #open = new Map<string, OperationRecord>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  begin(id: string, principal: Principal, params: SubscribePayload): void {
    this.#open.set(id, {
      exchange: this.#parts.exchange,
      principal,
      params,
      startedTick: performance.now(),
      startedAtMs: Date.now(),
      responseText: '',
      ok: true,
      hasData: false,
      audited: undefined,
    });
  }

  next(id: string, result: { data?: unknown; errors?: readonly GraphQLError[] | undefined }): void {
    const record = this.#open.get(id);
    if (!record) return;
    if (result.errors) record.ok = false;
    record.hasData ||= 'data' in result;
    if (record.responseText.length < KEPT_CHARACTERS) append(record, text(result));
  }

  refused(id: string, errors: readonly GraphQLFormattedError[]): void {
    const record = this.#open.get(id);
    if (!record) return;
    record.ok = false;
    append(record, JSON.stringify({ errors }));
    this.end(id);
  }

  end(id: string): void {
    const record = this.#open.get(id);
    if (!record) return;
    this.#open.delete(id);
    this.#parts.record(record);
  }
}

function append(record: OperationRecord, line: string): void {
  const joined = record.responseText === '' ? line : `${record.responseText}\n${line}`;
  record.responseText = joined.slice(0, KEPT_CHARACTERS);
}
