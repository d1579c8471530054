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

/** The layers of src, from the top. Each imports only from the layers below it. */
const LAYERS = [
  'main.ts',
  'cli',
  'app',
  'features',
  'api',
  'gateway',
  'idempotency',
  'access',
  'audit',
  'events',
  'platform',
  'tables',
  'lib',
];

/** The nouns of the product, as in file names. */
const NOUNS =
  /account|asset|wallet|network|transaction|(?:^|[^a-z])users?(?:[^a-z]|$)|supervisor|migration-|user-migration|gas-fee|webhook/;

const layerOf = (file: string) => file.split('/', 1).join();

function upward(imports: readonly Import[]): string[] {
  return imports
    .filter(([importer, imported]) => LAYERS.indexOf(layerOf(importer)) > LAYERS.indexOf(layerOf(imported)))
    .map(([importer, imported]) => `${importer} imports ${imported}`);
}

const FAST = 'lib/fast/';

/**
 * Returns the files of `lib` that only one layer imports: they belong to that layer. Files of `lib/fast` may have one
 * importer.
 */
function lonely(files: readonly string[], imports: readonly Import[]): string[] {
  return files
    .filter((file) => layerOf(file) === 'lib' && !file.startsWith(FAST))
    .filter((file) => {
      const layers = imports
        .filter(([, imported]) => imported === file)
        .map(([importer]) => (importer.startsWith(FAST) ? FAST : layerOf(importer)));
      return new Set(layers).size < 2;
    });
}

describe('the layers of src', () => {
  const files = sourceFiles();
  const imports = sourceImports();

  it('are the entries of src, and at most thirteen', () => {
    expect(readdirSync(join(ROOT, 'src')).sort()).toEqual([...LAYERS].sort());
    expect(LAYERS.length).toBeLessThanOrEqual(13);
  });

  it('import downward only', () => {
    expect(upward(imports)).toEqual([]);
  });

  it('have no circular imports between folders at any depth, types included', () => {
    expect(folderCycles(imports)).toEqual([]);
  });

  it('have no two files that import each other, directly or through others', () => {
    expect(fileCycles(imports)).toEqual([]);
    const closing = importsOf('lib/bad.ts', "import { type Log, bad } from './worse.ts';\n");
    const back = importsOf('lib/worse.ts', "import { bad } from './bad.ts';\n");
    expect(fileCycles([...imports, ...closing, ...back])).toEqual([['lib/bad.ts', 'lib/worse.ts']]);
  });

  it('name domain nouns only above platform', () => {
    const below = files.filter((file) => ['platform', 'lib'].includes(layerOf(file)));
    expect(below.filter((file) => NOUNS.test(file))).toEqual([]);
  });

  it('have in lib only files that at least two layers import', () => {
    expect(lonely(files, imports)).toEqual([]);
  });

  it('have no two files with the same name', () => {
    const byName = Map.groupBy(files, (file) => basename(file));
    expect([...byName.values()].filter((same) => same.length > 1)).toEqual([]);
  });

  /** A file with a bad import, and what it imports. */
  const UP: [file: string, from: string][] = [
    ['lib/bad.ts', '../platform/errors.ts'],
    ['tables/bad.ts', '../features/assets/assets.service.ts'],
    ['platform/database/bad.ts', '../../events/bus/topics.ts'],
    ['events/outbox/bad.ts', '../../audit/mask.ts'],
    ['audit/bad.ts', '../access/identity/callers.ts'],
    ['access/tokens/bad.ts', '../../features/users/users.service.ts'],
    ['idempotency/bad.ts', '../gateway/exchange/exchange.ts'],
    ['gateway/proxy/bad.ts', '../../api/rest/route.ts'],
    ['api/rest/bad.ts', '../../features/assets/assets.service.ts'],
    ['features/accounts/bad.service.ts', '../../app/context.ts'],
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
  )('an upward import is reported where $file imports $from ($form)', ({ file, text }) => {
    expect(upward([...imports, ...importsOf(file, text)])).toHaveLength(1);
  });

  it.each([
    [
      'features/assets/bad.service.ts',
      '../wallet-rules/bad.service.ts',
      'features/wallet-rules/bad.service.ts',
      '../assets/bad.service.ts',
    ],
    ['api/graphql/kit/bad.ts', '../execution/engine.ts', undefined, undefined],
    ['gateway/exchange/bad.ts', '../proxy/forwarding.ts', undefined, undefined],
    ['gateway/endpoints/bad.ts', '../chain.ts', undefined, undefined],
  ])('a circular import is reported where %s imports %s', (file, from, other, back) => {
    const planted = importsOf(file, `import type { Bad } from '${from}';\n`);
    const closing = other && back ? importsOf(other, `import type { Bad } from '${back}';\n`) : [];
    expect(folderCycles([...imports, ...planted, ...closing])).not.toEqual([]);
  });

  it('a file of lib that only one layer imports is reported', () => {
    const planted = importsOf('api/rest/bad.ts', "import { bad } from '../../lib/bad.ts';\n");
    expect(lonely([...files, 'lib/bad.ts'], [...imports, ...planted])).toEqual(['lib/bad.ts']);
  });
});
