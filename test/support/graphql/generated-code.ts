import fc from 'fast-check';
import { parse } from 'graphql';
import { expect } from 'vitest';
import { areVariablesGood, fragmentsOf } from '../../../src/api/graphql/execution/documents.ts';
import { graphqlSchema } from '../../../src/app/graphql-schema.ts';
import { CompiledOperations } from '../../../src/lib/fast/compiled-operations.ts';
import { NODE } from './fixture.ts';
import { GeneratedSources } from './generated-sources.ts';
import { CANARIES, POISON, plantedDocument } from './planted-document.ts';

const RUNS_UNTIL_COMPILED = 3;

const schema = graphqlSchema();
/** A principal without permissions, whose fields do not reach a service. */
const contextValue = { principal: { nodeId: NODE, permissions: new Set() }, caller: undefined, services: {} };

/** A name of a caller outside strings: a member, or a part of a name that the generator has put together. */
const PLACES = [/^\.\w+$/, /^.Canary\d+Z[A-Z]\w*ResolverHandler\d*$/, /^.hasValue(?:\w+_)?Canary\d+Z_input$/];

/** Returns the names of a caller that stand elsewhere in the code than they may. */
function misplaced(code: string): string[] {
  const bare = code.replaceAll(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`$]*`/g, '');
  expect(bare).not.toMatch(/["'`]/);
  const places = bare.match(/\W\w*Canary\d+Z\w*/g) ?? [];
  return places.filter((place) => !PLACES.some((known) => known.test(place)));
}

/** Leaves out where the parts of a document stand in it, which is numbers. */
function withoutLocations(code: string): string {
  return code.replaceAll(/"line":\d+,"column":\d+/g, '');
}

/**
 * Has documents compiled, as many as asked for, and checks the code that is generated of each.
 * @returns how many were compiled, and how many had to be refused.
 */
export async function checkGeneratedCode(documents: number, seed: number) {
  using generated = new GeneratedSources(false);
  const operations = new CompiledOperations({ reference: () => ({ data: null }), areVariablesGood, fragmentsOf });
  const seen = { compiled: 0, refused: 0 };

  async function codeOf(text: string): Promise<string> {
    const document = parse(text);
    generated.taken();
    for (let run = 0; run < RUNS_UNTIL_COMPILED; run++) await operations.run({ schema, document, contextValue });
    return generated.taken().join('\n');
  }

  const holds = fc.asyncProperty(plantedDocument(), async ({ bare, hostile, names, isRefused }) => {
    const ofBare = await codeOf(bare);
    const ofHostile = await codeOf(hostile);
    expect(ofBare).not.toContain(POISON);
    expect(ofHostile).not.toContain(POISON);
    const renamed = isRefused ? '' : ofBare.replaceAll(CANARIES, (canary) => names.get(canary) ?? canary);
    expect(withoutLocations(ofHostile)).toBe(withoutLocations(renamed));
    expect(misplaced(ofBare)).toEqual([]);
    if (isRefused) seen.refused += 1;
    else if (ofHostile !== '') seen.compiled += 1;
  });
  await fc.assert(holds, { numRuns: documents, seed });
  return seen;
}
