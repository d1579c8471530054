import { join } from 'node:path';
import { cached } from './cache.ts';
import { findOnPath, runCommand } from './commands.ts';
import { maven } from './maven.ts';

const VERSION = '7.25.0';
const DOCUMENT = join(import.meta.dirname, '../../../schema/openapi.json');

export interface OpenApiGenerator {
  /** Generates a client of the document into a folder. */
  generate(kind: 'typescript-fetch' | 'java', folder: string): Promise<void>;
  /** The class path of what clients in Java need. */
  libraries: string;
}

/** openapi-generator and what its clients in Java need, out of the per-user cache, fetched by Maven the first time. */
export async function openApiGenerator(): Promise<OpenApiGenerator> {
  const folder = await cached(`openapi-generator-${VERSION}`, fetchGenerator);
  return { generate: (kind, to) => generate(folder, kind, to), libraries: join(folder, 'libraries', '*') };
}

async function fetchGenerator(temporary: string): Promise<string> {
  const folder = join(temporary, 'generator');
  await jarsOf(join(import.meta.dirname, 'openapi-generator-pom.xml'), folder, temporary, ['-DexcludeTransitive']);
  const client = join(temporary, 'client');
  await generate(folder, 'java', client);
  await jarsOf(join(client, 'pom.xml'), join(folder, 'libraries'), temporary, ['-DincludeScope=compile']);
  return folder;
}

async function jarsOf(pom: string, to: string, folder: string, more: string[]): Promise<void> {
  const args = ['-f', pom, `-DoutputDirectory=${to}`, ...more];
  await maven({ what: `openapi-generator ${VERSION}`, goal: 'copy-dependencies', args, folder });
}

async function generate(folder: string, kind: string, to: string): Promise<void> {
  const jar = join(folder, `openapi-generator-cli-${VERSION}.jar`);
  await runCommand(program('java'), ['-jar', jar, 'generate', '-g', kind, '-i', DOCUMENT, '-o', to]);
}

/** The path of a program of the PATH. */
export function program(name: string): string {
  const path = findOnPath(name);
  if (path === undefined) throw new Error(`no ${name} is on the PATH`);
  return path;
}
