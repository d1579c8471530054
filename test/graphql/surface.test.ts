import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  buildSchema as buildFromText,
  DEFAULT_DEPRECATION_REASON,
  type GraphQLArgument,
  type GraphQLEnumValue,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { unnamedChanges } from '../../scripts/breaking-changes.ts';
import { schemaHistory } from '../../scripts/schema-history.ts';
import { graphqlSchema, printedSchema } from '../../src/app/graphql-schema.ts';
import { ROOT } from '../support/start/process.ts';

const schema = graphqlSchema();

describe('the schema', () => {
  it('is built once in a process', () => {
    expect(graphqlSchema()).toBe(schema);
  });

  it.skipIf(!existsSync(join(ROOT, '.git')))(
    'DG-01: every type, field, argument, union member and enum value of the last release and the last commit remains, unless the changelog names it',
    () => {
      expect(schemaHistory(ROOT).faults).toEqual([]);
    },
  );

  it('DG-01: everything has a description', () => {
    expect(undescribed(schema)).toEqual([]);
  });

  it('DG-03: the description of a mutation union explains each of its errors', () => {
    const silent = Object.values(schema.getTypeMap())
      .filter(isUnionType)
      .flatMap((union) => union.getTypes().map(({ name }) => ({ union, name })))
      .filter(({ union, name }) => name.endsWith('Error') && !union.description?.includes(`${name}: `));
    expect(silent.map(({ union, name }) => `${union.name}.${name}`)).toEqual([]);
  });

  it('DG-01: a deprecated element states its replacement, and CHANGELOG.md names it', () => {
    const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
    expect(faultyDeprecations(schema, changelog)).toEqual([]);
    const some = buildFromText(
      'type Query { a: Int @deprecated, b: Int @deprecated(reason: "c"), c(x: Int @deprecated(reason: "y")): E } enum E { F @deprecated(reason: "G") G }',
    );
    expect(faultyDeprecations(some, '- `Query.b` goes, by `Query.c`.')).toEqual(['Query.a', 'Query.c(x:)', 'E.F']);
  });

  it('DG-01: the committed schema equals the served one', () => {
    expect(readFileSync(join(ROOT, 'schema/schema.graphql'), 'utf8')).toBe(printedSchema());
  });
});

type Deprecable = GraphQLEnumValue | GraphQLInputField | GraphQLField<unknown, unknown> | GraphQLArgument;

/** What is deprecated without a reason of its own, or without being named. */
function faultyDeprecations(of: GraphQLSchema, changelog: string): string[] {
  const elements = Object.values(of.getTypeMap()).flatMap((type): readonly Deprecable[] => {
    if (isEnumType(type)) return type.getValues();
    if (isInputObjectType(type)) return Object.values(type.getFields());
    if (!isObjectType(type) && !isInterfaceType(type)) return [];
    return Object.values(type.getFields()).flatMap((field) => [field, ...field.args]);
  });
  const deprecated = elements.filter(({ deprecationReason }) => typeof deprecationReason === 'string');
  const unnamed = unnamedChanges(
    deprecated.map((element) => ({ coordinate: String(element), description: '' })),
    changelog,
  );
  return deprecated
    .filter(
      (element) =>
        element.deprecationReason === DEFAULT_DEPRECATION_REASON ||
        unnamed.some(({ coordinate }) => coordinate === String(element)),
    )
    .map(String);
}

function undescribed(of: GraphQLSchema): string[] {
  const types = Object.values(of.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
  return types.flatMap((type) => [type.description ? [] : [type.name], membersOf(type)].flat());
}

function membersOf(type: GraphQLNamedType): string[] {
  if (isEnumType(type)) return lacking(type.name, type.getValues());
  if (isInputObjectType(type)) return lacking(type.name, Object.values(type.getFields()));
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  const fields = Object.values(type.getFields());
  return [...lacking(type.name, fields), ...fields.flatMap(({ name, args }) => lacking(`${type.name}.${name}`, args))];
}

function lacking(
  owner: string,
  members: readonly { name: string; description?: string | null | undefined }[],
): string[] {
  return members.filter(({ description }) => !description).map(({ name }) => `${owner}.${name}`);
}
