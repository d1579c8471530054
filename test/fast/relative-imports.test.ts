import { expect, it } from 'vitest';
import { inPlainNode } from '../support/architecture/plain-node.ts';

/** Loads the whole service, and tells how each module was resolved beside what Node says. */
const LOAD = `
  import { readFileSync } from 'node:fs';
  import { findPackageJSON, registerHooks } from 'node:module';
  const [path] = process.argv.slice(1);
  const { loading } = await import(process.cwd() + '/' + path);
  const loaded = new Map();
  registerHooks({
    load(url, context, next) {
      loaded.set(url, context.format);
      return next(url, context);
    },
  });
  const asked = new Set();
  const before = registerHooks({
    resolve(specifier, context, next) {
      asked.add(specifier + ' ' + context.parentURL);
      return next(specifier, context);
    },
  });
  await loading(() => import(process.cwd() + '/src/app/service.ts'));
  const foreign = [...loaded]
    .filter(([url, format]) => format === 'module' && JSON.parse(readFileSync(findPackageJSON(url), 'utf8')).type !== 'module')
    .map(([url]) => url)
    .filter((url) => !url.endsWith('.mjs'));
  const atEnd = asked.size;
  await import('kysely/helpers/postgres');
  const answer = { loaded: [...loaded].filter(([url]) => url.startsWith('file:')).sort(), foreign };
  process.stdout.write(JSON.stringify({ answer, relative: [...asked].slice(0, atEnd).filter((one) => one.startsWith('.')).length, later: asked.size - atEnd }), () => process.exit());`;

interface Answer {
  answer: { loaded: [url: string, format: string][]; foreign: string[] };
  relative: number;
  later: number;
}

it('D1-03: a start loads the modules that Node resolves, in their formats, and asks Node for few of them', async () => {
  const own = (await inPlainNode(LOAD, ['src/lib/fast/relative-imports.ts'])) as Answer;
  const library = (await inPlainNode(LOAD, ['test/support/fast/library/relative-imports.ts'])) as Answer;
  const ofProduct = ([url]: [string, string]) => !url.includes('/lib/fast/relative-imports.ts');
  expect(own.answer.loaded.filter(ofProduct)).toEqual(library.answer.loaded.filter(ofProduct));
  expect(own.answer.loaded.length).toBeGreaterThan(500);
  expect(own.answer.foreign).toEqual([]);
  expect(own.relative).toBeLessThan(library.relative / 2);
  expect(own.later).toBe(library.later);
});
