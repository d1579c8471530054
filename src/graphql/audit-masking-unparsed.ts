import { Lexer, Source, type Token, TokenKind } from 'graphql';
import { isSecretKey, MASK } from '../audit/mask-keys.ts';
import { isSuspectComment, MASKED_COMMENT, MASKED_LITERAL, replaceSpans, type Span } from './audit-masking-spans.ts';
import { hasManyComments } from './comments.rules.ts';

const MAX_LENGTH = 64 * 1024;
const QUOTABLE: ReadonlySet<TokenKind> = new Set([
  TokenKind.STRING,
  TokenKind.BLOCK_STRING,
  TokenKind.NAME,
  TokenKind.INT,
  TokenKind.FLOAT,
]);

/** A document of which nothing is known but its tokens, and the values that it shows no more. */
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
