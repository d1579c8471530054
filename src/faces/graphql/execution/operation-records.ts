import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { SubscribePayload } from 'graphql-ws';
import type { Principal } from '../../../access/identity/principal.ts';
import type { AuditedOperation, Exchange } from '../../../gateway/exchange/exchange.ts';
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

/** An operation that goes on: the texts that it was sent are those of all who share them. */
interface OpenOperation {
  record: OperationRecord;
  texts: string[];
  characters: number;
}

/** The operations of one socket that have not ended yet. */
export class OperationRecords {
  readonly #parts: Parts;
  readonly #open = new Map<string, OpenOperation>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  begin(id: string, principal: Principal, params: SubscribePayload): void {
    const record: OperationRecord = {
      exchange: this.#parts.exchange,
      principal,
      params,
      startedTick: performance.now(),
      startedAtMs: Date.now(),
      responseText: '',
      ok: true,
      hasData: false,
      audited: undefined,
    };
    this.#open.set(id, { record, texts: [], characters: 0 });
  }

  next(id: string, result: { data?: unknown; errors?: readonly GraphQLError[] | undefined }): void {
    const open = this.#open.get(id);
    if (!open) return;
    if (result.errors) open.record.ok = false;
    open.record.hasData ||= 'data' in result;
    if (open.characters < KEPT_CHARACTERS) append(open, text(result));
  }

  refused(id: string, errors: readonly GraphQLFormattedError[]): void {
    const open = this.#open.get(id);
    if (!open) return;
    open.record.ok = false;
    append(open, JSON.stringify({ errors }));
    this.end(id);
  }

  end(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    const responseText = open.texts.join('\n').slice(0, KEPT_CHARACTERS);
    this.#parts.record({ ...open.record, responseText });
  }
}

function append(open: OpenOperation, line: string): void {
  open.characters += line.length + 1;
  open.texts.push(line);
}
