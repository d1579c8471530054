import { randomInt } from 'node:crypto';
import { parse } from 'graphql';
import { compileQuery } from 'graphql-jit';
import { expect, inject, it } from 'vitest';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { checkGeneratedCode } from '../support/graphql/generated-code.ts';
import { GeneratedSources } from '../support/graphql/generated-sources.ts';
import { POISON } from '../support/graphql/planted-document.ts';
import { startPortcullis } from '../support/harness.ts';

const [DOCUMENTS, SEED] = inject('isThorough') ? [100_000, randomInt(2 ** 31)] : [100, 20_261_123];

it(`no string of a document reaches generated code, and its names change only themselves there (seed ${SEED})`, async () => {
  const { compiled, refused } = await checkGeneratedCode(DOCUMENTS, SEED);
  expect(Math.min(compiled, refused)).toBeGreaterThan(DOCUMENTS / 4);
}, 3_600_000);

it('(a string given to graphql-jit would be found in its code)', () => {
  using generated = new GeneratedSources();
  compileQuery(graphqlSchema(), parse(`{ account(id: "${POISON}") { name } }`), '');
  expect(generated.taken().join()).toContain(POISON);
});

it.each([
  ['off', 'no code', 0],
  ['on', 'the code of its frequent query', 1],
])('with GRAPHQL_JIT=%s a service generates %s', async (GRAPHQL_JIT, _code, count) => {
  await using p = await startPortcullis({ env: { GRAPHQL_JIT } });
  const token = await p.loginToken();
  using generated = new GeneratedSources();
  for (let run = 0; run < 4; run++) {
    const { json } = await p.call('POST', '/graphql', { token, json: { query: '{ me { nodeId } }' } });
    expect(json.data.me.nodeId).toBe(p.demo.node_id);
  }
  expect(generated.taken().filter((source) => source.includes('function query ('))).toHaveLength(count);
});
