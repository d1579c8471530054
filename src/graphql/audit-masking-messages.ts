import { Kind, print } from 'graphql';
import { MASK } from '../audit/mask-keys.ts';

const MAX_VALUES = 1_000;
/** A shorter value is looked for as a word: it may be a part of many others. */
const MIN_LENGTH_ANYWHERE = 4;
const SYNTAX_ERROR = 'Syntax Error: ';

/**
 * Masks the messages of errors, which may quote what was given: each of the hidden values, as it is or escaped. What a
 * syntax error quotes is a piece of an unreadable document.
 */
export function messageMask(hidden: () => ReadonlySet<string>): (message: string) => string {
  let forms: readonly string[] | undefined;
  return (message) => {
    forms ??= formsOf(hidden());
    if (forms.length > MAX_VALUES) return MASK;
    const readable = message.startsWith(SYNTAX_ERROR) ? message.replace(/".*"|U\+[0-9A-F]+/s, MASK) : message;
    return forms.reduce(without, readable);
  };
}

/** How the values may be quoted, the longest first. */
function formsOf(values: ReadonlySet<string>): readonly string[] {
  if (values.size > MAX_VALUES) return [...values];
  const forms = new Set<string>();
  for (const value of values) {
    const quoted = [JSON.stringify(value), print({ kind: Kind.STRING, value })].map((text) => text.slice(1, -1));
    // A block string may be printed with another indentation.
    const lines = value.includes('\n') ? value.split('\n').map((line) => line.trim().replaceAll('"""', '\\"""')) : [];
    for (const form of [value, value.replaceAll('"""', '\\"""'), ...quoted, ...lines]) {
      if (form.trim() !== '') forms.add(form);
    }
  }
  return [...forms].sort((a, b) => b.length - a.length);
}

function without(message: string, form: string): string {
  if (!message.includes(form)) return message;
  if (form.length >= MIN_LENGTH_ANYWHERE) return message.replaceAll(form, MASK);
  return message.replace(new RegExp(`(?<![\\p{L}\\p{N}_])${RegExp.escape(form)}(?![\\p{L}\\p{N}_])`, 'gu'), MASK);
}
