import fc from 'fast-check';
import {
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  isLeafType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { graphqlSchema } from '../../../src/app/graphql-schema.ts';

const schema = graphqlSchema();

const MAX_DEPTH = 6;

/** A document, the variables that it is sent with, and whether a variable stands in it. */
export interface RandomDocument {
  query: string;
  variables: Record<string, unknown>;
}

type Field = GraphQLField<unknown, unknown>;

interface Draw {
  /** A number from 0 to below the bound. */
  upTo(bound: number): number;
  ids: readonly string[];
  /** Whether values stand in the document too. */
  hasLiterals: boolean;
  variables: Map<string, { type: string; value: unknown }>;
  fragments: string[];
}

/** Queries of all kinds over the schema: nested lists, aliases, fragments, variables, ids that are known and that are not. */
export function randomDocument(ids: readonly string[]): fc.Arbitrary<RandomDocument> {
  return fc.infiniteStream(fc.nat(1_000_000)).map((stream) => {
    const upTo = (bound: number) => Number(stream.next().value) % bound;
    const draw: Draw = { upTo, ids, hasLiterals: upTo(3) === 0, variables: new Map(), fragments: [] };
    const root = schema.getQueryType();
    if (!root) throw new Error('there are no queries');
    const selections = selectionsOf(draw, root, 1);
    const declared = [...draw.variables].map(([name, { type }]) => `$${name}: ${type}`).join(', ');
    return {
      query: [`query Random${declared && `(${declared})`} ${selections}`, ...draw.fragments].join('\n'),
      variables: Object.fromEntries([...draw.variables].map(([name, { value }]) => [name, value])),
    };
  });
}

function selectionsOf(draw: Draw, type: GraphQLObjectType, depth: number): string {
  const fields = Object.values(type.getFields()).filter((field) => isAskable(field, depth));
  const count = 1 + draw.upTo(Math.min(4, fields.length));
  const picked = Array.from({ length: count }, () => fields[draw.upTo(fields.length)]).filter((field) => !!field);
  const parts = picked.map((field, index) => selectionOf(draw, type, field, `f${depth}x${index}`, depth));
  if (draw.upTo(6) === 0) parts.push('__typename');
  return `{ ${parts.join(' ')} }`;
}

function selectionOf(draw: Draw, type: GraphQLObjectType, field: Field, alias: string, depth: number): string {
  const named = getNamedType(field.type);
  const inner = isObjectType(named) ? ` ${selectionsOf(draw, named, depth + 1)}` : '';
  // Two of one name with other arguments or parts would not go together.
  const selection = `${alias}: ${field.name}${argumentsOf(draw, field)}${inner}`;
  switch (draw.upTo(8)) {
    case 0:
      return `... on ${type.name} { ${selection} }`;
    case 1:
      return `... { ${selection} }`;
    case 2: {
      const name = `F${draw.fragments.length}_${alias}`;
      draw.fragments.push(`fragment ${name} on ${type.name} { ${selection} }`);
      return `...${name}`;
    }
    default:
      return selection;
  }
}

function isAskable({ type, args }: Field, depth: number): boolean {
  const named = getNamedType(type);
  const isKnown = args.every((arg) => !isNonNullType(arg.type) || String(arg.type) === 'ID!');
  return isKnown && (isLeafType(named) || (isObjectType(named) && depth < MAX_DEPTH));
}

function argumentsOf(draw: Draw, { args }: Field): string {
  const given = args.flatMap((arg) => {
    const value = argumentOf(draw, String(arg.type), arg.name);
    return value === undefined ? [] : [`${arg.name}: ${value}`];
  });
  return given.length > 0 ? `(${given.join(', ')})` : '';
}

function argumentOf(draw: Draw, type: string, name: string): string | undefined {
  if (type === 'ID!') return inVariable(draw, type, draw.ids[draw.upTo(draw.ids.length)]);
  if (name === 'first') return draw.upTo(3) === 0 ? undefined : inVariable(draw, 'Int', draw.upTo(4));
  if (name === 'last') return draw.upTo(12) === 0 ? inVariable(draw, 'Int', draw.upTo(3)) : undefined;
  if (name === 'after' && draw.upTo(20) === 0) return inVariable(draw, 'String', 'forged');
  if (type === 'AccountFilter' && draw.upTo(3) === 0) return inVariable(draw, type, { includeDeleted: true });
  return undefined;
}

function inVariable(draw: Draw, type: string, value: unknown): string {
  if (draw.hasLiterals && draw.upTo(2) === 0) return JSON.stringify(value).replaceAll(/"(\w+)":/g, '$1:');
  const name = `v${draw.variables.size}`;
  draw.variables.set(name, { type, value });
  return `$${name}`;
}
