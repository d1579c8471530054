import { correlationKey } from '../audit/correlation-key.ts';
import type { Log } from '../lib/log.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import type { Principal } from '../oauth/principal.ts';
import { bodiesOf, socketBodiesOf, WHOLE } from './audit-bodies.ts';
import { recordedHead, recordedTarget } from './audit-head.ts';
import type { AuditedOperation, Exchange } from './exchange.ts';

const CLIENT_CLOSED_REQUEST = 499;

/** Where records go. */
interface RecordSpool {
  /** Takes a record; `kept` is called when it outlives this process. */
  add(line: string, kept?: () => void): void;
  /** Keeps at once what it has taken. */
  commit(): void;
}

/** An audit record in the columns of `audit_records` (specification section 1). */
export interface AuditRecordLine {
  at: string;
  id: string;
  node_id: string | null;
  correlation_id: string;
  method: string;
  path: string;
  query: string | null;
  status_code: number;
  /** Milliseconds. */
  elapsed: number;
  headers: Record<string, unknown>;
  remote_address: string;
  real_ip: string;
  request_body: string | null;
  request_bytes: number;
  response_body: string | null;
  response_bytes: number;
  is_api: boolean;
  aborted: boolean;
}

/** What came on a connection and was no HTTP: its answer, and what could be read of it. */
export interface Unparsed {
  correlationId: string;
  method: string;
  target: string;
  status: number;
  body: string;
  remoteAddress: string;
}

/** An operation of a socket that has ended: a request of its own. */
export interface EndedOperation {
  /** The upgrade that the socket began with. */
  exchange: Exchange;
  principal: Principal;
  startedTick: number;
  startedAtMs: number;
  /** What was asked, and the beginning of what was sent: a JSON text for each message, one a line. */
  audited: AuditedOperation | undefined;
}

/**
 * Records every request once, as it ends, or each operation of one that has several: to the spool, and as a line of
 * the log.
 */
export class AuditLog {
  readonly #spool: RecordSpool;
  readonly #log: Log;

  constructor(spool: RecordSpool, log: Log) {
    this.#spool = spool;
    this.#log = log;
  }

  /** Records a request whose answer is about to end, or whose client has gone; calls `kept` when that is done. */
  record(exchange: Exchange, aborted: boolean, kept: () => void): void {
    const records = this.#recordsOf(exchange, aborted);
    for (const record of records) this.#keep(record, record === records.at(-1) ? kept : undefined);
    if (records.length === 0) kept();
  }

  /** Records an operation of a socket, with the method `WS`, before its last message is sent. */
  recordOperation(operation: EndedOperation): void {
    this.#keep(this.#recordOfOperation(operation));
    this.#spool.commit();
  }

  /** Records what was answered without having been a request; calls `kept` when that is done. */
  recordUnparsed(unparsed: Unparsed, atMs: number, kept: () => void): void {
    this.#keep(recordOfUnparsed(unparsed, atMs), kept);
  }

  /** Bodies that cannot be masked are left out: the answer goes on its way. */
  #recordsOf(exchange: Exchange, aborted: boolean): AuditRecordLine[] {
    try {
      const operations = exchange.auditedOperations?.() ?? [WHOLE];
      return operations.map((operation) => recordOf(exchange, aborted, operation));
    } catch (error) {
      this.#logUnmasked(exchange, error);
      return [recordOf(exchange, aborted, undefined)];
    }
  }

  #recordOfOperation(operation: EndedOperation): AuditRecordLine {
    try {
      return recordOfOperation(operation);
    } catch (error) {
      this.#logUnmasked(operation.exchange, error);
      return recordOfOperation({ ...operation, audited: undefined });
    }
  }

  #logUnmasked({ correlationId }: Exchange, error: unknown): void {
    this.#log.error({ correlation_id: correlationId, err: error }, 'bodies could not be masked');
  }

  #keep(record: AuditRecordLine, kept?: () => void): void {
    this.#spool.add(JSON.stringify(record), kept);
    const { correlation_id, method, path, status_code: status, is_api, real_ip, aborted } = record;
    const elapsed_ms = Math.round(record.elapsed * 1000) / 1000;
    this.#log.info(
      { correlation_id: escaped(correlation_id), method, path, status, elapsed_ms, is_api, real_ip, aborted },
      'request',
    );
  }
}

function recordOf(exchange: Exchange, aborted: boolean, operation: AuditedOperation | undefined): AuditRecordLine {
  const { req, res, principal, caller } = exchange;
  const correlation_id = correlationKey(exchange.correlationId);
  const headers = { ...req.headers, 'x-correlation-id': correlation_id };
  exchange.recordedHead ??= recordedHead(req.url ?? '', headers, operation?.maskQuery);
  return {
    at: new Date(exchange.startedAtMs).toISOString(),
    id: uuidV7(exchange.startedAtMs),
    node_id: exchange.nodeId ?? null,
    correlation_id,
    method: req.method ?? '',
    ...exchange.recordedHead,
    status_code: aborted && !res.headersSent ? CLIENT_CLOSED_REQUEST : res.statusCode,
    elapsed: performance.now() - exchange.startedTick,
    remote_address: exchange.remoteAddress,
    real_ip: exchange.realIp,
    ...bodiesOf(exchange, operation),
    is_api: principal ? principal.tokenUse === 'api' : (caller?.isApi ?? false),
    aborted,
  };
}

function recordOfOperation(operation: EndedOperation): AuditRecordLine {
  const { exchange, principal, audited } = operation;
  return {
    ...recordOf(exchange, false, undefined),
    at: new Date(operation.startedAtMs).toISOString(),
    id: uuidV7(operation.startedAtMs),
    node_id: principal.nodeId,
    method: 'WS',
    status_code: 200,
    elapsed: performance.now() - operation.startedTick,
    ...socketBodiesOf(audited),
    is_api: principal.tokenUse === 'api',
  };
}

function recordOfUnparsed(unparsed: Unparsed, atMs: number): AuditRecordLine {
  const { correlationId, method, target, status, body, remoteAddress } = unparsed;
  return {
    at: new Date(atMs).toISOString(),
    id: uuidV7(atMs),
    node_id: null,
    correlation_id: correlationKey(correlationId),
    method,
    ...recordedTarget(target),
    status_code: status,
    elapsed: 0,
    headers: {},
    remote_address: remoteAddress,
    real_ip: remoteAddress,
    request_body: null,
    request_bytes: 0,
    response_body: body,
    response_bytes: Buffer.byteLength(body),
    is_api: false,
    aborted: false,
  };
}

/** A log line is ASCII: what a caller wrote otherwise shows as an escape. */
function escaped(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
