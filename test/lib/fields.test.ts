import { readFile } from 'node:fs/promises';
import { buildSchema, isNonNullType, isObjectType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { account } from '../../src/features/accounts/accounts.service.ts';
import { asset } from '../../src/features/assets/assets.service.ts';
import { exampleOf, instant, int, readField, text, uuid, viewOf } from '../../src/lib/fields.ts';
import { camelName } from '../../src/lib/spelling.ts';

const published = (name: string) => readFile(new URL(`../../schema/${name}`, import.meta.url), 'utf8');
const document = JSON.parse(await published('openapi.json'));
const graphql = buildSchema(await published('schema.graphql'), { assumeValid: true });
const { AccountPage, Asset } = document.components.schemas;

describe.each([
  ['Account', account, AccountPage.properties.data.items],
  ['Asset', asset, Asset],
] as const)('the declared fields of %s', (name, { shape }, schema) => {
  const declared = Object.entries(shape).map(([field, type]) => ({ field, ...readField(type) }));

  it('are the members of the OpenAPI schema, all of them required', () => {
    expect(Object.keys(schema.properties)).toEqual(declared.map(({ field }) => field));
    expect(schema.required).toEqual(declared.map(({ field }) => field));
  });

  it('are the fields of the GraphQL type, with their nullability and descriptions', () => {
    const type = graphql.getType(name);
    const fields = isObjectType(type) ? type.getFields() : {};
    for (const { field, isNullable, description } of declared) {
      const shown = fields[camelName(field)];
      expect([field, isNonNullType(shown?.type), shown?.description]).toEqual([field, !isNullable, description]);
    }
  });
});

describe('a declared field', () => {
  it.each([
    [uuid({ example: 'x' }), { kind: 'uuid', isNullable: false, example: 'x' }],
    [text({ description: 'The name.' }).nullable(), { kind: 'text', isNullable: true, description: 'The name.' }],
    [int(), { kind: 'int', description: '', example: null }],
    [instant(), { kind: 'date-time' }],
  ])('is read with its kind, nullability, description and example', (field, expected) => {
    expect(readField(field)).toMatchObject(expected);
  });

  it('is the only one in the view of a row, and a time is in ISO 8601 to the millisecond', () => {
    const row = Object.fromEntries(Object.keys(account.shape).map((field) => [field, null]));
    const view = viewOf(account)({ ...row, created_at: '2026-11-01 08:00:00.123456', other: 'not shown' } as never);
    expect(view).toEqual({ ...row, created_at: '2026-11-01T08:00:00.123Z' });
  });

  it('has an example that its schema accepts', () => {
    for (const fields of [account, asset]) expect(fields.safeParse(exampleOf(fields)).success).toBe(true);
  });
});
