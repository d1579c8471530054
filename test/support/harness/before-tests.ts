import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

/**
 * Starts something before the tests of a file or group, and disposes of it after them.
 * @returns an object that has the members of what was started, once it is.
 */
export function beforeTests<Started extends AsyncDisposable>(start: () => Promise<Started>): Started {
  return startedBy(start, beforeAll, afterAll);
}

/** The same before each test of a file or group. */
export function beforeEachTest<Started extends AsyncDisposable>(start: () => Promise<Started>): Started {
  return startedBy(start, beforeEach, afterEach);
}

type Hook = (run: () => Promise<void>) => void;

function startedBy<Started extends AsyncDisposable>(start: () => Promise<Started>, before: Hook, after: Hook): Started {
  let started: Started | undefined;
  before(async () => {
    started = await start();
  });
  after(async () => {
    await started?.[Symbol.asyncDispose]();
    started = undefined;
  });
  const current = () => {
    if (started === undefined) throw new Error('nothing is started outside of the tests and their hooks');
    return started;
  };
  return new Proxy({} as Started, {
    get: (_none, name) => Reflect.get(current(), name),
    set: (_none, name, value) => Reflect.set(current(), name, value),
    ownKeys: () => Reflect.ownKeys(current()),
    getOwnPropertyDescriptor: (_none, name) => Reflect.getOwnPropertyDescriptor(current(), name),
  });
}
