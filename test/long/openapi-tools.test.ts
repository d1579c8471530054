import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand } from '../support/services/commands.ts';

const DOCUMENT = join(import.meta.dirname, '../../schema/openapi.json');
const TOOLS = ['openapi-typescript@7.13.0', '@redocly/cli@2.77.0', 'typescript@5.9.3'];

/** An install of its own: these tools need another TypeScript than the product has. */
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-openapi-'));
  await writeFile(join(folder, 'package.json'), '{"private": true}');
  await runCommand('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...TOOLS], { cwd: folder });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function tool(name: string, ...args: string[]): Promise<string> {
  return runCommand(join(folder, 'node_modules/.bin', name), args, {
    cwd: folder,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  });
}

it('D8-02: openapi-typescript generates types in which token requests differ by grant', async () => {
  const types = join(folder, 'api.ts');
  await tool('openapi-typescript', DOCUMENT, '--output', types);
  expect(await readFile(types, 'utf8')).toContain('TokenRequest:');
  await writeFile(
    join(folder, 'use.ts'),
    [
      "import type { components } from './api.ts';",
      "type Request = components['schemas']['TokenRequest'];",
      "export const login: Request = { grant_type: 'password', username: 'a', password: 'b' };",
      '// @ts-expect-error a password is missing',
      "export const wrong: Request = { grant_type: 'password', username: 'a' };",
      "export const names = (request: Request) => (request.grant_type === 'password' ? request.username : undefined);",
    ].join('\n'),
  );
  const options = ['--strict', '--noEmit', '--skipLibCheck', '--allowImportingTsExtensions', '--module', 'nodenext'];
  await tool('tsc', ...options, 'use.ts');
});

it('D8-02: Redocly finds no error in the document, and builds a page from it', async () => {
  await tool('redocly', 'lint', '--extends', 'spec', DOCUMENT);
  await tool('redocly', 'build-docs', DOCUMENT, '--output', 'page.html');
  expect(await readFile(join(folder, 'page.html'), 'utf8')).toContain('Portcullis');
});
