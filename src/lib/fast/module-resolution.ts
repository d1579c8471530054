import { readFileSync } from 'node:fs';
import { type ResolveHookSync, registerHooks } from 'node:module';
import { crc32 } from 'node:zlib';

const ROOT = new URL('../../../', import.meta.url);
/** Where `npm run bundle` writes the packages of the product as few files. */
const FOLDER = new URL('node_modules/.packages/', ROOT);

/** What `npm run bundle` has written: the file of each name by which a package is imported, and of which versions. */
export interface Bundle {
  lockSum: number;
  files: Readonly<Record<string, string>>;
}

/** Returns the checksum of `package-lock.json`, which decides the version of every package. */
export function lockSum(): number {
  return crc32(readFileSync(new URL('package-lock.json', ROOT)));
}

/** Returns what is bundled of the installed versions: nothing if `npm run bundle` was never run with them. */
function bundledFiles(): Bundle['files'] {
  try {
    const bundle: Bundle = JSON.parse(readFileSync(new URL('index.json', FOLDER), 'utf8'));
    return bundle.lockSum === lockSum() ? bundle.files : {};
  } catch {
    return {};
  }
}

const files = bundledFiles();

/**
 * A package is in its bundle, and what the product or a bundle imports by a relative path is where the path says. Node
 * asks the file system and `package.json` for each import, and loads hundreds of files of packages.
 */
const resolve: ResolveHookSync = (specifier, context, next) => {
  const isRelative = /^\..*\.(?:ts|mjs)$/.test(specifier);
  const file = isRelative ? specifier : files[specifier];
  if (file === undefined) return next(specifier, context);
  const format = file.endsWith('.ts') ? 'module-typescript' : 'module';
  return { url: new URL(file, isRelative ? context.parentURL : FOLDER).href, format, shortCircuit: true };
};

/** Resolves in that way what is imported from now on. */
export function resolveFast(): void {
  registerHooks({ resolve });
}
