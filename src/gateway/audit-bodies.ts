import { maskBody } from '../audit/mask.ts';
import type { JsonRule } from '../audit/mask-json-rules.ts';
import { maskTokens } from '../audit/mask-keys.ts';
import type { AuditedBody, AuditedOperation, Exchange } from './exchange.ts';

const MAX_BODY_BYTES = 64 * 1024;
const JSON_TYPE = 'application/json';

/** What is known of the operations of most requests: their bodies speak for themselves. */
export const WHOLE: AuditedOperation = { request: {}, response: {} };

/** The bodies of a record: masked, then cut at 64 KiB. */
export interface RecordedBodies {
  request_body: string | null;
  request_bytes: number;
  response_body: string | null;
  response_bytes: number;
}

interface BodyForm {
  truncated: boolean;
  /** This process has written the body, or parsed it. */
  wellFormed: boolean;
  rule: JsonRule | undefined;
}

/** The bodies of a request, or of one operation of it; without one nothing but their lengths. */
export function bodiesOf(exchange: Exchange, operation: AuditedOperation | undefined): RecordedBodies {
  const { req, res, capture, bodyRead, isBodyJson, match } = exchange;
  const { request, response } = operation ?? WHOLE;
  const isHidden = operation === undefined || match?.endpoint.doNotLog === true;
  const sentBytes = Math.max(capture.request.totalBytes, Number(req.headers['content-length'] ?? 0) || 0);
  const answerType = headerText(res.getHeader('Content-Type'));
  return {
    request_body:
      isHidden || !bodyRead ? null : bodyText(request, req.headers['content-type'], capture.request, isBodyJson),
    request_bytes: request.isPart ? Buffer.byteLength(request.text ?? '') : sentBytes,
    response_body: isHidden ? null : bodyText(response, answerType, capture.response, exchange.upstream === undefined),
    response_bytes: response.isPart ? Buffer.byteLength(response.text ?? '') : capture.response.totalBytes,
  };
}

/** The bodies of an operation of a socket: one JSON text, and one for each message that was sent. */
export function socketBodiesOf(operation: AuditedOperation | undefined): RecordedBodies {
  const { request, response } = operation ?? WHOLE;
  const [asked, sent] = [request, response].map(({ text = '' }) => Buffer.from(text));
  const form = { truncated: false, wellFormed: true };
  return {
    request_body: asked ? storableBody(JSON_TYPE, asked, { ...form, rule: request.rule }) : null,
    request_bytes: asked?.length ?? 0,
    response_body: sent
      ? storableBody('application/x-ndjson', sent, { ...form, truncated: true, rule: response.rule })
      : null,
    response_bytes: sent?.length ?? 0,
  };
}

/** PostgreSQL stores neither U+0000 nor a lone surrogate. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function bodyText(
  { text, rule }: AuditedBody,
  type: string | undefined,
  captured: Exchange['capture']['request'],
  wellFormed: boolean,
): string | null {
  if (text !== undefined) {
    return storableBody(JSON_TYPE, Buffer.from(text), { truncated: false, wellFormed: true, rule });
  }
  const { totalBytes, truncated, bytes } = captured;
  return totalBytes === 0 ? null : storableBody(type, bytes, { truncated, wellFormed, rule });
}

function storableBody(type: string | undefined, bytes: Buffer, form: BodyForm): string | null {
  const masked = maskBody(type, bytes, { maxBytes: MAX_BODY_BYTES, ...form });
  // A correlation id stands in answers, too.
  return masked === null ? null : storable(maskTokens(masked));
}

function headerText(value: number | string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value?.toString();
}
