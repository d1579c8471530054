import { type Asked, type Kind, manyEndpoints, requestsOf } from './endpoints.ts';
import { MATCHERS, type Matcher, type MatcherName } from './matchers.ts';

/** Which matcher is measured, on how many endpoints. */
export interface MatchingOptions {
  matcher: MatcherName;
  endpoints: number;
}

/** What one process has measured. */
export interface Matching {
  /** Milliseconds of CPU from the endpoints to what matches them, in a process that has compiled nothing before. */
  compileMs: number;
  /** Nanoseconds of CPU of one match. */
  ns: Record<Kind, number>;
}

const WARM_UP_MS = 150;
const MEASURED_MS = 250;
/** Matches between two looks at the clock. */
const AT_ONCE = 32;

/** Run as a process of its own, with `MatchingOptions` as JSON: prints a `Matching`. */
function measure({ matcher: name, endpoints: count }: MatchingOptions): Matching {
  const compile = MATCHERS[name](manyEndpoints(count));
  const requests = requestsOf(count);
  const from = cpuMs();
  const matcher = compile();
  const compileMs = cpuMs() - from;
  const isHit: Record<Kind, boolean> = { literal: true, parameters: true, miss: false, deep: false };
  const ns = { literal: 0, parameters: 0, miss: 0, deep: 0 };
  for (const kind of ['literal', 'parameters', 'miss', 'deep'] as const) {
    run(matcher, requests[kind], isHit[kind], WARM_UP_MS);
    ns[kind] = run(matcher, requests[kind], isHit[kind], MEASURED_MS);
  }
  return { compileMs, ns };
}

/** Nanoseconds of CPU of a match, over the requests in turn until the time is up. */
function run(matcher: Matcher, requests: readonly Asked[], isHit: boolean, forMs: number): number {
  const from = cpuMs();
  let matches = 0;
  let hits = 0;
  let spentMs = 0;
  while (spentMs < forMs) {
    for (let each = 0; each < AT_ONCE; each++) {
      const { method = '', path = '' } = requests[(matches + each) % requests.length] ?? {};
      if (matcher(method, path) !== undefined) hits += 1;
    }
    matches += AT_ONCE;
    spentMs = cpuMs() - from;
  }
  if (hits !== (isHit ? matches : 0)) throw new Error(`${hits} of ${matches} were found`);
  return (spentMs * 1e6) / matches;
}

/** Milliseconds of CPU of this process so far, user and system, all threads. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: matching JSON');
process.stdout.write(JSON.stringify(measure(JSON.parse(given))));
