import { randomUUID } from 'node:crypto';
import { copyFile, glob, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { runCommand } from '../support/services/commands.ts';
import { generateWithKubb } from '../support/services/kubb.ts';
import { type OpenApiGenerator, openApiGenerator, program } from '../support/services/openapi-generator.ts';

const CALLERS = join(import.meta.dirname, '../openapi/clients');
const TSC = join(import.meta.dirname, '../../node_modules/.bin/tsc');

let p: Portcullis;
let generator: OpenApiGenerator;
let folder: string;
beforeAll(async () => {
  [p, generator, folder] = await Promise.all([
    startPortcullis(),
    openApiGenerator(),
    mkdtemp(join(tmpdir(), 'portcullis-clients-')),
  ]);
});
afterAll(async () => {
  await p?.[Symbol.asyncDispose]();
  if (folder) await rm(folder, { recursive: true });
});

/** Compiles the client with the code that calls it; returns the command that runs them. */
async function compiled(kind: 'typescript-fetch' | 'java'): Promise<[string, string[]]> {
  const sources = join(folder, kind);
  const classes = join(folder, `${kind}-compiled`);
  await generator.generate(kind, sources);
  if (kind === 'java') {
    const classPath = ['-cp', `${classes}:${generator.libraries}`];
    const files = await Array.fromAsync(glob('src/main/**/*.java', { cwd: sources }));
    const all = [join(CALLERS, 'Caller.java'), ...files.map((file) => join(sources, file))];
    await runCommand(program('javac'), ['-nowarn', '-d', classes, ...classPath, ...all]);
    return [program('java'), [...classPath, 'Caller']];
  }
  await copyFile(join(CALLERS, 'caller.ts'), join(sources, 'caller.ts'));
  const compilerOptions = {
    strict: true,
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2022', 'dom', 'dom.iterable'],
  };
  const types = { typeRoots: [join(import.meta.dirname, '../../node_modules/@types')], types: ['node'] };
  const config = join(sources, 'tsconfig.json');
  await writeFile(config, JSON.stringify({ compilerOptions: { ...compilerOptions, ...types, outDir: classes } }));
  await runCommand(TSC, ['-p', config]);
  return [process.execPath, [join(classes, 'caller.js')]];
}

it.each(['typescript-fetch', 'java'] as const)(
  'D8-02: the %s client generated from the document compiles, and gets a token, a page, a rule and a user',
  async (kind) => {
    const { demo, url } = p;
    const email = `${randomUUID()}@example.com`;
    const [command, args] = await compiled(kind);
    const env = {
      ...process.env,
      BASE_URL: url,
      CLIENT_ID: demo.client.client_id,
      CLIENT_SECRET: demo.client.client_secret,
      WALLET: demo.wallet_id,
      TARGET_WALLET: demo.target_wallet_id,
      NETWORK: demo.network_id,
      CURRENCY: demo.network_currency_id,
      ADDRESS: `0x${randomUUID()}`,
      EMAIL: email,
    };
    const given = JSON.parse(await runCommand(command, args, { env }));
    expect(given).toEqual({
      scope: expect.stringContaining('accounts:read'),
      total: 25,
      accounts: 2,
      location: expect.stringContaining(`/v1/wallets/${demo.wallet_id}/rules/`),
      email,
    });
  },
);

/** Compiles only if closed lists are unions, and the code of an error is the constant. */
const KUBB_CALLER = `
import type { Health, TokenError, WalletRule } from './generated/index.ts';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Limit = NonNullable<WalletRule['permissionless_transfer_limit_rule']>;

export const checks: [
  Equal<TokenError['code'], -1>,
  Equal<Health['status'], 'ok' | 'degraded' | 'down'>,
  Equal<Limit['time_period'], 'hour' | 'day' | 'week' | 'month' | 'year'>,
] = [true, true, true];
`;

it('D8-02: kubb generates types that compile, with closed lists and error codes, and zod schemas', async () => {
  const sources = join(folder, 'kubb');
  await mkdir(sources);
  await generateWithKubb(sources);
  const kinds = await Promise.all(
    ['types', 'zod'].map((kind) => Array.fromAsync(glob(`generated/${kind}/*.ts`, { cwd: sources }))),
  );
  expect(Math.min(...kinds.map(({ length }) => length))).toBeGreaterThan(50);
  // The schemas of a condition refer to themselves: kubb gives them no type.
  await rm(join(sources, 'generated/zod'), { recursive: true });
  const index = kinds[0]?.map((file) => `export type * from './${file.slice('generated/'.length)}';\n`) ?? [];
  await writeFile(join(sources, 'generated/index.ts'), index.join(''));
  await writeFile(join(sources, 'caller.ts'), KUBB_CALLER);
  const options = '--noEmit --strict --target es2022 --lib es2022,dom --moduleResolution bundler'.split(' ');
  const files = ['--module', 'esnext', '--allowImportingTsExtensions', '--types', '', 'caller.ts'];
  await expect(runCommand(TSC, [...options, ...files], { cwd: sources })).resolves.toBe('');
});
