import { Kind, Lexer, print, Source, type Token, TokenKind } from 'graphql';
import { isSecretKey, MASK } from '../../../audit/mask-keys.ts';
import { isSuspectComment, MASKED_COMMENT, MASKED_LITERAL, replaceSpans, type Span } from './audit-masking-document.ts';
import { hasManyComments } from './engine.ts';

const MAX_LENGTH = 64 * 1024;
const QUOTABLE: ReadonlySet<TokenKind> = new Set([
  TokenKind.STRING,
  TokenKind.BLOCK_STRING,
  TokenKind.NAME,
  TokenKind.INT,
  TokenKind.FLOAT,
]);

/** A masked document of which only the tokens are known, and the values that were hidden. */
export interface UnparsedMask {
  text: string;
  hidden: ReadonlySet<string>;
}

/**
 * Masks a document that was not found valid: every string, since any may be a secret under a wrong name. A secret's name
 * with another literal than a string ends it there: nothing says where that value ends. One that has no tokens, too many
 * comments, or more than 64 KiB, is `***`.
 */
export function maskUnparsed(document: string): UnparsedMask {
  const first = document.length > MAX_LENGTH || hasManyComments(document) ? undefined : tokensOf(document);
  if (first === undefined) return { text: MASK, hidden: new Set() };
  const hidden = new Set<string>();
  const spans: Span[] = [];
  let isValueOfSecret = false;
  let name: string | undefined;
  for (let token: Token | null = first; token !== null; token = token.next) {
    const { kind, start, end, value = '' } = token;
    if (kind === TokenKind.COMMENT) {
      if (isSuspectComment(value)) spans.push({ start, end, replacement: MASKED_COMMENT });
      continue;
    }
    if (kind === TokenKind.STRING || kind === TokenKind.BLOCK_STRING) {
      spans.push({ start, end, replacement: MASKED_LITERAL });
      hidden.add(value);
    } else if (isValueOfSecret && kind !== TokenKind.DOLLAR) {
      for (const rest of quotableFrom(token)) hidden.add(rest);
      spans.push({ start, end: document.length, replacement: MASK });
      break;
    }
    isValueOfSecret = kind === TokenKind.COLON && name !== undefined && isSecretKey(name);
    name = kind === TokenKind.NAME ? value : undefined;
  }
  return { text: replaceSpans(document, spans), hidden };
}

/** The first token, tied to the others; undefined for a text that has no tokens. */
function tokensOf(document: string): Token | undefined {
  const lexer = new Lexer(new Source(document));
  const first = lexer.token;
  try {
    while (lexer.advance().kind !== TokenKind.EOF);
  } catch {
    return undefined;
  }
  return first;
}

function quotableFrom(from: Token): string[] {
  const values: string[] = [];
  for (let token: Token | null = from; token !== null; token = token.next) {
    if (QUOTABLE.has(token.kind) && token.value) values.push(token.value);
  }
  return values;
}

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
