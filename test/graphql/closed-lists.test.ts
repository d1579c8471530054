import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
} from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DOCUMENTED } from '../../scripts/openapi.ts';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { TOOLS } from '../../src/app/tools.ts';
import { camelName } from '../../src/lib/spelling.ts';

const ROOT = resolve(import.meta.dirname, '../..');

interface JsonSchema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  [keyword: string]: unknown;
}

/** Calls `visit` with every member that a JSON Schema describes, at any depth. */
function members(schema: unknown, at: string, visit: (name: string, member: JsonSchema, at: string) => void): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [keyword, value] of Object.entries(schema as JsonSchema)) {
    if (['example', 'examples', 'default', 'enum', 'const'].includes(keyword)) continue;
    if (keyword === 'properties') {
      for (const [name, member] of Object.entries(value as Record<string, JsonSchema>)) {
        visit(name, member, `${at}.${name}`);
        members(member, `${at}.${name}`, visit);
      }
    } else if (Array.isArray(value)) for (const one of value) members(one, at, visit);
    else members(value, at, visit);
  }
}

/** Returns the texts that a member, or each item of it, may be; undefined if that is no closed list. */
function valuesOf(member: JsonSchema): unknown[] | undefined {
  const one = member.type === 'array' ? (member.items as JsonSchema | undefined) : member;
  return one?.enum?.every((value) => typeof value === 'string') ? one.enum : undefined;
}

/** The zod schemas that the modules of access and domain export, and those of responses. */
async function zodSchemas(): Promise<[name: string, schema: z.ZodType, io: 'input' | 'output'][]> {
  const found: [string, z.ZodType, 'input' | 'output'][] = [];
  for (const file of globSync('src/{access,features}/**/*.ts', { cwd: ROOT }).sort()) {
    for (const [name, value] of Object.entries(await import(join(ROOT, file)))) {
      if (value instanceof z.ZodType) found.push([`${file} ${name}`, value, 'input']);
    }
  }
  for (const { outputs = {} } of DOCUMENTED.nouns)
    for (const [name, schema] of Object.entries(outputs)) found.push([name, schema, 'output']);
  return found;
}

/** The members that are closed lists, by their names in camel case; those that zod checks with a function are named here. */
const closed = new Map<string, Set<unknown>>([
  ['role', new Set(['admin', 'operator', 'viewer'])],
  ['permission', new Set(['accounts:read'])],
  ['event', new Set(['transaction.status.updated'])],
]);

function note(name: string, member: JsonSchema): void {
  for (const value of valuesOf(member) ?? []) {
    const values = closed.get(camelName(name)) ?? new Set();
    closed.set(camelName(name), values.add(value));
  }
}

beforeAll(async () => {
  for (const [name, schema, io] of await zodSchemas()) {
    members(z.toJSONSchema(schema, { io, unrepresentable: 'any' }), name, note);
  }
  // Those of the tools are made of zod schemas, too, some of which only they have.
  for (const { name, listed } of TOOLS.values()) members(listed, name, note);
});

const AS_IN_REST = 'documented as a String, with the text of REST';
const INPUT =
  'an input: a client that declares a variable of type String, or writes the text in quotes, would be rejected';
const COLONS = 'permissions have colons, which no name of GraphQL has; the list grows with the product';
const OPEN = 'an open list: the platform that owns the rows may add values';

/** The Strings of GraphQL whose names are closed lists elsewhere, and why they are none (docs/decisions/037-enums.md). */
const TEXTS: Record<string, string> = {
  'Account.type': OPEN,
  'AccountFilter.type': OPEN,
  'Asset.status': OPEN,
  'Asset.type': OPEN,
  'AutoTransferRuleInput.type': INPUT,
  'Client.scopes': COLONS,
  'ClientInput.scopes': COLONS,
  'ForbiddenError.permission': COLONS,
  'MigrationRow.reason': 'a reason may also be a message that names the line of a file',
  'MigrationRow.status': AS_IN_REST,
  'Mutation.setSupervisorRole(role)': INPUT,
  'PermissionlessTransferLimitRuleInput.timePeriod': INPUT,
  'Query.walletRules(type)': INPUT,
  'Supervisor.permissions': COLONS,
  'Supervisor.role': AS_IN_REST,
  'SupervisorInput.role': INPUT,
  'TransactionUpdate.event': AS_IN_REST,
  'Viewer.permissions': COLONS,
  'Viewer.tokenUse': AS_IN_REST,
  'WalletRule.type': AS_IN_REST,
  'WalletRuleExplanation.op': AS_IN_REST,
  'WalletRuleExplanation.reason': 'a sentence that says why a condition could not be evaluated',
  'WalletRuleInput.type': INPUT,
};

describe('closed lists of values', () => {
  it('D8-02: exist in the schemas of inputs, responses and tools', () => {
    expect([...(closed.get('timePeriod') ?? [])]).toEqual(['hour', 'day', 'week', 'month', 'year']);
    expect([...closed.keys()]).toEqual(
      expect.arrayContaining(['type', 'status', 'collection', 'grantTypes', 'tokenUse', 'op']),
    );
  });

  it('D2-31 D8-02: are enums in GraphQL, except documented strings', () => {
    const texts = [...coordinates()].flatMap(([at, name, type]) => {
      const isText = getNamedType(type).name === 'String' && (closed.has(name) || at in TEXTS);
      return isText ? [at] : [];
    });
    expect(texts.sort()).toEqual(Object.keys(TEXTS).sort());
  });

  it('D8-02: the enums of GraphQL have the values that the schemas allow', () => {
    const unknown = [...coordinates()].flatMap(([at, name, given]) => {
      const type = getNamedType(given);
      const allowed = closed.get(name);
      if (!isEnumType(type) || !allowed || type.name === 'TransactionStatus') return [];
      return type
        .getValues()
        .flatMap(({ value }) =>
          allowed.has(value) || name === 'status' || name === 'reason' ? [] : [`${at} ${value}`],
        );
    });
    expect(unknown).toEqual([]);
  });

  it.each(['schema/openapi.json', 'schema/tools.json'])('D8-02: are enums in %s', (file) => {
    const texts = new Set<string>();
    members(JSON.parse(readFileSync(join(ROOT, file), 'utf8')), '', (name, member, at) => {
      const one = member.type === 'array' ? (member.items as JsonSchema) : member;
      if (!closed.has(camelName(name)) || [one?.type].flat()[0] !== 'string') return;
      if (one.enum === undefined && one.const === undefined) texts.add(at.split('.').slice(-2).join('.'));
    });
    expect([...texts].sort()).toEqual(LEFT[file]);
  });
});

/**
 * The texts of a document whose names are closed lists elsewhere: types and statuses that other services own, and the
 * collection of a transaction, which a later version may have stored.
 */
const LEFT: Record<string, string[]> = {
  'schema/openapi.json': ['.status', '.type', 'data.type'],
  'schema/tools.json': ['.collection', '.type', 'data.collection', 'data.type'],
};

type Coordinate = [at: string, name: string, type: GraphQLField<unknown, unknown>['type'] | GraphQLArgument['type']];

/** Every field and argument of the schema. */
function* coordinates(): Generator<Coordinate> {
  for (const type of Object.values(graphqlSchema().getTypeMap())) {
    if (isIntrospectionType(type)) continue;
    if (!isObjectType(type) && !isInterfaceType(type) && !isInputObjectType(type)) continue;
    const fields: Record<string, GraphQLField<unknown, unknown> | GraphQLInputField> = type.getFields();
    for (const [name, field] of Object.entries(fields)) {
      yield [`${type.name}.${name}`, name, field.type];
      const args = 'args' in field ? field.args : [];
      for (const argument of args) yield [`${type.name}.${name}(${argument.name})`, argument.name, argument.type];
    }
  }
}
