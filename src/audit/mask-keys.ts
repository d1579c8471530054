import { createHash } from 'node:crypto';
import { type Log, withFields } from '../lib/log.ts';

/** The text that replaces a secret, and what was searched for, in every log line and audit record. */
export const MASK = '***';

const SECRET_ENDINGS = ['secret', 'password', 'token'];
/** A search may hold the email of a user. If it finds nobody, its record notes no user, and no erasure finds it. */
const SECRET_NAMES = ['authorization', 'search'];

/**
 * Checks whether the values of a decoded name are masked: `authorization`, `search`, and any name that ends in `secret`,
 * `password` or `token` (`client_secret`, `access_token`, `refreshToken`), in upper or lower case.
 */
export function isSecretKey(name: string): boolean {
  // Most names end in other letters, and a document has thousands of them: this check is fast.
  if (name.length < 5 || /[abce-gi-mo-su-z0-9]$/i.test(name)) return false;
  const key = name.trim().toLowerCase();
  return SECRET_NAMES.includes(key) || SECRET_ENDINGS.some((ending) => key.endsWith(ending));
}

/** Matches every name that `isSecretKey` accepts, and the escape that may spell one. */
const SECRET_WORD = /secret|password|token|authorization|\bsearch\b|\\u/i;

/** Checks whether a well-formed JSON or GraphQL text may contain the name of a secret; if not, it needs no masking. */
export function mayNameSecret(text: string): boolean {
  return SECRET_WORD.test(text);
}

// Matches a secret's name, then quotes, brackets, escapes or escaped white space, then `:` or `=`, unless a mask is all
// that follows.
const SECRET_ASSIGNMENT =
  /(?:secret|password|token|authorization|\bsearch)(?:["'\s[\]]|\\[nrt]?)*[:=](?!(?:["'\s]|\\[nrt]?)*\*{3}(?:["'\\\s,;&)}\]]|$))/i;

/** Returns the index of the first secret value in free text (`name: value` or `name=value`), or -1. */
export function secretValueAt(text: string): number {
  const match = SECRET_ASSIGNMENT.exec(text);
  return match === null ? -1 : match.index + match[0].length;
}

/** Matches an authentication scheme before its credentials, which may appear in headers other than `Authorization`. */
const CREDENTIALS = /\b(?:bearer|basic)[\s+:=,]+(?=[^\s+:=,])/i;

/**
 * Returns the index of the first secret in a header or URL: a named one, or credentials after their scheme; -1 without
 * one.
 */
export function credentialsAt(text: string): number {
  const match = CREDENTIALS.exec(text);
  const found = [secretValueAt(text), match === null ? -1 : match.index + match[0].length].filter((at) => at !== -1);
  return found.length === 0 ? -1 : Math.min(...found);
}

/** Masks free text by dropping everything after the first secret's name, because nothing says where its value ends. */
export function maskText(text: string): string {
  const at = secretValueAt(text);
  return at === -1 ? text : text.slice(0, at) + MASK;
}

/** The beginning of every JWT: `{"` in base64url. */
export const TOKEN_START = 'eyJ';

/** Returns free text with every JWT, or what looks like one, replaced by `***`. */
export function maskTokens(text: string): string {
  if (!text.includes(TOKEN_START)) return text;
  return text.replace(/[\w.-]+/g, maskToken);
}

/** Masks a run of token characters from the beginning of a JWT on; returns it unchanged when it contains none. */
function maskToken(run: string): string {
  const start = run.indexOf(TOKEN_START);
  if (start === -1) return run;
  const second = run.indexOf('.', start);
  return second !== -1 && run.includes('.', second + 1) ? run.slice(0, start) + MASK : run;
}

/** The number of hexadecimal digits of the hash: enough to tell requests apart. */
const KEY_DIGITS = 16;

/**
 * Returns the form of a correlation id for log and audit: the id itself, or, if it contains a JWT, `jwt:` and the
 * beginning of its SHA-256, by which those who have the id find the record.
 */
export function correlationKey(correlationId: string): string {
  if (maskTokens(correlationId) === correlationId) return correlationId;
  return `jwt:${createHash('sha256').update(correlationId).digest('hex').slice(0, KEY_DIGITS)}`;
}

/** Returns a log that replaces `correlation_id` by its `correlationKey`. */
export function keyedLog(log: Log): Log {
  return withFields(log, keyed);
}

function keyed(fields: object): object {
  if (!('correlation_id' in fields) || typeof fields.correlation_id !== 'string') return fields;
  const key = correlationKey(fields.correlation_id);
  return key === fields.correlation_id ? fields : { ...fields, correlation_id: key };
}
