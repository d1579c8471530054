import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cached } from './cache.ts';
import { runCommand } from './commands.ts';
import { program } from './openapi-generator.ts';

const VERSION = '4.39.3';
const PACKAGES = ['cli', 'core', 'plugin-oas', 'plugin-ts', 'plugin-zod'].map((name) => `@kubb/${name}@${VERSION}`);
const DOCUMENT = join(import.meta.dirname, '../../../schema/openapi.json');

const CONFIG = `
import { defineConfig } from '@kubb/core';
import { pluginOas } from '@kubb/plugin-oas';
import { pluginTs } from '@kubb/plugin-ts';
import { pluginZod } from '@kubb/plugin-zod';

export default defineConfig({
  root: '.',
  input: { path: './openapi.json' },
  output: { path: './generated', clean: true, format: false, lint: false },
  plugins: [pluginOas({ validate: true }), pluginTs({ enumType: 'literal' }), pluginZod({})],
});
`;

/** Generates types and zod schemas of the document with kubb, whose packages npm fetches once, into `generated` of a folder. */
export async function generateWithKubb(folder: string): Promise<void> {
  const packages = await cached(`kubb-${VERSION}`, fetchKubb);
  await symlink(join(packages, 'node_modules'), join(folder, 'node_modules'));
  await cp(DOCUMENT, join(folder, 'openapi.json'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await writeFile(join(folder, 'kubb.config.mjs'), CONFIG);
  const kubb = join(folder, 'node_modules/@kubb/cli/bin/kubb.cjs');
  await runCommand(process.execPath, [kubb, 'generate', '--config', 'kubb.config.mjs'], { cwd: folder });
}

async function fetchKubb(temporary: string): Promise<string> {
  const folder = join(temporary, 'kubb');
  await mkdir(folder);
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES, 'zod@4.6.7'];
  await runCommand(program('npm'), args);
  return folder;
}
