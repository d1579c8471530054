import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNamedType,
  isInputObjectType,
  isObjectType,
  isScalarType,
} from 'graphql';
import { expect, it } from 'vitest';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';

/** The scalars of which every value that parses is valid. An ID that is no UUID is the id of nothing. */
const BARE = ['ID', 'Boolean', 'DateTime', 'File'];

/** The arguments of connections and of streams that resume, which `pageRequest` and the stream check. */
const CURSORS = ['first', 'last', 'after', 'before'];

/** The arguments for which every Int is valid. */
const ANY_INT = [
  'AccountFilter.status',
  'AuditFilter.statusCode',
  'TransactionFilter.type',
  'Mutation.replaceWalletRule.ifVersion',
  'Mutation.setWalletRuleStatus.ifVersion',
];

type Input = GraphQLArgument | GraphQLInputField;

function hasValidator({ extensions }: Input | GraphQLInputObjectType): boolean {
  const { pothosOptions } = extensions as { pothosOptions?: { validate?: { schema?: unknown } } };
  return pothosOptions?.validate?.schema !== undefined;
}

/** The names of an input, or of its members, that can be invalid and have no validator. */
function unvalidated(name: string, input: Input, isArgument: boolean): string[] {
  const type: GraphQLInputType = getNamedType(input.type);
  if (hasValidator(input) || (isArgument && CURSORS.includes(input.name))) return [];
  if (isInputObjectType(type)) {
    const members = Object.values(type.getFields());
    return hasValidator(type) ? [] : members.flatMap((member) => unvalidated(`${type}.${member.name}`, member, false));
  }
  return isScalarType(type) && !BARE.includes(type.name) ? [name] : [];
}

it('DG-07: every argument and input member that can be invalid has a zod validator', () => {
  const owners = Object.values(graphqlSchema().getTypeMap())
    .filter((type) => isObjectType(type))
    .filter(({ name }) => !name.startsWith('__'));
  const places = owners.flatMap((owner) =>
    Object.values(owner.getFields()).flatMap(({ name, args }) =>
      args.flatMap((argument) => unvalidated(`${owner}.${name}.${argument.name}`, argument, true)),
    ),
  );
  expect(new Set(places)).toEqual(new Set(ANY_INT));
});
