import type { Principal } from '../../access/identity/callers.ts';
import { type AuditChain, type AuditRecord, unchained } from '../../audit/audit-record.ts';
import { cut, isGraphql, maskBody, maskHeaders, maskPart, maskQuery } from '../../audit/mask.ts';
import { isOperationBody } from '../../audit/mask-json.ts';
import { maskValues, withoutBareUserinfo } from '../../audit/mask-values.ts';
import { correlationKey, SECRETS, type SecretNames } from '../../audit/masked-names.ts';
import { notedIds } from '../../audit/noted-users.ts';
import type { Log } from '../../lib/log.ts';
import { counterBy } from '../../lib/meters.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Endpoint } from '../endpoints/gateway-config.ts';
import type { Capture } from './capture.ts';
import { type AuditedBody, type AuditedOperation, type Exchange, isIdentity, type RecordedHead } from './exchange.ts';
import { endStatusOf } from './request-metrics.ts';
import type { Unparsed } from './unparsed.ts';

/** The most that a record stores of a body, in bytes. */
export const MAX_BODY_BYTES = 64 * 1024;

/** The operation of a request that has only one: the captured bodies are recorded, masked by the default rules. */
export const SINGLE_OPERATION: AuditedOperation = { request: {}, response: {} };

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
export function bodiesOf(
  exchange: Exchange,
  operation: AuditedOperation | undefined,
  secrets: SecretNames = SECRETS,
): RecordedBodies {
  const { req, res, state } = exchange;
  const { capture, isBodyRead, isBodyJson } = exchange.audit;
  // The schema of another service's GraphQL is not known, so that any literal, variable or field may be a secret.
  const isForeign =
    state.upstream !== undefined &&
    (isGraphql((req.url ?? '').split('?', 1)[0] ?? '') || isOperationBody(capture.request.content));
  const header = (name: string) => [res.getHeader(name) ?? []].flat().join(', ') || undefined;
  const { request, response } = operation ?? SINGLE_OPERATION;
  const isHidden = operation === undefined || isForeign || state.endpoint?.doNotLog === true;
  const sentBytes = Math.max(capture.request.totalBytes, Number(req.headers['content-length'] ?? 0) || 0);
  // Compressed bytes are no text, whatever type they have.
  const sentType = isIdentity(req.headers['content-encoding']) ? req.headers['content-type'] : undefined;
  const sent = { type: sentType, captured: capture.request, wellFormed: isBodyJson, secrets };
  const answered = {
    type: isIdentity(header('Content-Encoding')) ? header('Content-Type') : undefined,
    captured: capture.response,
    wellFormed: state.upstream === undefined,
    secrets,
  };
  return {
    request_body: isHidden || !isBodyRead ? null : bodyText(request, sent),
    request_bytes: request.bytes ?? sentBytes,
    response_body: isHidden ? null : bodyText(response, answered),
    response_bytes: response.bytes ?? capture.response.totalBytes,
  };
}

/** Replaces characters that PostgreSQL cannot store: U+0000 and lone surrogates. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function bodyText(
  { text, maskedNames: names }: AuditedBody,
  {
    type,
    captured,
    ...how
  }: { type: string | undefined; captured: Capture['request']; wellFormed: boolean; secrets: SecretNames },
): string | null {
  if (text !== undefined) return storedText(text);
  const { content, truncated } = captured;
  return maskBody(type, content, { ...how, maxBytes: MAX_BODY_BYTES, truncated, names })?.toWellFormed() || null;
}

function storedText(masked: string | null | undefined, maxBytes = MAX_BODY_BYTES): string | null {
  // Responses contain correlation ids too, which may hold a JWT.
  return masked ? storable(cut(maskValues(masked), maxBytes)) : null;
}

/** The longest path, and the longest query, in an audit record, in bytes; a request's head may have 160 KiB. */
const MAX_TARGET_PART_BYTES = 8 * 1024;
/** Within how much of a target its authority ends, in UTF-16 units; in the rest, URLs are masked as in other text. */
const MAX_AUTHORITY = 3 * MAX_TARGET_PART_BYTES;

/** How a request target is masked. */
interface TargetOptions {
  /** The query, if it is masked already. */
  maskedQuery?: string | undefined;
  /** Whether no endpoint has the target, so that its query may be GraphQL's, sent to a wrong path. */
  isUnknown?: boolean;
  secrets?: SecretNames | undefined;
}

/** Masks a request target. */
export function recordedTarget(rawTarget: string, options: TargetOptions = {}): Omit<RecordedHead, 'headers'> {
  const { maskedQuery, isUnknown = false, secrets = SECRETS } = options;
  const target = withoutBareUserinfo(rawTarget.slice(0, MAX_AUTHORITY)) + rawTarget.slice(MAX_AUTHORITY);
  const mark = target.indexOf('?');
  const rawPath = mark < 0 ? target : target.slice(0, mark);
  const path = maskPart(rawPath, MAX_TARGET_PART_BYTES, (text) => secrets.maskText(text));
  if (mark < 0) return { path: storable(path), query: null };
  // The query of a truncated path is masked like a query of GraphQL, since the path may have been GraphQL's.
  const pathOfQuery = isUnknown || rawPath.length > MAX_TARGET_PART_BYTES ? null : rawPath;
  const query =
    maskedQuery === undefined
      ? maskPart(target.slice(mark + 1), MAX_TARGET_PART_BYTES, (text) =>
          secrets.maskText(maskQuery(text, pathOfQuery, secrets)),
        )
      : maskPart(maskedQuery, MAX_TARGET_PART_BYTES, maskValues);
  return { path: storable(path), query: storable(query) };
}

/** Masks the target and the headers of a request. */
export function recordedHead(
  target: string,
  headers: NodeJS.Dict<string | string[]>,
  options: TargetOptions = {},
): RecordedHead {
  return { ...recordedTarget(target, options), headers: maskHeaders(headers, options.secrets) };
}

/** The name under which the headers of a record have the reason of a refusal; no real header has it. */
const REASON = ':reason';
/** And the name under which they have until when wrong passwords have locked the username. */
const LOCKED_UNTIL = ':locked-until';

/** A WebSocket operation that has ended; it is recorded like a request. */
interface EndedOperation {
  /** The exchange of the upgrade that opened the WebSocket. */
  exchange: Exchange;
  principal: Principal;
  startedTick: number;
  startedAtMs: number;
  /** Whether it was refused because no audit record can be stored. */
  isUnrecordable: boolean;
  /** The operation's request, and the beginning of its response: one line of JSON for each message sent. */
  auditedOperation: ((secrets: SecretNames) => AuditedOperation) | undefined;
}

/**
 * Records every request once when it ends, or each of its operations if it has several, in the spool and in the log. One
 * that began while the spool was full is only logged and counted: what is left of the spool is for those admitted before.
 */
export class AuditLog {
  readonly #deps;
  /** The names that are masked for an endpoint which adds some or takes some back. */
  readonly #ofEndpoints = new WeakMap<Endpoint, SecretNames>();
  readonly unrecorded = counterBy('outcome', ['refused', 'served'], {
    name: 'portcullis_audit_unrecorded_requests_total',
    help: 'Requests without a record because the audit spool was full: refused, or served (health checks).',
  });

  /** Names in `secrets` are masked for every endpoint. */
  constructor(chain: Pick<AuditChain, 'add' | 'commit'>, log: Log, secrets: SecretNames = SECRETS) {
    this.#deps = { chain, log, secrets };
  }

  /**
   * Records a request whose response is about to end or whose client has left. Calls `onPersisted` once the
   * records are stored.
   */
  record(exchange: Exchange, aborted: boolean, onPersisted: () => void): void {
    const secrets = this.#secretsOf(exchange);
    const operations = exchange.audit.operations ?? (() => [SINGLE_OPERATION]);
    const records = this.#masked(
      exchange,
      () => operations(secrets).map((operation) => recordOf(exchange, operation, { aborted, secrets })),
      () => [recordOf(exchange, undefined, { aborted, secrets })],
    );
    const { isUnrecordable, state, route } = exchange;
    const outcome = state.endpoint && route?.servesWhenAuditIsFull ? 'served' : 'refused';
    for (const record of records)
      this.#keep(record, isUnrecordable && outcome, record === records.at(-1) ? onPersisted : undefined);
    if (records.length === 0) onPersisted();
  }

  /** Records a WebSocket operation, with the method `WS`. Resolves once the record is stored. */
  recordOperation(operation: EndedOperation): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const secrets = this.#secretsOf(operation.exchange);
    const full = () => recordOfOperation(operation, operation.auditedOperation?.(secrets), secrets);
    const record = this.#masked(operation.exchange, full, () => recordOfOperation(operation, undefined, secrets));
    this.#keep(record, operation.isUnrecordable && 'refused', resolve);
    this.#deps.chain.commit();
    return promise;
  }

  /** Records the response to bytes that are not valid HTTP. Calls `onPersisted` once the record is stored. */
  recordUnparsed(
    { recordedId, method, target, status, body, remoteAddress, reason, isUnrecordable }: Unparsed,
    atMs: number,
    onPersisted: () => void,
  ): void {
    const record = {
      at: new Date(atMs).toISOString(),
      id: uuidV7(atMs),
      node_id: null,
      correlation_id: correlationKey(recordedId),
      method,
      ...recordedTarget(target, { isUnknown: true, secrets: this.#deps.secrets }),
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
    this.#keep(record, isUnrecordable && 'refused', onPersisted);
  }

  #secretsOf({ state: { endpoint } }: Exchange): SecretNames {
    if (!endpoint?.mask && !endpoint?.unmask) return this.#deps.secrets;
    return this.#ofEndpoints.getOrInsertComputed(endpoint, () => this.#deps.secrets.with(endpoint));
  }

  /** Returns what `full` makes of a request, or what `bare` makes without bodies if these cannot be masked. */
  #masked<Made>({ correlationId }: Exchange, full: () => Made, bare: () => Made): Made {
    try {
      return full();
    } catch (error) {
      // The response is sent anyway.
      this.#deps.log.error({ correlation_id: correlationId, err: error }, 'could not mask bodies');
      return bare();
    }
  }

  /** Logs a request, and stores its record, unless it has none: `unrecorded` says what became of the request then. */
  #keep(record: AuditRecord, unrecorded: string | false, onPersisted?: () => void): void {
    if (unrecorded === false) this.#deps.chain.add(unchained(record), onPersisted);
    else {
      this.unrecorded.inc({ outcome: unrecorded });
      onPersisted?.();
    }
    const { correlation_id, method, path, status_code: status, is_api, real_ip, aborted } = record;
    const elapsed_ms = Math.round(record.elapsed * 1000) / 1000;
    this.#deps.log.info(
      {
        // In printable ASCII, for a line of the log.
        correlation_id: correlation_id.replace(
          /[^\x20-\x7e]/g,
          (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
        ),
        method,
        path,
        status,
        elapsed_ms,
        is_api,
        real_ip,
        aborted,
        node_id: record.node_id ?? undefined,
        client_id: record.client_id ?? undefined,
        subject: record.subject ?? undefined,
        reason: record.headers[REASON],
      },
      'request',
    );
  }
}

function recordOf(
  exchange: Exchange,
  operation: AuditedOperation | undefined,
  { aborted, secrets }: { aborted: boolean; secrets: SecretNames },
): AuditRecord {
  const { req, state, audit } = exchange;
  const { principal, client } = state;
  const correlation_id = correlationKey(exchange.correlationId);
  const headers = { ...req.headers, 'x-correlation-id': correlation_id };
  // The endpoint of every OPTIONS stands for no path.
  const isUnknown = state.endpoint === undefined || state.endpoint.path === '**';
  audit.head ??= recordedHead(req.url ?? '', headers, { maskedQuery: operation?.query, isUnknown, secrets });
  return {
    at: new Date(exchange.startedAtMs).toISOString(),
    id: uuidV7(exchange.startedAtMs),
    node_id: state.nodeId ?? null,
    correlation_id,
    method: req.method ?? '',
    ...audit.head,
    headers: {
      // A reason is not masked: it has no text of the caller, and the name of a permission could be taken for that of a secret.
      ...(audit.reason === undefined ? {} : { [REASON]: audit.reason }),
      ...(audit.named?.lockedUntilMs === undefined
        ? {}
        : { [LOCKED_UNTIL]: new Date(audit.named.lockedUntilMs).toISOString() }),
      ...audit.head.headers,
    },
    status_code: endStatusOf(exchange, aborted),
    elapsed: performance.now() - exchange.startedTick,
    remote_address: exchange.remoteAddress,
    real_ip: exchange.realIp,
    ...bodiesOf(exchange, operation, secrets),
    is_api: principal ? principal.tokenUse === 'api' : (client?.isApi ?? false),
    aborted,
    ...callerOf(principal, { ...client, subject: client?.subject ?? audit.named?.subject }),
    operation: operation?.name ?? state.endpoint?.path ?? null,
    noted_users: notedIds(operation?.notes ?? audit),
  };
}

/** The longest subject or client id in an audit record, in bytes; a token may hold any text. */
const MAX_CALLER_BYTES = 512;

/** Returns who has sent a request, or was named in it, as far as it is known. */
function callerOf(
  principal: Principal | undefined,
  named?: { clientId?: string | undefined; subject?: string | undefined },
) {
  const { subject, clientId } = principal ?? named ?? {};
  return { subject: storedText(subject, MAX_CALLER_BYTES), client_id: storedText(clientId, MAX_CALLER_BYTES) };
}

function recordOfOperation(
  operation: EndedOperation,
  auditedOperation: AuditedOperation | undefined,
  secrets: SecretNames,
): AuditRecord {
  const { exchange, principal } = operation;
  const { request, response } = auditedOperation ?? SINGLE_OPERATION;
  return {
    ...recordOf(exchange, undefined, { aborted: false, secrets }),
    ...callerOf(principal),
    operation: auditedOperation?.name ?? exchange.state.endpoint?.path ?? null,
    noted_users: notedIds(auditedOperation?.notes),
    at: new Date(operation.startedAtMs).toISOString(),
    id: uuidV7(operation.startedAtMs),
    node_id: principal.nodeId,
    method: 'WS',
    status_code: 200,
    elapsed: performance.now() - operation.startedTick,
    // One JSON text, and one line of JSON for each message sent.
    request_body: storedText(request.text),
    request_bytes: request.bytes ?? 0,
    response_body: storedText(response.text),
    response_bytes: response.bytes ?? 0,
    is_api: principal.tokenUse === 'api',
  };
}
