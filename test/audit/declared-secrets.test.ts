import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { buildSchema } from '../../src/api/graphql/schema.ts';
import { SECRETS } from '../../src/audit/mask-keys.ts';
import { isSecretInput } from '../../src/lib/input.ts';
import { SECRET, startAuditStand } from '../support/graphql/audit-stand.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { ROOT } from '../support/start/process.ts';

const stand = beforeTests(() => startAuditStand(buildSchema()));

type Member = readonly [name: string, schema: z.ZodType];

/** The members of a schema that are texts, at any depth. */
function membersOf(schema: unknown, name = ''): Member[] {
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([member, inner]) => membersOf(inner, member));
  }
  if (schema instanceof z.ZodPipe) return [schema.def.in, schema.def.out].flatMap((inner) => membersOf(inner, name));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodCatch) {
    return membersOf(schema.def.innerType, name);
  }
  if (schema instanceof z.ZodArray) return membersOf(schema.def.element, name);
  return schema instanceof z.ZodString ? [[name, schema]] : [];
}

/** The text members of every exported schema of an input. */
async function declared(): Promise<Member[]> {
  const files = globSync('src/**/*.input.ts', { cwd: ROOT });
  const modules: object[] = await Promise.all(files.map((file) => import(join(ROOT, file))));
  const schemas = modules
    .flatMap((module) => Object.values(module))
    .flatMap((value) => {
      return value instanceof z.ZodType ? [value] : Object.values(Object(value));
    });
  return schemas.flatMap((schema) => membersOf(schema));
}

it('D1-18: every member of an input that has the name of a secret is declared as one, and masked by its name', async () => {
  const members = await declared();
  const named = members.filter(([name]) => name !== 'search' && SECRETS.isSecretKey(name));
  expect(new Set(named.map(([name]) => name))).toEqual(
    new Set(['client_secret', 'password', 'refresh_token', 'token']),
  );
  expect(named.filter(([, schema]) => !isSecretInput(schema))).toEqual([]);
  const secret = members.filter(([name, schema]) => name !== '' && isSecretInput(schema));
  expect(secret.length).toBeGreaterThan(5);
  expect(secret.filter(([name]) => !SECRETS.isSecretKey(name))).toEqual([]);
});

it.each([
  ['literals', `mutation { changeOwnPassword(current: "${SECRET}", new: "${SECRET}") { __typename } }`, {}],
  [
    'variables',
    'mutation ($a: String!, $b: String!) { x: changeOwnPassword(current: $a, new: $b) { __typename } }',
    { a: SECRET, b: SECRET },
  ],
])(
  'D1-18: an argument that is declared as a secret is masked though its name is none: %s',
  async (_how, query, variables) => {
    stand.records.length = 0;
    stand.lines.length = 0;
    await stand.post({ query, variables });
    expect(stand.records).toHaveLength(1);
    expect(stand.records[0]?.request_body).toContain('changeOwnPassword');
    expect(JSON.stringify([stand.records, stand.lines])).not.toContain(SECRET);
  },
);
