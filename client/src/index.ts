export {
  CursorExpiredError,
  type Issue,
  NoResponseError,
  NotFoundError,
  PortcullisError,
  PreconditionFailedError,
  RateLimitedError,
} from './errors.ts';
export type * from './generated/rest.ts';
export type { CallOptions, HttpResponse } from './http.ts';
export * from './portcullis.ts';
export type { ConnectionState, SubscriptionOptions } from './stream.ts';
export type { TokenSource } from './tokens.ts';
export type * from './updates.ts';
export { type SignatureHeaders, sign, verify } from './webhooks.ts';
