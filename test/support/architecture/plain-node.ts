import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../start/process.ts';

/** Names that a file takes from a package at run time. */
export interface ValueImport {
  file: string;
  specifier: string;
  names: readonly string[];
}

const FOLDERS = '{src,scripts,tools,client/src}/**/*.ts';
/** A static import or re-export with names, unless it is of types only. */
const STATIC =
  /^(?:import|export)\s+(?!type\b)(?:(?<whole>\w+)\s*,?\s*)?(?:\{(?<names>[^}]*)\}\s*)?from\s+'(?<specifier>[^']+)'/gm;
/** Names that are destructured from an import expression. */
const DESTRUCTURED = /\{(?<names>[^{}=;]*)\}\s*=\s*await import\(\s*'(?<specifier>[^']+)'\s*\)/g;
/** A member of an import expression. */
const MEMBER = /await import\(\s*'(?<specifier>[^']+)'\s*\)\s*\)\s*\.(?<names>\w+)/g;

/** Returns the names that the program and its tools import from packages, statically or when they are first needed. */
export function packageImports(): ValueImport[] {
  const files = globSync(FOLDERS, { cwd: ROOT }).sort();
  return files.flatMap((file) => valueImportsOf(file, readFileSync(join(ROOT, file), 'utf8')));
}

/** Returns the names that a file with this text imports from packages. */
export function valueImportsOf(file: string, text: string): ValueImport[] {
  return [STATIC, DESTRUCTURED, MEMBER]
    .flatMap((form) => Array.from(text.matchAll(form), ({ groups = {} }): Record<string, string | undefined> => groups))
    .map(({ whole, names = '', specifier = '' }) => ({
      file,
      specifier,
      names: [...(whole === undefined ? [] : ['default']), ...namesIn(names)],
    }))
    .filter(({ specifier, names }) => !/^(?:\.|node:)/.test(specifier) && names.length > 0);
}

/** The imported names of a list such as `a, type B, c as d, e: f`. */
function namesIn(list: string): string[] {
  return list
    .replace(/\/\/.*$/gm, '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '))
    .map((name) => name.split(/\s+as\s+|\s*:\s*/)[0] ?? name);
}

/**
 * Runs a module in a plain Node, without the test runner, whose loader lets a CommonJS package export every name.
 * @returns what the module prints, as JSON. `args` are in `process.argv` from the third on.
 */
export async function inPlainNode(module: string, args: readonly string[]): Promise<unknown> {
  const { NODE_COMPILE_CACHE, ...env } = process.env;
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', module, '--', ...args];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: ROOT, env });
  return JSON.parse(stdout);
}
