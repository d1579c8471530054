import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Import, importsOf, sourceFiles, sourceImports } from '../support/architecture/imports.ts';

/** What a file of a feature may be, by the suffix of its name, and the rank of each: it imports from its own or lower. */
const RANKS: ReadonlyMap<string, number> = new Map([
  // Both are pure; a code's meaning is a rule that inputs parse by.
  ...(['input', 'rules'] as const).map((suffix) => [suffix, 0] as const),
  ['store', 1],
  ['service', 2],
  ['consumers', 3],
  ['rest', 4],
  ['openapi', 5],
  ['graphql', 6],
  ['tools', 7],
]);

/** The suffixes of the interfaces, which do not import each other; the document of REST describes its routes. */
const INTERFACES = new Set(['rest', 'openapi', 'graphql', 'tools']);

/** The files of a feature that others use. */
const SHARED = new Set(['input', 'rules', 'service']);

/** Files that may use more of another feature, and why. */
const ALLOWED = new Set([
  // The tool that assigns a network returns the wallet, as its own tools do.
  'features/networks/networks.tools.ts imports features/wallets/wallets.tools.ts',
]);

const isOfFeature = (file: string) => file.startsWith('features/');
const nounOf = (file: string) => file.split('/')[1];
const suffixOf = (file: string) => basename(file).split('.').at(-2) ?? '';
const rankOf = (file: string) => RANKS.get(suffixOf(file)) ?? Number.NaN;

function isGood(importer: string, imported: string): boolean {
  if (rankOf(imported) > rankOf(importer)) return false;
  const [from, to] = [suffixOf(importer), suffixOf(imported)];
  if (nounOf(importer) !== nounOf(imported)) return SHARED.has(to);
  return !INTERFACES.has(to) || from === to || (from === 'openapi' && to === 'rest');
}

function violations(imports: readonly Import[]): string[] {
  return imports
    .filter(([importer, imported]) => isOfFeature(importer) && isOfFeature(imported) && !isGood(importer, imported))
    .map(([importer, imported]) => `${importer} imports ${imported}`)
    .filter((violation) => !ALLOWED.has(violation));
}

/** Returns the imports of the engines by files that know no protocol. */
function protocols(imports: readonly Import[]): string[] {
  return imports
    .filter(
      ([importer, imported]) => isOfFeature(importer) && rankOf(importer) < 4 && /^(?:api|gateway)\//.test(imported),
    )
    .map(([importer, imported]) => `${importer} imports ${imported}`);
}

describe('the features of src', () => {
  const imports = sourceImports();

  it('each file has a suffix that states its role', () => {
    expect(sourceFiles().filter((file) => isOfFeature(file) && !RANKS.has(suffixOf(file)))).toEqual([]);
  });

  it('a file imports only roles to its left in its feature, and only input, rules and services of other features', () => {
    expect(violations(imports)).toEqual([]);
    for (const allowed of ALLOWED) expect(imports.map(([from, to]) => `${from} imports ${to}`)).toContain(allowed);
  });

  it('only interface files import a protocol', () => {
    expect(protocols(imports)).toEqual([]);
  });

  it.each([
    ['features/accounts/bad.service.ts', './accounts.rest.ts'],
    ['features/accounts/bad.rules.ts', './accounts.service.ts'],
    ['features/accounts/bad.store.ts', './accounts.service.ts'],
    ['features/accounts/bad.graphql.ts', './accounts.rest.ts'],
    ['features/accounts/bad.tools.ts', './accounts.graphql.ts'],
    ['features/accounts/bad.graphql.ts', '../wallets/wallets.graphql.ts'],
    ['features/accounts/bad.service.ts', '../transactions/transactions.store.ts'],
    ['features/accounts/bad.rules.ts', '../users/users.service.ts'],
  ])('reports a wrong import where %s imports %s', (file, from) => {
    expect(violations(importsOf(file, `import type { Bad } from '${from}';\n`))).toHaveLength(1);
  });

  it.each(['../../api/rest/route.ts', '../../gateway/exchange/exchange.ts'])(
    'reports a protocol import where a service imports %s',
    (from) => {
      expect(
        protocols(importsOf('features/accounts/bad.service.ts', `import type { Bad } from '${from}';\n`)),
      ).toHaveLength(1);
    },
  );
});
