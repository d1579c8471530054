import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../start/process.ts';
import { type Complaint, complaints } from './lint-copy.ts';

const LIB = 'lib is free of the domain';
const ERRORS = 'errors stand on lib alone';
const CONFIG = 'config stands on lib and errors alone';
const DOMAIN = 'The domain knows no adapter';
const ROOT_UP = 'The composition root imports the domain and its adapters';
const CONTEXT = 'The context knows no service';
const SERVICE = 'A service does not know the process';
const ENTRY = 'Nothing imports an entry';
const ENVIRONMENT = 'process.env';
const HANDED = 'process is not handed around';
const HIDDEN = 'An import inside a type hides its direction';

/** Where a bad import stands, what it imports, and the rule that refuses it. */
const BAD: [folder: string, imports: string, says: string][] = [
  ['src/lib', '../errors/app-error.ts', LIB],
  ['src/lib', '../accounts/accounts.service.ts', LIB],
  ['src/errors', '../config/config.ts', ERRORS],
  ['src/errors', '../accounts/accounts.service.ts', ERRORS],
  ['src/config', '../accounts/accounts.service.ts', CONFIG],
  ['src/config', '../gateway/exchange.ts', CONFIG],
  ['src/accounts', '../gateway/exchange.ts', DOMAIN],
  ['src/accounts', '../rest/send.ts', DOMAIN],
  ['src/accounts', '../graphql/builder.ts', DOMAIN],
  ['src/accounts', './accounts.rest.ts', DOMAIN],
  ['src/accounts', './accounts.graphql.ts', DOMAIN],
  ['src/accounts', 'express', DOMAIN],
  ['src/accounts', 'graphql-yoga', DOMAIN],
  ['src/accounts', 'graphql', DOMAIN],
  ['src/accounts', '@pothos/core', DOMAIN],
  ['src/accounts', '@envelop/core', DOMAIN],
  ['src/accounts', 'ws', DOMAIN],
  ['src/accounts', 'node:http', DOMAIN],
  ['src/accounts', 'node:process', DOMAIN],
  ['src/a-folder-to-come', '../gateway/exchange.ts', DOMAIN],
  ['src/oauth/grants', '../../gateway/exchange.ts', DOMAIN],
  ['src/accounts', '../context.ts', ROOT_UP],
  ['src/oauth/grants', '../../service.ts', ROOT_UP],
  ['src/accounts', '../demo/demo.ts', ROOT_UP],
  ['src/rest', '../context.ts', ROOT_UP],
  ['src/gateway', '../run.ts', ROOT_UP],
  ['src/gateway/stages', '../../http-server.ts', ROOT_UP],
  ['src/graphql', '../context.ts', ROOT_UP],
  ['src/graphql', '../cli/cli.ts', ROOT_UP],
  ['src/embedded', '../service.ts', CONTEXT],
  ['src/demo', '../run.ts', SERVICE],
  ['src/cli', '../main.ts', ENTRY],
];

/** Files that are replaced, since their place and not their name decides. */
const BAD_FILES: [file: string, text: string, says: string][] = [
  ['src/accounts/bad.rest.ts', "import '../context.ts';\n", ROOT_UP],
  ['src/accounts/bad.graphql.ts', "import '../stores.ts';\n", ROOT_UP],
  ['src/entities.ts', "import './gateway/exchange.ts';\n", DOMAIN],
  ['src/db.ts', "import './context.ts';\n", ROOT_UP],
  ['src/context.ts', "import './service.ts';\n", CONTEXT],
  ['src/stores.ts', "import './http-server.ts';\n", CONTEXT],
  ['src/service.ts', "import './run.ts';\n", SERVICE],
  ['src/http-server.ts', "import './cli/cli.ts';\n", SERVICE],
  ['src/run.ts', "import './main.ts';\n", ENTRY],
  ['src/accounts/env.ts', 'export const home = process.env.HOME;\n', ENVIRONMENT],
  ['src/gateway/env.ts', 'export const home = process.env.HOME;\n', ENVIRONMENT],
  ['src/accounts/env-by-name.ts', 'const { env } = process;\nexport const home = env.HOME;\n', HANDED],
  ['src/accounts/type.ts', "export type Hidden = import('../context.ts').Context;\n", HIDDEN],
];

const FORMS: Readonly<Record<string, (from: string) => string>> = {
  static: (from) => `import * as bad from '${from}';\nexport { bad };\n`,
  type: (from) => `import type * as bad from '${from}';\nexport type Bad = typeof bad;\n`,
  dynamic: (from) => `export const bad = await import('${from}');\n`,
  'handed on': (from) => `export * from '${from}';\n`,
};

const cases = [
  ...BAD.flatMap(([folder, imports, says], at) =>
    Object.entries(FORMS).map(([form, text]) => {
      const file = `${folder}/bad-${at}-${form.replace(' ', '-')}.ts`;
      return { name: `${folder} imports ${imports} (${form})`, file, text: text(imports), says };
    }),
  ),
  ...BAD_FILES.map(([file, text, says]) => ({ name: `${file}: ${text.trim().split('\n')[0]}`, file, text, says })),
];

describe('the one direction of imports', () => {
  let found: Complaint[];

  beforeAll(async () => {
    found = await complaints(Object.fromEntries(cases.map(({ file, text }) => [file, text])));
  });

  it.each(cases)('is broken where $name', ({ file, says }) => {
    const messages = found.filter((complaint) => complaint.file === file).map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining(says));
  });

  it('is kept by the sources as they are', async () => {
    const says = [...cases.map((bad) => bad.says), 'Raw SQL', 'database.ts'];
    expect((await complaints()).filter(({ message }) => says.some((text) => message.includes(text)))).toEqual([]);
  });

  it('knows every file at the root of the sources', () => {
    const { overrides } = JSON.parse(readFileSync(join(ROOT, 'biome.json'), 'utf8'));
    const roots = readdirSync(join(ROOT, 'src')).filter((name) => name.endsWith('.ts'));
    const named = /\*\*\/\{[^}]*\bcontext,[^}]*\}\.ts/.exec(JSON.stringify(overrides))?.[0] ?? '';
    const known = named.slice('**/{'.length, -'}.ts'.length).split(',');
    expect([...known, 'db', 'entities'].map((name) => `${name}.ts`).sort()).toEqual(roots.sort());
  });
});
