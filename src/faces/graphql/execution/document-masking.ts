import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  Lexer,
  type ObjectFieldNode,
  type SelectionSetNode,
  Source,
  type StringValueNode,
  type Token,
  TokenKind,
  type ValueNode,
  visit,
} from 'graphql';
import { HIDDEN, type JsonRule, maskEmbedded } from '../../../audit/mask-json.ts';
import { isSecretKey, MASK, mayNameSecret, secretValueAt } from '../../../audit/mask-keys.ts';
import { fragmentsOf, operationsOf } from './documents.ts';
import { hasManyComments } from './engine.ts';

/** A range of a document, from `start` up to but not including `end`, and the text that replaces it. */
interface Span {
  start: number;
  end: number;
  replacement: string;
}

/** The literal that replaces a masked one of any kind. */
const MASKED_LITERAL = `"${MASK}"`;

/** The comment that replaces a masked one. */
const MASKED_COMMENT = `# ${MASK}`;

/** Returns the text with its spans replaced; a span inside another one is ignored. */
function replaceSpans(text: string, spans: readonly Span[]): string {
  const ordered = spans.toSorted((a, b) => a.start - b.start || b.end - a.end);
  let kept = '';
  let from = 0;
  for (const { start, end, replacement } of ordered) {
    if (start < from) continue;
    kept += text.slice(from, start) + replacement;
    from = end;
  }
  return kept + text.slice(from);
}

/** Adds a span for every comment that may contain a secret, such as a part of an operation that was commented out. */
function hideComments(first: Token, spans: Span[]): void {
  for (let token: Token | null = first; token !== null; token = token.next) {
    const { kind, start, end, value } = token;
    const isSuspect = kind === TokenKind.COMMENT && (value.includes('"') || secretValueAt(value) !== -1);
    if (isSuspect) spans.push({ start, end, replacement: MASKED_COMMENT });
  }
}

/** What is masked in the audit record of an operation with a valid document. */
export interface DocumentMask {
  /** The document with its secrets masked. */
  text: string;
  /** The values of the literals that are masked in `text`. */
  hidden: ReadonlySet<string>;
  /** The names of the variables whose values are used as secrets, wholly or in part. */
  variables: ReadonlySet<string>;
  /** The rule for `data`; undefined if no alias renames a secret field. */
  data: JsonRule | undefined;
}

interface Findings {
  source: string;
  spans: Span[];
  hidden: Set<string>;
  variables: Set<string>;
  hasSecretAlias: boolean;
}

/**
 * Returns the mask of a valid document, whose arguments, input fields and fields are masked if `isSecretKey` holds for
 * their name in the schema. Returns undefined if nothing in the text can be a secret.
 */
export function maskValid(document: DocumentNode): DocumentMask | undefined {
  const source = document.loc?.source.body ?? '';
  if (!source.includes('#') && !mayNameSecret(source)) return undefined;
  const found: Findings = { source, spans: [], hidden: new Set(), variables: new Set(), hasSecretAlias: false };
  findLiterals(document, found);
  findDefaults(document, found);
  if (source.includes('#') && document.loc) hideComments(document.loc.startToken, found.spans);
  return {
    text: replaceSpans(source, found.spans),
    hidden: found.hidden,
    variables: found.variables,
    data: found.hasSecretAlias ? dataRuleOf(document) : undefined,
  };
}

function findLiterals(document: DocumentNode, found: Findings): void {
  function enterNamed({ name, value }: ArgumentNode | ObjectFieldNode): false | undefined {
    if (!isSecretKey(name.value)) return undefined;
    hide(value, found);
    return false;
  }
  visit(document, {
    Argument: enterNamed,
    ObjectField: enterNamed,
    Field({ alias, name }) {
      found.hasSecretAlias ||= alias !== undefined && isSecretKey(name.value);
    },
    StringValue: (node, key) => void hideText(node, key === 'description', found),
  });
}

/** Masks the defaults of variables that are used as secrets or are named like one. */
function findDefaults(document: DocumentNode, found: Findings): void {
  for (const { variable, defaultValue } of operationsOf(document).flatMap((one) => one.variableDefinitions ?? [])) {
    const name = variable.name.value;
    if (defaultValue && (found.variables.has(name) || isSecretKey(name))) hide(defaultValue, found);
  }
}

/** Masks a literal as a whole. A variable stays in the document, and its value is masked. */
function hide(value: ValueNode, found: Findings): void {
  const add = ({ value: text }: { value: string }) => void found.hidden.add(text);
  visit(value, {
    Variable: ({ name }) => void found.variables.add(name.value),
    ...{ StringValue: add, IntValue: add, FloatValue: add, EnumValue: add },
  });
  if (value.kind !== Kind.VARIABLE && value.loc) {
    found.spans.push({ start: value.loc.start, end: value.loc.end, replacement: MASKED_LITERAL });
  }
}

/** Masks the secrets of a string that contains JSON, and a description that contains a secret as a whole. */
function hideText({ value, loc }: StringValueNode, isDescription: boolean, { spans, hidden }: Findings): void {
  const masked = maskEmbedded(value);
  const isTold = isDescription && secretValueAt(value) !== -1;
  if (!loc || (masked === value && !isTold)) return;
  hidden.add(value);
  spans.push({ start: loc.start, end: loc.end, replacement: isTold ? MASKED_LITERAL : JSON.stringify(masked) });
}

interface Walk {
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /**
   * The rules by the selection sets that contribute to one object. Each is made once, because fragment spreads may be
   * nested.
   */
  rules: Map<string, JsonRule | undefined>;
}

/**
 * Returns the rule for `data` of a valid document: it masks the results of fields with a secret's name, under any
 * alias. If a response name stands for a secret in one type of a union, it is masked in all of them. Undefined if
 * nothing is masked.
 */
function dataRuleOf(document: DocumentNode): JsonRule | undefined {
  const roots = operationsOf(document).map(({ selectionSet }) => selectionSet);
  return ruleOf({ fragments: fragmentsOf(document), rules: new Map() }, roots);
}

function ruleOf(walk: Walk, sets: readonly SelectionSetNode[]): JsonRule | undefined {
  const key = sets.map(({ loc }) => loc?.start).join();
  if (walk.rules.has(key)) return walk.rules.get(key);
  const members = new Map<string, JsonRule>();
  for (const [name, fields] of fieldsOf(walk, sets)) {
    const isHidden = fields.some((field) => isSecretKey(field.name.value));
    const below = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
    const rule = isHidden ? HIDDEN : ruleOf(walk, below);
    if (rule !== undefined) members.set(name, rule);
  }
  const made: JsonRule | undefined = members.size > 0 ? { kind: 'members', members } : undefined;
  walk.rules.set(key, made);
  return made;
}

/** Returns the fields of a result object by their response names, with fragments unfolded. */
function fieldsOf({ fragments }: Walk, sets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const open = [...sets];
  for (let set = open.pop(); set !== undefined; set = open.pop()) {
    for (const selection of set.selections) {
      switch (selection.kind) {
        case Kind.FIELD: {
          const name = (selection.alias ?? selection.name).value;
          fields.set(name, [...(fields.get(name) ?? []), selection]);
          break;
        }
        case Kind.INLINE_FRAGMENT:
          open.push(selection.selectionSet);
          break;
        case Kind.FRAGMENT_SPREAD: {
          const fragment = fragments.get(selection.name.value);
          if (fragment && !spread.has(selection.name.value)) open.push(fragment.selectionSet);
          spread.add(selection.name.value);
          break;
        }
        default:
          selection satisfies never;
      }
    }
  }
  return fields;
}

const MAX_LENGTH = 64 * 1024;
const QUOTABLE: ReadonlySet<TokenKind> = new Set([
  TokenKind.STRING,
  TokenKind.BLOCK_STRING,
  TokenKind.NAME,
  TokenKind.INT,
  TokenKind.FLOAT,
]);

/**
 * Masks a document that is not known to be valid: every string, since any may be a misplaced secret. A literal of
 * another kind after a secret's name masks the rest of the document, since the end of that value is unknown. A document
 * that cannot be split into tokens, has too many comments or is longer than 64 Ki characters becomes `***`.
 */
export function maskUnparsed(document: string): Pick<DocumentMask, 'text' | 'hidden'> {
  const first = document.length > MAX_LENGTH || hasManyComments(document) ? undefined : tokensOf(document);
  if (first === undefined) return { text: MASK, hidden: new Set() };
  const hidden = new Set<string>();
  const spans: Span[] = [];
  hideComments(first, spans);
  let isValueOfSecret = false;
  let name: string | undefined;
  for (let token: Token | null = first; token !== null; token = token.next) {
    const { kind, start, end, value = '' } = token;
    if (kind === TokenKind.COMMENT) continue;
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

/**
 * Returns the first token of a document, linked to the others; undefined if the document cannot be split into tokens.
 */
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
