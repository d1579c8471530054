import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  fileCycles,
  folderCycles,
  type Import,
  importsOf,
  sourceFiles,
  sourceImports,
} from '../support/architecture/imports.ts';
import { ROOT } from '../support/start/process.ts';

/** The storeys from the top to the bottom: each imports from those below it, and from nothing beside or above it. */
const STOREYS = [
  'main.ts',
  'cli',
  'app',
  'api',
  'gateway',
  'domain',
  'access',
  'audit',
  'events',
  'platform',
  'tables',
  'lib',
];

/** The nouns of the product, as they stand in names. */
const NOUNS =
  /account|asset|wallet|network|transaction|(?:^|[^a-z])users?(?:[^a-z]|$)|supervisor|migration-|user-migration|gas-fee|webhook/;

const storeyOf = (file: string) => file.split('/', 1).join();

function upward(imports: readonly Import[]): string[] {
  return imports
    .filter(([importer, imported]) => STOREYS.indexOf(storeyOf(importer)) > STOREYS.indexOf(storeyOf(imported)))
    .map(([importer, imported]) => `${importer} imports ${imported}`);
}

const FAST = 'lib/fast/';

/** Files of `lib` that serve one storey alone: they belong to it. What lib uses itself serves all that lib does. Those of `lib/fast` stand there whomever they serve. */
function lonely(files: readonly string[], imports: readonly Import[]): string[] {
  return files
    .filter((file) => storeyOf(file) === 'lib' && !file.startsWith(FAST))
    .filter((file) => {
      const storeys = imports
        .filter(([, imported]) => imported === file)
        .map(([importer]) => (importer.startsWith(FAST) ? FAST : storeyOf(importer)));
      return new Set(storeys).size < 2;
    });
}

describe('the storeys of src', () => {
  const files = sourceFiles();
  const imports = sourceImports();

  it('are the entries of src, and at most twelve', () => {
    expect(readdirSync(join(ROOT, 'src')).sort()).toEqual([...STOREYS].sort());
    expect(STOREYS.length).toBeLessThanOrEqual(12);
  });

  it('import downward only', () => {
    expect(upward(imports)).toEqual([]);
  });

  it('have no circle of folders at any depth, types included', () => {
    expect(folderCycles(imports)).toEqual([]);
  });

  it('have no circle of files that load one another', () => {
    expect(fileCycles(imports)).toEqual([]);
    const closing = importsOf('lib/bad.ts', "import { type Log, bad } from './worse.ts';\n");
    const back = importsOf('lib/worse.ts', "import { bad } from './bad.ts';\n");
    expect(fileCycles([...imports, ...closing, ...back])).toEqual([['lib/bad.ts', 'lib/worse.ts']]);
  });

  it('know the nouns above platform alone', () => {
    const below = files.filter((file) => ['platform', 'lib'].includes(storeyOf(file)));
    expect(below.filter((file) => NOUNS.test(file))).toEqual([]);
  });

  it('share a file of lib between two of them at least', () => {
    expect(lonely(files, imports)).toEqual([]);
  });

  it('hold no two files of one name', () => {
    const byName = Map.groupBy(files, (file) => basename(file));
    expect([...byName.values()].filter((same) => same.length > 1)).toEqual([]);
  });

  /** Where a bad import stands, and what it imports. */
  const UP: [file: string, from: string][] = [
    ['lib/bad.ts', '../platform/errors.ts'],
    ['tables/bad.ts', '../domain/assets/assets.service.ts'],
    ['platform/database/bad.ts', '../../events/bus/topics.ts'],
    ['events/outbox/bad.ts', '../../audit/mask.ts'],
    ['audit/bad.ts', '../access/identity/principal.ts'],
    ['access/tokens/bad.ts', '../../domain/users/users.service.ts'],
    ['domain/accounts/bad.ts', '../../gateway/exchange/exchange.ts'],
    ['domain/accounts/bad.ts', '../../api/rest/assets.rest.ts'],
    ['gateway/proxy/bad.ts', '../../api/rest/assets.rest.ts'],
    ['api/rest/bad.ts', '../../app/context.ts'],
    ['app/bad.ts', '../cli/cli.ts'],
    ['cli/bad.ts', '../main.ts'],
  ];

  const FORMS: Readonly<Record<string, (from: string) => string>> = {
    static: (from) => `import {\n  bad,\n} from '${from}';\n`,
    type: (from) => `import type { Bad } from '${from}';\n`,
    effect: (from) => `import '${from}';\n`,
    dynamic: (from) => `export const bad = await import('${from}');\n`,
    'handed on': (from) => `export * from '${from}';\n`,
  };

  it.each(
    UP.flatMap(([file, from]) => Object.entries(FORMS).map(([form, text]) => ({ file, from, form, text: text(from) }))),
  )('are seen broken where $file imports $from ($form)', ({ file, text }) => {
    expect(upward([...imports, ...importsOf(file, text)])).toHaveLength(1);
  });

  it.each([
    ['domain/assets/bad.ts', '../wallet-rules/bad.ts', 'domain/wallet-rules/bad.ts', '../assets/bad.ts'],
    ['api/graphql/kit/bad.ts', '../types/assets.graphql.ts', undefined, undefined],
    ['gateway/exchange/bad.ts', '../proxy/forwarding.ts', undefined, undefined],
    ['gateway/endpoints/bad.ts', '../chain.ts', undefined, undefined],
  ])('are seen to have a circle where %s imports %s', (file, from, other, back) => {
    const planted = importsOf(file, `import type { Bad } from '${from}';\n`);
    const closing = other && back ? importsOf(other, `import type { Bad } from '${back}';\n`) : [];
    expect(folderCycles([...imports, ...planted, ...closing])).not.toEqual([]);
  });

  it('are seen to have a lonely file of lib', () => {
    const planted = importsOf('api/rest/bad.ts', "import { bad } from '../../lib/bad.ts';\n");
    expect(lonely([...files, 'lib/bad.ts'], [...imports, ...planted])).toEqual(['lib/bad.ts']);
  });
});
