import { type ResolveHookSync, registerHooks } from 'node:module';

/** Matches the files of packages that are ES modules throughout, and have hundreds. */
const OF_MODULES = /\/node_modules\/(?:kysely|zod)\/.*\.js$/;

/**
 * Resolves what the product, or one of those packages, imports by a relative path: it is where the path says. Node asks
 * the file system and `package.json` for each import, which takes longer than all else that it does for a module.
 */
const resolve: ResolveHookSync = (specifier, context, next) => {
  const { parentURL = '', conditions } = context;
  const own = specifier.endsWith('.ts') ? 'module-typescript' : undefined;
  const format = own ?? (OF_MODULES.test(parentURL) ? 'module' : undefined);
  return format !== undefined && specifier.startsWith('.') && conditions.includes('import')
    ? { url: new URL(specifier, parentURL).href, format, shortCircuit: true }
    : next(specifier, context);
};

/** Loads modules with that resolution, which ends when they are loaded: it would slow down each `require`. */
export function loading<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  const hooks = registerHooks({ resolve });
  return load().finally(() => hooks.deregister());
}
