import { describe, inject } from 'vitest';
import type {} from './global-setup.ts';
import type { ServiceName } from './provision.ts';

/** The address of a real server: a URL, or Kafka's brokers separated by commas; of the browser, Prometheus and Python, their paths. Throws when there is none. */
export function serviceAddress(name: ServiceName): string {
  const address = addressOf(name);
  if (address === undefined) throw new Error(`there is no ${name}: ${reasonFor(name)}`);
  return address;
}

/**
 * A suite that needs real servers, a browser, Prometheus or Python. It runs when there are all of them, and otherwise is
 * reported as skipped under its name with the reason. Addresses belong into hooks and tests: the suite's own function runs even when it is skipped.
 */
export function describeReal(needed: ServiceName | ServiceName[], name: string, suite: () => void): void {
  const lacking = [needed].flat().filter((service) => addressOf(service) === undefined);
  if (lacking.length === 0) {
    describe(name, suite);
    return;
  }
  const reasons = lacking.map((service) => `no ${service}: ${reasonFor(service)}`);
  describe.skip(`${name} [${reasons.join('; ')}]`, suite);
}

function addressOf(name: ServiceName): string | undefined {
  switch (name) {
    case 'postgres':
      return inject('databaseUrl');
    case 'redis':
      return inject('redisUrl');
    case 'kafka':
      return inject('kafkaBrokers');
    case 'chromium':
      return inject('chromium');
    case 'prometheus':
      return inject('prometheus');
    case 'python':
      return inject('python');
    default:
      return name satisfies never;
  }
}

function reasonFor(name: ServiceName): string {
  const missing: { name: string; reason: string }[] | undefined = inject('missingServices');
  if (missing === undefined)
    throw new Error('globalSetup of the vitest configuration lacks test/support/services/global-setup.ts');
  return missing.find((service) => service.name === name)?.reason ?? 'unknown';
}
