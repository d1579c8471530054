import { withTimeout } from '../../../src/lib/with-timeout.ts';
import { PATIENCE_MS } from './deadlines.ts';

type Stop = (...given: unknown[]) => void | PromiseLike<void>;

/** The stops that have begun and not ended, by where they were put on their stack. */
const open = new Set<string>();
let stops = 0;

/** Follows a stop from its begin to its end. */
function followed(stop: Stop, place: string): Stop {
  return async (...given) => {
    stops += 1;
    const name = `${stops} ${place}`;
    open.add(name);
    try {
      return await stop(...given);
    } finally {
      open.delete(name);
    }
  };
}

/** The line that called the function that calls this. */
function caller(): string {
  return new Error().stack?.split('\n')[3]?.trim() ?? '';
}

const { prototype } = AsyncDisposableStack;
// A worker that is shared by several files comes here once for each of them.
if (prototype.defer.name !== 'deferFollowed') {
  const { defer, adopt } = prototype;
  prototype.defer = function deferFollowed(stop) {
    defer.call(this, followed(stop, caller()));
  };
  prototype.adopt = function adoptFollowed(value, stop) {
    return adopt.call(this, value, followed(stop as Stop, caller())) as typeof value;
  };
  prototype.use = function useFollowed(value) {
    const stop = value?.[Symbol.asyncDispose as never] ?? value?.[Symbol.dispose as never];
    if (stop)
      defer.call(
        this,
        followed(() => (stop as Stop).call(value), caller()),
      );
    return value;
  };
}

/** Stops an instance. @throws an error that names what has not ended, where the stop hangs. */
export async function stopped(instance: AsyncDisposable, withinMs = PATIENCE_MS): Promise<void> {
  await withTimeout(Promise.resolve(instance[Symbol.asyncDispose]()), withinMs).catch((error: unknown) => {
    throw new Error(`the stop failed, or hangs at ${[...open].join('; ')}`, { cause: error });
  });
}
