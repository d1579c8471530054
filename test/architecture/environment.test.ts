import { beforeAll, describe, expect, inject, it } from 'vitest';
import { type Complaint, complaints } from '../support/architecture/lint-copy.ts';
import { thoroughly } from '../support/harness/in-turn.ts';

const WIRE = 'knows no wire and no environment';

/** Files that are added, and the rule that refuses each. */
const BAD: [file: string, text: string, says: string][] = [
  ...['express', 'graphql-yoga', 'graphql', '@pothos/core', '@envelop/core', 'ws', 'node:http', 'node:process'].map(
    (name, at): [string, string, string] => [`src/features/accounts/bad-${at}.service.ts`, `import '${name}';\n`, WIRE],
  ),
  ['src/access/bad.ts', "import 'express';\n", WIRE],
  ['src/features/accounts/env.service.ts', 'export const home = process.env.HOME;\n', 'process.env'],
  ['src/gateway/env.ts', 'export const home = process.env.HOME;\n', 'process.env'],
  [
    'src/features/accounts/env-by-name.service.ts',
    'const { env } = process;\nexport const home = env.HOME;\n',
    'process is not handed around',
  ],
  [
    'src/features/accounts/type.service.ts',
    "export type Hidden = import('../../app/context.ts').Context;\n",
    'An import inside a type hides its direction',
  ],
];

describe('lint: HTTP, process and other outer layers below the gateway', () => {
  let found: Complaint[];

  beforeAll(async () => {
    const bad = Object.fromEntries(BAD.map(([file, text]) => [file, text]));
    found = await complaints(bad, inject('isThorough') ? ['src'] : []);
  });

  it.each(BAD)('rejects %s with %s', (file, _text, says) => {
    const messages = found.filter((complaint) => complaint.file === file).map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining(says));
  });

  // `npm run lint` says so in each run of .ci/run.
  thoroughly('reports none of these in the sources', () => {
    const says = [...BAD.map(([, , text]) => text), 'Raw SQL', 'database.ts'];
    const added = new Set(BAD.map(([file]) => file));
    const sources = found.filter(({ file }) => !added.has(file));
    expect(sources.filter(({ message }) => says.some((text) => message.includes(text)))).toEqual([]);
  });
});
