import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { emptyFolder } from '../start/folders.ts';
import { ROOT } from '../start/process.ts';

/** A complaint of the linter: the file from the repository's root, and what it says. */
export interface Complaint {
  file: string;
  message: string;
}

const BIOME = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');

/**
 * What the linter says of a copy of the sources to which `files` (text by path) were added, or which they replace: of
 * these and of `others`, or of all where there are none.
 */
export async function complaints(
  files: Readonly<Record<string, string>> = {},
  others: readonly string[] = [],
): Promise<Complaint[]> {
  await using copy = await emptyFolder();
  for (const part of ['src', 'lint', 'biome.json']) {
    await cp(join(ROOT, part), join(copy.path, part), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy.path, 'node_modules'));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(copy.path, path)), { recursive: true });
    await writeFile(join(copy.path, path), text);
  }
  return await lint(copy.path, [...Object.keys(files), ...others]);
}

function lint(cwd: string, paths: readonly string[]): Promise<Complaint[]> {
  const args = [BIOME, 'lint', '--vcs-enabled=false', '--reporter=github', '--max-diagnostics=none', ...paths];
  const { promise, resolve, reject } = Promise.withResolvers<Complaint[]>();
  execFile(process.execPath, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
    const lines = stdout.matchAll(/^::error .*?file=(?<file>[^,]+),.*?::(?<message>.*)$/gm);
    const found = Array.from(lines, ({ groups }) => ({
      file: relative(cwd, groups?.file ?? ''),
      message: groups?.message ?? '',
    }));
    // Without complaints a failure is one of the linter itself, such as a rule that cannot be read.
    if (error && found.length === 0) reject(new Error(`${stdout}\n${stderr}`));
    else resolve(found);
  });
  return promise;
}
