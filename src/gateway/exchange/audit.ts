import type { Principal } from '../../access/identity/principal.ts';
import { type AuditChain, unchained } from '../../audit/audit-chain.ts';
import type { AuditRecord } from '../../audit/audit-record.ts';
import { maskBody } from '../../audit/mask.ts';
import { cut, maskPart, maskQuery, maskSpelled } from '../../audit/mask-form.ts';
import { maskHeaders } from '../../audit/mask-headers.ts';
import { correlationKey, maskTokens } from '../../audit/mask-keys.ts';
import { notedIds } from '../../audit/noted-users.ts';
import type { Log } from '../../lib/log.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Capture } from './capture.ts';
import type { AuditedBody, AuditedOperation, Exchange, RecordedHead } from './exchange.ts';
import { endStatusOf } from './request-metrics.ts';
import type { Unparsed } from './unparsed.ts';

/** The most that a record stores of a body, in bytes. */
export const MAX_BODY_BYTES = 64 * 1024;

/** The operation of a request that has only one: the captured bodies are recorded, masked by the default rules. */
export const WHOLE: AuditedOperation = { request: {}, response: {} };

/** The bodies of an audit record, masked and then cut at 64 KiB, and their full lengths in bytes. */
interface RecordedBodies {
  request_body: string | null;
  request_bytes: number;
  response_body: string | null;
  response_bytes: number;
}

/**
 * Returns the masked bodies of a request, or of one of its operations. If `operation` is undefined, returns only their
 * lengths.
 */
export function bodiesOf(exchange: Exchange, operation: AuditedOperation | undefined): RecordedBodies {
  const { req, res, found } = exchange;
  const { capture, isBodyRead, isBodyJson } = exchange.audit;
  const { request, response } = operation ?? WHOLE;
  const isHidden = operation === undefined || found.endpoint?.doNotLog === true;
  const sentBytes = Math.max(capture.request.totalBytes, Number(req.headers['content-length'] ?? 0) || 0);
  const answerType = headerText(res.getHeader('Content-Type'));
  return {
    request_body:
      isHidden || !isBodyRead ? null : bodyText(request, req.headers['content-type'], capture.request, isBodyJson),
    request_bytes: request.bytes ?? sentBytes,
    response_body: isHidden ? null : bodyText(response, answerType, capture.response, found.upstream === undefined),
    response_bytes: response.bytes ?? capture.response.totalBytes,
  };
}

/** Returns the bodies of a WebSocket operation: one JSON text, and one line of JSON for each message sent. */
function socketBodiesOf(operation: AuditedOperation | undefined): RecordedBodies {
  const { request, response } = operation ?? WHOLE;
  return {
    request_body: storedText(request.text),
    request_bytes: request.bytes ?? 0,
    response_body: storedText(response.text),
    response_bytes: response.bytes ?? 0,
  };
}

/** Replaces characters that PostgreSQL cannot store: U+0000 and lone surrogates. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function bodyText(
  { text, maskedNames: names }: AuditedBody,
  type: string | undefined,
  captured: Capture['request'],
  wellFormed: boolean,
): string | null {
  if (text !== undefined) return storedText(text);
  const { content, truncated } = captured;
  return storedText(maskBody(type, content, { maxBytes: MAX_BODY_BYTES, truncated, wellFormed, names }));
}

function storedText(masked: string | null | undefined, maxBytes = MAX_BODY_BYTES): string | null {
  // Responses contain correlation ids too, which may hold a JWT.
  return masked ? storable(cut(maskTokens(masked), maxBytes)) : null;
}

function headerText(value: number | string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value?.toString();
}

/** The longest path, and the longest query, in an audit record, in bytes; a request's head may have 160 KiB. */
const MAX_TARGET_PART_BYTES = 8 * 1024;

/** Masks a request target. `maskedQuery` replaces its query, if that is masked already. */
export function recordedTarget(target: string, maskedQuery?: string): Omit<RecordedHead, 'headers'> {
  const mark = target.indexOf('?');
  const whole = mark < 0 ? target : target.slice(0, mark);
  const path = maskPart(whole, MAX_TARGET_PART_BYTES, maskSpelled);
  if (mark < 0) return { path: storable(path), query: null };
  // The query of a truncated path is masked like a query of GraphQL, since the path may have been GraphQL's.
  const pathOfQuery = whole.length > MAX_TARGET_PART_BYTES ? null : whole;
  const query =
    maskedQuery === undefined
      ? maskPart(target.slice(mark + 1), MAX_TARGET_PART_BYTES, (text) => maskSpelled(maskQuery(text, pathOfQuery)))
      : maskPart(maskedQuery, MAX_TARGET_PART_BYTES, maskTokens);
  return { path: storable(path), query: storable(query) };
}

/** Masks the target and the headers of a request. */
export function recordedHead(
  target: string,
  headers: NodeJS.Dict<string | string[]>,
  maskedQuery?: string,
): RecordedHead {
  return { ...recordedTarget(target, maskedQuery), headers: maskHeaders(headers) };
}

/** The name under which the headers of a record have the reason of a refusal; no real header has it. */
const REASON = ':reason';

/** A WebSocket operation that has ended; it is recorded like a request. */
interface EndedOperation {
  /** The exchange of the upgrade that opened the WebSocket. */
  exchange: Exchange;
  principal: Principal;
  startedTick: number;
  startedAtMs: number;
  /** The operation's request, and the beginning of its response: one line of JSON for each message sent. */
  audited: AuditedOperation | undefined;
}

/**
 * Records every request once when it ends, or each of its operations if it has several, in the spool and in the log.
 */
export class AuditLog {
  readonly #chain: Pick<AuditChain, 'add' | 'commit'>;
  readonly #log: Log;

  constructor(chain: Pick<AuditChain, 'add' | 'commit'>, log: Log) {
    this.#chain = chain;
    this.#log = log;
  }

  /**
   * Records a request whose response is about to end or whose client has left. Calls `kept` once the records are
   * stored.
   */
  record(exchange: Exchange, aborted: boolean, kept: () => void): void {
    const records = this.#masked(
      exchange,
      () => (exchange.audit.operations?.() ?? [WHOLE]).map((operation) => recordOf(exchange, aborted, operation)),
      () => [recordOf(exchange, aborted, undefined)],
    );
    for (const record of records) this.#keep(record, record === records.at(-1) ? kept : undefined);
    if (records.length === 0) kept();
  }

  /** Records a WebSocket operation, with the method `WS`, before its last message is sent. */
  recordOperation(operation: EndedOperation): void {
    const bare = () => recordOfOperation({ ...operation, audited: undefined });
    this.#keep(this.#masked(operation.exchange, () => recordOfOperation(operation), bare));
    this.#chain.commit();
  }

  /** Records the response to bytes that are not valid HTTP. Calls `kept` once the record is stored. */
  recordUnparsed(unparsed: Unparsed, atMs: number, kept: () => void): void {
    this.#keep(recordOfUnparsed(unparsed, atMs), kept);
  }

  /** Returns what `full` makes of a request, or what `bare` makes without bodies if these cannot be masked. */
  #masked<Made>({ correlationId }: Exchange, full: () => Made, bare: () => Made): Made {
    try {
      return full();
    } catch (error) {
      // The response is sent anyway.
      this.#log.error({ correlation_id: correlationId, err: error }, 'could not mask bodies');
      return bare();
    }
  }

  #keep(record: AuditRecord, kept?: () => void): void {
    this.#chain.add(unchained(record), kept);
    const { correlation_id, method, path, status_code: status, is_api, real_ip, aborted } = record;
    const elapsed_ms = Math.round(record.elapsed * 1000) / 1000;
    this.#log.info(
      {
        correlation_id: escaped(correlation_id),
        method,
        path,
        status,
        elapsed_ms,
        is_api,
        real_ip,
        aborted,
        reason: record.headers[REASON],
      },
      'request',
    );
  }
}

function recordOf(exchange: Exchange, aborted: boolean, operation: AuditedOperation | undefined): AuditRecord {
  const { req, found, audit } = exchange;
  const { principal, client } = found;
  const correlation_id = correlationKey(exchange.correlationId);
  const headers = { [REASON]: audit.reason, ...req.headers, 'x-correlation-id': correlation_id };
  audit.head ??= recordedHead(req.url ?? '', headers, operation?.query);
  return {
    at: new Date(exchange.startedAtMs).toISOString(),
    id: uuidV7(exchange.startedAtMs),
    node_id: found.nodeId ?? null,
    correlation_id,
    method: req.method ?? '',
    ...audit.head,
    status_code: endStatusOf(exchange, aborted),
    elapsed: performance.now() - exchange.startedTick,
    remote_address: exchange.remoteAddress,
    real_ip: exchange.realIp,
    ...bodiesOf(exchange, operation),
    is_api: principal ? principal.tokenUse === 'api' : (client?.isApi ?? false),
    aborted,
    ...callerOf(principal, client?.clientId),
    operation: operation?.name ?? found.endpoint?.path ?? null,
    noted_users: notedIds(operation?.notes ?? audit),
  };
}

/** The longest subject or client id in an audit record, in bytes; a token may hold any text. */
const MAX_CALLER_BYTES = 512;

/** Returns who has sent a request, as far as it is known. */
function callerOf(principal: Principal | undefined, clientId: string | undefined) {
  const shown = (text: string | undefined) => storedText(text, MAX_CALLER_BYTES);
  return principal
    ? { subject: shown(principal.subject), client_id: shown(principal.clientId) }
    : { subject: null, client_id: clientId ?? null };
}

function recordOfOperation(operation: EndedOperation): AuditRecord {
  const { exchange, principal, audited } = operation;
  return {
    ...recordOf(exchange, false, undefined),
    ...callerOf(principal, undefined),
    operation: audited?.name ?? exchange.found.endpoint?.path ?? null,
    noted_users: notedIds(audited?.notes),
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

function recordOfUnparsed(unparsed: Unparsed, atMs: number): AuditRecord {
  const { correlationId, method, target, status, body, remoteAddress, reason } = unparsed;
  return {
    at: new Date(atMs).toISOString(),
    id: uuidV7(atMs),
    node_id: null,
    correlation_id: correlationKey(correlationId),
    method,
    ...recordedTarget(target),
    status_code: status,
    elapsed: 0,
    headers: { [REASON]: reason },
    remote_address: remoteAddress,
    real_ip: remoteAddress,
    request_body: null,
    request_bytes: 0,
    response_body: body,
    response_bytes: Buffer.byteLength(body),
    is_api: false,
    aborted: false,
    subject: null,
    client_id: null,
    operation: null,
    noted_users: null,
  };
}

/** Escapes all characters but printable ASCII, for a line of the log. */
function escaped(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
