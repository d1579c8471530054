import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { readManifest } from './lockfile.ts';
import { provenanceOf } from './provenance.ts';
import { sbomOf } from './sbom.ts';

const ROOT = resolve(import.meta.dirname, '..');

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { cwd: ROOT, maxBuffer: 1024 ** 3 });
}

/** Writes the source, the bill of materials, the provenance and the digests of all three into a folder: of one commit always the same. */
function main([out = 'release']: readonly string[]): void {
  const manifest = readManifest(ROOT);
  const commit = git('rev-parse', 'HEAD').toString().trim();
  // As in the image: what is not released names its commit.
  const version = manifest.version.endsWith('-dev') ? `${manifest.version}+${commit}` : manifest.version;
  const files: Record<string, Uint8Array | string> = {
    [`portcullis-${version}.tar.gz`]: gzipSync(git('archive', `--prefix=portcullis-${version}/`, commit), { level: 9 }),
    'sbom.json': json(sbomOf(ROOT)),
  };
  const digests = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)]));
  const lockfile = sha256(readFileSync(join(ROOT, 'package-lock.json')));
  files['provenance.json'] = json(provenanceOf({ version, commit, lockfile, files: digests }));
  files.SHA256SUMS = Object.entries(files)
    .map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`)
    .join('');
  mkdirSync(out, { recursive: true });
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(out, name), bytes);
}

main(process.argv.slice(2));
