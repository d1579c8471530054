import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/start/process.ts';

/** The releases of Node; a mirror of nodejs.org where that cannot be reached. */
const DIST = process.env.NODE_DIST ?? 'https://nodejs.org/dist';
const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Downloads a file of a release; undefined if the host cannot be reached. */
async function released(version: string, name: string): Promise<Buffer | undefined> {
  const response = await fetch(`${DIST}/v${version}/${name}`).catch(() => undefined);
  if (!response) return undefined;
  expect([name, response.status]).toEqual([name, 200]);
  return Buffer.from(await response.arrayBuffer());
}

it('the Node binary that npm installs has the checksum published by nodejs.org', async ({ skip }) => {
  const platform = `${process.platform}-${process.arch}`;
  const [name = '', version = ''] =
    Object.entries<string>(optionalDependencies).find(([one]) => one.endsWith(platform)) ?? [];
  const sums = await released(version, 'SHASUMS256.txt');
  if (!sums) return skip(`${DIST} cannot be reached`);
  const archive = `node-v${version}-${platform}.tar.gz`;
  const published = sums
    .toString()
    .split('\n')
    .map((line) => line.split(/ +/))
    .find(([, file]) => file === archive)?.[0];
  const bytes = (await released(version, archive)) ?? Buffer.alloc(0);
  expect(sha256(bytes)).toBe(published);
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-node-'));
  try {
    writeFileSync(join(folder, archive), bytes);
    const member = `node-v${version}-${platform}/bin/node`;
    execFileSync('tar', ['-xzf', archive, member], { cwd: folder });
    const installed = readFileSync(join(ROOT, 'node_modules', name, 'bin/node'));
    expect(sha256(installed)).toBe(sha256(readFileSync(join(folder, member))));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
