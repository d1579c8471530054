import { AppError } from '../../errors/app-error.ts';

/** 502: the upstream could not be reached, or what it sent is no answer. */
export function badGateway(cause: unknown): AppError {
  return new AppError(502, 'bad_gateway', { cause });
}

/** 504: the upstream has not begun to answer in its time. */
export function gatewayTimeout(): AppError {
  return new AppError(504, 'gateway_timeout');
}

/** 503: nothing is sent for a while, since the upstream is failing or has too much to do. */
export function unavailable(retryAfterMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new AppError(503, 'service_unavailable', { headers: { 'Retry-After': `${seconds}` } });
}

/** 413: the body is over the endpoint's limit; what is left of it is not read. */
export function payloadTooLarge(): AppError {
  return new AppError(413, 'payload_too_large', { headers: { Connection: 'close' } });
}

/** What an upstream has sent cannot be passed on. */
export class BadAnswerError extends Error {
  override name = 'BadAnswerError';
}
