import {
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isIntrospectionType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';

/** Strings that name something: beside `ID` and `JSON`, what could be another node's. */
const NAMING: ReadonlySet<string> = new Set([
  ...['after', 'before', 'search', 'email', 'externalId', 'walletAddress', 'username', 'correlationId', 'path'],
  ...['idOrHash', 'subject', 'attemptedUsername', 'hideReadsOf', 'pathPrefix'],
]);

/**
 * Every place of a schema that can name a thing, as `Query.wallets(filter.accountId)`; a root field without one stands
 * for itself.
 */
export function slotsOf(schema: GraphQLSchema): string[] {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  return Object.values(schema.getTypeMap()).flatMap((type) => {
    if (!isObjectType(type) || isIntrospectionType(type)) return [];
    return Object.values(type.getFields()).flatMap((field) => {
      const slots = slotsOfField(field).map((slot) => `${type.name}.${field.name}(${slot})`);
      return slots.length === 0 && roots.includes(type) ? [`${type.name}.${field.name}`] : slots;
    });
  });
}

/** Everything that a field gives without being asked for by an argument, so many objects deep; lists are of `first`. */
export function selectionOf(field: GraphQLField<unknown, unknown>, depth: number, first = 3): string {
  const type = getNamedType(field.type);
  const page = field.args.some(({ name }) => name === 'first') ? `(first: ${first})` : '';
  if (isLeafType(type)) return field.name;
  if (!isObjectType(type)) throw new Error(`${field.name} is of no object`);
  const isWrapper = /(Connection|Edge)$/.test(type.name);
  const inner = Object.values(type.getFields())
    .filter((member) => !member.args.some(isRequiredArgument))
    .filter((member) => isLeafType(getNamedType(member.type)) || isWrapper || depth > 0)
    .map((member) => selectionOf(member, isWrapper ? depth : depth - 1));
  return `${field.name}${page} { ${inner.join(' ')} }`;
}

function slotsOfField({ args }: GraphQLField<unknown, unknown>): string[] {
  return args.flatMap(({ name, type }) => slotsOfInput(name, type));
}

function slotsOfInput(path: string, given: GraphQLInputType): string[] {
  const type = getNamedType(given);
  if (isInputObjectType(type)) {
    return Object.values(type.getFields()).flatMap((member) => slotsOfInput(`${path}.${member.name}`, member.type));
  }
  const isNaming = type.name === 'String' && NAMING.has(path.split('.').at(-1) ?? '');
  return ['ID', 'JSON'].includes(type.name) || isNaming ? [path] : [];
}
