import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { valuesOf } from '../support/openapi/arbitrary.ts';
import { type DescribedOperation, faultsOf, followed, operations, unlike } from '../support/openapi/described.ts';
import { type Options, openApiFixture } from '../support/openapi/fixture.ts';
import { basic } from '../support/webhook/fixture.ts';

const JSON_TYPE = 'application/json';
/** Few, since each is a request. */
const RUNS = inject('isThorough') ? 10 : 4;
/** Where nothing but its form can be wrong with a body. */
const TAKEN = new Set(['createWalletRule', 'replaceWalletRule', 'notifyTransaction', 'migrateUsers']);

const fixture = beforeTests(openApiFixture);

/** Operations that read a body; the alias of the webhook has the same. */
const written = operations.filter(
  ({ path, operation }) => operation.requestBody && !operation.deprecated && !path.startsWith('/v2/mcp'),
);

function schemaAt({ at }: DescribedOperation): readonly string[] {
  return followed([...at, 'requestBody', 'content', JSON_TYPE, 'schema']).at;
}

function bodiesOf(operation: DescribedOperation): fc.Arbitrary<unknown> {
  return valuesOf(followed(schemaAt(operation)).value);
}

/** The credentials that an operation asks for. */
function credentials({ operation }: DescribedOperation): Record<string, string> {
  const schemes = operation.security?.flatMap((requirement) => Object.keys(requirement)) ?? [];
  const { username, password } = fixture.p.webhook;
  if (schemes.includes('webhookBasic')) return { authorization: basic(username, password) };
  return schemes.includes('userToken') ? { authorization: `Bearer ${fixture.token}` } : {};
}

function send(operation: DescribedOperation, json: unknown) {
  const options: Options = { json, headers: credentials(operation) };
  const values = { wallet_id: fixture.p.demo.wallet_id, id: fixture.ruleId };
  return fixture.call(operation.method, operation.path, values, options);
}

/** What is of no member's type, and is no null, which counts as absent. */
const WRONG = [true, 'a text', 1.5, -1, 1e300, [], {}, [[]], 'x'.repeat(2_000)];

/** A body with a member, at any depth, of another value or gone. */
function broken(body: unknown): fc.Arbitrary<unknown> {
  const places = placesIn(body, []);
  return fc.tuple(fc.constantFrom(...places), fc.constantFrom(undefined, ...WRONG)).map(([place, value]) => {
    const copy: { body: unknown } = { body: structuredClone(body) };
    let parent = copy as Record<PropertyKey, unknown>;
    const [last = 'body', ...before] = ['body', ...place].reverse();
    for (const part of before.reverse()) parent = parent[part] as Record<PropertyKey, unknown>;
    if (value === undefined && !Array.isArray(parent)) delete parent[last];
    else parent[last] = value ?? 'x';
    return copy.body ?? 'x';
  });
}

function placesIn(value: unknown, at: readonly string[]): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, member]) => placesIn(member, [...at, name]))];
}

describe('bodies generated from the schemas', () => {
  it.each(written)(
    'D8-02 2.3-01: $method $path: a valid body is accepted or rejected as documented, and never a 5xx',
    async (operation) => {
      await fc.assert(
        fc.asyncProperty(bodiesOf(operation), async (body) => {
          expect(faultsOf(body, schemaAt(operation))).toEqual([]);
          const answer = await send(operation, body);
          const limit = TAKEN.has(operation.operation.operationId ?? '') ? 300 : 500;
          expect([answer.status < limit, ...unlike(operation, answer)]).toEqual([true]);
        }),
        { numRuns: RUNS },
      );
    },
  );

  it.each(written)('D2-13 D8-02: $method $path: an invalid body is a documented 4xx', async (operation) => {
    const bodies = bodiesOf(operation).chain(broken);
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        fc.pre(faultsOf(body, schemaAt(operation)).length > 0);
        const answer = await send(operation, body);
        expect([answer.status >= 400 && answer.status < 500, ...unlike(operation, answer)]).toEqual([true]);
      }),
      { numRuns: RUNS },
    );
  });
});
