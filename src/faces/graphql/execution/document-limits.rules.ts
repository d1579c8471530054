import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  visit,
} from 'graphql';
import { DEFAULT_PAGE_SIZE } from '../../../lib/keyset.ts';
import { membersOfLists } from '../../shared/nested-values.ts';

/** The size of an operation, with its fragments unfolded. */
export interface Measure {
  /** Levels of fields; a root field is 1. */
  depth: number;
  /** Fields that are given another name, `__typename` too. */
  aliases: number;
  /** Directives, of whatever stands in the operation and of itself. */
  directives: number;
  /** Fields `__schema` and `__type`. */
  introspections: number;
  /**
   * Objects that the answer can have: a list counts as many as its `first` or `last`. What a variable brings counts
   * wherever it stands, four members of its lists as one object.
   */
  cost: number;
  /** Places of `totalCount`: below a list all are counted by one statement. */
  counts: number;
  /** The largest `first` or `last`, and the smallest. */
  largestPage: number;
  smallestPage: number;
}

/** Returns the fragments of a document by their names; of several with one name the last. */
export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
}

/** Returns the operations of a document, in their order. */
export function operationsOf({ definitions }: DocumentNode): OperationDefinitionNode[] {
  return definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
}

const MEMBERS_OF_AN_OBJECT = 4;

const TOTAL = 'totalCount';

const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type']);

type Variables = Readonly<Record<string, unknown>>;

interface Walk {
  schema: GraphQLSchema;
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  variables: Variables;
  /** Measured once each: a document of nested spreads would otherwise take exponential time. */
  measured: Map<string, Measure>;
}

const NOTHING: Measure = {
  depth: 0,
  aliases: 0,
  directives: 0,
  introspections: 0,
  cost: 0,
  counts: 0,
  largestPage: 0,
  smallestPage: 0,
};

/**
 * Measures the named operation, or each of them and takes the highest of each kind. The document need not be valid:
 * unknown fields count as scalars or objects by their form, and a spread within itself as nothing.
 */
export function measure(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | undefined,
  given: Variables,
): Measure {
  const fragments = fragmentsOf(document);
  const operations = operationsOf(document);
  const named = operations.filter((operation) => operation.name?.value === operationName);
  return (named.length > 0 ? named : operations)
    .map((operation) => {
      const variables = { ...defaultsOf(operation), ...given };
      const root = schema.getRootType(operation.operation) ?? undefined;
      const walk = { schema, fragments, variables, measured: new Map() };
      const asked = ofSelections(walk, operation.selectionSet, root);
      return [operation, ...(operation.variableDefinitions ?? [])].reduce(plusDirectives, asked);
    })
    .reduce(highest, NOTHING);
}

function ofSelections(walk: Walk, { selections }: SelectionSetNode, parent: GraphQLCompositeType | undefined): Measure {
  return selections.reduce<Measure>(
    (sum, selection) => plus(sum, plusDirectives(ofSelection(walk, selection, parent), selection)),
    NOTHING,
  );
}

function ofSelection(walk: Walk, selection: SelectionNode, parent: GraphQLCompositeType | undefined): Measure {
  switch (selection.kind) {
    case Kind.FIELD:
      return ofField(walk, selection, parent);
    case Kind.INLINE_FRAGMENT:
      return ofSelections(walk, selection.selectionSet, typeOf(walk, selection.typeCondition) ?? parent);
    case Kind.FRAGMENT_SPREAD:
      return ofFragment(walk, selection.name.value);
    default:
      return selection satisfies never;
  }
}

function ofFragment(walk: Walk, name: string): Measure {
  const known = walk.measured.get(name);
  if (known) return known;
  const fragment = walk.fragments.get(name);
  if (!fragment) return NOTHING;
  walk.measured.set(name, NOTHING);
  const selected = ofSelections(walk, fragment.selectionSet, typeOf(walk, fragment.typeCondition));
  const measured = plusDirectives(selected, fragment);
  walk.measured.set(name, measured);
  return measured;
}

function ofField(walk: Walk, node: FieldNode, parent: GraphQLCompositeType | undefined): Measure {
  const field = fieldOf(parent, node.name.value);
  const aliases = node.alias ? 1 : 0;
  const introspections = INTROSPECTION.has(node.name.value) ? 1 : 0;
  const counts = node.name.value === TOTAL ? 1 : 0;
  const pages = pageSizes(walk, node, field);
  const [largestPage, smallestPage] = [Math.max(0, ...pages), Math.min(0, ...pages)];
  const brought = broughtBy(walk, node);
  if (!node.selectionSet) {
    return { ...NOTHING, depth: 1, aliases, introspections, cost: brought, counts, largestPage, smallestPage };
  }
  const type = field && getNamedType(field.type);
  const inner = ofSelections(walk, node.selectionSet, type && isCompositeType(type) ? type : undefined);
  const rows = field?.args.some(({ name }) => name === 'first')
    ? Math.max(0, ...pages, pages.length ? 0 : DEFAULT_PAGE_SIZE)
    : 1;
  return {
    ...inner,
    depth: 1 + inner.depth,
    aliases: aliases + inner.aliases,
    introspections: introspections + inner.introspections,
    cost: 1 + brought + rows * inner.cost,
    largestPage: Math.max(largestPage, inner.largestPage),
    smallestPage: Math.min(smallestPage, inner.smallestPage),
  };
}

function broughtBy({ variables }: Walk, node: FieldNode): number {
  return (node.arguments ?? []).reduce((sum, { value }) => {
    const given = value.kind === Kind.VARIABLE ? variables[value.name.value] : undefined;
    return sum + Math.floor(membersOfLists(given) / MEMBERS_OF_AN_OBJECT);
  }, 0);
}

function pageSizes(walk: Walk, node: FieldNode, field: GraphQLField<unknown, unknown> | undefined): number[] {
  if (!field) return [];
  return (node.arguments ?? []).flatMap(({ name, value }) => {
    const size = name.value === 'first' || name.value === 'last' ? sizeOf(walk, value) : undefined;
    return size === undefined ? [] : [size];
  });
}

function sizeOf({ variables }: Walk, value: ValueNode): number | undefined {
  const given = value.kind === Kind.VARIABLE ? variables[value.name.value] : undefined;
  if (value.kind === Kind.INT) return Number(value.value);
  return typeof given === 'number' && !Number.isNaN(given) ? given : undefined;
}

function defaultsOf({ variableDefinitions }: OperationDefinitionNode): Variables {
  return Object.fromEntries(
    (variableDefinitions ?? []).flatMap(({ variable, defaultValue }) =>
      defaultValue?.kind === Kind.INT ? [[variable.name.value, Number(defaultValue.value)]] : [],
    ),
  );
}

function fieldOf(parent: GraphQLCompositeType | undefined, name: string): GraphQLField<unknown, unknown> | undefined {
  return isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
}

function typeOf(
  { schema }: Walk,
  condition: { name: { value: string } } | undefined,
): GraphQLCompositeType | undefined {
  const type = condition && schema.getType(condition.name.value);
  return isCompositeType(type) ? type : undefined;
}

function plusDirectives(measured: Measure, { directives = [] }: Pick<FieldNode, 'directives'>): Measure {
  return directives.length === 0 ? measured : { ...measured, directives: measured.directives + directives.length };
}

function plus(a: Measure, b: Measure): Measure {
  return {
    ...highest(a, b),
    aliases: a.aliases + b.aliases,
    directives: a.directives + b.directives,
    introspections: a.introspections + b.introspections,
    cost: a.cost + b.cost,
    counts: a.counts + b.counts,
  };
}

function highest(a: Measure, b: Measure): Measure {
  return {
    depth: Math.max(a.depth, b.depth),
    aliases: Math.max(a.aliases, b.aliases),
    directives: Math.max(a.directives, b.directives),
    introspections: Math.max(a.introspections, b.introspections),
    cost: Math.max(a.cost, b.cost),
    counts: Math.max(a.counts, b.counts),
    largestPage: Math.max(a.largestPage, b.largestPage),
    smallestPage: Math.min(a.smallestPage, b.smallestPage),
  };
}

/**
 * How often a field stands in one selection under one name at most, inline fragments unfolded. Validation compares each
 * with each, and all that is selected below.
 */
export function mostRepeats(document: DocumentNode): number {
  let most = 0;
  visit(document, {
    SelectionSet(set, _key, parent) {
      // It is a part of the selection that it stands in.
      if (isInlineFragment(parent)) return;
      for (const count of countsOf(set).values()) most = Math.max(most, count);
    },
  });
  return most;
}

function countsOf(set: SelectionSetNode): Map<string, number> {
  const counts = new Map<string, number>();
  const open = [set];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const selection of next.selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) open.push(selection.selectionSet);
      if (selection.kind !== Kind.FIELD) continue;
      const name = (selection.alias ?? selection.name).value;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return counts;
}

function isInlineFragment(parent: ASTNode | readonly ASTNode[] | undefined): boolean {
  return parent !== undefined && 'kind' in parent && parent.kind === Kind.INLINE_FRAGMENT;
}
