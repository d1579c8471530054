import type { Plugin } from '@envelop/core';
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  visit,
} from 'graphql';
import { isObject } from '../../../lib/json.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../../lib/keyset.ts';
import { membersOfLists, membersOfWideObject } from '../../shared/nested-values.ts';
import { declaredVariables, fragmentsOf, type GraphqlBatch, limitError } from '../execution/documents.ts';
import { traitsOf } from '../kit/builder.ts';

const MAX_DEPTH = 15;
const MAX_ALIASES = 30;
const MAX_DIRECTIVES = 9;
const MAX_REPEATS = 30;
/** The maximum number of introspection fields. Introspection has no `first`, so its cost is not counted otherwise. */
const MAX_INTROSPECTIONS = 5;

/** The cost of a field that counts rows, in objects. */
const COST_OF_A_COUNT = 200;

const CHEAPER = 'preview fewer wallets in one operation, or with fewer balances and transfers';

/** The maximum number of members of an object in the variables; no input type has as many. */
const MAX_MEMBERS = 1_000;

/** The maximum number of operations in a batch. */
export const MAX_BATCH = 10;

/** The part of an operation's context that its limits are checked with. */
export interface OperationParams {
  params: {
    operationName?: string | null | undefined;
    variables?: Variables | null | undefined;
  };
  batch?: GraphqlBatch;
}

/** Creates the Envelop plugin that refuses an operation over a limit before it is validated. */
export function useLimits(maxCost: number): Plugin<OperationParams> {
  return {
    onValidate({ params: { schema, documentAST }, context: { batch, params } }) {
      const operation = getOperationAST(documentAST, params.operationName);
      if (isObject(params.variables)) params.variables = declaredVariables(operation, params.variables);
      const { variables } = params;
      if (batch && operation?.operation === 'subscription') {
        throw limitError('a batch must not have a subscription: send it in a separate request');
      }
      // The error for each unknown member would quote the whole object.
      const members = membersOfWideObject(variables, MAX_MEMBERS);
      if (members !== undefined) {
        throw limitError(`variables have an object with ${members} members; at most ${MAX_MEMBERS} are allowed`);
      }
      const cost = Math.max(
        0,
        ...(documentAST as DocumentNode).definitions
          .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
          .filter(({ name }) => !operation || name?.value === operation.name?.value)
          .map((candidate) => costOf(measure(schema, documentAST, candidate, variables ?? {}), maxCost)),
      );
      const repeats = mostRepeats(documentAST);
      if (repeats > MAX_REPEATS) {
        throw limitError(`a field occurs ${repeats} times in one selection; at most ${MAX_REPEATS} are allowed`);
      }
      if (!batch) return;
      const sum = batch.cost + cost;
      if (sum > maxCost) throw limitError(`the cost of the batch is ${sum}; at most ${maxCost} is allowed`);
      batch.cost = sum;
    },
  };
}

/**
 * Returns the cost of an operation.
 * @throws GraphQLError `LIMIT_EXCEEDED` when it is over a limit.
 */
function costOf(measured: Measure, maxCost: number): number {
  const { depth, aliases, directives, introspections, largestPage, smallestPage } = measured;
  if (depth > MAX_DEPTH) throw limitError(`the depth is ${depth}; at most ${MAX_DEPTH} is allowed`);
  if (aliases > MAX_ALIASES) throw limitError(`there are ${aliases} aliases; at most ${MAX_ALIASES} are allowed`);
  if (directives > MAX_DIRECTIVES) {
    throw limitError(`there are ${directives} directives; at most ${MAX_DIRECTIVES} are allowed`);
  }
  if (introspections > MAX_INTROSPECTIONS) {
    throw limitError(`there are ${introspections} introspection fields; at most ${MAX_INTROSPECTIONS} are allowed`);
  }
  if (largestPage > MAX_PAGE_SIZE || smallestPage < 0) {
    const size = smallestPage < 0 ? smallestPage : largestPage;
    throw limitError(`first or last is ${size}; 0 to ${MAX_PAGE_SIZE} is allowed`);
  }
  const cost = measured.cost + COST_OF_A_COUNT * measured.counts;
  const advice = measured.priced ? `, of which previews cost ${measured.priced}: ${CHEAPER}` : '';
  if (cost > maxCost) throw limitError(`the cost is ${cost}; at most ${maxCost} is allowed${advice}`);
  return cost;
}

const MEMBERS_OF_AN_OBJECT = 4;

const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type']);

type Variables = Readonly<Record<string, unknown>>;

interface Walk {
  schema: GraphQLSchema;
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  variables: Variables;
  /** The numbers of members of the lists in variables that were counted. */
  members: Map<string, number>;
  /**
   * The measures of fragments, each computed once: a document of nested spreads would otherwise take exponential time.
   */
  measured: Map<string, Measure>;
}

/** The size of nothing. */
const NOTHING = {
  /** The number of levels of fields; a root field is at level 1. */
  depth: 0,
  /** The number of fields with an alias, including `__typename`. */
  aliases: 0,
  /** The number of directives on the operation and on everything in it. */
  directives: 0,
  /** The number of the fields `__schema` and `__type`. */
  introspections: 0,
  /**
   * The maximum number of objects in the result, in which a list counts as many as its `first` or `last`, plus one for
   * every four members of the lists in a variable, wherever the variable is used, or the price of the field.
   */
  cost: 0,
  /** Of this cost, the prices of fields that have one. */
  priced: 0,
  /** The number of fields that count. Below a list a field counts once, because one statement counts for all rows. */
  counts: 0,
  /** The largest `first` or `last`, and the smallest. */
  largestPage: 0,
  smallestPage: 0,
};

/** The size of an operation, with its fragments unfolded. */
type Measure = Readonly<typeof NOTHING>;

/**
 * Measures an operation. The document need not be valid: unknown fields count as scalars or objects by their form, and a
 * fragment inside itself counts as empty.
 */
function measure(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variableValues: Variables,
): Measure {
  const { variableDefinitions = [], selectionSet } = operation;
  const defaults = variableDefinitions.flatMap(({ variable, defaultValue }) =>
    defaultValue?.kind === Kind.INT ? [[variable.name.value, Number(defaultValue.value)]] : [],
  );
  const variables = { ...Object.fromEntries(defaults), ...variableValues };
  const walk: Walk = { schema, fragments: fragmentsOf(document), variables, members: new Map(), measured: new Map() };
  const selectionMeasure = ofSelections(walk, selectionSet, schema.getRootType(operation.operation) ?? undefined);
  return [operation, ...variableDefinitions].reduce(plusDirectives, selectionMeasure);
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
  const name = node.name.value;
  const field = isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
  const { pages, members } = argumentsOf(walk, node, field);
  const { price, counts = false } = traitsOf(field);
  const priced = price?.(members) ?? 0;
  const brought = Math.max(priced, Math.floor(members / MEMBERS_OF_AN_OBJECT));
  const own: Measure = {
    ...NOTHING,
    depth: 1,
    aliases: node.alias ? 1 : 0,
    introspections: INTROSPECTION.has(name) ? 1 : 0,
    counts: counts ? 1 : 0,
    cost: brought,
    priced,
    largestPage: Math.max(0, ...pages),
    smallestPage: Math.min(0, ...pages),
  };
  if (!node.selectionSet) return own;
  const type = field && getNamedType(field.type);
  const inner = ofSelections(walk, node.selectionSet, type && isCompositeType(type) ? type : undefined);
  const isPaged = field?.args.some((argument) => argument.name === 'first') === true;
  const rows = isPaged ? Math.max(0, ...pages, pages.length ? 0 : DEFAULT_PAGE_SIZE) : 1;
  return { ...plus(own, inner), depth: 1 + inner.depth, cost: 1 + brought + rows * inner.cost };
}

/**
 * Returns the page sizes in the arguments of a field, if the schema has that field, and the number of members of the
 * lists in them.
 */
function argumentsOf(walk: Walk, node: FieldNode, field: GraphQLField<unknown, unknown> | undefined) {
  const pages: number[] = [];
  let members = 0;
  for (const { name, value } of node.arguments ?? []) {
    const variableValue = value.kind === Kind.VARIABLE ? walk.variables[value.name.value] : undefined;
    members += membersIn(walk, value);
    const size = value.kind === Kind.INT ? Number(value.value) : variableValue;
    const isPage = field && (name.value === 'first' || name.value === 'last');
    if (isPage && typeof size === 'number' && !Number.isNaN(size)) pages.push(size);
  }
  return { pages, members };
}

/** Returns the number of members of all lists in a value, those of its variables included. */
function membersIn(walk: Walk, value: ValueNode): number {
  if (value.kind === Kind.VARIABLE) {
    const { value: name } = value.name;
    return walk.members.getOrInsertComputed(name, () => membersOfLists(walk.variables[name]));
  }
  const isList = value.kind === Kind.LIST;
  const fields = value.kind === Kind.OBJECT ? value.fields : [];
  const inner = isList ? value.values : fields.map((field) => field.value);
  return inner.reduce((total, child) => total + membersIn(walk, child), isList ? inner.length : 0);
}

function typeOf({ schema }: Walk, condition: NamedTypeNode | undefined): GraphQLCompositeType | undefined {
  const type = condition && schema.getType(condition.name.value);
  return isCompositeType(type) ? type : undefined;
}

function plusDirectives(measured: Measure, { directives = [] }: Pick<FieldNode, 'directives'>): Measure {
  return directives.length === 0 ? measured : { ...measured, directives: measured.directives + directives.length };
}

function plus(a: Measure, b: Measure): Measure {
  return {
    depth: Math.max(a.depth, b.depth),
    aliases: a.aliases + b.aliases,
    directives: a.directives + b.directives,
    introspections: a.introspections + b.introspections,
    cost: a.cost + b.cost,
    priced: a.priced + b.priced,
    counts: a.counts + b.counts,
    largestPage: Math.max(a.largestPage, b.largestPage),
    smallestPage: Math.min(a.smallestPage, b.smallestPage),
  };
}

/**
 * Returns the highest number of times that one response name occurs in a selection set, with inline fragments unfolded.
 * Validation compares each pair of such fields and everything below them.
 */
function mostRepeats(document: DocumentNode): number {
  let most = 0;
  visit(document, {
    SelectionSet(set, _key, parent) {
      // An inline fragment is part of the selection set around it.
      if (parent && 'kind' in parent && parent.kind === Kind.INLINE_FRAGMENT) return;
      const counts = new Map<string, number>();
      const open = [set];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        for (const selection of next.selections) {
          if (selection.kind === Kind.INLINE_FRAGMENT) open.push(selection.selectionSet);
          if (selection.kind !== Kind.FIELD) continue;
          const name = (selection.alias ?? selection.name).value;
          const count = (counts.get(name) ?? 0) + 1;
          counts.set(name, count);
          most = Math.max(most, count);
        }
      }
    },
  });
  return most;
}
