import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  buildSchema as buildFromText,
  findSchemaChanges,
  type GraphQLNamedType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { printedSchema } from '../../src/graphql/print.ts';
import { buildSchema } from '../../src/graphql/schema.ts';

const schema = buildSchema();
const names = buildFromText(readFileSync(resolve(import.meta.dirname, 'surface.graphql'), 'utf8'));

describe('the surface', () => {
  it('DG-01: every type, field, argument, union member and enum value that is served has its name and type', () => {
    const missing = findSchemaChanges(names, schema).filter(({ type }) => /REMOVED|CHANGED_KIND|REQUIRED/.test(type));
    expect(missing.filter(({ type }) => !type.startsWith('DIRECTIVE'))).toEqual([]);
  });

  it('DG-01: everything is described', () => {
    expect(undescribed(schema)).toEqual([]);
  });

  it('DG-01: the committed schema is the one that is served', () => {
    expect(readFileSync(resolve(import.meta.dirname, '../../schema/schema.graphql'), 'utf8')).toBe(printedSchema());
  });
});

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
