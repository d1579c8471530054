import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * Loaded before the product: puts other modules in the place of some of its own. `SWAPPED` is a JSON object of the path
 * of each module and of what takes its place.
 */
const swapped = new Map(
  Object.entries<string>(JSON.parse(process.env.SWAPPED ?? '{}')).map(([from, to]) => [
    pathToFileURL(from).href,
    pathToFileURL(to).href,
  ]),
);

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const to = swapped.get(resolved.url);
    // What takes the place may use what it replaces.
    return to === undefined || context.parentURL === to ? resolved : { ...resolved, url: to };
  },
});
