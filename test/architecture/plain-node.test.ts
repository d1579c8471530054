import { expect, it } from 'vitest';
import { sourceFiles } from '../support/architecture/imports.ts';
import { inPlainNode, packageImports, type ValueImport, valueImportsOf } from '../support/architecture/plain-node.ts';

/** Modules that do something as soon as they are loaded: test/cli/program.test.ts and the tests of reloads start them. */
const PROGRAMS = ['main.ts', 'cli/portcullis.ts', 'gateway/endpoints/table-thread.ts'];

/**
 * Loads each file, and looks at what the packages of the imports export. Prints the failures of the files, and those of
 * the imports that name what their package does not export.
 */
const LOAD = `
  import { pathToFileURL } from 'node:url';
  const [files, imports] = process.argv.slice(1).map((text) => JSON.parse(text));
  const [failures, missing] = [[], []];
  for (const file of files) {
    await import(process.cwd() + '/src/' + file).catch((error) => failures.push(file + ': ' + error));
  }
  for (const { file, specifier, names } of imports) {
    try {
      const space = await import(import.meta.resolve(specifier, pathToFileURL(process.cwd() + '/' + file)));
      missing.push(...names.filter((name) => !(name in space)).map((name) => file + ': ' + specifier + ' exports no ' + name));
    } catch (error) {
      missing.push(file + ': ' + specifier + ' ' + error);
    }
  }
  process.stdout.write(JSON.stringify({ failures, missing }), () => process.exit());`;

async function loaded(files: readonly string[], imports: readonly ValueImport[]) {
  return (await inPlainNode(LOAD, [JSON.stringify(files), JSON.stringify(imports)])) as {
    failures: string[];
    missing: string[];
  };
}

it('D1-12: Node loads every module of src, lazily imported modules included, and finds every name that is imported from a package', async () => {
  const files = sourceFiles().filter((file) => !PROGRAMS.includes(file));
  expect(files.length).toBeGreaterThan(300);
  const imports = packageImports();
  expect(imports.length).toBeGreaterThan(100);
  expect(imports.map(({ specifier }) => specifier)).toEqual(expect.arrayContaining(['kafkajs', 'pg', 'pino', 'zod']));
  expect(await loaded(files, imports)).toEqual({ failures: [], missing: [] });
});

it('(a name that a CommonJS package does not export to Node is reported for each form of import)', async () => {
  const forms = [
    "import { type Admin, KafkaJSProtocolError } from 'kafkajs';",
    "export { KafkaJSProtocolError as Protocol } from 'kafkajs';",
    "const { Kafka, KafkaJSProtocolError: Protocol } = await import('kafkajs');",
    "const failure = new (await import('kafkajs')).KafkaJSProtocolError();",
  ];
  const imports = forms.flatMap((text) => valueImportsOf('src/main.ts', text));
  expect(imports).toHaveLength(forms.length);
  const missing = 'src/main.ts: kafkajs exports no KafkaJSProtocolError';
  expect((await loaded([], imports)).missing).toEqual(forms.map(() => missing));
  expect(
    valueImportsOf('a.ts', "import type { Admin } from 'kafkajs';\nimport { type Kafka } from 'kafkajs';"),
  ).toEqual([]);
});
