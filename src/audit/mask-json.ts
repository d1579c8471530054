import type { JsonRule } from './mask-json-rules.ts';
import { type MaskedJson, scanJson } from './mask-json-scanner.ts';
import { MASK, secretValueAt } from './mask-keys.ts';

// A document inside a string of a document …; deeper ones are replaced whole.
const MAX_EMBEDDING = 4;

// May spell a secret's name in letters that cannot be seen.
const ESCAPED_ASCII = /\\u00[2-7]/i;

const DOCUMENT_START = /^\s*[[{"]/;

/** Whether the text begins as a JSON object, array or string does. */
export function startsDocument(text: string): boolean {
  return DOCUMENT_START.test(text);
}

/**
 * Masks a JSON text by the names of its keys, also in documents inside its strings, and by a rule. From the first
 * syntax error on, the rest is dropped. The text may be a prefix of the real one: a secret that it cuts shows as `"***"`.
 */
export function maskJson(text: string, maxLength = Number.POSITIVE_INFINITY, rule?: JsonRule): MaskedJson {
  return scan(text, 0, maxLength, rule);
}

/** Masks a text that is a document inside another one (a form's value, a string); other text comes back as it is. */
export function maskEmbedded(text: string, embedding = 1): string {
  if (!startsDocument(text)) return text;
  if (embedding > MAX_EMBEDDING) return MASK;
  const scanned = scan(text, embedding, Number.POSITIVE_INFINITY);
  if (scanned.end !== 'error') return scanned.text;
  // Much text that begins with a bracket was never JSON: it stays, unless what follows may hold a secret.
  const rest = text.slice(scanned.errorAt);
  const isSuspect = scanned.masked || secretValueAt(rest) !== -1 || ESCAPED_ASCII.test(rest);
  return isSuspect ? scanned.text : scanned.text + rest;
}

function scan(text: string, embedding: number, maxLength: number, rule?: JsonRule): MaskedJson {
  return scanJson(text, { maxLength, maskString: (inner) => maskEmbedded(inner, embedding + 1), rule });
}
