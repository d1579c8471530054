import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A JSON file in a folder of its own, which disposing removes; `write` replaces what is in it. */
export async function temporaryFile(name: string, content: unknown) {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-file-'));
  const path = join(folder, name);
  const write = (next: unknown) => writeFile(path, typeof next === 'string' ? next : JSON.stringify(next));
  await write(content);
  return { path, write, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}
