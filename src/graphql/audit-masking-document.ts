import {
  type ArgumentNode,
  type DocumentNode,
  Kind,
  type ObjectFieldNode,
  type StringValueNode,
  TokenKind,
  type ValueNode,
  type VariableDefinitionNode,
  visit,
} from 'graphql';
import { maskEmbedded } from '../audit/mask-json.ts';
import type { JsonRule } from '../audit/mask-json-rules.ts';
import { isSecretKey, mayNameSecret, secretValueAt } from '../audit/mask-keys.ts';
import { dataRuleOf } from './audit-masking-shape.ts';
import { isSuspectComment, MASKED_COMMENT, MASKED_LITERAL, replaceSpans, type Span } from './audit-masking-spans.ts';

/** What is hidden of a valid document's operations. */
export interface DocumentMask {
  /** The document without its secrets. */
  text: string;
  /** The literals that it shows no more. */
  hidden: ReadonlySet<string>;
  /** Variables whose values go to a secret's place, wholly or as a part. */
  variables: ReadonlySet<string>;
  /** The rule of `data`. */
  data: JsonRule | undefined;
}

interface Findings {
  source: string;
  spans: Span[];
  hidden: Set<string>;
  variables: Set<string>;
  hasSecretAlias: boolean;
}

const masks = new WeakMap<DocumentNode, { mask: DocumentMask | undefined }>();

/**
 * What is hidden of a valid document: a name in it is the schema's name of an argument, an input field or a field, and hides
 * what `isSecretKey` says. Undefined where keys alone decide. Remembered as long as the document is.
 */
export function documentMaskOf(document: DocumentNode): DocumentMask | undefined {
  const known = masks.get(document);
  if (known) return known.mask;
  const mask = makeMask(document);
  masks.set(document, { mask });
  return mask;
}

function makeMask(document: DocumentNode): DocumentMask | undefined {
  const source = document.loc?.source.body ?? '';
  if (!source.includes('#') && !mayNameSecret(source)) return undefined;
  const found: Findings = { source, spans: [], hidden: new Set(), variables: new Set(), hasSecretAlias: false };
  findLiterals(document, found);
  findDefaults(document, found);
  findComments(document, found);
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

/** The defaults of variables that go to a secret's place, or have a secret's name themselves. */
function findDefaults(document: DocumentNode, found: Findings): void {
  function isSecret({ variable: { name } }: VariableDefinitionNode): boolean {
    return found.variables.has(name.value) || isSecretKey(name.value);
  }
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    for (const variable of definition.variableDefinitions ?? []) {
      if (variable.defaultValue && isSecret(variable)) hide(variable.defaultValue, found);
    }
  }
}

function findComments(document: DocumentNode, { source, spans }: Findings): void {
  if (!source.includes('#')) return;
  for (let token = document.loc?.startToken ?? null; token !== null; token = token.next) {
    const { kind, start, end, value } = token;
    if (kind === TokenKind.COMMENT && isSuspectComment(value)) spans.push({ start, end, replacement: MASKED_COMMENT });
  }
}

/** Hides a literal whole; a variable stays, and its value is hidden. */
function hide(value: ValueNode, found: Findings): void {
  visit(value, {
    Variable({ name }) {
      found.variables.add(name.value);
    },
    StringValue({ value: text }) {
      found.hidden.add(text);
    },
    IntValue: ({ value: text }) => void found.hidden.add(text),
    FloatValue: ({ value: text }) => void found.hidden.add(text),
    EnumValue: ({ value: text }) => void found.hidden.add(text),
  });
  if (value.kind !== Kind.VARIABLE && value.loc) {
    found.spans.push({ start: value.loc.start, end: value.loc.end, replacement: MASKED_LITERAL });
  }
}

/** A JSON document as a literal is masked as one; so is a description that tells a secret. */
function hideText({ value, loc }: StringValueNode, isDescription: boolean, { spans, hidden }: Findings): void {
  const masked = maskEmbedded(value);
  const isTold = isDescription && secretValueAt(value) !== -1;
  if (!loc || (masked === value && !isTold)) return;
  hidden.add(value);
  spans.push({ start: loc.start, end: loc.end, replacement: isTold ? MASKED_LITERAL : JSON.stringify(masked) });
}
