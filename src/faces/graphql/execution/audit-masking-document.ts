import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type ObjectFieldNode,
  type SelectionSetNode,
  type StringValueNode,
  TokenKind,
  type ValueNode,
  type VariableDefinitionNode,
  visit,
} from 'graphql';
import { HIDDEN, type JsonRule, maskEmbedded } from '../../../audit/mask-json.ts';
import { isSecretKey, MASK, mayNameSecret, secretValueAt } from '../../../audit/mask-keys.ts';
import { fragmentsOf, operationsOf } from './document-limits.rules.ts';

interface Walk {
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Made once for each set of selections that are answered with one object: spreads may be nested. */
  rules: Map<string, JsonRule | undefined>;
  ids: Map<SelectionSetNode, number>;
}

/**
 * The rule of a valid document's `data`: hidden is what a field with a secret's name answers, under whatever alias. Where the
 * types of a union differ, a name that is a secret of one of them is hidden in all. Undefined when nothing is hidden.
 */
export function dataRuleOf(document: DocumentNode): JsonRule | undefined {
  const roots = operationsOf(document).map(({ selectionSet }) => selectionSet);
  return ruleOf({ fragments: fragmentsOf(document), rules: new Map(), ids: new Map() }, roots);
}

function ruleOf(walk: Walk, sets: readonly SelectionSetNode[]): JsonRule | undefined {
  const key = sets.map((set) => idOf(walk, set)).join();
  if (walk.rules.has(key)) return walk.rules.get(key);
  const members = new Map<string, JsonRule>();
  for (const [name, fields] of fieldsOf(walk, sets)) {
    const rule = fields.some((field) => isSecretKey(field.name.value))
      ? HIDDEN
      : ruleOf(
          walk,
          fields.flatMap(({ selectionSet }) => selectionSet ?? []),
        );
    if (rule !== undefined) members.set(name, rule);
  }
  const made: JsonRule | undefined = members.size > 0 ? { kind: 'members', members } : undefined;
  walk.rules.set(key, made);
  return made;
}

/** The fields of an answered object by their names in the answer, fragments unfolded. */
function fieldsOf({ fragments }: Walk, sets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const open = [...sets];
  for (let set = open.pop(); set !== undefined; set = open.pop()) {
    for (const selection of set.selections) {
      switch (selection.kind) {
        case Kind.FIELD: {
          const name = (selection.alias ?? selection.name).value;
          const others = fields.get(name);
          if (others) others.push(selection);
          else fields.set(name, [selection]);
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

function idOf({ ids }: Walk, set: SelectionSetNode): number {
  const id = ids.get(set) ?? ids.size;
  ids.set(set, id);
  return id;
}

/** A range of a document, from `start` up to `end`, and the text that replaces it. */
export interface Span {
  start: number;
  end: number;
  replacement: string;
}

/** The literal that replaces a masked one of any kind. */
export const MASKED_LITERAL = `"${MASK}"`;

/** The comment that replaces a masked one. */
export const MASKED_COMMENT = `# ${MASK}`;

/** Returns the text with its spans replaced; a span inside another one is ignored. */
export function replaceSpans(text: string, spans: readonly Span[]): string {
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

/** Whether a comment may hold a secret, as a piece of an operation that was commented out does. */
export function isSuspectComment(comment: string): boolean {
  return comment.includes('"') || secretValueAt(comment) !== -1;
}

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
  for (const variable of operationsOf(document).flatMap(({ variableDefinitions = [] }) => variableDefinitions)) {
    if (variable.defaultValue && isSecret(variable)) hide(variable.defaultValue, found);
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
