import { expect, it } from 'vitest';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { SECRETS } from '../../src/audit/masked-names.ts';
import { isSecretInput } from '../../src/lib/input.ts';
import { inputMembers } from '../support/audit/declared-secrets.ts';
import { SECRET, startAuditFixture } from '../support/graphql/audit-fixture.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

const fixture = beforeTests(() => startAuditFixture(graphqlSchema()));

it('D1-18: an input member is declared secret if and only if its name is masked', async () => {
  const members = await inputMembers();
  const named = members.filter(({ name }) => name !== 'search' && SECRETS.isSecretKey(name));
  expect(new Set(named.map(({ name }) => name))).toEqual(
    new Set(['client_secret', 'password', 'refresh_token', 'token']),
  );
  expect(named.filter(({ schema }) => !isSecretInput(schema))).toEqual([]);
  const secret = members.filter(({ name, schema }) => name !== '' && isSecretInput(schema));
  expect(secret.length).toBeGreaterThan(5);
  expect(secret.filter(({ name }) => !SECRETS.isSecretKey(name))).toEqual([]);
});

it.each([
  ['literals', `mutation { changeOwnPassword(current: "${SECRET}", new: "${SECRET}") { __typename } }`, {}],
  [
    'variables',
    'mutation ($a: String!, $b: String!) { x: changeOwnPassword(current: $a, new: $b) { __typename } }',
    { a: SECRET, b: SECRET },
  ],
])(
  'D1-18: an argument that is declared secret is masked even if its name is not a secret name: %s',
  async (_how, query, variables) => {
    fixture.records.length = 0;
    fixture.lines.length = 0;
    await fixture.post({ query, variables });
    expect(fixture.records).toHaveLength(1);
    expect(fixture.records[0]?.request_body).toContain('changeOwnPassword');
    expect(JSON.stringify([fixture.records, fixture.lines])).not.toContain(SECRET);
  },
);
