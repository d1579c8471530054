import type { Issue, Refusal, RefusalCode } from '../../platform/errors.ts';

/** The status and the `message` that each refusal is answered with (docs/contract.md, 2.3-01 and 7). */
const ANSWERS = {
  invalid_request: [400, 'invalid_request'],
  invalid_input: [400, 'invalid_request'],
  invalid_scope: [400, 'invalid_request'],
  page_too_large: [400, 'invalid_request'],
  unauthorized: [401, 'unauthorized'],
  invalid_client: [401, 'invalid_request'],
  invalid_grant: [401, 'invalid_request'],
  unauthorized_client: [403, 'invalid_request'],
  unsupported_grant_type: [403, 'invalid_request'],
  forbidden: [403, 'forbidden'],
  mtls_required: [403, 'mtls_required'],
  ip_not_allowed: [403, 'ip_not_allowed'],
  not_found: [404, 'not_found'],
  method_not_allowed: [405, 'method_not_allowed'],
  not_acceptable: [406, 'not_acceptable'],
  idempotency_conflict: [409, 'idempotency_conflict'],
  duplicate: [409, 'idempotency_conflict'],
  precondition_failed: [412, 'precondition_failed'],
  payload_too_large: [413, 'payload_too_large'],
  rate_limit_exceeded: [429, 'rate_limit_exceeded'],
  monthly_limit_exceeded: [429, 'monthly_limit_exceeded'],
  internal_error: [500, 'internal_error'],
  bad_gateway: [502, 'bad_gateway'],
  service_unavailable: [503, 'service_unavailable'],
  gateway_timeout: [504, 'gateway_timeout'],
} as const satisfies Record<RefusalCode, readonly [status: number, message: string]>;

/** The values of `message` in the error envelope. */
export type ErrorMessage = (typeof ANSWERS)[RefusalCode][1];

/** The documented error body (docs/contract.md, 2.3-01); only a 400 outside the token endpoint has `errors`. */
export interface ErrorEnvelope {
  code: -1;
  domain: 0;
  message: ErrorMessage;
  errors?: readonly Issue[];
}

/** Returns the HTTP status of a refusal. */
export function statusOf({ code }: Refusal): number {
  return ANSWERS[code][0];
}

/** The longest list of members that a reason names, in characters. */
const MAX_NAMED = 500;

/**
 * Returns why a request was refused, for the log and the audit record: the members of its input at fault, or what it
 * lacks or exceeds, never a value. Undefined for an object that the tenant does not have, and for an error that is logged.
 */
export function reasonOf(refusal: Refusal): string | undefined {
  const {
    code,
    details: { issues, permission, taken, reason = taken ?? permission },
  } = refusal;
  if (reason !== undefined || code === 'not_found' || statusOf(refusal) >= 500) return reason;
  const members = new Set(issues?.map(({ path }) => path || 'the body or the request as a whole'));
  return [...members].join(', ').slice(0, MAX_NAMED) || code;
}

/** Returns the header fields of the response to a refusal, in the spelling in which they are sent. */
export function refusalHeaders({ code, details: { challenge, retryAfterSeconds } }: Refusal): Record<string, string> {
  return {
    ...(challenge === undefined ? {} : { 'WWW-Authenticate': challenge }),
    ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
    ...(code === 'payload_too_large' ? { Connection: 'close' } : {}),
  };
}

/** Returns the error envelope of a refusal. */
export function errorEnvelope(refusal: Refusal): ErrorEnvelope {
  const { issues } = refusal.details;
  const [status, message] = ANSWERS[refusal.code];
  return { code: -1, domain: 0, message, ...(issues && status === 400 ? { errors: issues } : {}) };
}
