import { describe, inject } from 'vitest';
import type {} from './global-setup.ts';
import type { ServiceName } from './provision.ts';

/** Returns the URL of a real server, Kafka's brokers separated by commas, or the path of a program; throws if it is missing. */
export function serviceAddress(name: ServiceName): string {
  const address = inject('addresses')[name];
  if (address === undefined) throw new Error(`there is no ${name}: ${reasonFor(name)}`);
  return address;
}

/**
 * A suite that needs real servers, a browser, Prometheus or Python. It runs when there are all of them, and otherwise is
 * reported as skipped under its name with the reason. Addresses belong into hooks and tests: the suite's own function runs even when it is skipped.
 */
export function describeReal(needed: ServiceName | ServiceName[], name: string, suite: () => void): void {
  const lacking = [needed].flat().filter((service) => inject('addresses')[service] === undefined);
  if (lacking.length === 0) {
    describe(name, suite);
    return;
  }
  const reasons = lacking.map((service) => `no ${service}: ${reasonFor(service)}`);
  describe.skip(`${name} [${reasons.join('; ')}]`, suite);
}

function reasonFor(name: ServiceName): string {
  return inject('missingServices').find((service) => service.name === name)?.reason ?? 'unknown';
}
