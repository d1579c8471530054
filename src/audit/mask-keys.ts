import { createHash } from 'node:crypto';
import { type Log, withFields } from '../lib/log.ts';

/** What stands in the place of a secret in every record. */
export const MASK = '***';

const SECRET_ENDINGS = ['secret', 'password', 'token'];

/**
 * Names a value that no record may show: `authorization`, and every name that ends in `secret`, `password` or `token`
 * (so `client_secret`, `access_token`, `refreshToken`), in any case. The name must be decoded already.
 */
export function isSecretKey(name: string): boolean {
  // Most names end in another letter: a document has thousands of them.
  if (name.length < 5 || /[abce-mo-su-z0-9]$/i.test(name)) return false;
  const key = name.trim().toLowerCase();
  return key === 'authorization' || SECRET_ENDINGS.some((ending) => key.endsWith(ending));
}

/** In every name that `isSecretKey` takes, or in the escape that can spell one. */
const SECRET_WORD = /secret|password|token|authorization|\\u/i;

/** Whether a well-formed JSON or GraphQL text can have a secret's name in it; where not there is nothing to look for. */
export function mayNameSecret(text: string): boolean {
  return SECRET_WORD.test(text);
}

// A secret's name, what may close it (quotes, escapes, a bracket), `:` or `=`, and then anything but a mask.
const SECRET_ASSIGNMENT =
  /(?:secret|password|token|authorization)["'\\\s[\]]*[:=](?!["'\\\s]*\*{3}(?:["'\\\s,;&)}\]]|$))/i;

/** Where the first `name: value` or `name=value` of a secret has its value in free text; -1 without one. */
export function secretValueAt(text: string): number {
  const match = SECRET_ASSIGNMENT.exec(text);
  return match === null ? -1 : match.index + match[0].length;
}

/** A scheme with its credentials, which may stand in other headers than `Authorization`. */
const CREDENTIALS = /\b(?:bearer|basic)[\s+:=,]+(?=[^\s+:=,])/i;

/** Where the first secret of a head's free text begins: one with a name, or credentials behind their scheme; -1 without one. */
export function credentialsAt(text: string): number {
  const match = CREDENTIALS.exec(text);
  const found = [secretValueAt(text), match === null ? -1 : match.index + match[0].length].filter((at) => at !== -1);
  return found.length === 0 ? -1 : Math.min(...found);
}

/** Free text has no grammar that says where a value ends, so everything after a secret's name is dropped. */
export function maskText(text: string): string {
  const at = secretValueAt(text);
  return at === -1 ? text : text.slice(0, at) + MASK;
}

/** What a JWT begins with: `{"` in base64url. */
export const TOKEN_START = 'eyJ';

/** Free text with `***` for each JWT, or what looks like one, wherever it stands. */
export function maskTokens(text: string): string {
  if (!text.includes(TOKEN_START)) return text;
  return text.replace(/[\w.-]+/g, maskToken);
}

/** Of a run of the characters that a token has: a token ends where its run ends. */
function maskToken(run: string): string {
  const start = run.indexOf(TOKEN_START);
  if (start === -1) return run;
  const second = run.indexOf('.', start);
  return second !== -1 && run.includes('.', second + 1) ? run.slice(0, start) + MASK : run;
}

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
