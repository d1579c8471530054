import { createHash } from 'node:crypto';
import { type Log, withFields } from '../lib/log.ts';
import { maskTokens } from './mask-keys.ts';

/** Enough to tell requests apart. */
const KEY_DIGITS = 16;

/**
 * What a correlation id is known by in log and audit: itself, or where it has a JWT in it `jwt:` and the beginning of its
 * SHA-256, by which whoever has the id finds the record.
 */
export function correlationKey(correlationId: string): string {
  if (maskTokens(correlationId) === correlationId) return correlationId;
  return `jwt:${createHash('sha256').update(correlationId).digest('hex').slice(0, KEY_DIGITS)}`;
}

/** A log whose lines name requests by the keys of their correlation ids. */
export function keyedLog(log: Log): Log {
  return withFields(log, keyed);
}

function keyed(fields: object): object {
  if (!('correlation_id' in fields) || typeof fields.correlation_id !== 'string') return fields;
  const key = correlationKey(fields.correlation_id);
  return key === fields.correlation_id ? fields : { ...fields, correlation_id: key };
}
