import { execFile, execFileSync } from 'node:child_process';
import { appendFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { sbomOf } from '../../scripts/sbom.ts';
import { manifest } from '../support/deploy/files.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { findOnPath } from '../support/services/commands.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const execute = promisify(execFile);
const lacking = ['git', 'sha256sum', 'ssh-keygen'].filter((name) => findOnPath(name) === undefined);

const commit =
  lacking.length > 0 ? '' : execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
// Two commits that are not released are not one version.
const version = manifest.version.endsWith('-dev') ? `${manifest.version}+${commit}` : manifest.version;
const SOURCE = `portcullis-${version}.tar.gz`;

describe.skipIf(lacking.length > 0)('the files of a release', () => {
  const folder = beforeTests(emptyFolder);
  let made: string;
  const signers = () => join(folder.path, 'allowed_signers');

  async function make(name: string): Promise<string> {
    const out = join(folder.path, name);
    await mkdir(out);
    const env = { ...process.env, RELEASE_SIGNING_KEY: join(folder.path, 'key') };
    await execute('.ci/release-files', [out], { cwd: ROOT, env });
    return out;
  }

  async function copyOf(name: string): Promise<string> {
    const copy = join(folder.path, name);
    await cp(made, copy, { recursive: true });
    return copy;
  }

  /** What whoever gets a release does: first the signature, then the digests. */
  function verify(out: string): void {
    const names = ['-f', signers(), '-I', 'release', '-n', 'portcullis-release'];
    const input = execFileSync('cat', ['SHA256SUMS'], { cwd: out });
    execFileSync('ssh-keygen', ['-q', '-Y', 'verify', ...names, '-s', 'SHA256SUMS.sig'], { cwd: out, input });
    execFileSync('sha256sum', ['--quiet', '-c', 'SHA256SUMS'], { cwd: out, stdio: 'pipe' });
  }

  beforeAll(async () => {
    const key = join(folder.path, 'key');
    await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a test', '-f', key]);
    await writeFile(signers(), `release namespaces="portcullis-release" ${await readFile(`${key}.pub`, 'utf8')}`);
    made = await make('first');
  });

  it('are signed, and the signature and every digest verify', () => {
    expect(() => verify(made)).not.toThrow();
  });

  it('are identical for the same commit', async () => {
    const again = await make('again');
    for (const name of [SOURCE, 'sbom.json', 'provenance.json', 'SHA256SUMS']) {
      expect(await readFile(join(again, name)), name).toEqual(await readFile(join(made, name)));
    }
  });

  it.each([SOURCE, 'sbom.json', 'provenance.json', 'SHA256SUMS'])(
    'a change of one byte in %s is detected',
    async (name) => {
      const changed = await copyOf(`changed-${name}`);
      await appendFile(join(changed, name), '\n');
      expect(() => verify(changed)).toThrow();
    },
  );

  it('signed with another key or for another purpose are rejected', async () => {
    const other = await copyOf('other');
    const key = join(folder.path, 'other-key');
    await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'another', '-f', key]);
    for (const [signer, purpose] of [
      [key, 'portcullis-release'],
      [join(folder.path, 'key'), 'git'],
    ] as const) {
      await rm(join(other, 'SHA256SUMS.sig'), { force: true });
      await execute('ssh-keygen', ['-q', '-Y', 'sign', '-f', signer, '-n', purpose, join(other, 'SHA256SUMS')]);
      expect(() => verify(other)).toThrow();
    }
  });

  it('state their commit, their packages, and what each file is', async () => {
    const provenance = JSON.parse(await readFile(join(made, 'provenance.json'), 'utf8'));
    const sums = new Map(
      (await readFile(join(made, 'SHA256SUMS'), 'utf8'))
        .split('\n')
        .map((line) => line.split('  ').reverse() as [string, string]),
    );
    expect(provenance.subject).toEqual(
      [SOURCE, 'sbom.json'].map((name) => ({ name, digest: { sha256: sums.get(name) } })),
    );
    const { buildDefinition } = provenance.predicate;
    expect(buildDefinition.externalParameters.version).toBe(version);
    expect(buildDefinition.resolvedDependencies[0].digest.gitCommit).toBe(commit);
    expect(JSON.parse(await readFile(join(made, 'sbom.json'), 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(sbomOf(ROOT))),
    );
    const listed = execFileSync('tar', ['-tzf', join(made, SOURCE)], { encoding: 'utf8' }).split('\n');
    expect(listed).toContain(`portcullis-${version}/src/main.ts`);
  });
});
